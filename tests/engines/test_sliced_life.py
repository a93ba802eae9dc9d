"""The sliced engine over a long life: whatever comes and goes, right answers and bounded memory."""

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

from stocks import SMALL, stock_filters, stock_rows
from tamis import Schema, parse
from tamis.engines import make_engine
from tamis.engines.sliced import engine
from tamis.predicates.batches import batch_of_rows
from tamis.semantics import Semantics

# --- a long life

TEXTS = st.sampled_from(stock_filters(11, 80)) | st.sampled_from(["TRUE", "FALSE", "1 = 1"])
EVENTS = st.sampled_from(stock_rows(11, 60))


def life_of(growth):
    class Life(RuleBasedStateMachine):
        @initialize()
        def start(self):
            meaning = Semantics("sql", SMALL)
            self.patch = pytest.MonkeyPatch()
            self.patch.setattr(engine, "GROWTH", growth)
            self.tested, self.oracle = make_engine("sliced", meaning), make_engine("naive", meaning)
            self.held = set()

        def teardown(self):
            if hasattr(self, "patch"):
                self.patch.undo()

        @rule(handle=st.integers(0, 25), text=TEXTS)
        def put(self, handle, text):
            self.drop(handle)
            expression = parse(text, SMALL)
            self.tested.add(handle, self.tested.prepare(expression))
            self.oracle.add(handle, expression)
            self.held.add(handle)

        @rule(handle=st.integers(0, 25))
        def drop(self, handle):
            if handle in self.held:
                self.tested.remove(handle)
                self.oracle.remove(handle)
                self.held.remove(handle)

        @rule(first=st.integers(0, 25), size=st.integers(0, 20))
        def drop_many(self, first, size):
            for handle in range(first, first + size):
                self.drop(handle)

        @rule(row=EVENTS)
        def match(self, row):
            assert self.tested.match(row).tolist() == self.oracle.match(row).tolist()

        @rule(some=st.lists(EVENTS, max_size=5))
        def match_many(self, some):
            expected = [found.tolist() for found in self.oracle.match_many(some)]
            assert [found.tolist() for found in self.tested.match_many(some)] == expected
            counts = self.tested.count_batch(batch_of_rows(some, SMALL))
            assert counts.tolist() == [len(found) for found in expected]
            assert counts.dtype == np.int64

        @invariant()
        def counts_what_it_holds(self):
            if not hasattr(self, "held"):
                return
            statistics = self.tested.statistics()
            assert statistics["subscriptions"] == len(self.held)
            if not self.held:
                assert set(statistics.values()) == {0}
                assert not self.tested.predicates.ids
                assert not self.tested.segments

    return Life


@pytest.mark.parametrize("growth", [0, 1, 2, 4])
def test_a_long_life(growth):
    run_state_machine_as_test(
        life_of(growth), settings=settings(max_examples=15, stateful_step_count=30)
    )


# --- memory


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
    return make_engine("sliced", Semantics("sql", SMALL))


def prepared(tested, texts):
    return [tested.prepare(parse(text, SMALL)) for text in texts]


def test_a_moving_window_stays_small(tested):
    """The oldest go while new ones come, and events in between."""
    ready = prepared(tested, stock_filters(21, 500))
    row, window = stock_rows(3, 1)[0], 100
    sizes = []
    for handle in range(3000):
        tested.add(handle, ready[handle % len(ready)])
        if handle >= window:
            tested.remove(handle - window)
        if handle % 3 == 0:
            tested.match(row)
            assert places(tested) <= 4 * window
            assert len(tested.segments) <= 8
        if handle in {1500, 2999}:
            sizes.append(footprint(tested))
    assert sizes[1] < 1.5 * sizes[0]
    assert tested.predicates.size < 10 * window


