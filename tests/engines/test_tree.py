"""The trees of the paper's figures, and what each optimisation does to them."""

import math

import numpy as np
import pytest

from cases import each
from tamis import CapacityError, Matcher, OptionError, Schema
from tamis.engines.tree import TreeOptions, factoring, static_tree, theorem_bound

ATTRIBUTES = Schema({f"a{n}": "int" for n in range(1, 6)})
BARE = {"collapse": False, "successors": "none"}
AT_ONCE = {"young": 0}  # annotate as soon as there is something


def matcher(subscriptions, schema=ATTRIBUTES, **options):
    made = Matcher(schema, engine="tree", options=options)
    made.subscribe_many(subscriptions)
    return made


def vectors(rows):
    """Subscriptions written as the paper writes them: a value or * for each attribute."""
    return {
        number: " AND ".join(
            f"a{place} = {value}" for place, value in enumerate(row.split(), 1) if value != "*"
        )
        for number, row in enumerate(rows, 1)
    }


def outline(matched, which):
    """path -> (test or subscriptions, successors) of one of the trees of a matcher."""
    engine = matched._engine
    handles = engine._slots._handles
    found = {}
    for path, view in engine.outline()[which].items():
        held = sorted(matched._subscriptions.id_of(int(handles[slot])) for slot in view.slots)
        found[path] = (view.test or held, view.successors)
    return found


def shape(matched, which):
    """path -> test or subscriptions."""
    return {path: view for path, (view, _) in outline(matched, which).items()}


def state(matched):
    trees = ("general", "equality", "annotated")
    return matched._engine.statistics(), [shape(matched, which) for which in trees]


def event(*values):
    return {f"a{place}": value for place, value in enumerate(values, 1) if value is not None}


def visits(matched, *events):
    matched._engine.reset_visited()
    for one in events:
        matched.match(one)
    return matched._engine.visited


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


# --- the parts of section 5, on a random workload


def workload(count, seed=1, attributes=5, values=3, care=0.6):
    chance = np.random.default_rng(seed)
    wanted = chance.integers(1, values + 1, (count, attributes))
    rows = np.where(chance.random((count, attributes)) < care, wanted.astype(str), "*")
    rows[(rows == "*").all(axis=1), 0] = "1"
    return vectors(" ".join(row) for row in rows.tolist())


def all_events(values=3, attributes=5):
    grid = np.indices((values,) * attributes).reshape(attributes, -1).T + 1
    return [event(*row) for row in grid.tolist()]


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
    assert trees["plain"]._engine.statistics()["successors"] > 0
    assert trees["factored"]._engine.statistics()["subtrees"] == 16


def test_no_node_is_visited_twice():
    for options in ({}, {"collapse": False}, {"successors": "plain"}, {"index_attributes": 2}):
        m = matcher(workload(300), **options, **AT_ONCE)
        for one in all_events()[::7]:
            (slots,) = m._engine.complete_rows([m.reader.row(one)])
            assert len(set(slots.tolist())) == len(slots)


def test_visits_stay_under_the_bound_of_the_theorem():
    for count in (1, 10, 100, 1000):
        for collapse in (True, False):
            m = matcher(workload(count), collapse=collapse, successors="none")
            distinct = m._engine.statistics()["leaves"]
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
    assert m._engine.statistics()["successors"] == 0
    assert m._engine.statistics()["subtrees"] == 1


# --- changes


def test_a_new_subscription_joins_the_leaf_of_an_equal_one():
    m = matcher({1: "a1 = 1 AND a2 = 2", 2: "a2 = 2 AND a1 = 1"}, **AT_ONCE)
    assert m.match(event(1, 2)) == [1, 2]
    m.subscribe_many({3: "a1 = 1 AND a2 = 2 AND a1 = 1", 4: "a2 = 2"})
    assert shape(m, "annotated")["a1 = 1", "a2 = 2"] == [1, 2, 3]
    assert shape(m, "equality") == {(): "a2", ("a2 = 2",): [4]}
    assert m.match(event(1, 2)) == [1, 2, 3, 4]


