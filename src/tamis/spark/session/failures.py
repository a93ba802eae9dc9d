"""Errors of Spark as errors of tamis: the reason instead of the hundred lines around it.

Spark wraps an error several times: that of a task in that of a job, that in the one of an action,
and all of them in the error that goes from Java to Python. `spark_errors` unwraps them. With
classic Spark it can follow the Java exceptions; Spark Connect has only their texts.
"""

import logging
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

from tamis import errors
from tamis.errors import FileError, TamisError

_LONGEST = 600  # characters of a reason
_LOGGERS = ("SQLQueryContextLogger", "DataFrameQueryContextLogger")
_HOMES = {"pyspark", "py4j", "grpc"}

_CONDITION = re.compile(r"^\[([A-Z][A-Z0-9_]*(?:\.[A-Z0-9_]+)*)\] ")
_OF_CONNECT = re.compile(r"^\(([\w.$]+)\) ")
_OF_JOB = re.compile(
    r"Job aborted due to stage failure.*?\): ([\w.$]+(?:Exception|Error)): ", re.DOTALL
)
_OF_STREAM = re.compile(r"Query \[id = .*?\] terminated with exception: ", re.DOTALL)
_CAUSED_BY = re.compile(r"^Caused by: ([\w.$]+)(?:: (.*))?$", re.MULTILINE)
_SQLSTATE = re.compile(r"\s*SQLSTATE: \w{5}.*", re.DOTALL)
_TRACE = re.compile(r"\n(?:\s*JVM stacktrace:|\tat |=== Streaming Query ===|== ).*", re.DOTALL)
_OURS = re.compile(r"^tamis\.errors\.(\w+): ", re.MULTILINE)
_FILE_PATH = re.compile(r"(?:reading file|Path does not exist:) (\S+?)\.?(?:\s|$)")

_FILE_CLASSES = re.compile(
    r"java\.io\.\w+Exception|java\.nio\.file\.|org\.apache\.hadoop\.(?:fs|security)\.|UnknownHost"
    r"|java\.net\.ConnectException"
)


class _Reason(NamedTuple):
    """One layer of a failure: the class of the exception, if it is known, and its text."""

    kind: str
    text: str


@contextmanager
def spark_errors() -> Iterator[None]:
    """Turn an error of Spark into a `TamisError` with the reason, and with nothing else.

    The original is its ``__context__``. Spark's own notes on standard error, one for each error,
    are left out.
    """
    with ExitStack() as quiet:
        for name in _LOGGERS if "pyspark" in sys.modules else ():
            quiet.enter_context(_silenced(name))
        try:
            yield
        except TamisError:
            raise
        except Exception as error:
            ours = as_tamis_error(error)
            if ours is None:
                raise
            raise ours from None


def as_tamis_error(error: Exception) -> TamisError | None:
    """The error of tamis for an error of Spark; None for any other error."""
    if isinstance(error, ConnectionRefusedError):  # py4j raises it when Java is gone
        return TamisError("Spark's Java process has ended; start a new session")
    if not {cls.__module__.partition(".")[0] for cls in type(error).__mro__} & _HOMES:
        return None
    reasons = _reasons(error)
    text = "\n".join(reason.text for reason in reasons)
    for known in (_from_worker, _of_the_machine, _of_a_file):
        ours = known(reasons, text)
        if ours is not None:
            return ours
    plain = [reason for reason in reasons if _plain(reason.text)] or reasons[-1:]
    root = plain[-1]
    kind = FileError if _FILE_CLASSES.search(root.kind) else TamisError
    for outer in reversed(plain):  # the same text with more around it, such as the function called
        if root.text in outer.text:
            root = outer
    return kind(f"Spark failed: {_plain(root.text) or root.kind.rpartition('.')[2]}")


def _from_worker(_: list[_Reason], text: str) -> TamisError | None:
    """An error that Python code on a worker raised."""
    at = text.find("Traceback (most recent call last)")
    if at < 0:
        return None
    trace = _TRACE.sub("", _SQLSTATE.sub("", text[at:]))
    found = list(_OURS.finditer(trace))
    if found:
        kind = getattr(errors, found[-1][1], TamisError)
        simple = kind.__init__ is TamisError.__init__
        return (kind if simple else TamisError)(trace[found[-1].end() :].strip())
    last = next(line for line in reversed(trace.splitlines()) if line.strip())
    if "No space left on device" in last:
        return _disk_full()
    unfit = _unfit_worker(trace, last)
    if unfit is not None:
        return unfit
    return TamisError(f"a Python worker failed: {last.strip()[:_LONGEST]}")


def _unfit_worker(trace: str, last: str) -> TamisError | None:
    """Workers that have another Python than the driver, or not the packages that they need."""
    way_out = (
        "give them the driver's environment: pack it (venv-pack), and start with "
        "--conf spark.archives=ENV.tar.gz#env --conf spark.pyspark.python=env/bin/python"
    )
    versions = re.search(r"version:? \(?(\d[\d.]*)[^\d]+(\d[\d.]*)", last)
    if "PYTHON_VERSION_MISMATCH" in trace or "different minor versions" in trace:
        which = f" ({versions[1]} and {versions[2]})" if versions else ""
        return TamisError(
            f"the executors and the driver have different versions of Python{which}; {way_out}, or "
            "name a Python of the same version that they have with spark.pyspark.python"
        )
    missing = re.search(r"ModuleNotFoundError: No module named '(\w+)", last)
    if missing:
        name = missing[1]
        has = "tamis" if name == "tamis" else f"the package {name}"
        return TamisError(
            f"the Python workers of the executors do not have {has}; install tamis on every "
            f"machine of the cluster, or {way_out}; on one machine, set PYSPARK_PYTHON to a Python "
            "that has it, before the session starts"
        )
    if re.search(r"Can't get attribute '\w+' on <module 'tamis|cannot import name .*tamis", last):
        return TamisError(
            "the executors have another version of tamis than the driver; install the same one on "
            f"every machine of the cluster, or {way_out}"
        )
    return None


