"""Constraints: one object for each set of values, compared by cuts, value sets or entailment."""

import gc

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from coverings import SCHEMA, SEMANTICS, Oracle, any_boxes, read, semantics_of
from tamis.relations.tables.constraints import Constraint
from tamis.relations.tables.prepared_filters import FilterPreparation


def constraints(text, preparation=None):
    return (preparation or FilterPreparation(semantics_of("sql"))).prepare(read(text)).constraints


@each(
    ("one", "other"),
    [
        ("s <= ''", "s = ''"),
        ("s > 'a' AND s <= 'a\\u0000'", "s = 'a\\u0000'"),
        ("x > 0 AND x < 1e-323", "x = 5e-324"),
        ("i > 4 AND i < 6", "i = 5"),
        ("s >= ''", "s IS NOT NULL"),
    ],
)
def test_conditions_of_the_same_values_are_one_constraint(one, other):
    preparation = FilterPreparation(semantics_of("sql"))
    held = constraints(one, preparation)
    assert held == constraints(other, preparation)
    assert len(held) == 1


@each("text", ["s < ''", "x > 0 AND x < 5e-324", "s LIKE 'a%' AND s LIKE 'b%'"])
def test_a_constraint_without_values_makes_a_box_that_is_never_true(text):
    assert FilterPreparation(semantics_of("sql")).prepare(read(f"i = 1 AND {text}")) is None


def test_a_constraint_of_all_values_is_left_out():
    assert len(constraints("i = 1 AND (s >= '' OR s IS NULL)")) == 1
    assert len(constraints("i = 1 AND (s LIKE '%' OR s IS NULL)")) == 1
    assert len(constraints("i = 1 AND s >= ''", FilterPreparation(semantics_of("total")))) == 1
    assert len(constraints("i = 1 AND s >= ''")) == 2


def test_constraints_that_are_not_in_use_are_forgotten():
    preparation = FilterPreparation(semantics_of("sql"))
    held = constraints("i = 1 AND n = 2", preparation)
    assert constraints("i = 1", preparation)[0] is held[0]
    del held
    gc.collect()
    assert not preparation.pool._constraints


@each(
    ("text", "is_interval", "members"),
    [
        ("i = 5", True, 1),
        ("i > 5", True, None),
        ("s IN ('a', 'b')", False, 2),
        ("x = 0.5D", True, 1),
        ("b", True, 1),
        ("side IS NOT NULL", False, 2),
        ("i <> 5", False, None),
        ("i IS NULL", False, None),
        ("i = 5 OR i IS NULL", False, None),
        ("startswith(s, 'a')", False, None),
    ],
)
def test_the_shape_of_a_constraint(text, is_interval, members):
    (constraint,) = constraints(text)
    assert constraint.is_interval == is_interval
    assert (None if constraint.members is None else len(constraint.members)) == members


ROW = (3, 2, 0.5, "ab", "sell", True)


@pytest.mark.parametrize("position", range(len(SCHEMA)))
@pytest.mark.parametrize("missing", [True, False])
def test_the_point_of_a_value_implies_what_is_true_of_it(position, missing):
    preparation = FilterPreparation(semantics_of("sql"))
    point = preparation.pool.point(position, None if missing else ROW[position])
    name = SCHEMA.attributes[position].name
    constant = ["3", "2", "0.5D", "'ab'", "'sell'", "TRUE"][position]
    (equal,) = constraints(f"{name} = {constant}", preparation)
    (null,) = constraints(f"{name} IS NULL", preparation)
    (either,) = constraints(f"{name} <= {constant} OR {name} IS NULL", preparation) or (
        null if missing else equal,
    )
    implies = preparation.pool.implies
    assert implies(point, equal) == (not missing)
    assert implies(point, null) == missing
    assert implies(point, either)


@pytest.mark.long
@pytest.mark.parametrize("semantics", SEMANTICS)
@given(one=any_boxes, other=any_boxes)
@settings(max_examples=30)
def test_boxes_are_compared_constraint_by_constraint(semantics, one, other):
    chosen = semantics_of(semantics)
    preparation, oracle = FilterPreparation(chosen), Oracle(chosen)
    narrow, wide = preparation.prepare(read(one)), preparation.prepare(read(other))
    if narrow is None or wide is None:
        assert oracle.never(one if narrow is None else other)
        return
    found = all(
        constraint.position in narrow.by_position
        and preparation.pool.implies(narrow.by_position[constraint.position], constraint)
        for constraint in wide.constraints
    )
    assert found == oracle.covers(other, one)


@given(st.integers(0, 5))
def test_a_constraint_shows_its_condition(position):
    constraint = FilterPreparation(semantics_of("sql")).pool.point(position, ROW[position])
    assert isinstance(constraint, Constraint)
    assert str(position) in repr(constraint)
