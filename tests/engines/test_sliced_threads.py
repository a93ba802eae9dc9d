"""The sliced engine and several threads: answers that were right at some moment, and no waiting."""

import logging
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pytest

from cases import each
from stocks import SMALL, stock_filters, stock_rows
from tamis import CapacityError, OptionError, parse
from tamis.engines import make_engine
from tamis.engines.sliced import engine as engine_module
from tamis.engines.sliced.segment import Segment
from tamis.predicates.event_batches import batch_of_rows
from tamis.semantics import Semantics

PATIENCE = 20  # seconds; nothing here takes that long
EVENT = (5, 5.0, "T5", True, "buy")
POOL = stock_rows(11, 60)
BATCH = [POOL[k] for k in np.random.default_rng(1).integers(0, 60, 1100)]  # three blocks


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


def listed(pieces):
    """The handles of each event."""
    found = []
    for counts, handles in pieces:
        ends = np.cumsum(counts).tolist()
        parts = zip(counts.tolist(), ends, strict=True)
        found += [handles[end - count : end].tolist() for count, end in parts]
    return found


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
    thread = tested._compaction._thread
    if thread is not None:
        thread.join(PATIENCE)
        assert not thread.is_alive()


def merging():
    return [thread for thread in threading.enumerate() if thread.name == "tamis-compaction"]


class Gate:
    """Stops whoever compiles in another thread, until it is opened."""

    def __init__(self, monkeypatch):
        self.began, self._open = threading.Event(), threading.Event()
        self._here = threading.current_thread()
        self.error = None
        self._compile = Segment.compile
        monkeypatch.setattr(Segment, "compile", self._stop)

    def _stop(self, material, profile=None):
        if threading.current_thread() is not self._here:
            self.began.set()
            assert self._open.wait(PATIENCE)
            if self.error is not None:
                raise self.error
        return self._compile(material, profile)

    def wait(self):
        """Until somebody stands at the gate."""
        assert self.began.wait(PATIENCE)

    def open(self):
        self._open.set()


@pytest.fixture
def gate(monkeypatch):
    gate = Gate(monkeypatch)
    yield gate
    gate.open()


@contextmanager
def aside(work):
    """Somebody else does something meanwhile."""
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(work)
        yield future
        future.result(PATIENCE)


# --- options


@each(
    "options",
    [{"threads": -1}, {"threads": 1025}, {"threads": True}, {"threads": 1.0}, {"threads": None},
     {"background": 1}, {"background": None}, {"memory": -1}, {"memory": 1.5}, {"memory": True},
     {"thread": 1}],
)  # fmt: skip
def test_options_that_are_none(options):
    with pytest.raises(OptionError):
        engine_of(**options)


def test_memory_that_is_too_small(caplog, monkeypatch):
    """What cannot become one segment stays several; what cannot be compiled is refused."""
    monkeypatch.setattr(engine_module, "MOST_AT_ONCE", 0)
    tested = engine_of(memory=8000, threads=1)
    texts = {n: f"i > {n} AND x < {n}" for n in range(90)}
    with caplog.at_level(logging.INFO, "tamis"):
        for handle, text in texts.items():
            put(tested, {handle: text})
            if handle % 9 == 8:
                tested.match(EVENT)
    check(tested, texts)
    assert len(tested.segments) > 1
    assert "merged" in caplog.text
    with pytest.raises(CapacityError, match="compiling 90 subscriptions"):
        tested.compact()
    check(tested, texts)
    bulk = tested.bulk(90)
    for handle in range(200, 290):
        bulk.put(handle, tested.prepare(parse("i > 1 AND x < 1", SMALL)))
    with pytest.raises(CapacityError, match="compiling 90 subscriptions"):
        bulk.commit([])
    check(tested, texts)


# --- the same answers


def test_any_number_of_threads():
    texts = dict(enumerate([*stock_filters(1, 150), "TRUE"]))
    texts |= {500 + n: f"s = 'T{n % 40}' AND x > {n % 9}" for n in range(150)}
    oracle = oracle_of(texts)
    known = {row: oracle.match(row).tolist() for row in POOL}
    for threads in (1, 2, 4, 0):
        tested = engine_of(threads=threads)
        put(tested, texts)
        for some in (BATCH, BATCH[:512], BATCH[:513], BATCH * 9, BATCH[:0]):
            for batch in [batch_of_rows(some, SMALL)] * 2:
                assert listed(tested.match_batch(batch)) == [known[row] for row in some]
                counts = tested.count_batch(batch)
                assert counts.tolist() == [len(known[row]) for row in some]