def test_a_leaf_that_nobody_holds_is_joined_again():
    m = matcher({1: "a1 = 1", 2: "a2 = 2", 3: "a3 = 3"}, young=2)
    assert m.match(event(1, 2)) == [1, 2]
    m.unsubscribe(1)
    assert shape(m, "annotated")["a1 = 1",] == []
    assert m.match(event(1, 2)) == [2]
    m.subscribe(4, "a1 = 1")
    assert shape(m, "annotated")["a1 = 1",] == [4]
    assert m.match(event(1, 2)) == [2, 4]


def test_the_annotated_tree_is_built_anew_when_enough_waits_or_went():
    m = matcher(workload(100, care=0.9), young=5)
    everywhere = event(1, 1, 1, 1, 1)
    m.match(everywhere)
    old = m._engine.equality.static
    m.subscribe_many({200 + n: f"a1 = {n} AND a5 = {100 + n}" for n in range(5)})
    m.match(everywhere)
    assert m._engine.equality.static is old
    m.subscribe_many({300 + n: f"a1 = {n} AND a5 = {100 + n}" for n in range(10, 40)})
    m.match(everywhere)
    new = m._engine.equality.static
    assert new is not old
    assert shape(m, "equality") == {}
    for number in list(m)[:90]:
        m.unsubscribe(number)
    m.match(everywhere)
    assert m._engine.equality.static is not new
    assert m._engine.statistics()["leaves"] < 60


def test_settling_by_hand():
    m = matcher(FIGURE_6)
    m._engine.settle()
    assert shape(m, "equality") == {}
    assert shape(m, "annotated")[C] == "a4"
    unannotated = matcher(FIGURE_6, successors="none")
    unannotated._engine.settle()
    assert shape(unannotated, "annotated") == {}
    empty = matcher({})
    empty._engine.settle()
    assert not any(empty._engine.statistics().values())


def test_an_implied_test_outlives_the_subscription_that_brought_it():
    m = matcher({1: "a1 <= 10", 2: "a1 <= 5 AND a2 = 2"})
    m.unsubscribe(1)
    m.subscribe_many({3: "a3 <> 7", 4: "a4 >= 1"})  # would take the place of the predicate
    assert shape(m, "general")["a1 <= 10",] == "a1 <= 5"
    assert m.match(event(5, 2, 3, 4)) == [2, 3, 4]
    assert m.match(event(11, 2, 7, 0)) == []
    for number in (2, 3, 4):
        m.unsubscribe(number)
    assert not any(m._engine.statistics().values())


def test_conjunctions_that_mean_the_same_share_a_leaf():
    """a1 = 3 follows the implied edge of a1 <> 5 to the same place."""
    m = matcher({1: "a1 = 3 AND a1 <> 5", 2: "a1 = 3"}, equality_tree=False)
    assert shape(m, "general")["a1 <> 5", "a1 = 3"] == [1, 2]
    assert m.match(event(3)) == [1, 2]
    m.unsubscribe(1)
    assert m.match(event(3)) == [2]
    m.unsubscribe(2)
    assert not any(m._engine.statistics().values())


# --- tests other than equality


def test_bounds_of_one_attribute_are_one_test():
    m = matcher({1: "a1 >= 1 AND a1 <= 5 AND a1 <= 9", 2: "a1 BETWEEN 1 AND 5"})
    assert shape(m, "general") == {
        (): "a1 >= 1 AND a1 <= 5",
        ("a1 >= 1 AND a1 <= 5",): [1, 2],
    }
    assert m.match(event(5)) == [1, 2]
    assert m.match(event(6)) == []


def test_what_can_never_be_true_is_in_no_tree():
    m = matcher({1: "a1 = 1 AND a1 = 2", 2: "a1 < 1 AND a1 > 5", 3: "a1 = 1", 4: "a1 = 2"})
    m.subscribe(5, "a1 = 2 AND a1 = 1")  # both known now
    assert m._engine.statistics()["leaves"] == 2
    assert m.match(event(1)) == [3]
    for number in range(1, 6):
        m.unsubscribe(number)
    assert not any(m._engine.statistics().values())


