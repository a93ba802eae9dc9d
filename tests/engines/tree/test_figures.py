"""The trees of the paper's figures, and what each optimisation does to them."""

import math

import numpy as np
import pytest

from tamis import Schema
from tamis.engines.tree import static_tree, theorem_bound
from trees import (
    AT_ONCE,
    BARE,
    all_events,
    event,
    matcher,
    outline,
    shape,
    vectors,
    visits,
    workload,
)

# --- the figures


def test_figure_1_a_test_that_two_subscriptions_share():
    m = matcher({1: "a1 = 1 AND a2 = 2", 2: "a1 = 9 AND a3 = 3"}, equality_tree=False)
    assert shape(m, "general") == {
        (): "a1",
        ("a1 = 1",): "a2",
        ("a1 = 1", "a2 = 2"): [1],
        ("a1 = 9",): "a3",
        ("a1 = 9", "a3 = 3"): [2],
    }
    assert m.match({"a1": 1, "a2": 2, "a3": 3}) == [1]
    assert m.match({"a1": 9, "a2": 2, "a3": 3}) == [2]


def test_figure_2_a_star_edge():
    m = matcher({3: "a1 = 1 AND a2 = 2", 4: "a3 = 3 AND a4 = 4"}, equality_tree=False)
    assert shape(m, "general") == {
        (): "a1",
        ("a1 = 1",): "a2",
        ("a1 = 1", "a2 = 2"): [3],
        ("*",): "a3",
        ("*", "a3 = 3"): "a4",
        ("*", "a3 = 3", "a4 = 4"): [4],
    }
    assert m.match(event(1, 2, 3, 4)) == [3, 4]
    assert m.match(event(1, 2, 3, 5)) == [3]


FIGURE_3 = {3: "a1 <= 10 AND a2 = 2", 4: "a1 <= 5 AND a3 = 3"}


def test_figure_3_an_edge_that_is_implied():
    m = matcher(FIGURE_3)
    assert shape(m, "general") == {
        (): "a1 <= 10",
        ("a1 <= 10",): "a1 <= 5",
        ("a1 <= 10", "a1 <= 5"): "a3",
        ("a1 <= 10", "a1 <= 5", "a3 = 3"): [4],
        ("a1 <= 10", "*"): "a2",
        ("a1 <= 10", "*", "a2 = 2"): [3],
    }
    assert m.match(event(5, 2, 3)) == [3, 4]
    assert m.match(event(7, 2, 3)) == [3]


def test_figure_3_without_implied_edges_visits_more():
    with_, without = matcher(FIGURE_3), matcher(FIGURE_3, implied_edges=False)
    assert ("*",) not in shape(with_, "general")
    assert shape(without, "general")["*",] == "a1 <= 5"
    too_large = event(11, 2, 3)
    assert with_.match(too_large) == without.match(too_large) == []
    assert (visits(with_, too_large), visits(without, too_large)) == (1, 2)


FIGURE_5 = ["1 2 3", "1 * 9", "8 2 3"]


def test_figure_5_a_tree_of_equalities():
    schema = Schema({"a1": "int", "a2": "int", "a3": "int"})
    m = matcher(vectors(FIGURE_5), schema, successors="none")
    expected = {
        (): "a1",
        ("a1 = 1",): "a2",
        ("a1 = 1", "a2 = 2"): "a3",
        ("a1 = 1", "a2 = 2", "a3 = 3"): [1],
        ("a1 = 1", "*"): "a3",
        ("a1 = 1", "*", "a3 = 9"): [2],
        ("a1 = 8",): "a2",
        ("a1 = 8", "a2 = 2"): "a3",
        ("a1 = 8", "a2 = 2", "a3 = 3"): [3],
    }
    assert shape(m, "equality") == expected
    assert shape(matcher(vectors(FIGURE_5), schema, **BARE), "equality") == expected
    general = matcher(vectors(FIGURE_5), schema, equality_tree=False)
    assert shape(general, "general") == expected
    for tree in (m, general):
        assert tree.match(event(1, 2, 3)) == [1]
        assert tree.match(event(1, 2, 9)) == [2]
        assert tree.match(event(8, 2, 3)) == [3]
        assert tree.match(event(8, None, 3)) == []


# C is (1, 2, 3), and D (*, 2, 3) does not exist.
FIGURE_6 = vectors(
    [
        "1 2 3 1 *", "1 2 3 * 2",  # below C; the second through I
        "1 * 3 1 *", "1 * 3 * 2",  # below G; the second through K
        "1 2 * 1 *",  # below H
        "* * 3 2 *",  # below E
        "* 2 * 1 *",  # below F
        "2 1 * 1 *",  # through J and A to B
    ]
)  # fmt: skip
STEPS = ("a1 = 1", "a2 = 2", "a3 = 3")
C = STEPS
E, F = ("*", "*", STEPS[2]), ("*", STEPS[1], "*")
G, H = (STEPS[0], "*", STEPS[2]), (STEPS[0], STEPS[1], "*")
IN_I, K = (*C, "*"), (*G, "*")
BLOCKED = event(1, 2, 3, 8, 2)


@pytest.mark.long
def test_figure_6_successors_of_c():
    m = matcher(FIGURE_6, collapse=False, successors="plain", **AT_ONCE)
    assert m.match(BLOCKED) == [2, 4]
    assert outline(m, "annotated")[C] == ("a4", {E, F, G, H, IN_I})


