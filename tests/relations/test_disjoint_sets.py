"""Disjoint sets against sets that are really joined."""

from hypothesis import given
from hypothesis import strategies as st

from tamis.relations.disjoint_sets import DisjointSets


@given(st.lists(st.lists(st.integers(0, 15), min_size=1, max_size=4), max_size=12))
def test_numbers_that_were_joined_have_one_representative(joins):
    found, expected = DisjointSets(), {n: {n} for n in range(16)}
    for numbers in joins:
        found.join(numbers)
        together = set().union(*(expected[n] for n in numbers))
        for n in together:
            expected[n] = together
    for n, members in expected.items():
        assert {m for m in range(16) if found.find(m) == found.find(n)} == members
