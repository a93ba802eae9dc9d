"""The sliced engine over a long life: whatever comes, goes and fails, its answers are right."""

import gc
import sys
import types

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from cases import each
from oracles import Both, listed, some_of
from stocks import SMALL, stock_filters, stock_rows
from tamis import Schema, parse
from tamis.engines import make_engine
from tamis.engines.sliced import engine, segment_merges
from tamis.predicates.event_batches import batch_of_rows
from tamis.semantics import Semantics

POOL = stock_rows(11, 60)
BATCH = some_of(POOL, 1100, seed=1)  # three blocks
# --- any life

TEXTS = st.sampled_from(stock_filters(11, 80)) | st.sampled_from(["TRUE", "FALSE", "1 = 1"])
HANDLES = st.integers(0, 25)


def life_of(settings_, options):  # noqa: C901 - a rule is a function
    class Life(RuleBasedStateMachine):
        @initialize()
        def start(self):
            self.patch = pytest.MonkeyPatch()
            for (module, name), value in settings_.items():
                self.patch.setattr(module, name, value)
            self.both = Both("sliced", **{"threads": 1} | options)
            self.begun = []  # half consumed, with what they must still find

        def teardown(self):
            for pieces, left in getattr(self, "begun", []):
                assert listed(pieces) == left
            if hasattr(self, "patch"):
                self.patch.undo()

        @rule(handle=HANDLES, text=TEXTS)
        def put(self, handle, text):
            self.drop(handle)
            self.both.put_one(handle, text)

        @rule(handle=HANDLES)
        def drop(self, handle):
            if handle in self.both.held:
                self.both.drop_one(handle)

        @rule(first=HANDLES, size=st.integers(0, 20))
        def drop_many(self, first, size):
            for handle in range(first, first + size):
                self.drop(handle)

        @rule(texts=st.dictionaries(HANDLES, TEXTS, max_size=12))
        def put_many(self, texts):
            self.both.put_many(texts)

        @rule(row=st.sampled_from(POOL))
        def match(self, row):
            found = self.both.tested.match(row)
            assert found.tolist() == self.both.expected([row])[0]

        @rule(some=st.lists(st.sampled_from(POOL), max_size=5))
        def match_many(self, some):
            found = self.both.tested.match_many(some)
            assert [one.tolist() for one in found] == self.both.expected(some)
            self.both.check(some)

        @rule()
        def begin(self):
            pieces = self.both.tested.match_batch(batch_of_rows(BATCH, SMALL))
            expected = self.both.expected(BATCH)
            first = listed([next(pieces)])
            assert first == expected[: len(first)]
            self.begun.append((pieces, expected[len(first) :]))

        @rule()
        def go_on(self):
            if self.begun:
                pieces, left = self.begun.pop(0)
                assert listed(pieces) == left

        @rule()
        def merge_all(self):
            self.both.tested.merge_all()
            segments = self.both.tested.segments
            assert len(segments) <= 1
            assert not any(one.dead for one in segments)

        @invariant()
        def counts_what_it_holds(self):
            if not hasattr(self, "both"):
                return
            statistics = self.both.tested.statistics()
            assert statistics["subscriptions"] == len(self.both.held)
            if not self.both.held:
                assert set(statistics.values()) == {0}
                assert not self.both.tested.segments

    return Life


@pytest.mark.long
@each(
    ("settings_", "options"),
    [
        ({}, {}),
        ({(segment_merges, "GROWTH"): 0}, {}),
        ({(segment_merges, "GROWTH"): 1, (engine, "MOST_YOUNG"): 4}, {}),
        ({(engine, "MOST_AT_ONCE"): 0}, {}),
        ({(engine, "MOST_AT_ONCE"): 3, (engine, "MOST_YOUNG"): 2}, {}),
        ({(engine, "MOST_AT_ONCE"): 0}, {"background": True}),
        ({(engine, "MOST_YOUNG"): 2}, {"background": True, "threads": 2}),
    ],
)
def test_a_long_life(settings_, options):
    run_state_machine_as_test(
        life_of(settings_, options), settings=settings(max_examples=10, stateful_step_count=30)
    )


# --- who began before


def changes(both):
    """Everything that may happen to an engine, one after the other."""
    for handle in range(0, 120, 2):
        both.drop_one(handle)
    yield
    for handle in range(0, 120, 4):
        both.put_one(handle, "i IS NOT NULL")
    yield
    both.tested.match(POOL[0])
    both.put_many(dict.fromkeys(range(1, 120, 4), "TRUE"))
    yield
    both.tested.merge_all()
    for handle in sorted(both.held):
        both.drop_one(handle)
    yield
    both.put_one(5, "x > 0")
    both.tested.match(POOL[0])