def test_many_may_ask_at_once():
    """The kernels let go of the interpreter's lock, so scratch must not be shared."""
    tested = engine_of(threads=2)
    chance = np.random.default_rng(3)
    bounds = chance.integers(-9, 9, (600, 2)).tolist()
    texts = {n: f"i > {low} AND x < {high}" for n, (low, high) in enumerate(bounds)}
    texts |= {1000 + n: f"s = 'T{n % 40}' AND s LIKE '%{n % 7}'" for n in range(200)}
    put(tested, texts)
    oracle = oracle_of(texts)
    known = {row: oracle.match(row).tolist() for row in POOL}
    batches = [[POOL[k] for k in chance.integers(0, 60, size)] for size in (1, 600, 1400, 2100)]

    def ask(some):
        batch = batch_of_rows(some, SMALL)
        return [
            listed(tested.match_batch(batch)),
            [found.tolist() for found in tested.match_many(some)],
            [tested.match(row).tolist() for row in some[:20]],
        ], tested.count_batch(batch).tolist()

    with ThreadPoolExecutor(4) as pool:
        for some, (found, counts) in zip(batches * 3, pool.map(ask, batches * 3), strict=True):
            expected = [known[row] for row in some]
            assert found == [expected, expected, expected[:20]]
            assert counts == [len(one) for one in expected]


def test_what_another_thread_finds_out_meanwhile(monkeypatch):
    """A segment may learn of many matches, or of their order, while a window is on its way."""
    texts = {n: f"s = 'T{n % 30}' AND x > {n}" for n in range(90)}
    texts |= {n: f"x > {n} OR s = 'T5'" if n % 2 else f"x > {n}" for n in range(90, 110)}
    tested = engine_of(threads=1)
    put(tested, texts)
    some = [(None, 105.0 if n % 3 else 200.0, f"T{n * 7 % 30}", None, None) for n in range(1024)]
    (part,) = tested.snapshot().parts
    oracle, block = oracle_of(texts), part._block
    known = {row: oracle.match(row).tolist() for row in set(some)}

    def learning(window, start, *more):
        part._is_mixed = start > 0
        block(window, start, *more)

    for is_dense in (False, True):
        part._is_dense = part._is_mixed = False
        window = part.window(part.prepare(batch_of_rows(some, SMALL), None), 0, len(some))
        part._is_dense = is_dense
        assert listed(part.match(window, tested.now)) == [known[row] for row in some]
        monkeypatch.setattr(part, "_block", learning)


# --- answers that were right at some moment


class Readers:
    """Ask again and again, until the changes are over."""

    def __init__(self, tested, judge, count=2):
        self._tested, self._judge = tested, judge
        self._over = threading.Event()
        self.asked = [0] * count
        self._pool = ThreadPoolExecutor(count)
        self._futures = [self._pool.submit(self._read, number) for number in range(count)]

    def _read(self, number):
        tested, size = self._tested, 700
        batch = batch_of_rows([EVENT] * size, SMALL)
        while not self._over.is_set() or not self.asked[number]:
            self._judge(tested.match(EVENT).tolist())
            found = listed(tested.match_batch(batch))
            assert found == [found[0]] * size  # all of one moment
            self._judge(found[0])
            counts = tested.count_batch(batch)
            assert counts.min() == counts.max()
            for one in tested.match_many([EVENT] * 3):
                self._judge(one.tolist())
            self.asked[number] += 1

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self._over.set()
        self._pool.shutdown()
        for future in self._futures:
            future.result(PATIENCE)


@pytest.mark.parametrize("background", [False, True])
@pytest.mark.parametrize("most_at_once", [0, 8, 1 << 12])
def test_pairs_come_and_go_together(monkeypatch, background, most_at_once):
    monkeypatch.setattr(engine_module, "MOST_AT_ONCE", most_at_once)
    tested = engine_of(background=background, threads=1)
    texts = ["i > 0", "x > 1 AND b", "s = 'T5'", "s LIKE 'T%' OR x IS NULL", "TRUE", "i IN (5, 6)"]
    ready = [tested.prepare(parse(text, SMALL)) for text in texts]  # all of them match
    stay = list(range(1000, 1040))
    for handle in stay:
        tested.add(handle, ready[handle % 6])
    held = set()

    def judge(found):
        assert found == sorted(set(found))
        assert found[-40:] == stay
        pairs = found[:-40]
        assert pairs[::2] == [handle - 1 for handle in pairs[1::2]]
        assert all(handle % 2 == 0 for handle in pairs[::2])

    chance = np.random.default_rng(7)
    with Readers(tested, judge):
        for turn in range(400):
            pair = 2 * int(chance.integers(60))
            with tested.lock:
                for handle in (pair, pair + 1):
                    if pair in held:
                        tested.remove(handle)
                    else:
                        tested.add(handle, ready[(turn + handle) % 6])
            held ^= {pair}
    wait_for_merges(tested)
    expected = sorted(handle + more for handle in held for more in (0, 1)) + stay
    assert tested.match(EVENT).tolist() == expected
    assert tested.statistics()["subscriptions"] == len(expected)


