"""Boxes of filters: which are one, and that equal ones are the same."""

import pytest
from hypothesis import given, settings

from cases import each
from coverings import SCHEMA, SEMANTICS, Oracle, boxes, read, semantics_of
from tamis.predicates.boxes import EMPTY, Box, box_of, pinned_values
from tamis.predicates.event_space import EventSpace, form_of
from tamis.relations.entailment.decision import Answer, entails


def box(text, semantics="sql"):
    chosen = semantics_of(semantics)
    return box_of(form_of(read(text), chosen), EventSpace.of(chosen))


@each(
    ("one", "other"),
    [
        ("i > 4 AND n = 1", "n = 1 AND i >= 5"),
        ("i > 4 AND i < 6", "i = 5"),
        ("n >= 1 AND i > 0", "n <> 0 AND i >= 1"),
        ("(i = 1 OR i = 2) AND i <> 2", "i = 1"),
        ("x > -0.0D", "x > 0.0D"),
    ],
)
def test_equal_boxes_are_the_same(one, other):
    assert box(one) == box(other)
    assert box(one) is not None


@each("text", ["i > 1 AND i < 1", "n > 6", "i IS NULL AND i = 1", "FALSE"])
def test_a_box_that_is_never_true(text):
    assert box(text) == EMPTY
    assert box(text).is_empty


@each("text", ["i > 1 OR n > 1", "i > n", "i + 1 > 2 AND n = 1 OR b"])
def test_what_is_not_a_box(text):
    assert box(text) is None


def test_what_is_always_true_asks_nothing():
    assert box("TRUE") == Box(())
    assert box("i IS NULL OR i IS NOT NULL") == Box(())
    assert box("i IS NOT NULL AND n = 1", "total") == box("n = 1", "total")
    assert box("i IS NOT NULL AND n = 1") != box("n = 1")
    assert box("i IS NULL", "total") == EMPTY


def test_conditions_are_in_the_order_of_the_schema():
    found = box("b AND n = 1 AND i > 1 AND s LIKE 'a%' AND s LIKE '%b'")
    assert found.positions == (0, 1, 3, 5)
    assert [SCHEMA.attributes[p].name for p in found.positions] == ["i", "n", "s", "b"]


@pytest.mark.parametrize("semantics", SEMANTICS)
@given(text=boxes())
@settings(max_examples=20)
def test_a_box_says_what_its_filter_says(semantics, text):
    chosen = semantics_of(semantics)
    space, form = EventSpace.of(chosen), form_of(read(text), chosen)
    found = box_of(form, space)
    if found.is_empty:
        assert Oracle(chosen).never(text)
    else:
        assert entails(found.form, form, space) is Answer.YES
        assert entails(form, found.form, space) is Answer.YES


def test_pinned_values():
    form = form_of(read("i = 1 AND s = 'a' AND x > 2 AND (b OR n = 1)"), semantics_of("sql"))
    assert pinned_values(form, SCHEMA) == {0: 1, 3: "a"}
    assert pinned_values(form_of(read("i = 1 OR n = 1"), semantics_of("sql")), SCHEMA) == {}