def test_figure_6_refined_successors_of_c():
    m = matcher(FIGURE_6, collapse=False, **AT_ONCE)
    assert m.match(BLOCKED) == [2, 4]
    assert outline(m, "annotated")[C] == ("a4", {E, K, IN_I})


def test_figure_6_the_chain_from_j_to_b():
    path = ("a1 = 2", "a2 = 1")
    full = matcher(FIGURE_6, collapse=False, **AT_ONCE)
    collapsed = matcher(FIGURE_6, **AT_ONCE)
    assert full.match(BLOCKED) == collapsed.match(BLOCKED)
    assert shape(full, "annotated")[path] == "a3"
    assert shape(full, "annotated")[*path, "*"] == "a4"
    assert shape(collapsed, "annotated")[path] == "a4"


def test_figure_6_each_annotation_saves_visits():
    counts = [
        visits(matcher(FIGURE_6, collapse=False, successors=which, **AT_ONCE), BLOCKED)
        for which in ("none", "plain", "refined")
    ]
    assert counts[0] > counts[1] > counts[2]


def test_settling_by_hand():
    m = matcher(FIGURE_6)
    m._held.engine.settle()
    assert shape(m, "equality") == {}
    assert shape(m, "annotated")[C] == "a4"
    unannotated = matcher(FIGURE_6, successors="none")
    unannotated._held.engine.settle()
    assert shape(unannotated, "annotated") == {}
    empty = matcher({})
    empty._held.engine.settle()
    assert not any(empty._held.engine.statistics().values())


# --- the parts of section 5, on a random workload


def test_every_switch_keeps_the_answers_and_changes_the_visits():
    subscriptions, events = workload(200), all_events()
    trees = {
        "bare": matcher(subscriptions, **BARE),
        "collapsed": matcher(subscriptions, successors="none"),
        "plain": matcher(subscriptions, successors="plain", **AT_ONCE),
        "refined": matcher(subscriptions, **AT_ONCE),
        "factored": matcher(subscriptions, index_attributes=2, **AT_ONCE),
    }
    expected = matcher(subscriptions, equality_tree=False).match_batch(events)
    for tree in trees.values():
        assert tree.match_batch(events) == expected
    bare, collapsed, plain, refined, factored = (visits(t, *events) for t in trees.values())
    assert bare > collapsed > plain > refined > factored
    assert trees["plain"]._held.engine.statistics()["successors"] > 0
    assert trees["factored"]._held.engine.statistics()["subtrees"] == 16


def test_no_node_is_visited_twice():
    for options in ({}, {"collapse": False}, {"successors": "plain"}, {"index_attributes": 2}):
        m = matcher(workload(300), **options, **AT_ONCE)
        for one in all_events()[::7]:
            (slots,) = m._held.engine.complete_rows([m.reader.row(one)])
            assert len(set(slots.tolist())) == len(slots)


def test_visits_stay_under_the_bound_of_the_theorem():
    for count in (1, 10, 100, 1000):
        for collapse in (True, False):
            m = matcher(workload(count), collapse=collapse, successors="none")
            distinct = m._held.engine.statistics()["leaves"]
            mean = visits(m, *all_events()) / 3**5
            assert mean <= theorem_bound(distinct, attributes=5, values=3)


def test_the_bound_is_the_integral_of_its_proof():
    """Equation 5 is slightly larger than the sum that it bounds, and has its exponent."""
    k, v = 30, 3
    bar = k + 1
    exponent = math.log(v) / (math.log(v) + math.log(bar))
    for count in (10, 1000, 100_000):
        grid = np.linspace(0, bar * count, 400_001)
        g = v**1.0 * ((v - 1 / bar) * grid + 1) ** -exponent  # times V^K
        integral = float(np.trapezoid(g, grid))
        assert integral * 0.9 <= theorem_bound(count, k, v) <= integral * 1.1
    growth = math.log10(theorem_bound(10**7, k, v) / theorem_bound(10**6, k, v))
    assert growth == pytest.approx(1 - exponent, abs=1e-3)
    assert theorem_bound(0, k, v) == 0


def test_more_values_than_are_looked_at_one_by_one():
    """A node with many children, found by bisection; absent values between and around them."""
    subscriptions = {n: f"a1 = {2 * n} AND a2 = {n % 3}" for n in range(500)}
    m = matcher(subscriptions, **AT_ONCE)
    for n in (0, 1, 250, 499):
        assert m.match({"a1": 2 * n, "a2": n % 3}) == [n]
        assert m.match({"a1": 2 * n + 1, "a2": n % 3}) == []
    assert m.match({"a1": -1, "a2": 0}) == []
    assert m.match({"a2": 0}) == []


def test_a_tree_with_too_many_successors_has_none(monkeypatch):
    monkeypatch.setattr(static_tree, "MOST_SUCCESSORS", 0)
    m = matcher(workload(200), **AT_ONCE)
    events = all_events()
    assert m.match_batch(events) == matcher(workload(200), successors="none").match_batch(events)
    assert m._held.engine.statistics()["successors"] == 0
    assert m._held.engine.statistics()["subtrees"] == 1
