"""The sliced engine and several threads: answers that were right at some moment, and no waiting."""

import logging
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from cases import each
from oracles import listed
from sliced_threads import (
    BATCH,
    EVENT,
    PATIENCE,
    POOL,
    check,
    engine_of,
    oracle_of,
    put,
    wait_for_merges,
)
from stocks import SMALL, stock_filters
from tamis import CapacityError, OptionError, parse
from tamis.engines.sliced import engine as engine_module
from tamis.predicates.event_batches import batch_of_rows

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
        tested.merge_all()
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
        window = part.window(part.prepare(batch_of_rows(some, SMALL)), 0, len(some))
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
                tested.merge_all()
        return held

    with ThreadPoolExecutor(4) as pool:
        held = {
            handle: text for part in pool.map(change, range(4)) for handle, text in part.items()
        }
    wait_for_merges(tested)
    check(tested, held)
    tested.merge_all()
    check(tested, held)
