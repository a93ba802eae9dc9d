import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis import covers
from tamis.errors import OptionError
from tamis.routing.filter_cache import shared_cache
from tamis.routing.reductions import (
    NO_CHANGE,
    CoveringReduction,
    MergingReduction,
    NoReduction,
    reduction_of,
)
from tamis.routing.strategies import Merging, strategy_of

CACHE = shared_cache({"price": "int(0, 30)", "symbol": "enum('A', 'B', 'C')"}, "sql", None)
FILTERS = [
    f"price BETWEEN {low} AND {low + width}" for low in range(0, 20, 3) for width in (1, 2, 5)
] + [f"symbol = '{name}' AND price > {low}" for name in "ABC" for low in (3, 9)]


def merged(policy="size 1", threshold=None):
    advertised = None if threshold is None else list
    return MergingReduction(CACHE, Merging(policy, threshold or 0.1), advertised)


REDUCTIONS = {
    "everything": NoReduction,
    "covering": lambda: CoveringReduction(CACHE),
    "perfect": merged,
    "imperfect": lambda: merged(threshold=0.2),
    "outputs": lambda: merged("outputs 2"),
}


@pytest.mark.long
@pytest.mark.parametrize("name", REDUCTIONS)
@given(data=st.data())
def test_roots_cover_all_and_changes_tell_of_them(name, data):
    reduction, held, roots = REDUCTIONS[name](), set(), set()
    for now in range(data.draw(st.integers(1, 25))):
        text = data.draw(st.sampled_from(FILTERS))
        change = reduction.remove(text) if text in held else reduction.add(text)
        held ^= {text}
        for removed, added in (change[::-1], reduction.reduce(now)[::-1]):
            assert roots.issuperset(removed)
            roots = roots.difference(removed).union(added)
        for one in held:
            root = reduction.root_of(one)
            assert root in roots
            assert covers(CACHE.parse(root), CACHE.parse(one))


def test_a_strategy_has_its_reduction():
    kinds = {
        "simple": NoReduction, "advertisements": NoReduction, "simple+covering": CoveringReduction,
        "advertisements+covering": CoveringReduction, "advertisements+perfect": MergingReduction,
    }  # fmt: skip
    for name, kind in kinds.items():
        assert type(reduction_of(strategy_of(name), Merging(), CACHE, None)) is kind


def test_mergers_are_made_when_the_policy_says_so():
    reduction = merged("size 3")
    for number in (1, 2):
        reduction.add(f"price = {number}")
        assert reduction.reduce(0) == NO_CHANGE
    reduction.add("price = 3")
    change = reduction.reduce(0)
    assert change.added == ("price >= 1 AND price <= 3",)
    assert set(change.removed) == {"price = 1", "price = 2", "price = 3"}
    assert reduction.reduce(0) == NO_CHANGE


def test_a_periodic_policy_asks_to_be_woken():
    reduction = merged("every 10s")
    reduction.add("price = 1")
    reduction.reduce(5)
    assert reduction.next_time() is None  # one filter cannot be merged
    reduction.add("price = 2")
    assert reduction.next_time() == 15
    assert reduction.reduce(14) == NO_CHANGE
    assert reduction.reduce(15) != NO_CHANGE
    assert reduction.next_time() is None


def test_a_merger_goes_with_its_part():
    reduction = merged("size 2")
    reduction.add("price = 1")
    reduction.add("price = 2")
    (merger,) = reduction.reduce(0).added
    change = reduction.remove("price = 2")
    assert change.removed == (merger,)
    assert change.added == ("price = 1",)


def test_what_covers_a_merger_takes_its_place():
    reduction = merged("size 2")
    reduction.add("price = 1")
    reduction.add("price = 2")
    (merger,) = reduction.reduce(0).added
    change = reduction.add("price < 5")
    assert change.removed == (merger,)
    assert change.added == ("price < 5",)
    assert reduction.remove("price < 5").added == ("price = 1", "price = 2")


def test_advertisements_allow_more_mergers():
    advertised = []
    reduction = MergingReduction(CACHE, Merging("size 1", 0.0, "paper"), lambda: advertised)
    reduction.add("price > 15")
    reduction.add("price = 12")
    assert reduction.reduce(0) == NO_CHANGE  # it would let 13 to 15 through
    advertised.append("price > 15 OR price <= 12")
    reduction.add("price = 2")
    assert len(reduction.reduce(1).added) == 1


def test_settings_of_merging_are_checked():
    with pytest.raises(OptionError, match="cannot read 'often'"):
        Merging("often")
    with pytest.raises(OptionError, match="from 0 to 1"):
        Merging(threshold=2)
    with pytest.raises(OptionError, match="unknown rule set 'all'"):
        Merging(rules="all")
