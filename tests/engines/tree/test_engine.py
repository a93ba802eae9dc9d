"""The tree engine: how it changes, which tests it merges, and what it refuses."""

import math

import pytest

from cases import each
from tamis import CapacityError, Matcher, OptionError, Schema
from tamis.engines.tree import TreeOptions, factoring
from trees import AT_ONCE, BARE, event, matcher, shape, state, workload

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
    old = m._held.engine.equality.static
    m.subscribe_many({200 + n: f"a1 = {n} AND a5 = {100 + n}" for n in range(5)})
    m.match(everywhere)
    assert m._held.engine.equality.static is old
    m.subscribe_many({300 + n: f"a1 = {n} AND a5 = {100 + n}" for n in range(10, 40)})
    m.match(everywhere)
    new = m._held.engine.equality.static
    assert new is not old
    assert shape(m, "equality") == {}
    for number in list(m)[:90]:
        m.unsubscribe(number)
    m.match(everywhere)
    assert m._held.engine.equality.static is not new
    assert m._held.engine.statistics()["leaves"] < 60


def test_an_implied_test_outlives_the_subscription_that_brought_it():
    m = matcher({1: "a1 <= 10", 2: "a1 <= 5 AND a2 = 2"})
    m.unsubscribe(1)
    m.subscribe_many({3: "a3 <> 7", 4: "a4 >= 1"})  # would take the place of the predicate
    assert shape(m, "general")["a1 <= 10",] == "a1 <= 5"
    assert m.match(event(5, 2, 3, 4)) == [2, 3, 4]
    assert m.match(event(11, 2, 7, 0)) == []
    for number in (2, 3, 4):
        m.unsubscribe(number)
    assert not any(m._held.engine.statistics().values())


def test_conjunctions_that_mean_the_same_share_a_leaf():
    """a1 = 3 follows the implied edge of a1 <> 5 to the same place."""
    m = matcher({1: "a1 = 3 AND a1 <> 5", 2: "a1 = 3"}, equality_tree=False)
    assert shape(m, "general")["a1 <> 5", "a1 = 3"] == [1, 2]
    assert m.match(event(3)) == [1, 2]
    m.unsubscribe(1)
    assert m.match(event(3)) == [2]
    m.unsubscribe(2)
    assert not any(m._held.engine.statistics().values())


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
    assert m._held.engine.statistics()["leaves"] == 2
    assert m.match(event(1)) == [3]
    for number in range(1, 6):
        m.unsubscribe(number)
    assert not any(m._held.engine.statistics().values())


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
    engine = m._held.engine
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
    before = m._held.engine.statistics()
    with pytest.raises(CapacityError, match="combinations of values"):
        m.subscribe(9, "a1 = 9 AND a2 = 2")
    assert m._held.engine.statistics() == before
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
