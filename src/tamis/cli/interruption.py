"""Ctrl-C in a command that runs Spark."""

import contextlib
import logging
import signal
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

T = TypeVar("T")

PATIENCE = 10.0  # seconds to wait for work that was stopped


def interruptible(spark: "SparkSession", work: Callable[[], T]) -> T:
    """Return what `work` returns; Ctrl-C stops all work of Spark and raises KeyboardInterrupt.

    The work runs in another thread: interrupting a call to the JVM would break the connection, and
    then nothing could be stopped any more. Work that is stopped half-way logs long errors, in Java
    and in Python, so both logs are switched off.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()  # only the main thread gets signals
    answer: Future[T] = Future()

    def run() -> None:
        try:
            answer.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised again by `answer.result`
            answer.set_exception(error)

    # PySpark's own handler would cancel jobs while their errors are still logged.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    worker = threading.Thread(target=run, daemon=True)
    try:
        worker.start()
        return answer.result()
    except KeyboardInterrupt:
        logging.disable(logging.CRITICAL)  # not switched on again: the command ends
        with contextlib.suppress(Exception):
            _stop(spark)
        if worker.is_alive():
            worker.join(PATIENCE)
        raise
    finally:
        signal.signal(signal.SIGINT, before)


def _stop(spark: "SparkSession") -> None:
    with contextlib.suppress(Exception):  # a Connect server has its own log
        context: Any = spark.sparkContext
        context.setLogLevel("OFF")
        java = context._jvm.java  # noqa: SLF001 - dying threads do not use the log
        java.lang.System.setErr(java.io.PrintStream(java.io.OutputStream.nullOutputStream()))
    for query in spark.streams.active:
        query.stop()
    spark.interruptAll()
