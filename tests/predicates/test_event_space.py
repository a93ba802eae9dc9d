"""Forms are true exactly when filters match, over the events of their space."""

import pickle

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from strategies import SCHEMA, filters, rows
from tamis import LimitError, TypeMismatch, parse
from tamis.language.evaluation import compile_tree
from tamis.language.printer import print_tree
from tamis.predicates.event_space import EventSpace, form_of
from tamis.semantics import Semantics

BOTTOM = dict.fromkeys(SCHEMA)
MEANINGS = {
    "sql": Semantics("sql", SCHEMA),
    "strict": Semantics("strict", SCHEMA),
    "no defaults": Semantics("default", SCHEMA, BOTTOM),
    "defaults": Semantics("default", SCHEMA, BOTTOM | {"i": 0, "s": "a", "b": True, "x": 0.5}),
    "total": Semantics("total", SCHEMA),
}


@pytest.mark.long
@pytest.mark.parametrize("name", MEANINGS)
@given(text=filters(), some_rows=st.lists(rows(), min_size=1, max_size=3))
@settings(max_examples=20)
def test_a_form_is_true_when_the_filter_matches(name, text, some_rows):
    meaning = MEANINGS[name]
    try:
        expression = parse(text, SCHEMA)
        form = compile_tree(form_of(expression, meaning), SCHEMA)
    except (TypeMismatch, LimitError):
        return
    matches = meaning.condition(expression)
    for row in some_rows:
        if name == "total" and None in row:
            continue
        prepared = meaning.prepare(row)
        assert (form(prepared) is True) == matches(prepared)


@each(("name", "count"), [("sql", 15), ("strict", 15), ("no defaults", 15), ("defaults", 11)])
def test_what_may_be_missing(name, count):
    space = EventSpace.of(MEANINGS[name])
    assert sum(map(space.may_miss, range(len(SCHEMA)))) == count


def test_a_total_event_misses_nothing():
    assert EventSpace.of(MEANINGS["total"]).optional == frozenset()


def test_an_attribute_with_a_default_is_never_missing():
    space = EventSpace.of(MEANINGS["defaults"])
    assert not space.may_miss(SCHEMA.positions["i",])
    assert space.may_miss(SCHEMA.positions["j",])


def test_a_strict_form_tests_that_every_attribute_of_the_text_is_present():
    form = form_of(parse("i > 1 OR s = 'a' OR TRUE", SCHEMA), MEANINGS["strict"])
    assert print_tree(form) == "i IS NOT NULL AND s IS NOT NULL"


def test_event_spaces_are_equal_by_their_contents():
    space = EventSpace.of(MEANINGS["sql"])
    assert space == EventSpace.of(Semantics("strict", SCHEMA))
    assert hash(space) == hash(EventSpace.of(Semantics("strict", SCHEMA)))
    assert space != EventSpace.of(MEANINGS["total"])
    assert pickle.loads(pickle.dumps(space)) == space
