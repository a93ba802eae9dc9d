"""A process with a Spark session that runs calls, and is killed if one takes too long.

Spark's planner cannot be interrupted, and a session that ran out of memory cannot be measured any
more. So calls run in another process; it and its JVM are killed if a result does not come, and the
next call starts a new one.
"""

import multiprocessing
import os
import signal
import tempfile
import time
import traceback
from collections.abc import Callable
from functools import cached_property
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from rivals.base import LeftOut

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENDING = 20  # seconds that a process has to stop its session


class Failed(Exception):
    """A call has no result; the message gives the reason."""


class Place(NamedTuple):
    """Where a session runs, and where it keeps its files."""

    cores: int
    folder: Path

    @property
    def master(self) -> str:
        return f"local[{self.cores}]"


class Session:
    """The Spark session of a process, started when it is first used."""

    def __init__(self, place: Place, report: Callable[[Any], None] = lambda _: None) -> None:
        self.place = place
        self.report = report  # sends the results so far, in case the rest takes too long
        self.seconds = 0.0  # that the start took

    @cached_property
    def spark(self) -> "SparkSession":
        from tamis.spark import spark_session

        folder = self.place.folder
        start = time.perf_counter()
        found = spark_session("pipeline", self.place.master, {
            "spark.local.dir": str(folder),
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
            "spark.driver.extraJavaOptions": f"-Djava.io.tmpdir={folder}",
            "spark.ui.showConsoleProgress": "false",
            # Nobody reads the text of a plan with 100,000 conditions.
            "spark.sql.debug.maxToStringFields": "10",
            "spark.sql.maxPlanStringLength": "1000",
        })  # fmt: skip
        self.seconds = time.perf_counter() - start
        # Spark logs a long trace for each plan that is too large for its compiler.
        found.sparkContext.setLogLevel("OFF")
        return found


class SparkProcess:
    """The process; `call` runs a function of its `Session` and some arguments in it."""

    def __init__(self, place: Place) -> None:
        self.place = place
        self._process: BaseProcess | None = None
        self._pipe: Connection | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._pipe is not None:
            try:
                self._pipe.send(None)
                self._process.join(ENDING)
            except OSError:  # it is gone already
                pass
        self.kill()

    @property
    def is_running(self) -> bool:
        """Whether the next call finds a process that is already running."""
        return self._process is not None

    def call(self, work: Callable[..., Any], limit: float, /, **arguments: Any) -> Any:
        """The result of ``work(session, **arguments)``; `LeftOut` or `Failed` if there is none.

        If there is no result within `limit` seconds, the last report is the result.
        """
        pipe = self._started()
        end = time.monotonic() + limit
        known: Any = None
        try:
            pipe.send((work, arguments))
            while pipe.poll(max(0.0, end - time.monotonic())):
                outcome, value = pipe.recv()
                if outcome == "done":
                    return value
                if outcome != "so far":
                    break
                known = value
            else:
                outcome, value = "late", f"not done in {limit:g} s"
        except (EOFError, ConnectionError):
            outcome, value = "ended", f"the process ended ({self._ending()})"
        if outcome == "left out":
            raise LeftOut(value)
        self.kill()  # its state is unknown
        if known is None:
            raise Failed(value)
        return known

    def kill(self) -> None:
        """Kill the process and its JVM; the next call starts new ones."""
        if self._process is None:
            return
        try:
            os.killpg(self._process.pid or 0, signal.SIGKILL)
        except ProcessLookupError:  # it ended, or does not lead a group yet
            self._process.kill()
        self._process.join()
        self._process = self._pipe = None

    def _ending(self) -> str:
        if self._process is None:
            return "killed"
        self._process.join(ENDING)
        code = self._process.exitcode or 0
        self.kill()
        return f"signal {signal.Signals(-code).name}" if code < 0 else f"code {code}"

    def _started(self) -> Connection:
        if self._pipe is None:
            context = multiprocessing.get_context("spawn")
            self._pipe, theirs = context.Pipe()
            self._process = context.Process(target=_serve, args=(self.place, theirs))
            self._process.start()
            theirs.close()
        return self._pipe


def _serve(place: Place, pipe: Connection) -> None:
    os.setsid()  # so that the JVM, which is another process, can be killed with this one
    # The same cores for everything: a session of one core also has threads and a Python process.
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-place.cores :])
    os.environ["TMPDIR"] = tempfile.tempdir = str(place.folder)
    session = Session(place, lambda value: pipe.send(("so far", value)))
    while (question := pipe.recv()) is not None:
        work, arguments = question
        try:
            answer = "done", work(session, **arguments)
        except LeftOut as error:
            answer = "left out", str(error)
        except Exception as error:  # noqa: BLE001 - of a library; the others still run
            answer = "failed", _short(error)
            if os.environ.get("PIPELINE_TRACE"):
                traceback.print_exc()
        pipe.send(answer)


def _short(error: Exception) -> str:
    """One line about an error; Java's errors begin with other lines."""
    lines = [line.strip() for line in str(error).splitlines()]
    named = [line for line in lines if line.startswith(("java.", "org.", "Caused by"))]
    text = f"{type(error).__name__}: {(named or lines or [''])[0]}"
    return text if len(text) <= 160 else text[:160] + "..."