@pytest.mark.parametrize("background", [False, True])
def test_a_bulk_comes_all_at_once(background):
    tested = engine_of(background=background, threads=1)
    true, false = (tested.prepare(parse(text, SMALL)) for text in ("i > 0", "i < 0"))
    always = tested.prepare(parse("TRUE", SMALL))
    handles = list(range(30))

    def judge(found):
        assert found in ([], handles)

    with Readers(tested, judge):
        for turn in range(60):
            bulk = tested.bulk(len(handles))
            for handle in handles:
                bulk.put(handle, (always if handle % 7 == 3 else true) if turn % 2 else false)
            bulk.commit(handles if turn else [])
    wait_for_merges(tested)
    assert tested.match(EVENT).tolist() == handles
    assert tested.statistics()["subscriptions"] == 30


def test_several_may_change_at_once():
    """Each thread has handles of its own."""
    tested = engine_of(background=True, threads=1)
    texts = stock_filters(5, 60)

    def change(number):
        chance, held = np.random.default_rng(number), {}
        for turn in range(120):
            handle = 1000 * number + int(chance.integers(25))
            if handle in held:
                tested.remove(handle)
                del held[handle]
            else:
                held[handle] = texts[int(chance.integers(60))]
                put(tested, {handle: held[handle]})
            if turn % 9 == number:
                tested.match(EVENT)
            if turn % 40 == number:
                tested.compact()
        return held

    with ThreadPoolExecutor(4) as pool:
        held = {
            handle: text for part in pool.map(change, range(4)) for handle, text in part.items()
        }
    wait_for_merges(tested)
    check(tested, held)
    tested.compact()
    check(tested, held)


# --- while segments are merged


def begun(tested, gate):
    """An engine whose segments are being merged; what it holds."""
    texts = dict(enumerate(stock_filters(9, 20)))
    put(tested, texts)
    tested.match(EVENT)
    more = {100 + n: text for n, text in enumerate(stock_filters(10, 15))}
    put(tested, more)
    tested.match(EVENT)
    gate.wait()
    return texts | more


@pytest.fixture
def busy(gate, monkeypatch):
    """An engine whose segments a thread begins to merge, and what it holds."""
    monkeypatch.setattr(engine_module, "MOST_AT_ONCE", 0)
    tested = engine_of(background=True, threads=1)
    return tested, begun(tested, gate)


def test_nobody_waits_for_a_merge(busy, gate):
    tested, texts = busy
    check(tested, texts)
    more = {200 + n: text for n, text in enumerate(stock_filters(12, 5))}
    put(tested, more)
    texts |= more
    for handle in (0, 5, 101, 202):
        tested.remove(handle)
        del texts[handle]
    check(tested, texts)
    assert len(merging()) == 1
    gate.open()
    wait_for_merges(tested)
    check(tested, texts)


def test_deaths_during_a_merge(busy, gate):
    tested, texts = busy
    pieces = tested.match_batch(batch_of_rows(BATCH, SMALL))
    before = oracle_of(texts)
    begun_with = listed([next(pieces)])
    for handle in (0, 1, 2, 100, 114):
        tested.remove(handle)
        del texts[handle]
    later = tested.picture(len(BATCH))
    after_deaths = oracle_of(texts)
    tested.remove(3)
    put(tested, {0: "i IS NOT NULL", 3: "TRUE", 100: "x > 0"})  # handles may be used again
    texts |= {0: "i IS NOT NULL", 3: "TRUE", 100: "x > 0"}
    check(tested, texts)
    gate.open()
    wait_for_merges(tested)
    check(tested, texts)
    assert len(tested.segments) <= 2
    assert begun_with + listed(pieces) == [before.match(row).tolist() for row in BATCH]
    again = tested.match_batch(batch_of_rows(BATCH, SMALL), None, later)
    assert listed(again) == [after_deaths.match(row).tolist() for row in BATCH]
    tested.compact()
    check(tested, texts)
    assert not any(one.dead for one in tested.segments)


def test_all_die_during_a_merge(busy, gate):
    tested, texts = busy
    for handle in list(texts):
        tested.remove(handle)
    assert set(tested.statistics().values()) == {0}
    check(tested, {})
    gate.open()
    wait_for_merges(tested)
    assert set(tested.statistics().values()) == {0}
    check(tested, {})
    put(tested, texts)
    check(tested, texts)


def test_a_bulk_during_a_merge(busy, gate):
    tested, texts = busy
    bulk = tested.bulk(25)
    more = dict.fromkeys(range(15, 40), "i > 3")
    for handle, text in more.items():
        bulk.put(handle, tested.prepare(parse(text, SMALL)))
    bulk.commit(sorted(set(more) & set(texts)))
    texts |= more
    check(tested, texts)
    gate.open()
    wait_for_merges(tested)
    check(tested, texts)