def test_weaker_tests_stand_above_stronger_ones():
    m = matcher(
        {
            1: "s IS NOT NULL",
            2: "s LIKE 'ab%'",
            3: "s LIKE 'a%'",
            4: "s = 'abc'",
            5: "s IN ('abc', 'abd')",
            6: "s <> 'x'",
        },
        Schema({"s": "string"}),
        equality_tree=False,
    )
    paths = shape(m, "general")
    assert paths[()] == "s IS NOT NULL"
    assert all(path[0] == "s IS NOT NULL" for path in paths if path)
    for value, expected in {
        "abc": [1, 2, 3, 4, 5, 6], "abd": [1, 2, 3, 5, 6], "a": [1, 3, 6], "x": [1],
    }.items():  # fmt: skip
        assert m.match({"s": value}) == expected
    assert m.match({}) == []


@each("value", [math.nan, math.inf, -math.inf, -0.0, 0.0, 1.5, -1.5, None])
def test_doubles_at_the_ends(value):
    texts = [
        "x > 0", "x >= 0", "x < 0", "x <= 0", "x = 0", "x <> 0", "x > 1e308D", "x < -1e308D",
        "x BETWEEN -1.5D AND 1.5D", "x IS NULL", "x IS NOT NULL", "x > -1.5D AND x < 1.5D",
    ]  # fmt: skip
    schema = Schema({"x": "double"})
    expected = Matcher(schema, engine="naive")
    expected.subscribe_many(enumerate(texts))
    for options in ({}, {"equality_tree": False}, {"implied_edges": False}):
        assert matcher(enumerate(texts), schema, **options).match({"x": value}) == expected.match(
            {"x": value}
        )


def test_matching_by_the_satisfied_predicates_alone():
    """`complete` knows no values, and gives the same answer."""
    m = matcher({1: "a1 <= 5 AND a2 = 2", 2: "a1 = 1", 3: "a1 BETWEEN 0 AND 3", 4: "a3 IS NULL"})
    engine = m._engine
    for one in (event(1, 2), event(4, 2, 0), event(9, 9, 9)):
        row = m.reader.row(one)
        by_predicates = engine.complete(engine.predicates.satisfied(row))
        (by_values,) = engine.complete_rows([row])
        assert sorted(by_predicates.tolist()) == sorted(by_values.tolist())


def test_a_conjunction_of_very_many_predicates():
    text = " AND ".join(f"a1 <> {n}" for n in range(1, 400))
    m = matcher({1: text, 2: text + " AND a2 = 1"})
    assert m.match(event(0, 1)) == [1, 2]
    assert m.match(event(0, 2)) == [1]
    assert m.match(event(7, 1)) == []


# --- limits


def test_a_full_tree_refuses_and_stays_as_it_was():
    for options in ({}, {"equality_tree": False}, BARE):
        m = matcher({0: "a1 = 0"}, max_nodes=20, **options)
        before = state(m)
        with pytest.raises(CapacityError, match="max_nodes"):
            m.subscribe_many((n, f"a1 = {n} AND a2 = {n}") for n in range(1, 30))
        assert state(m) == before
        with pytest.raises(CapacityError, match="max_nodes"):
            m.subscribe(0, " OR ".join(f"a3 = {n} AND a4 = 1" for n in range(30)))
        assert m.match(event(0)) == [0]
        assert state(m) == before


def test_the_annotated_tree_counts_towards_the_limit():
    m = matcher({n: f"a1 = {n}" for n in range(10)}, max_nodes=13, **AT_ONCE)
    assert m.match(event(3)) == [3]
    m.subscribe(10, "a1 = 10")
    with pytest.raises(CapacityError, match="max_nodes"):
        m.subscribe(11, "a2 = 11 AND a3 = 1")
    assert m.match(event(10, 11, 1)) == [10]


