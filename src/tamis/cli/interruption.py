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

PATIENCE = 10.0  # seconds for work that was stopped to notice it


def interruptible(spark: "SparkSession", work: Callable[[], T]) -> T:
    """What `work` returns; Ctrl-C stops all that Spark does, and raises KeyboardInterrupt.

    Work is done in another thread: an interrupted call to the JVM takes the connection with it, and
    then nothing can be stopped any more. What is stopped half-way complains at length, in Java and
    in Python, so both are silent from then on.
    """
    if threading.current_thread() is not threading.main_thread():
        return work()  # signals are not ours
    answer: Future[T] = Future()

    def answering() -> None:
        try:
            answer.set_result(work())
        except BaseException as error:  # noqa: BLE001 - raised again by whoever waits
            answer.set_exception(error)

    # PySpark's own handler cancels jobs while they may still be heard.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    worker = threading.Thread(target=answering, daemon=True)
    try:
        worker.start()
        return answer.result()
    except KeyboardInterrupt:
        logging.disable(logging.CRITICAL)  # for good: the command ends
        with contextlib.suppress(Exception):
            _stop(spark)
        if worker.is_alive():
            worker.join(PATIENCE)
        raise
    finally:
        signal.signal(signal.SIGINT, before)


def _stop(spark: "SparkSession") -> None:
    with contextlib.suppress(Exception):  # a Connect server has a log of its own
        context: Any = spark.sparkContext
        context.setLogLevel("OFF")
        java = context._jvm.java  # noqa: SLF001 - threads that die speak past the log
        java.lang.System.setErr(java.io.PrintStream(java.io.OutputStream.nullOutputStream()))
    for query in spark.streams.active:
        query.stop()
    spark.interruptAll()