def _of_the_machine(reasons: list[_Reason], text: str) -> TamisError | None:
    """A full disk, too little memory, or a process that has ended."""
    if "No space left on device" in text:
        return _disk_full()
    if "OutOfMemoryError" in text or any("OutOfMemoryError" in reason.kind for reason in reasons):
        return TamisError(
            "Spark's Java process ran out of memory; give it more with spark.driver.memory, "
            "or on a cluster with spark.executor.memory"
        )
    if "Python worker exited unexpectedly" in text:
        return TamisError(
            "a Python worker died, most often because there was not enough memory; "
            "run fewer tasks at a time (spark.executor.cores, local[N]) or smaller batches "
            "(spark.sql.execution.arrow.maxRecordsPerBatch)"
        )
    if any(reason.kind.endswith(("Py4JNetworkError", "Py4JError")) for reason in reasons[:1]) and (
        "Answer from Java side is empty" in text or "Error while sending or receiving" in text
    ):
        return TamisError("Spark's Java process has ended; start a new session")
    absent = re.search(r'Cannot run program "([^"]*python[^"]*)"', text)
    if absent:
        return TamisError(
            f"the executors do not have the Python {absent[1]}; name one with tamis that they have "
            "(--conf spark.pyspark.python=PATH)"
        )
    missing = re.search(r"Class ([\w.$]+) not found", text)
    if missing:
        return FileError(
            f"Spark does not have the class {missing[1]}; add its package with spark.jars.packages"
        )
    return None


def _disk_full() -> FileError:
    return FileError(
        "the disk is full: No space left on device; "
        "Spark's own temporary files can be put elsewhere with spark.local.dir"
    )


def _of_a_file(reasons: list[_Reason], _: str) -> TamisError | None:
    """A file that does not exist, exists already, or cannot be read."""
    for place, (_kind, text) in enumerate(reasons):
        found = _CONDITION.match(text)
        condition = found[1] if found else ""
        path = _FILE_PATH.search(text)
        if condition == "PATH_NOT_FOUND" and path:
            return FileError(f"{shown_path(path[1])} does not exist")
        if condition == "PATH_ALREADY_EXISTS":
            return FileError(_plain(text).partition(" Set mode")[0].replace("file:/", "/"))
        if condition.startswith("FAILED_READ_FILE") and path:
            deeper = [_plain(reason.text) for reason in reasons[place + 1 :]]
            deeper = [reason for reason in deeper if "while reading file" not in reason]
            why = next(filter(None, deeper), _plain(text.partition(path[1])[2]))
            name = shown_path(path[1])
            why = re.sub(rf"^(?:file:)?/*{re.escape(name.lstrip('/'))}\s+", "", why).strip(" .")
            return FileError(f"{name} cannot be read" + (f": {why}" if why else ""))
    return None


def shown_path(path: str) -> str:
    """A path as people write it: those of this machine without ``file:``."""
    return re.sub(r"^file:/+", "/", path)


def _reasons(error: Exception) -> list[_Reason]:
    """The layers of an error, the outermost first."""
    java = getattr(error, "java_exception", None) or getattr(error, "_origin", None)
    if java is not None:
        try:
            return list(_java_reasons(java)) or [_Reason("", str(error))]
        except Exception:  # noqa: BLE001 - Java may be gone; then there is only the text
            return [_Reason(type(error).__name__, str(error))]
    text = _message(error)
    causes = [_Reason(found[1], found[2] or "") for found in _CAUSED_BY.finditer(text)]
    return [*_layers(type(error).__name__, text), *causes]


def _java_reasons(java: Any) -> Iterator[_Reason]:
    for _ in range(20):  # an exception may be its own cause
        yield from _layers(java.getClass().getName(), java.getMessage() or "")
        java = java.getCause()
        if java is None:
            return


def _layers(kind: str, text: str) -> Iterator[_Reason]:
    """The layers in one text: it may contain the text of the failure of a task or of a query."""
    text = text.strip()
    if found := _OF_CONNECT.match(text):
        kind, text = found[1], text[found.end() :]
    bare = _CONDITION.sub("", text)
    if found := _OF_STREAM.match(bare):
        yield from _layers(kind, bare[found.end() :])
    elif found := _OF_JOB.match(bare):
        yield from _layers(found[1], bare[found.end() :])
    else:
        yield _Reason(kind, text)


def _message(error: Exception) -> str:
    details = getattr(error, "details", None)
    if callable(details):  # the reason alone; the text of gRPC has much more
        return f"the Spark Connect server does not answer: {details()}"
    return str(error)


def _plain(text: str) -> str:
    """A message without its condition, its state and the stack under it."""
    text = _TRACE.sub("", _CONDITION.sub("", text))
    text = " ".join(_SQLSTATE.sub("", text).split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


@contextmanager
def _silenced(name: str) -> Iterator[None]:
    from pyspark.logger import PySparkLogger

    logger = PySparkLogger.getLogger(name)
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
