"""Every canonical predicate becomes the leaf that the table of `leaves` says."""

import math
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st

from cases import each
from offers import parsed
from strategies import SCHEMA, filters
from tamis import Schema, parse
from tamis.engines.sliced import leaves
from tamis.engines.sliced.leaves import (
    ABOVE,
    ABSENT,
    AT_LEAST,
    AT_MOST,
    BELOW,
    EQUAL,
    LEAF_KINDS,
    NONE_OF,
    ONE_OF,
    PRESENT,
    TEST,
    UNEQUAL,
    Leaves,
    leaf_of,
    leaves_of,
)  # fmt: skip
from tamis.kernels import comparisons
from tamis.language import ast
from tamis.language.evaluation import compile_tree
from tamis.semantics import Semantics
from tamis.types import DOUBLE, INT, INT64_MAX, INT64_MIN, STRING, Kind

STOCK = Schema(
    {"n": "int", "level": "int(1, 5)", "x": "double", "s": "string",
     "side": "enum('sell', 'buy', 'hold')", "b": "bool", "at": "timestamp"}
)  # fmt: skip
N, LEVEL, X, S, SIDE, B, AT = (LEAF_KINDS * place for place in range(7))
NOWHERE = LEAF_KINDS * 7 + TEST
SQL = Semantics("sql", STOCK)


def read(text):
    return leaves_of(parse(text, STOCK), SQL)


def only_leaf(text):
    """Code and constant of a filter that is one predicate."""
    shape, codes, constants = read(text)
    assert shape == "a"
    return codes[0], constants[0]


def test_codes():
    kinds = [EQUAL, UNEQUAL, BELOW, AT_MOST, ABOVE, AT_LEAST, ONE_OF, NONE_OF, PRESENT, ABSENT]
    assert [*kinds, TEST] == list(range(11))
    assert comparisons.OPERATORS == ("=", "<>", "<", "<=", ">", ">=")
    assert LEAF_KINDS == 16 > TEST
    assert all(hasattr(leaves, name) for name in leaves.__all__)


@each(
    ("text", "code", "constant"),
    [
        ("n = 5", N + EQUAL, 5),
        ("n <> -5", N + UNEQUAL, -5),
        ("n < 5", N + AT_MOST, 4),
        ("n <= 5", N + AT_MOST, 5),
        ("n > 5", N + AT_LEAST, 6),
        ("n >= 5", N + AT_LEAST, 5),
        ("n < 5.5", N + AT_MOST, 5),
        ("n = 5e0", N + EQUAL, 5),
        (f"n > {INT64_MAX - 1}", N + AT_LEAST, INT64_MAX),
        (f"n <= {INT64_MIN}", N + AT_MOST, INT64_MIN),
        (f"n <= {INT64_MAX}", N + PRESENT, None),
        ("n = 2 + 3", N + EQUAL, 5),
        ("level < 2", LEVEL + AT_MOST, 1),
        ("level >= 5", LEVEL + AT_LEAST, 5),
        ("x = 5", X + EQUAL, 5.0),
        ("x < 0.1", X + BELOW, 0.1),
        ("x <= -1.5", X + AT_MOST, -1.5),
        ("x > 1e300", X + ABOVE, 1e300),
        ("x >= -0D", X + AT_LEAST, 0.0),
        ("s = 'it''s'", S + EQUAL, "it's"),
        ("s > 'Z'", S + ABOVE, "Z"),
        ("s LIKE 'abc'", S + EQUAL, "abc"),
        ("s NOT LIKE 'abc'", S + UNEQUAL, "abc"),
        ("side = 'buy'", SIDE + EQUAL, "buy"),
        ("side < 'sell'", SIDE + BELOW, "sell"),
        ("b", B + EQUAL, 1),
        ("NOT b", B + EQUAL, 0),
        ("b <> TRUE", B + EQUAL, 0),
        ("b >= FALSE", B + PRESENT, None),
        ("at < TIMESTAMP '1970-01-01 00:00:01'", AT + BELOW, 1_000_000),
        ("n IN (3, 1, 2, 1)", N + ONE_OF, (1, 2, 3)),
        ("n IN (3, 3)", N + EQUAL, 3),
        ("n NOT IN (3, 1)", N + NONE_OF, (1, 3)),
        ("x IN (2.5, -1)", X + ONE_OF, (-1.0, 2.5)),
        ("s NOT IN ('b', 'a', 'é')", S + NONE_OF, ("a", "b", "é")),
        ("side IN ('sell', 'buy')", SIDE + ONE_OF, ("buy", "sell")),
        ("n IS NULL", N + ABSENT, None),
        ("lower(s) IS NULL", S + ABSENT, None),
        ("n IS NOT NULL", N + PRESENT, None),
    ],
)
def test_comparisons_sets_and_presence(text, code, constant):
    found = only_leaf(text)
    assert found == (code, constant)
    assert repr(found[1]) == repr(constant)