@pytest.mark.parametrize("background", [False, True])
def test_who_began_before_sees_what_was_there(background):
    both = Both("sliced", threads=1, background=background)
    for handle, text in enumerate([*stock_filters(31, 115), *["TRUE"] * 5]):
        both.put_one(handle, text)
    begun = []
    for _ in changes(both):
        batch = batch_of_rows(BATCH, SMALL)
        for taken in (0, 1, 2):
            pieces = both.tested.match_batch(batch)
            expected = both.expected(BATCH)
            found = listed([next(pieces) for _ in range(taken)])
            begun.append((pieces, found, expected))
    for pieces, found, expected in begun:
        assert found + listed(pieces) == expected
    both.check(BATCH)


def test_a_snapshot_stays_as_it_is():
    both = Both("sliced", threads=1)
    for handle, text in enumerate(stock_filters(32, 120)):
        both.put_one(handle, text)
    snapshot, before = both.tested.snapshot(len(BATCH)), both.expected(BATCH)
    for _ in changes(both):
        pieces = both.tested.match_batch(batch_of_rows(BATCH, SMALL), BATCH, snapshot)
        assert listed(pieces) == before
        assert both.tested.match_at(snapshot, BATCH[0]).tolist() == before[0]


def test_an_iterator_that_nobody_finishes():
    both = Both("sliced", threads=2)
    for handle, text in enumerate(stock_filters(33, 60)):
        both.put_one(handle, text)
    for _ in range(5):
        pieces = both.tested.match_batch(batch_of_rows(BATCH * 3, SMALL))
        next(pieces)
        both.tested.match_batch(batch_of_rows(BATCH, SMALL))
        next(both.tested.match_many(BATCH))
    both.check(BATCH)


def test_matches_are_not_changed_by_later_ones():
    """Scratch is used again; answers are not scratch."""
    both = Both("sliced", threads=1)
    for handle, text in enumerate([*stock_filters(24, 50), "TRUE"]):
        both.put_one(handle, text)
    tested = both.tested
    pieces = list(tested.match_batch(batch_of_rows(BATCH, SMALL)))
    several, one = list(tested.match_many(BATCH)), tested.match(BATCH[0])
    before = [part.tolist() for part in [*sum(pieces, ()), *several, one]]
    list(tested.match_batch(batch_of_rows(BATCH[::-1], SMALL)))
    list(tested.match_many(BATCH[::-1]))
    for row in BATCH[:40]:
        tested.match(row)
    assert [part.tolist() for part in [*sum(pieces, ()), *several, one]] == before


# --- sizes


def footprint(thing):
    """The bytes of all that an engine holds, but for the code and the schema it shares."""
    shared = (type, types.ModuleType, types.FunctionType, types.BuiltinFunctionType, Schema)
    seen, stack, size = {id(thing)}, [thing], 0
    while stack:
        one = stack.pop()
        size += one.nbytes if isinstance(one, np.ndarray) else sys.getsizeof(one)
        for part in gc.get_referents(one):
            if id(part) not in seen and not isinstance(part, shared):
                seen.add(id(part))
                stack.append(part)
    return size


def places(tested):
    """How many subscriptions the segments have room for."""
    return sum(len(one.handles) for one in tested.segments)


@pytest.fixture
def tested():
    return make_engine("sliced", Semantics("sql", SMALL), {"threads": 1})


def prepared(tested, texts):
    return [tested.prepare(parse(text, SMALL)) for text in texts]


def test_five_thousand_one_by_one(tested):
    """However they come, the segments are few: each is several times smaller than the last."""
    ready = prepared(tested, [f"i > {n} AND x < {n}" for n in range(300)])
    for handle in range(5000):
        tested.add(handle, ready[handle % 300])
        if handle % 7 == 0:
            tested.match(POOL[0])
            sizes = [len(one) for one in tested.segments]
            assert sizes == sorted(sizes, reverse=True)
            assert sum(sizes) == handle + 1
            assert len(sizes) <= 2 + np.log2(handle + 1)
    assert len(tested.segments) <= 8


def test_a_moving_window_stays_small(tested):
    """The oldest go while new ones come, and events in between."""
    ready = prepared(tested, stock_filters(21, 500))
    window, sizes = 100, []
    for handle in range(1000):
        tested.add(handle, ready[handle % len(ready)])
        if handle >= window:
            tested.remove(handle - window)
        if handle % 3 == 0:
            tested.match(POOL[0])
            assert places(tested) <= 4 * window
            assert len(tested.segments) <= 8
        if handle in {500, 999}:
            sizes.append(footprint(tested))
    assert sizes[1] < 1.5 * sizes[0]
    assert sum(one.predicates.size for one in tested.segments) < 10 * window