def test_replacing_one_again_and_again(tested):
    ready = prepared(tested, stock_filters(22, 200))
    for handle, one in enumerate(ready):
        tested.add(handle, one)
    row = stock_rows(4, 1)[0]
    sizes = []
    for turn in range(2000):
        tested.remove(turn % 7)
        tested.add(turn % 7, ready[turn % len(ready)])
        if turn % 2:
            tested.match(row)
            assert places(tested) <= 3 * len(ready)
        if turn in {500, 1999}:
            sizes.append(footprint(tested))
    assert sizes[1] < 1.5 * sizes[0]


def test_coming_and_going_without_any_event(tested):
    """Nobody asks: even so nothing piles up."""
    sizes = []
    for turn in range(3000):
        (one,) = prepared(tested, [f"i = {turn} AND x > {turn} AND s = 'T{turn}'"])
        tested.add(0, one)
        tested.remove(0)
        if turn in {300, 2999}:
            sizes.append(footprint(tested))
    assert sizes[1] < 1.5 * sizes[0]


def test_what_is_gone_is_left_out_in_the_end(tested):
    """Also of a segment that has another one behind it."""
    ready = prepared(tested, [f"i > {n} AND x < {n}" for n in range(1100)])
    row = stock_rows(5, 1)[0]
    for handle in range(1000):
        tested.add(handle, ready[handle])
    tested.match(row)
    for handle in range(1000, 1100):
        tested.add(handle, ready[handle])
    tested.match(row)
    assert len(tested.segments) == 2
    for handle in range(999):
        tested.remove(handle)
    tested.match(row)
    assert tested.statistics()["subscriptions"] == 101
    assert places(tested) <= 2 * 101


def test_many_values_are_not_kept_for_ever(tested, monkeypatch):
    """Strings that never come again are forgotten."""
    monkeypatch.setattr("tamis.predicates.classes.MOST_REMEMBERED", 100)
    monkeypatch.setattr("tamis.predicates.index.MOST_VALUES", 100)
    (one,) = prepared(tested, ["s LIKE '%7_' AND i > 0"])
    tested.add(0, one)
    sizes = []
    for turn in range(60):
        some = [(1, None, f"{turn} {n}", None, None) for n in range(50)]
        assert len(list(tested.match_many(some))) == 50
        tested.match(some[0])
        if turn in {20, 59}:
            sizes.append(footprint(tested))
    assert sizes[1] < 1.5 * sizes[0]


def test_everything_goes(tested):
    """Predicates, segments and sizes; and the engine still works."""
    ready = prepared(tested, [*stock_filters(23, 300), "TRUE", "FALSE"])
    some = stock_rows(6, 40)
    for turn in range(3):
        for handle, one in enumerate(ready):
            tested.add(handle, one)
            if handle % 50 == turn:
                list(tested.match_many(some[:3]))
        first = [found.tolist() for found in tested.match_many(some)]
        assert any(first)
        for handle in range(len(ready)):
            tested.remove(handle)
        assert tested.statistics() == {"subscriptions": 0, "predicates": 0, "segments": 0}
        assert [found.tolist() for found in tested.match_many(some)] == [[]] * 40
        assert tested.match(some[0]).tolist() == []


def test_matches_are_not_changed_by_later_ones(tested):
    """Scratch is used again; answers are not scratch."""
    for handle, one in enumerate(prepared(tested, stock_filters(24, 50))):
        tested.add(handle, one)
    some = stock_rows(7, 600)
    pieces = list(tested.match_batch(batch_of_rows(some, SMALL)))
    before = [(counts.tolist(), handles.tolist()) for counts, handles in pieces]
    several = list(tested.match_many(some))
    copies = [found.tolist() for found in several]
    list(tested.match_batch(batch_of_rows(some[::-1], SMALL)))
    tested.match(some[0])
    assert [(counts.tolist(), handles.tolist()) for counts, handles in pieces] == before
    assert [found.tolist() for found in several] == copies
    assert all(found.dtype == np.int64 for found in [*several, tested.match(some[0])])
