"""Starting Spark's JVM: with a suitable Java, without noise, and with a clear error.

A JVM writes to its standard error before any logging is configured, and when it cannot start, the
reason is there. So its standard error is a pipe, and a thread passes on what comes out of it. Lines
that come before the JVM runs are held back, to be shown later or to be the message of an error;
lines that every JVM writes about Spark's own options are dropped.
"""

import atexit
import os
import re
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from tamis.errors import TamisError
from tamis.spark.session.java import find_java_home
from tamis.spark.session.settings import spark_home

SHOWN = 15  # last lines of a JVM that could not start

# What JVMs write about the options that Spark always gives them.
_SAID_ALWAYS = re.compile(
    rb"^WARNING: (?:Using incubator modules: jdk\.incubator\.vector"
    rb"|package sun\.security\.action not in java\.base)\r?\n",
    re.MULTILINE,
)


def is_to_be_launched() -> bool:
    """Whether `launch` will start a JVM: this process has none, and none has started it."""
    from pyspark import SparkContext

    has_none = SparkContext._gateway is None  # noqa: SLF001 - there is no other way to ask
    return has_none and "PYSPARK_GATEWAY_PORT" not in os.environ


def launch(settings: Mapping[str, str], environment: Mapping[str, str], master: str) -> None:
    """Start the JVM of this process, unless it has one."""
    from pyspark import SparkConf, SparkContext
    from pyspark.errors import PySparkException
    from pyspark.java_gateway import launch_gateway

    with SparkContext._lock:  # noqa: SLF001 - PySpark's own way to keep others out meanwhile
        if SparkContext._gateway is not None:  # noqa: SLF001 - there is no other way to ask
            return
        if (
            "PYSPARK_GATEWAY_PORT" in os.environ
        ):  # spark-submit started the JVM, and it this process
            SparkContext._ensure_initialized()  # noqa: SLF001 - what a context does first
            return
        variables = dict(environment)
        variables["JAVA_HOME"] = str(find_java_home())
        if master.startswith("local-cluster") and not os.environ.get("SPARK_HOME"):
            variables["SPARK_HOME"] = str(_home_with_room_to_work())
        conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
        relay = _Relay()
        try:
            with _variables(variables):
                gateway = launch_gateway(  # type: ignore[no-untyped-call]  # it has no types
                    conf, {"stderr": relay.entrance}
                )
        except (OSError, PySparkException) as error:
            raise TamisError(_why(error, relay.finish())) from None
        relay.release()
        SparkContext._ensure_initialized(gateway=gateway)  # noqa: SLF001 - see above


class _Relay:
    """Passes on what is written to `entrance`: nothing until it is released, then everything."""

    def __init__(self) -> None:
        self._exit, self.entrance = os.pipe()
        self._held: list[bytes] | None = []
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._run, name="tamis-jvm-stderr", daemon=True)
        self._thread.start()

    def release(self) -> None:
        """The JVM runs: show what it has written so far, and from now on everything it writes."""
        os.close(self.entrance)  # the JVM has its own end
        with self._lock:
            held, self._held = b"".join(self._held or ()), None
            _write(held)

    def finish(self) -> str:
        """The JVM is gone: returns what it has written."""
        os.close(self.entrance)
        self._thread.join()
        return b"".join(self._held or ()).decode(errors="replace")

    def _run(self) -> None:
        while chunk := os.read(self._exit, 1 << 16):
            chunk = _SAID_ALWAYS.sub(b"", chunk)
            with self._lock:
                if self._held is None:
                    _write(chunk)
                else:
                    self._held.append(chunk)
        os.close(self._exit)


def _write(text: bytes) -> None:
    """Write to the standard error of the process, as the JVM itself would."""
    while text:
        try:
            text = text[os.write(2, text) :]
        except OSError:  # it was closed
            return


def _why(error: Exception, said: str) -> str:
    """The message about a JVM that did not start."""
    lines = [line for line in said.splitlines() if line.strip() and not line.startswith("\tat ")]
    if not lines:
        lines = [str(error)]
    shown = "\n  ".join(lines[-SHOWN:])
    return f"Spark's Java process did not start; its last words:\n  {shown}"


def _home_with_room_to_work() -> Path:
    """A folder of links to the content of PySpark's folder, to which workers can write.

    The workers of a ``local-cluster`` keep their files in this folder and nowhere else. They should
    not write to an installed package, and do not clean it up.
    """
    home = Path(tempfile.mkdtemp(prefix="tamis-spark-"))
    atexit.register(shutil.rmtree, home, ignore_errors=True)
    for entry in spark_home().iterdir():
        if entry.name != "work":
            (home / entry.name).symlink_to(entry)
    return home


@contextmanager
def _variables(ours: Mapping[str, str]) -> Iterator[None]:
    """Set environment variables for a process that is started inside; the user's own win."""
    hidden = {"SPARK_REMOTE"}  # spark-submit would look for a server
    found = {name: os.environ.get(name) for name in {*ours, *hidden}}
    for name, value in ours.items():
        if name == "JAVA_HOME" or not os.environ.get(name):
            os.environ[name] = value
    for name in hidden:
        os.environ.pop(name, None)
    try:
        yield
    finally:
        for name, before in found.items():
            if before is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = before


def use_this_python() -> None:
    """Workers run the Python that runs this, unless the user named another."""
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