def test_replacing_one_again_and_again(tested):
    ready = prepared(tested, stock_filters(22, 200))
    for handle, one in enumerate(ready):
        tested.add(handle, one)
    sizes = []
    for turn in range(600):
        tested.remove(turn % 7)
        tested.add(turn % 7, ready[turn % len(ready)])
        if turn % 2:
            tested.match(POOL[0])
            assert places(tested) <= 3 * len(ready)
        if turn in {200, 599}:
            sizes.append(footprint(tested))
    assert sizes[1] < 1.5 * sizes[0]


def test_coming_and_going_without_any_event(tested):
    """Nobody asks: even so nothing piles up."""
    sizes = []
    ready = prepared(tested, [f"i = {n} AND x > {n} AND s = 'T{n}'" for n in range(500)])
    for turn in range(3000):
        tested.add(0, ready[turn % 500])
        tested.remove(0)
        if turn in {300, 2999}:
            sizes.append(footprint(tested))
    assert sizes[1] < 1.5 * sizes[0]
    assert tested.segments == []


@pytest.mark.parametrize("background", [False, True])
def test_what_is_gone_is_left_out_in_the_end(background):
    """Also of a segment that has another one behind it; its constants, sets and tests as well."""
    tested = make_engine("sliced", Semantics("sql", SMALL), {"background": background})
    texts = [f"i > {n} AND x IN ({n}, {n + 1}) AND s LIKE '%{n}'" for n in range(620)]
    ready = prepared(tested, texts)
    for first, end in ((0, 500), (500, 620)):
        for handle in range(first, end):
            tested.add(handle, ready[handle])
        tested.match(POOL[0])
    assert len(tested.segments) == 2
    full = tested.statistics()["bytes"]
    for handle in range(499):
        tested.remove(handle)
    tested.match(POOL[0])
    tested.merge_all()
    assert tested.statistics()["subscriptions"] == places(tested) == 121
    (only,) = tested.segments
    assert len(only.predicates.tests) == 121
    assert len(only.predicates.cuts[0]) == 121
    for handle in range(499, 619):
        tested.remove(handle)
    tested.match(POOL[0])
    tested.merge_all()
    assert places(tested) == 1
    assert tested.statistics()["bytes"] < full / 50


def test_values_of_tests_are_not_kept_for_ever(tested, monkeypatch):
    """Strings that never come again are forgotten."""
    monkeypatch.setattr("tamis.engines.sliced.segment_tests.MOST_REMEMBERED", 10_000)
    (one,) = prepared(tested, ["s LIKE '%7_' AND i > 0"])
    tested.add(0, one)
    sizes = []
    for turn in range(40):
        some = [(1, None, f"{turn} {n}", None, None) for n in range(50)]
        assert len(list(tested.match_many(some))) == 50
        tested.match(some[0])
        if turn in {10, 39}:
            sizes.append(footprint(tested))
    assert sizes[1] < 1.5 * sizes[0]


def test_statistics(tested):
    assert tested.statistics() == {"subscriptions": 0, "segments": 0, "bytes": 0}
    for handle, one in enumerate(prepared(tested, ["i > 0", "TRUE", "FALSE", "x > 1"])):
        tested.add(handle, one)
    assert tested.statistics() == {"subscriptions": 4, "segments": 0, "bytes": 0}
    tested.match(POOL[0])
    found = tested.statistics()
    assert (found["subscriptions"], found["segments"]) == (4, 1)
    assert found["bytes"] == tested.segments[0].nbytes() > 0
    tested.remove(0)
    assert tested.statistics()["subscriptions"] == 3
    for handle in (1, 2, 3):
        tested.remove(handle)
    assert set(tested.statistics().values()) == {0}


def test_deaths_cost_nothing_where_nobody_died(tested):
    for handle, one in enumerate(prepared(tested, stock_filters(25, 40))):
        tested.add(handle, one)
    tested.match(POOL[0])
    (only,) = tested.segments
    before = tested.statistics()["bytes"]
    assert only.died.nbytes == 0
    tested.remove(7)
    assert tested.statistics()["bytes"] == before + only.died.nbytes == before + 8 * 40
    tested.merge_all()
    assert tested.segments[0].died.nbytes == 0


def test_everything_goes(tested):
    """Predicates, segments and sizes; and the engine still works."""
    ready = prepared(tested, [*stock_filters(23, 300), "TRUE", "FALSE"])
    for turn in range(3):
        for handle, one in enumerate(ready):
            tested.add(handle, one)
            if handle % 50 == turn:
                list(tested.match_many(POOL[:3]))
        assert any(len(found) for found in tested.match_many(POOL))
        for handle in range(len(ready)):
            tested.remove(handle)
        assert set(tested.statistics().values()) == {0}
        assert [found.tolist() for found in tested.match_many(POOL)] == [[]] * 60
        assert tested.match(POOL[0]).tolist() == []
