"""Networks of brokers are trees, and anything else is refused."""

import random

import pytest

from cases import each
from tamis.errors import OptionError, RoutingError
from tamis.routing.simulation.topology import (
    Topology,
    edge,
    line,
    random_tree,
    shaped,
    star,
)


def chance(seed):
    return random.Random(seed)  # noqa: S311 - no secret


def test_shapes():
    assert line(4).edges == (("B1", "B2"), ("B2", "B3"), ("B3", "B4"))
    assert star(4).edges == (("B1", "B2"), ("B1", "B3"), ("B1", "B4"))
    assert line(1).edges == star(1).edges == ()
    for seed in range(20):
        tree = random_tree(9, chance(seed))
        assert len(tree.edges) == 8
        assert tree.edges == random_tree(9, chance(seed)).edges
    assert {shaped("random", 5, chance(seed)).edges for seed in range(30)} >= {
        line(5).edges,
        star(5).edges,
    }
    with pytest.raises(OptionError, match="unknown topology 'ring'"):
        shaped("ring", 3, chance(0))


def test_the_path_between_two():
    tree = Topology("ABCDE", [("A", "B"), ("C", "B"), ("C", "D"), ("B", "E")])
    assert tree.path("A", "D") == ("A", "B", "C", "D")
    assert tree.path("D", "A") == ("D", "C", "B", "A")
    assert tree.path("E", "E") == ("E",)
    with pytest.raises(RoutingError, match="unknown broker 'X'"):
        tree.path("A", "X")


def test_without_a_broker_the_others_stay_together():
    tree = Topology("ABCDE", [("A", "B"), ("C", "B"), ("C", "D"), ("B", "E")])
    for broker in tree.brokers:
        smaller = tree.without(broker)
        assert smaller.brokers == tuple(b for b in tree.brokers if b != broker)
        assert len(smaller.edges) == 3
    assert tree.without("B").path("E", "D") == ("E", "A", "C", "D")


@each(
    ("brokers", "edges", "message"),
    [
        ("ABCD", ["AB", "BC", "CD", "DB"], "cycle: B - C - D - B;"),
        ("AB", ["AB", "BA"], "cycle: A - B - A;"),
        ("AB", ["AB", "AA"], "cycle: A - A;"),
        ("AB", ["AC"], "edge A - C: unknown broker 'C'; available: 'A', 'B'"),
        ("ABCD", ["AB", "CD"], "no path between A and C"),
        ("ABA", ["AB"], "the broker 'A' twice"),
        ("", [], "needs a broker"),
    ],
)
def test_what_is_not_a_tree_is_refused(brokers, edges, message):
    with pytest.raises(RoutingError) as caught:
        Topology(brokers, edges)
    assert message in str(caught.value)


def test_edges_have_no_direction():
    assert edge("B", "A") == edge("A", "B") == ("A", "B")
    with pytest.raises(RoutingError, match="at least 1"):
        line(0)