def test_too_many_subtrees_are_refused(monkeypatch):
    monkeypatch.setattr(factoring, "MOST_SUBTREES", 10)
    m = matcher({}, index_attributes=("a1", "a2"), **AT_ONCE)
    m.subscribe_many({n: f"a1 = {n} AND a2 = 1" for n in range(4)})
    before = m._engine.statistics()
    with pytest.raises(CapacityError, match="combinations of values"):
        m.subscribe(9, "a1 = 9 AND a2 = 2")
    assert m._engine.statistics() == before
    assert m.match(event(3, 1)) == [3]


def test_too_many_copies_are_refused():
    m = matcher({}, index_attributes=("a1",), max_nodes=100, **AT_ONCE)
    m.subscribe_many({n: f"a1 = {n}" for n in range(20)})
    with pytest.raises(CapacityError, match="factored by its index attributes"):
        m.subscribe_many({100 + n: f"a2 = {n}" for n in range(5)})
    assert len(m) == 20
    assert m.match(event(3)) == [3]


def test_chosen_index_attributes_are_those_that_are_tested_most():
    m = matcher(
        {n: f"a2 = {n % 3} AND a4 = {n % 2} AND a1 = {n}" for n in range(30)}
        | {n: f"a4 = {n % 2} AND a3 = {n}" for n in range(30, 40)},
        index_attributes=1, **AT_ONCE,
    )  # fmt: skip
    m.match(event(1, 1, 1, 1))
    roots = {path[0] for path in shape(m, "annotated")}
    assert roots == {"a4 = 0", "a4 = 1"}  # and no subtree for others: nobody leaves a4 out
    assert m.match(event(3, 0, None, 1)) == [3]


def test_a_subscription_without_an_index_attribute_is_in_every_subtree():
    m = matcher(
        {1: "a1 = 1", 2: "a1 = 2 AND a2 = 1", 3: "a2 = 1"}, index_attributes=("a1",), **AT_ONCE
    )
    assert m.match(event(2, 1)) == [2, 3]
    assert m.match(event(None, 1)) == m.match(event(7, 1)) == [3]
    assert shape(m, "annotated") == {
        ("a1 = 1",): "a2",
        ("a1 = 1", "a2 = 1"): [3],
        ("a1 = 1", "*"): [1],
        ("a1 = 2",): "a2",
        ("a1 = 2", "a2 = 1"): [2, 3],
        ("a1 = other",): "a2",
        ("a1 = other", "a2 = 1"): [3],
    }
    m.subscribe(4, "a1 = 9")  # a value that the subtrees do not know
    assert m.match(event(9, 1)) == [3, 4]


def test_all_attributes_may_be_index_attributes():
    schema = Schema({"a1": "int", "a2": "int"})
    for collapse in (True, False):
        m = matcher(
            {1: "a1 = 1", 2: "a2 = 2"}, schema, index_attributes=("a1", "a2"), collapse=collapse,
            **AT_ONCE,
        )  # fmt: skip
        assert m.match(event(1, 2)) == [1, 2]
        assert m.match(event(1, 3)) == [1]
        assert m.match(event()) == []


@each(
    ("options", "complaint"),
    [
        ({"collapse": "yes"}, "collapse is true or false"),
        ({"successors": "all"}, "unknown successors 'all'"),
        ({"young": -1}, "young is a number"),
        ({"max_nodes": 0}, "max_nodes is a number"),
        ({"max_nodes": True}, "max_nodes is a number"),
        ({"index_attributes": "a1"}, "not one name"),
        ({"index_attributes": ("a1", "a1")}, "twice"),
        ({"index_attributes": ("a1", 2)}, "a tuple of names or a number"),
        ({"index_attributes": 9}, "index_attributes is a number from 0 to 8"),
        ({"index_attributes": 1.5}, "index_attributes is a number"),
        ({"index_attributes": ("b",)}, "unknown attribute 'b'"),
        ({"index_attributes": ("a1",), "equality_tree": False}, "switched off"),
        ({"depth": 3}, "unknown option of the engine tree 'depth'"),
    ],
)
def test_options_that_cannot_be(options, complaint):
    with pytest.raises(OptionError, match=complaint):
        matcher({}, **options)


def test_options_from_a_file_may_be_lists():
    assert TreeOptions(index_attributes=["a1", "a2"]).index_attributes == ("a1", "a2")
