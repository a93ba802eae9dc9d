import logging
import signal
import threading

import pytest

from tamis.cli.interruption import interruptible


class Query:
    def __init__(self, told):
        self._told = told

    def stop(self):
        self._told.append("query")


class Session:
    """A session of Spark that records the calls; the work ends when all is interrupted."""

    def __init__(self):
        self.told = []
        self.ended = threading.Event()
        self.streams = self
        self.active = [Query(self.told)]
        self.sparkContext = self

    def setLogLevel(self, level):  # noqa: N802 - Spark's name
        self.told.append(level)

    def interruptAll(self):  # noqa: N802 - Spark's name
        self.told.append("all")
        self.ended.set()


@pytest.fixture
def session():
    yield Session()
    logging.disable(logging.NOTSET)


def test_what_work_returns_and_raises(session):
    assert interruptible(session, threading.current_thread) is not threading.main_thread()
    with pytest.raises(ZeroDivisionError):
        interruptible(session, lambda: 1 // 0)
    assert session.told == []


def test_an_interruption_silences_spark_stops_everything_and_is_raised(session):
    before = signal.getsignal(signal.SIGINT)
    finished = []

    def work():
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)
        session.ended.wait()
        finished.append(True)

    with pytest.raises(KeyboardInterrupt):
        interruptible(session, work)
    assert session.told == ["OFF", "query", "all"]
    assert finished == [True]
    assert signal.getsignal(signal.SIGINT) is before


def test_in_another_thread_work_is_just_done(session):
    found = []
    other = threading.Thread(
        target=lambda: found.append(interruptible(session, threading.current_thread))
    )
    other.start()
    other.join()
    assert found == [other]
