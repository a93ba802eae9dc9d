import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis import covers
from tamis.errors import OptionError
from tamis.routing.filter_cache import reading_of
from tamis.routing.reductions import NO_CHANGE, Covering, Everything, Merged, reducer_of
from tamis.routing.strategies import Merging, strategy_of

READING = reading_of({"price": "int(0, 30)", "symbol": "enum('A', 'B', 'C')"}, "sql", None)
FILTERS = [
    f"price BETWEEN {low} AND {low + width}" for low in range(0, 20, 3) for width in (1, 2, 5)
] + [f"symbol = '{name}' AND price > {low}" for name in "ABC" for low in (3, 9)]


def merged(policy="size 1", threshold=None):
    offers = None if threshold is None else list
    return Merged(READING, Merging(policy, threshold or 0.1), offers)


REDUCERS = {
    "everything": Everything,
    "covering": lambda: Covering(READING),
    "perfect": merged,
    "imperfect": lambda: merged(threshold=0.2),
    "outputs": lambda: merged("outputs 2"),
}


@pytest.mark.parametrize("name", REDUCERS)
@given(data=st.data())
def test_roots_cover_all_and_changes_tell_of_them(name, data):
    reducer, held, roots = REDUCERS[name](), set(), set()
    for now in range(data.draw(st.integers(1, 25))):
        text = data.draw(st.sampled_from(FILTERS))
        change = reducer.remove(text) if text in held else reducer.add(text)
        held ^= {text}
        for removed, added in (change[::-1], reducer.reduce(now)[::-1]):
            assert roots.issuperset(removed)
            roots = roots.difference(removed).union(added)
        for one in held:
            root = reducer.root_of(one)
            assert root in roots
            assert covers(READING.read(root), READING.read(one))


def test_a_strategy_has_its_reducer():
    kinds = {
        "simple": Everything, "advertisements": Everything, "simple+covering": Covering,
        "advertisements+covering": Covering, "advertisements+perfect": Merged,
    }  # fmt: skip
    for name, kind in kinds.items():
        assert type(reducer_of(strategy_of(name), Merging(), READING, None)) is kind


def test_mergers_are_made_when_the_policy_says_so():
    reducer = merged("size 3")
    for number in (1, 2):
        reducer.add(f"price = {number}")
        assert reducer.reduce(0) == NO_CHANGE
    reducer.add("price = 3")
    change = reducer.reduce(0)
    assert change.added == ("price >= 1 AND price <= 3",)
    assert set(change.removed) == {"price = 1", "price = 2", "price = 3"}
    assert reducer.reduce(0) == NO_CHANGE


def test_a_periodic_policy_asks_to_be_woken():
    reducer = merged("every 10s")
    reducer.add("price = 1")
    reducer.reduce(5)
    assert reducer.next_time() is None  # one filter cannot be merged
    reducer.add("price = 2")
    assert reducer.next_time() == 15
    assert reducer.reduce(14) == NO_CHANGE
    assert reducer.reduce(15) != NO_CHANGE
    assert reducer.next_time() is None


def test_a_merger_goes_with_its_part():
    reducer = merged("size 2")
    reducer.add("price = 1")
    reducer.add("price = 2")
    (merger,) = reducer.reduce(0).added
    change = reducer.remove("price = 2")
    assert change.removed == (merger,)
    assert change.added == ("price = 1",)


def test_what_covers_a_merger_takes_its_place():
    reducer = merged("size 2")
    reducer.add("price = 1")
    reducer.add("price = 2")
    (merger,) = reducer.reduce(0).added
    change = reducer.add("price < 5")
    assert change.removed == (merger,)
    assert change.added == ("price < 5",)
    assert reducer.remove("price < 5").added == ("price = 1", "price = 2")


def test_advertisements_allow_more_mergers():
    offers = []
    reducer = Merged(READING, Merging("size 1", 0.0, "paper"), lambda: offers)
    reducer.add("price > 15")
    reducer.add("price = 12")
    assert reducer.reduce(0) == NO_CHANGE  # it would let 13 to 15 through
    offers.append("price > 15 OR price <= 12")
    reducer.add("price = 2")
    assert len(reducer.reduce(1).added) == 1


def test_settings_of_merging_are_checked():
    with pytest.raises(OptionError, match="cannot read 'often'"):
        Merging("often")
    with pytest.raises(OptionError, match="from 0 to 1"):
        Merging(threshold=2)
    with pytest.raises(OptionError, match="unknown rule set 'all'"):
        Merging(rules="all")
