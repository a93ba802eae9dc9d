"""What tests of the sliced engine and several threads share: answers, and a gate for threads."""

import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

from oracles import listed, some_of
from stocks import SMALL, stock_rows
from tamis import parse
from tamis.engines import make_engine
from tamis.engines.sliced.segment import Segment
from tamis.predicates.event_batches import batch_of_rows
from tamis.semantics import Semantics

PATIENCE = 120  # seconds; nothing here takes that long, on a slow machine either
EVENT = (5, 5.0, "T5", True, "buy")
POOL = stock_rows(11, 60)
BATCH = some_of(POOL, 1100, seed=1)  # three blocks


def engine_of(**options):
    return make_engine("sliced", Semantics("sql", SMALL), options)


def oracle_of(texts):
    oracle = make_engine("naive", Semantics("sql", SMALL))
    for handle, text in texts.items():
        oracle.add(handle, parse(text, SMALL))
    return oracle


def put(tested, texts):
    for handle, text in texts.items():
        tested.add(handle, tested.prepare(parse(text, SMALL)))


def check(tested, texts, some=POOL):
    """What an engine says, if it holds these."""
    oracle = oracle_of(texts)
    expected = [oracle.match(row).tolist() for row in some]
    batch = batch_of_rows(some, SMALL)
    assert listed(tested.match_batch(batch)) == expected
    assert tested.count_batch(batch).tolist() == [len(found) for found in expected]
    assert [tested.match(row).tolist() for row in some[:9]] == expected[:9]
    assert tested.statistics()["subscriptions"] == len(texts)


def wait_for_merges(tested):
    """Until no thread merges."""
    thread = tested._merger._thread
    if thread is not None:
        thread.join(PATIENCE)
        assert not thread.is_alive()


def merging():
    return [thread for thread in threading.enumerate() if thread.name == "tamis-segment-merges"]


class Gate:
    """Stops whoever compiles in another thread, until it is opened."""

    def __init__(self, monkeypatch):
        self.began, self._open = threading.Event(), threading.Event()
        self._here = threading.current_thread()
        self.error = None
        self._compile = Segment.compile
        monkeypatch.setattr(Segment, "compile", self._stop)

    def _stop(self, filters, profile=None):
        if threading.current_thread() is not self._here:
            self.began.set()
            assert self._open.wait(PATIENCE)
            if self.error is not None:
                raise self.error
        return self._compile(filters, profile)

    def wait(self):
        """Until somebody stands at the gate."""
        assert self.began.wait(PATIENCE)

    def open(self):
        self._open.set()


@contextmanager
def aside(work):
    """Somebody else does something meanwhile."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(work)
        yield future
        future.result(PATIENCE)
