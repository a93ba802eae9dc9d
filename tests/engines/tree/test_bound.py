"""The analysis of section 4: lemmas, theorem and corollaries, counted in trees."""

from itertools import product

import pytest

from cases import each
from tamis.engines.tree.bound import (
    expected_visits,
    most_nodes,
    most_nodes_of_cost,
    nodes_by_result_edges,
    simpler_bound,
    simpler_most_nodes_of_cost,
    theorem_bound,
)
from trees import BARE, all_events, matcher, vectors, visits, workload

K, V = 5, 3


def every_combination():
    """All subscriptions except the one that tests nothing, which is in no tree."""
    rows = [" ".join(row) for row in product("123*", repeat=K)]
    return vectors(row for row in rows if row != "* * * * *")


def counts(made):
    return nodes_by_result_edges(made._held.engine.equality.growing)


def test_lemma_1_is_met_exactly_by_every_combination_of_values_and_stars():
    """Only the leaf at the end of the *-edges is lacking."""
    found = counts(matcher(every_combination(), **BARE))
    bounds = [most_nodes_of_cost(j, K, V) for j in range(K + 1)]
    assert found == [bounds[0] - 1, *bounds[1:]]


def test_equation_6_is_what_is_visited_by_all_events():
    for made in (matcher(every_combination(), **BARE), matcher(workload(300), **BARE)):
        mean = visits(made, *all_events()) / V**K
        assert expected_visits(counts(made), V) == pytest.approx(mean)


def test_every_combination_is_visited_twice_as_often_at_each_level():
    """2^0 + 2^1 + ... + 2^K nodes, without the leaf of the *-edges (footnote 4)."""
    found = counts(matcher(every_combination(), **BARE))
    assert expected_visits(found, V) == pytest.approx(2 ** (K + 1) - 1 - 1)


@each("count", [1, 10, 100, 1000])
def test_lemmas_and_corollaries_hold_for_random_subscriptions(count):
    made = matcher(workload(count, seed=count), **BARE)
    found = counts(made)
    distinct = made._held.engine.statistics()["leaves"]
    assert sum(found) == made._held.engine.statistics()["nodes"] <= most_nodes(distinct, K)
    for j, nodes in enumerate(found):
        assert nodes <= most_nodes_of_cost(j, K, V) <= simpler_most_nodes_of_cost(j, K, V)
    assert expected_visits(found, V) <= theorem_bound(distinct, K, V)
    assert theorem_bound(distinct, K, V) <= simpler_bound(distinct, K, V)


def test_an_empty_tree_has_no_nodes():
    assert counts(matcher({}, **BARE)) == []


def test_a_tree_from_which_nodes_were_removed_is_not_counted():
    made = matcher(workload(20), **BARE)
    made.unsubscribe(next(iter(made)))
    with pytest.raises(ValueError, match="removed"):
        counts(made)


def test_the_bounds_as_the_paper_writes_them():
    """K' is K + 1, for the result edge that leads to the root."""
    more = K + 1
    assert [most_nodes_of_cost(j, K, V) for j in (0, 1, 2)] == [
        more, V * more * K // 2, V**2 * more * K * (K - 1) // 6,
    ]  # fmt: skip
    assert [simpler_most_nodes_of_cost(j, K, V) for j in (0, 1, 2)] == [
        more, more * more * V, more * (more * V) ** 2,
    ]  # fmt: skip
    assert most_nodes(7, K) == more * 7
