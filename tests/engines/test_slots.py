"""Slots: dense, used again, and translated into handles that are each given once, in order."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

from tamis.engines.slots import SPREAD, Slots


def ids(slots):
    return np.array(slots, np.int32)


def bytes_of(slots):
    return slots._handles.nbytes + slots._marks.nbytes


def test_slots_are_dense_and_used_again():
    slots = Slots()
    assert slots.size == 0
    assert [slots.take(handle) for handle in (40, 10, 30)] == [0, 1, 2]
    slots.give_back(1)
    assert slots.take(99) == 1
    assert slots.size == 3
    assert slots.handles_of(ids([0, 1, 2])).tolist() == [30, 40, 99]


def test_handles_are_unique_and_ascend():
    slots = Slots()
    taken = [slots.take(handle) for handle in (7, 3, 7, 0, 3, 7)]
    assert slots.handles_of(ids(taken)).tolist() == [0, 3, 7]
    assert slots.handles_of(ids(taken[::-1])).tolist() == [0, 3, 7]
    assert slots.handles_of(ids([2, 0, 2])).tolist() == [7]
    answer = slots.handles_of(ids([]))
    assert answer.tolist() == []
    assert answer.dtype == np.int64


def test_huge_handles_make_no_huge_arrays():
    slots = Slots()
    handles = [2**62, 5, 2**40, 2**62 - 1]
    taken = [slots.take(handle) for handle in handles]
    assert slots.handles_of(ids(taken)).tolist() == sorted(handles)
    assert slots.handles_of(ids(taken * 2)).tolist() == sorted(handles)
    assert bytes_of(slots) < 10_000


def test_handles_that_grow_for_ever_make_no_growing_arrays():
    slots = Slots()
    for handle in range(0, 3_000_000, 100):
        slot = slots.take(handle)
        assert slot < 2
        other = slots.take(handle + 1)
        assert slots.handles_of(ids([other, slot])).tolist() == [handle, handle + 1]
        slots.give_back(slot)
        slots.give_back(other)
    assert slots.size == 2
    assert bytes_of(slots) < 64 * 8 + 2 * 64 * SPREAD + 1


def test_many_slots_of_many_handles():
    """Beyond every first capacity, marked and sorted."""
    slots = Slots()
    taken = ids([slots.take(handle) for handle in reversed(range(5000))])
    for step in (1, 2, 7, 1000):
        assert slots.handles_of(taken[::step]).tolist() == sorted(range(4999, -1, -step))
    assert bytes_of(slots) < 5000 * (2 * 8 + 2) + 1000


@given(
    st.lists(st.integers(0, 100) | st.integers(0, 2**62), min_size=1, max_size=200),
    st.data(),
)
@settings(max_examples=30)
def test_any_slots_of_any_handles(handles, data):
    slots = Slots()
    taken = [slots.take(handle) for handle in handles]
    for _ in range(2):
        some = data.draw(st.lists(st.sampled_from(taken), max_size=50))
        wanted = sorted({handles[slot] for slot in some})
        assert slots.handles_of(ids(some)).tolist() == wanted


class Life(RuleBasedStateMachine):
    @initialize()
    def start(self):
        self.slots, self.held, self.most = Slots(), {}, 0

    @rule(handle=st.integers(0, 1000))
    def take(self, handle):
        slot = self.slots.take(handle)
        assert slot not in self.held
        self.held[slot] = handle
        self.most = max(self.most, len(self.held))
        assert self.slots.size == self.most

    @rule(data=st.data())
    def give_back(self, data):
        if self.held:
            slot = data.draw(st.sampled_from(sorted(self.held)))
            self.slots.give_back(slot)
            del self.held[slot]

    @rule()
    def ask(self):
        wanted = sorted(set(self.held.values()))
        assert self.slots.handles_of(ids(list(self.held))).tolist() == wanted


@pytest.mark.long
def test_a_long_life():
    run_state_machine_as_test(Life, settings=settings(max_examples=20, stateful_step_count=40))
