"""Covering of tests of arrays, against all events of a small world."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from tamis import Schema, covers, parse
from tamis.events.values import MapValue
from tamis.language.evaluation import compile_tree
from tamis.language.normal_form import normalize
from tamis.predicates.event_space import EventSpace
from tamis.relations.entailment.decision import Answer, entails, satisfiable, witness
from tamis.semantics import Semantics

SCHEMA = Schema({"tags": "array<string>", "bs": "array<bool>", "m": "map<string, int>"})
TAGS = [None, *(t for n in range(3) for t in itertools.product(["a", "b", "z", None], repeat=n))]
BOOLS = [None, (), (True,), (False,), (True, False), (None,), (None, True), (None, False)]
MAPS = [None, MapValue(), MapValue(k=1), MapValue(k=5), MapValue(k=None), MapValue(j=1, k=1)]
WORLD = [*itertools.product(TAGS, BOOLS[:1], MAPS[:1]), *itertools.product([()], BOOLS, MAPS)]

ELEMENTS = [
    "array_contains(tags, 'a')", "array_contains(tags, 'b')", "array_contains(bs, TRUE)",
    "arrays_overlap(tags, array('a', 'b'))", "exists(tags, t -> t = 'a')", "tags IS NULL",
    "array_contains(bs, FALSE)", "map_contains_key(m, 'k')",
]  # fmt: skip
OTHERS = [
    "size(tags) > 0", "size(tags) = 2", "tags[0] = 'a'", "m['k'] > 3", "m['k'] > 0", "size(m) < 2",
    "exists(tags, t -> t > 'a')", "forall(tags, t -> t <> 'b')",
    "array_contains(tags, 'a') IS NULL",
    "m['k'] IS NULL", "arrays_overlap(tags, array('a', NULL))",
]  # fmt: skip


@st.composite
def formulas(draw, atoms, depth=2):
    if depth == 0 or draw(st.integers(0, 2)) == 0:
        return draw(st.sampled_from(["", "", "NOT "])) + draw(st.sampled_from(atoms))
    word = draw(st.sampled_from([" AND ", " OR "]))
    parts = draw(st.lists(formulas(atoms, depth - 1), min_size=2, max_size=3))
    return word.join(f"({part})" for part in parts)


SPACES = [EventSpace.of(Semantics(name, SCHEMA)) for name in ("sql", "total")]


def check(given_text, wanted_text, space=SPACES[0]):
    """Whatever is answered is right; returns whether something was."""
    b, a = (normalize(parse(text, SCHEMA).tree) for text in (given_text, wanted_text))
    holds = [compile_tree(form, SCHEMA) for form in (b, a)]
    answer = entails(b, a, space)
    if answer is Answer.YES:
        for row in WORLD if space is SPACES[0] else (row for row in WORLD if None not in row):
            assert holds[0](row) is not True or holds[1](row) is True, row
    elif answer is Answer.NO:
        row = witness(b, a, space)
        if row is not None:
            assert holds[0](row) is True
            assert holds[1](row) is not True
    return answer is not Answer.UNDECIDED


@given(b=formulas(ELEMENTS), a=formulas(ELEMENTS), space=st.sampled_from(SPACES))
@settings(max_examples=150)
def test_tests_for_elements_are_decided(b, a, space):
    assert check(b, a, space)


@given(b=formulas(ELEMENTS + OTHERS), a=formulas(ELEMENTS + OTHERS), space=st.sampled_from(SPACES))
@settings(max_examples=150)
def test_other_tests_are_never_answered_wrongly(b, a, space):
    check(b, a, space)


@each(
    ("a", "b", "answer"),
    [
        ("array_contains(tags, 'a')", "array_contains(tags, 'a') AND size(tags) = 2", True),
        ("arrays_overlap(tags, array('a', 'b', 'c'))", "array_contains(tags, 'b')", True),
        ("array_contains(tags, 'b')", "arrays_overlap(tags, array('a', 'b'))", False),
        ("NOT array_contains(tags, 'a')", "NOT arrays_overlap(tags, array('a', 'b'))", True),
        ("NOT array_contains(tags, 'b')", "array_contains(tags, 'a')", False),
        ("tags IS NOT NULL", "NOT array_contains(tags, 'a')", True),
        ("m['k'] > 1", "m['k'] > 3", True),
    ],
)
def test_who_covers_whom(a, b, answer):
    assert covers(parse(a, SCHEMA), parse(b, SCHEMA)) is answer


@pytest.mark.parametrize("space", SPACES)
def test_what_can_never_be_true(space):
    never = "array_contains(tags, 'a') AND NOT arrays_overlap(tags, array('a', 'b'))"
    form = normalize(parse(never, SCHEMA).tree)
    assert satisfiable(form, space) is Answer.NO
    assert satisfiable(form.items[0], space) is Answer.YES
