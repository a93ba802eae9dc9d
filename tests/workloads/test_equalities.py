"""TREE: equalities, popular attributes, and the promise about matches."""

import numpy as np
import pytest

import tamis
from tamis.workloads import workload
from tamis.workloads.equalities import Equalities
from tamis.workloads.random_draws import seeded


def values_tested(texts, attributes):
    """tested[filter, attribute]: the value tested, 0 for don't care."""
    tested = np.zeros((len(texts), attributes), int)
    for row, text in enumerate(texts):
        for test in text.split(" AND ") if text != "TRUE" else []:
            name, _, value = test.split()
            tested[row, int(name[1:])] = int(value)
    return tested


def filters_of(recipe, count):
    pieces = recipe.filters(seeded(1, 0), count)
    return [text for piece in pieces for text in piece.to_pylist()]


def test_the_matches_stay_the_same_however_many_filters():
    made = workload("tree")
    found = [made.parameters(count) for count in (289, 1000, 25_000, 1_000_000, 10**9)]
    assert [one["matches"] for one in found] == pytest.approx([100] * 5)
    degradations = [one["degradation"] for one in found]
    assert degradations == sorted(degradations)
    assert degradations[0] < 0.01
    assert degradations[-1] < 1
    assert made.least == 289


@pytest.mark.parametrize("count", [1000, 20_000])
def test_the_matches_are_as_promised(count):
    made = workload("tree")
    tested = values_tested(made.subscriptions(count)["filter"].to_pylist(), 30)
    events = np.array([column.to_numpy() for column in made.events(200).columns]).T
    matches = [((tested == 0) | (tested == event)).all(axis=1).sum() for event in events]
    assert np.mean(matches) == pytest.approx(100, rel=0.1)


def test_attributes_lose_popularity():
    made = workload("tree")
    tested = values_tested(made.subscriptions(20_000)["filter"].to_pylist(), 30)
    degradation = made.parameters(20_000)["degradation"]
    assert (tested > 0).mean(axis=0) == pytest.approx(0.98 * degradation ** np.arange(30), abs=0.02)
    assert (tested > 0).sum(axis=1).mean() == pytest.approx(
        made.parameters(20_000)["tests"], abs=0.1
    )


def test_values_tested_are_zipf_and_those_of_events_uniform():
    made = workload("tree")
    tested = values_tested(made.subscriptions(10_000)["filter"].to_pylist(), 30)
    shares = np.bincount(tested[tested > 0]) / (tested > 0).sum()
    assert shares[1:] == pytest.approx(np.array([6, 3, 2]) / 11, abs=0.01)
    values = made.events(6000)["a7"].to_numpy()
    assert np.bincount(values)[1:] / 6000 == pytest.approx([1 / 3] * 3, abs=0.03)


def test_footnote_five():
    made = workload("tree-65")
    assert str(made.schema["a29"]) == "int(1, 30)"
    tested = values_tested(made.subscriptions(10_000)["filter"].to_pylist(), 30)
    assert (tested == 0).mean(axis=0) == pytest.approx([0.65] * 30, abs=0.02)
    assert set(tested.ravel()) == set(range(31))
    assert made.parameters(25_000)["degradation"] == 1.0


def test_a_filter_without_tests_is_true():
    recipe = Equalities(2, 3, popularity=0.5, exponent=1.0, degradation=0.5)
    filters = filters_of(recipe, 10_000)
    assert filters.count("TRUE") / 10_000 == pytest.approx(0.5 * 0.75, abs=0.02)
    assert set(filters) == {"TRUE"} | {f"a{i} = {v}" for i in (0, 1) for v in (1, 2, 3)} | {
        f"a0 = {v} AND a1 = {w}" for v in (1, 2, 3) for w in (1, 2, 3)
    }


def test_too_few_filters_for_the_matches():
    made = workload("tree")
    with pytest.raises(
        tamis.OptionError,
        match=r"100 matches per event need at least 289 subscriptions.*there are 288",
    ):
        made.subscriptions(288)
    with pytest.raises(tamis.OptionError, match="at least 289"):
        made.parameters(0)


def test_too_many_filters_for_the_matches():
    recipe = Equalities(2, 2, popularity=0.5, exponent=1.0, matches=1)
    with pytest.raises(tamis.OptionError, match="2 subscriptions have more than 1 match"):
        recipe.parameters(2)
