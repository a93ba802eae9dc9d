"""A shape and its predicates mean what the filter means."""

from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from offers import parsed
from strategies import SCHEMA, delicate_rows, filters, rows
from tamis import Schema, parse
from tamis.engines.sliced.formulas import ALWAYS, NEVER, of_normal_form
from tamis.language import ast
from tamis.language.evaluation import compile_tree
from tamis.language.normal_form import normalize
from tamis.predicates.presence import matching_form
from tamis.semantics import NAMES, Semantics

DEFAULTS = dict(zip(SCHEMA, delicate_rows()[5], strict=True)) | {
    "x": None, "s": "", "b": None, "at": "2024-01-01", "until": None,
}  # fmt: skip
ABC = Schema({"a": "int", "b": "int", "c": "string", "t": "bool", "x": "double"})


def semantics_of(name):
    return Semantics(name, SCHEMA, DEFAULTS if name == "default" else None)


class Form(NamedTuple):
    """A filter as a shape and its predicates."""

    shape: str
    predicates: tuple[ast.Node, ...]


def form_of(expression, semantics):
    shape, predicates = of_normal_form(matching_form(expression, semantics))
    return Form(shape, tuple(predicates))


def whole(row):
    """A row without missing values, for the semantics that allows none."""
    return tuple(d if v is None else v for v, d in zip(row, delicate_rows()[3], strict=True))


def evaluated(form, row, schema=SCHEMA):
    """A form by the book: a stack of truth values."""
    if form.shape in {ALWAYS, NEVER}:
        assert form.predicates == ()
        return form.shape == ALWAYS
    truths = [compile_tree(node, schema)(row) is True for node in form.predicates]
    stack, leaves = [], iter(truths)
    for sign in form.shape:
        if sign == "a":
            stack.append(next(leaves))
        else:
            right, left = stack.pop(), stack.pop()
            stack.append(left and right if sign == "&" else left or right)
    assert next(leaves, None) is None
    (answer,) = stack
    return answer


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
@given(text=filters(), some=st.lists(rows(), max_size=4))
@settings(max_examples=35)
def test_a_form_means_what_the_filter_means(name, text, some):
    expression, meaning = parsed(text), semantics_of(name)
    form, condition = form_of(expression, meaning), meaning.condition(expression)
    for row in [*some, *delicate_rows()[:4], (None,) * len(SCHEMA)]:
        prepared = meaning.prepare(whole(row) if name == "total" else row)
        assert evaluated(form, prepared) is condition(prepared)


@pytest.mark.parametrize("name", NAMES)
@given(filters())
@settings(max_examples=30)
def test_what_segments_rely_on(name, text):
    form = form_of(parsed(text), semantics_of(name))
    if form.shape in {ALWAYS, NEVER}:
        return
    assert form.shape.count("a") == len(form.predicates) > 0
    if "|" not in form.shape:  # a conjunction is flat
        assert form.shape == "a" + "a&" * (len(form.predicates) - 1)
        assert len(set(form.predicates)) == len(form.predicates)
    for node in form.predicates:
        assert not isinstance(node, ast.And | ast.Or | ast.Literal)


@each(
    ("text", "shape"),
    [
        ("a > 1", "a"),
        ("a > 1 AND b > 1", "aa&"),
        ("a > 1 OR b > 1 OR c = 'x'", "aa|a|"),
        ("a > 1 AND (b > 1 OR c = 'x')", "aaa|&"),
        ("(b > 1 OR c = 'x') AND a > 1", "aa|a&"),
        ("(a > 1 OR b > 1) AND (a > 2 OR b > 2)", "aa|aa|&"),
        ("(a > 1 AND b > 1) OR (c = 'x' AND (a < 0 OR b < 0)) OR t", "aa&aaa|&|a|"),
        ("NOT (a > 1 AND b > 1)", "aa|"),
        ("a BETWEEN 1 AND 2", "aa&"),
        ("a > 1 AND a > 1", "a"),
    ],
)
def test_shapes(text, shape):
    assert form_of(parse(text, ABC), Semantics("sql", ABC)).shape == shape


@given(st.data())
@settings(max_examples=20)
def test_the_order_of_parts_does_not_matter(data):
    parts = ["a > 1", "t", "(b > 1 OR c = 'x')", "(a < 0 OR (b < 0 AND c > 'b') OR x = 1)"]
    some = data.draw(st.lists(st.sampled_from(parts), min_size=1, unique=True))
    other = data.draw(st.permutations(some))
    word = data.draw(st.sampled_from([" AND ", " OR "]))
    meaning = Semantics("sql", ABC)
    first, second = (form_of(parse(word.join(t), ABC), meaning) for t in (some, other))
    assert sorted(first.shape) == sorted(second.shape)
    assert sorted(map(str, first.predicates)) == sorted(map(str, second.predicates))


# --- filters without any predicate


@each(
    ("text", "shape"),
    [
        ("TRUE", ALWAYS), ("FALSE", NEVER), ("1 = 1", ALWAYS), ("1 > 2", NEVER),
        ("NULL IS NULL", ALWAYS), ("NOT TRUE", NEVER), ("TRUE OR a > 1", ALWAYS),
        ("FALSE AND a > 1", NEVER), ("a = NULL", NEVER), ("a > 1 AND NULL", NEVER),
    ],
)  # fmt: skip
def test_constants(text, shape):
    assert form_of(parse(text, ABC), Semantics("sql", ABC)) == (shape, ())


# --- strict semantics


def presence(*names):
    return [ast.Not(ast.IsNull(ast.Attribute(ABC[n].path, ABC[n].type))) for n in names]


@each(
    ("text", "asked"),
    [
        ("a > 1", []),
        ("a > 1 AND c LIKE 'x_'", []),
        ("a > 1 OR b > 1", ["a", "b"]),
        ("a > 1 AND (a > 2 OR b > 1)", ["b"]),
        ("a IS NULL", ["a"]),
        ("a IS NOT NULL", []),
        ("a > 1 OR TRUE", ["a"]),
        ("a = a", []),
        ("a + b > 1", []),
        ("a IS NULL OR b = 1", ["a", "b"]),
    ],
)
def test_strict_adds_only_the_tests_that_are_missing(text, asked):
    form = form_of(parse(text, ABC), Semantics("strict", ABC))
    plain = form_of(parse(text, ABC), Semantics("sql", ABC))
    new = [node for node in form.predicates if node not in plain.predicates]
    assert new == presence(*asked)
    row = dict.fromkeys(ABC)
    assert evaluated(form, tuple(row.values()), ABC) is False


@each("text", ["TRUE", "1 = 1", "NULL IS NULL"])
def test_strict_adds_nothing_where_no_attribute_occurs(text):
    assert form_of(parse(text, ABC), Semantics("strict", ABC)).shape == ALWAYS


@each("text", ["FALSE", "FALSE AND a > 1", "a = NULL OR b = NULL"])
def test_strict_never_is_never(text):
    assert form_of(parse(text, ABC), Semantics("strict", ABC)) == (NEVER, ())


@given(filters(), rows())
@settings(max_examples=30)
def test_the_normal_form_is_kept(text, row):
    """In the semantics that add nothing, the predicates are those of the normal form."""
    expression = parsed(text)
    form = form_of(expression, Semantics("sql", SCHEMA))
    tree = normalize(expression.tree)
    assert evaluated(form, row) is (compile_tree(tree, SCHEMA)(row) is True)
