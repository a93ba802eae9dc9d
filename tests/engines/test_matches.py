"""Pieces of matches: taken apart, and put together event by event."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from tamis.engines.matches import lists_of, merged

HANDLES = st.integers(0, 9) | st.integers(0, 2**31 - 1)


def piece(lists, kind=np.int64):
    """A piece of the handles of each event."""
    counts = np.array([len(one) for one in lists], np.int64)
    return counts, np.array([handle for one in lists for handle in one], kind)


@st.composite
def parts(draw):
    """The matches of several disjoint sets of filters: [part][event] is a list, ascending."""
    size, number = draw(st.integers(0, 6)), draw(st.integers(2, 4))
    owners = draw(st.dictionaries(HANDLES, st.integers(0, number - 1), max_size=12))
    found = []
    for part in range(number):
        mine = sorted(handle for handle, owner in owners.items() if owner == part)
        some = st.sets(st.sampled_from(mine)) if mine else st.just(set())
        found.append([sorted(draw(some)) for _ in range(size)])
    return size, found


@given(st.lists(st.lists(HANDLES, max_size=5), max_size=8), st.sampled_from([np.int32, np.int64]))
def test_the_handles_of_each_event(lists, kind):
    found = list(lists_of(*piece(lists, kind)))
    assert [one.tolist() for one in found] == lists
    assert all(one.dtype == np.int64 for one in found)


def test_no_events_at_all():
    assert list(lists_of(*piece([]))) == []


@given(parts(), st.lists(st.sampled_from([np.int32, np.int64]), min_size=4, max_size=4))
def test_several_parts_event_by_event(drawn, kinds):
    size, found = drawn
    pieces = [piece(lists, kind) for lists, kind in zip(found, kinds, strict=False)]
    counts, handles = merged(pieces, size)
    together = [sorted(h for lists in found for h in lists[event]) for event in range(size)]
    assert counts.tolist() == [len(one) for one in together]
    assert counts.dtype == np.int64
    assert [one.tolist() for one in lists_of(counts, handles)] == together


@each("size", [0, 1, 3])
def test_no_parts_match_nothing(size):
    counts, handles = merged([], size)
    assert counts.tolist() == [0] * size
    assert handles.tolist() == []
    assert [one.tolist() for one in lists_of(counts, handles)] == [[]] * size


def test_one_part_is_given_back_as_it_is():
    only = piece([[3], [1, 2]], np.int32)
    counts, handles = merged([only], 2)
    assert counts is only[0]
    assert handles is only[1]


def test_what_was_merged_is_left_alone():
    pieces = [piece([[3], [1, 2]]), piece([[0, 9], []])]
    before = [(counts.tolist(), handles.tolist()) for counts, handles in pieces]
    counts, _ = merged(pieces, 2)
    counts += 1
    assert [(counts.tolist(), handles.tolist()) for counts, handles in pieces] == before
