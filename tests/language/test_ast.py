import math
from decimal import Decimal

from hypothesis import assume, given

from cases import each
from strategies import SCHEMA, filters
from tamis import parse
from tamis.errors import TypeMismatch
from tamis.language import ast
from tamis.language.ast import Literal
from tamis.types import BOOL, DOUBLE, INT, INT32, decimal_type


@each(
    ("left", "right"),
    [
        (Literal(1, INT), Literal(1, INT32)),
        (Literal(0.0, DOUBLE), Literal(-0.0, DOUBLE)),
        (Literal(1, INT), Literal(True, BOOL)),
        (Literal(Decimal("0.5"), decimal_type(1, 1)), Literal(Decimal("0.5"), decimal_type(2, 1))),
        (Literal(Decimal("0.5"), decimal_type(2, 1)), Literal(Decimal("0.50"), decimal_type(2, 1))),
        (Literal(None, INT), Literal(None, BOOL)),
        (Literal(1, INT), 1),
    ],
)
def test_literals_that_behave_differently_are_not_equal(left, right):
    assert left != right


@each("value", [math.nan, -0.0, math.inf])
def test_a_literal_equals_itself(value):
    assert Literal(value, DOUBLE) == Literal(float(str(value)), DOUBLE)
    assert hash(Literal(value, DOUBLE)) == hash(Literal(float(str(value)), DOUBLE))


def test_the_parts_of_a_tree_come_parents_first():
    tree = parse("i = 1 AND (b OR NOT c)", SCHEMA).tree
    kinds = [type(node).__name__ for node in ast.walk(tree)]
    assert kinds == [
        "And", "Compare", "Attribute", "Cast", "Literal", "Or", "Attribute", "Not", "Attribute",
    ]  # fmt: skip


@each(
    ("text", "count"),
    [
        ("i BETWEEN j AND r.k", 3),
        ("i IN (j, r.k)", 3),
        ("contains(s, t)", 2),
        ("i = j", 2),
        ("b AND c AND b", 3),
        ("NOT b", 1),
        ("s LIKE 'a'", 1),
        ("s RLIKE 'a'", 1),
        ("b IS TRUE", 1),
        ("i IS NULL", 1),
        ("TRUE", 0),
        ("b", 0),
    ],
)
def test_the_children_of_a_node(text, count):
    assert len(ast.children(parse(text, SCHEMA).tree)) == count


@given(filters(depth=2))
def test_a_node_rebuilt_from_its_children_is_the_same(text):
    try:
        tree = parse(text, SCHEMA).tree
    except TypeMismatch as error:  # the one thing a generated filter may do wrong
        assume("38 digits" not in (error.hint or ""))
        raise
    for node in ast.walk(tree):
        assert ast.rebuild(node, ast.children(node)) == node


def test_nodes_are_small():
    """Millions of filters are made of them."""
    for made in (Literal(1, INT), parse("i = 1", SCHEMA).tree):
        assert not hasattr(made, "__dict__")