@each(
    ("text", "code"),
    [
        ("s LIKE 'a%b'", S + TEST),
        ("s NOT LIKE 'a%b'", S + TEST),
        ("startswith(s, 'a')", S + TEST),
        ("n + 1 > 5", N + TEST),
        ("x = 1e308 * 10D", X + TEST),
        ("n % 2 IN (0, 1)", N + TEST),
        ("at IN (at)", AT + TEST),
        ("side LIKE 'other'", SIDE + TEST),
        ("side NOT LIKE 'other'", SIDE + TEST),
        ("side IN ('buy', lower('OTHER'))", SIDE + TEST),
        ("NOT side IN ('buy', lower('OTHER'))", SIDE + TEST),
        ("n > level", NOWHERE),
        ("n + x > 5", NOWHERE),
        ("n / 2 IS NULL", NOWHERE),
        ("n / 2 IS NOT NULL", NOWHERE),
    ],
)
def test_other_predicates_are_tests_of_themselves(text, code):
    found, predicate = only_leaf(text)
    assert found == code
    row = tuple(
        {"n": 4, "level": 2, "x": 1.5, "s": "a--b", "side": "buy", "b": True, "at": 0}.values()
    )
    by_tree = compile_tree(parse(text, STOCK).tree, STOCK)(row)
    assert (compile_tree(predicate, STOCK)(row) is True) is (by_tree is True)


def test_constants_of_another_type_are_tests():
    """The normal form has none; whoever builds one by hand gets what is right."""
    n, x = ast.Attribute(("n",), INT), ast.Attribute(("x",), DOUBLE)
    for predicate in (
        ast.Compare("=", n, ast.Literal(1.5, DOUBLE)),
        ast.Compare("=", n, ast.Literal(None, INT)),
        ast.In(x, (ast.Literal(1.0, DOUBLE), ast.Literal("a", STRING))),
    ):
        assert leaf_of(predicate, STOCK) == (predicate_home(predicate) + TEST, predicate)
    code, constant = leaf_of(ast.Compare("=", x, ast.Literal(math.nan, DOUBLE)), STOCK)
    assert code == X + EQUAL
    assert math.isnan(constant)


def predicate_home(predicate):
    (path,) = ast.attributes(predicate)
    return STOCK.positions[path] * LEAF_KINDS


def test_shapes_and_order():
    found = read("(s = 'a' OR n IS NULL) AND x BETWEEN 1 AND 2.5 AND b")
    assert found == Leaves(
        "aa|a&a&a&",
        (S + EQUAL, N + ABSENT, X + AT_LEAST, X + AT_MOST, B + EQUAL),
        ("a", None, 1.0, 2.5, 1),
    )


@each(("text", "shape"), [("TRUE", "1"), ("n = NULL", "0"), ("1 > 2", "0")])
def test_filters_without_leaves(text, shape):
    assert read(text) == (shape, (), ())


def test_strict_needs_presence():
    found = leaves_of(parse("n = 1 OR x = 2", STOCK), Semantics("strict", STOCK))
    assert found.shape == "aa|a&a&"
    assert found.codes == (N + EQUAL, X + EQUAL, N + PRESENT, X + PRESENT)
    assert found.constants == (1, 2.0, None, None)


@given(filters(), st.sampled_from(["sql", "strict", "total"]))
def test_what_holds_of_all_leaves(text, name):
    found = leaves_of(parsed(text), Semantics(name, SCHEMA))
    assert len(found.codes) == len(found.constants) == found.shape.count("a")
    for code, constant in zip(found.codes, found.constants, strict=True):
        position, kind = divmod(code, LEAF_KINDS)
        assert 0 <= position <= len(SCHEMA)
        assert 0 <= kind <= TEST
        assert position < len(SCHEMA) or kind == TEST
        if kind in {PRESENT, ABSENT}:
            assert constant is None
        elif kind == TEST:
            assert isinstance(constant, ast.Node)
            if position < len(SCHEMA):  # never true of a missing value
                assert compile_tree(constant, SCHEMA)((None,) * len(SCHEMA)) is not True
        else:
            members = constant if kind in {ONE_OF, NONE_OF} else (constant,)
            kind_of_value = SCHEMA.attributes[position].type.kind
            wanted = {Kind.DOUBLE: float, Kind.STRING: str, Kind.DECIMAL: Decimal}.get(
                kind_of_value, int
            )
            assert {type(member) for member in members} == {wanted}
            if kind in {ONE_OF, NONE_OF}:
                assert len(members) > 1
                assert list(members) == sorted(members)