@pytest.mark.parametrize("background", [False, True])
def test_new_ones_are_compiled_with_a_segment_that_is_being_merged(gate, background):
    """Each subscription is held once, whoever is first."""
    tested = engine_of(background=background, threads=1)
    texts = dict.fromkeys(range(60), "i > 0")
    put(tested, texts)
    tested.match(EVENT)
    small = dict.fromkeys(range(60, 63), "i > 1")
    put(tested, small)
    tested.match(EVENT)
    assert len(tested.segments) == 2
    texts |= small
    with aside(tested.compact):
        gate.wait()
        put(tested, {99: "i > 2"})
        texts[99] = "i > 2"
        check(tested, texts)  # the small segment has become part of another one
        gate.open()
    wait_for_merges(tested)
    check(tested, texts)
    tested.remove(61)
    del texts[61]
    check(tested, texts)


def test_who_compacts_waits_for_the_merge_under_way(busy, gate):
    tested, texts = busy
    with aside(tested.compact) as future:
        assert not future.done()
        check(tested, texts)
        tested.remove(4)
        del texts[4]
        gate.open()
        future.result(PATIENCE)
    wait_for_merges(tested)
    tested.compact()
    check(tested, texts)
    assert [len(one) for one in tested.segments] == [len(texts)]


def test_who_removes_half_of_a_segment_while_another_merges(gate):
    """The one who comes second leaves the merge to the first."""
    tested = engine_of(threads=1)
    texts = dict(enumerate(stock_filters(13, 40)))
    put(tested, texts)
    tested.match(EVENT)
    tested.remove(39)
    with aside(tested.compact):
        gate.wait()
        for handle in range(30):
            tested.remove(handle)
        left = {handle: texts[handle] for handle in range(30, 39)}
        check(tested, left)
        gate.open()
    check(tested, left)
    tested.compact()
    check(tested, left)
    assert [len(one.handles) for one in tested.segments] == [9]


def test_merges_end_and_begin_again(monkeypatch):
    monkeypatch.setattr(engine_module, "MOST_AT_ONCE", 0)
    tested = engine_of(background=True, threads=1)
    texts = dict(enumerate(stock_filters(14, 200)))
    for handle, text in texts.items():
        put(tested, {handle: text})
        if handle % 10 == 9:
            tested.match(EVENT)
    tested.match(EVENT)
    wait_for_merges(tested)
    tested.match(EVENT)
    wait_for_merges(tested)
    assert merging() == []
    check(tested, texts)
    assert len(tested.segments) < 20


def test_without_background_there_is_no_thread(monkeypatch):
    monkeypatch.setattr(engine_module, "MOST_AT_ONCE", 0)
    tested = engine_of(threads=1)
    texts = dict(enumerate(stock_filters(15, 60)))
    for handle, text in texts.items():
        put(tested, {handle: text})
        tested.match(EVENT)
        assert merging() == []
    check(tested, texts)
    assert len(tested.segments) <= 8


# --- failures in the background


@pytest.mark.parametrize("error", [MemoryError("no room"), ValueError("a bug")])
def test_a_merge_that_fails_changes_nothing(busy, gate, caplog, error):
    tested, texts = busy
    tested.remove(7)
    del texts[7]
    gate.error = error
    with caplog.at_level(logging.ERROR, "tamis"):
        gate.open()
        wait_for_merges(tested)
    (record,) = [one for one in caplog.records if one.name == "tamis"]
    assert "merged" in record.getMessage()
    assert record.exc_info[1] is error
    assert len(tested.segments) == 2
    check(tested, texts)
    gate.error = None
    more = {300 + n: "i > 0" for n in range(10)}
    put(tested, more)
    texts |= more
    check(tested, texts)  # and merges again
    wait_for_merges(tested)
    check(tested, texts)
    assert len(tested.segments) == 1


def test_an_exchange_that_fails_changes_nothing(busy, gate, caplog, monkeypatch):
    """After the segment is made, its evaluation may still lack memory."""
    tested, texts = busy

    def fail(_segment):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(tested, "evaluating", fail)
        gate.open()
        wait_for_merges(tested)
    assert "merged" in caplog.text
    assert len(tested.segments) == 2
    check(tested, texts)
    tested.compact()
    check(tested, texts)
    assert len(tested.segments) == 1


def test_who_compacts_hears_of_the_failure(monkeypatch):
    tested = engine_of(background=True, threads=1)
    texts = dict(enumerate(stock_filters(16, 60)))
    put(tested, texts)
    tested.match(EVENT)
    tested.remove(3)
    del texts[3]

    def fail(*_):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(Segment, "compile", fail)
        with pytest.raises(MemoryError):
            tested.compact()
    check(tested, texts)
    tested.compact()
    check(tested, texts)
    assert [one.dead for one in tested.segments] == [0]
