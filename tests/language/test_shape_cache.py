"""The shape cache gives what the parser gives, for everything and always."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from strategies import SCHEMA, filters
from tamis import Expression, ExpressionError, Schema, parse
from tamis.language import shape_cache
from tamis.language.limits import MAX_PATTERN
from tamis.language.shape_cache import ShapeCache, ShapedExpression

STOCK = Schema(
    {"symbol": "string", "price": "double", "volume": "int", "at": "timestamp",
     "level": "int(1, 5)", "side": "enum('buy', 'sell')", "halted": "bool", "it's 5": "int",
     "größe": "int", "a.b2": "int"}
)  # fmt: skip

ATOMS = [
    "price < 10", "price<10", "price < -10", "price >= 10.25", "price = 1e3", "price < 10L",
    "price < 134.36424411240122", "price > 0.30000000000000000000000000001", "price < 5000000000",
    "volume < 12", "volume < 3000000000", "volume = 1.5", "volume <> 007",
    "volume >= 1.0000000000000000001", "volume BETWEEN 1.0000000000000000001 AND 7",
    "volume > 99999999999", "price BETWEEN 1 AND 2", "price NOT BETWEEN 1.5 AND 2",
    "volume between 1 and 2", "symbol = 'IBM'", 'symbol = "IBM"', "symbol = 'it''s'",
    "symbol = 'a\\tb'", "symbol = r'a\\b'", "symbol = 'é'", "symbol IN ('a', 'b')",
    "volume IN (1, 2, 3)", "volume IN (1, 2.5)", "volume NOT IN (1)", "symbol LIKE 'A%'",
    "symbol NOT LIKE 'A%'", "symbol RLIKE '^A'", "symbol IS NULL", "symbol IS NOT NULL",
    "contains(symbol, 'B')", "'B' SUBSTRING OF symbol", "price > volume", "at > '2024-01-01'",
    "level = 3", "level IN (1, 5)", "level BETWEEN 1 AND 5", "level < 2.0", "side = 'buy'",
    "symbol SUBSTRING OF 'IBM Corp'", "symbol substring of\n'x'", "side SUBSTRING OF 'buyer'",
    "`it's 5` = 5", "`größe` = 5", "größe = 5", "a.b2 = 2",
    "price = a.b2", "halted", "10 < price", "price + 1 < 10", "(price) < 10", "price < 10 + 1",
    "contains('IBM Corp', symbol)", "startswith( 'it''s' , symbol )", "endswith('AND', symbol)",
    "length(symbol) BETWEEN 1 AND 2 + volume", "((price + 1)) * 2 NOT BETWEEN -1 AND 1",
    "(halted = (price > 1 AND volume > 2))", "(price < 1) IS NOT TRUE", "(NOT halted) IS UNKNOWN",
    "coalesce(price, if(halted AND price > 1, 2, 3)) >= 2", "lower(symbol) IN ('and', 'or')",
    "at > TIMESTAMP '2024-01-01' - INTERVAL 1 DAY", "symbol LIKE ANY ('a%', '%b') ",
    "(CASE WHEN halted AND price > 1 THEN 1 ELSE 2 END) = 1", "symbol LIKE 'a/%' ESCAPE '/'",
    "CASE WHEN halted AND price > 1 THEN 1 ELSE 2 END = 1", "price IN [1, 2]", "volume IN {1, 2}",
    "price <=> 3", "! halted", "trim(BOTH 'x' FROM symbol) = 'AND'", "year(at) = 2024",
    "10 < price", "-10.5 >= price", "'IBM' = symbol", "3 <> level", "'buy' <=> side",
    "12L > volume",
    "1.5 < volume", "CASE volume WHEN 1 THEN halted OR halted ELSE halted END", "NOT halted",
    "CASE WHEN (CASE WHEN halted THEN 1 END) > 0 THEN case WHEN halted THEN 1 end END = 1",
    "price IN (NULL, 0.5)", "symbol IN ('a', NULL, 'b')", "volume BETWEEN NULL AND 3",
]  # fmt: skip
BROKEN = [
    "price <", "prise < 10", "symbol = 5", "price < 10abc", "level = 9", "side = 'x'", "", "(",
    "price < 10 AND", "AND", "price < 10 price < 10", "NOT", "price < 10)", "price = '10'",
    "symbol LIKE 'a\\\\b'", "symbol RLIKE '('", "at > 'x'", "price < 3AND price < 4",
    "price < 1234567890.12345678901234567890123456789",
    "symbol = '\ud800'", "price < 1__0", "price IN ()", "volume < \u0663",
    "length(symbol) > ", "length(symbol > 1", "price + 1) > 2", "price + 1", "length(symbol) OR",
    "(price + 1 > 2", "length(symbol) > 1 AND AND halted", "length(x) > 1", "halted NOT halted",
    "price BETWEEN 1 AND", "halted, halted", "[halted]", "price + 1 > 2 > 3", "NOT length(symbol)",
    "9 = level", "'x' = side", "5 = symbol", "CASE WHEN halted THEN 1 = 1", "case = 1 AND end = 2",
    "CASE WHEN halted THEN halted END END", "1 < price < 2", "'a' 'b' = symbol", "5 < 6 < price",
]  # fmt: skip


def assert_same(text, schema, cache):
    expected, found = outcome(parse, text, schema), outcome(cache.parse, text)
    assert type(found) is type(expected) or isinstance(found, ShapedExpression)
    assert str(found) == str(expected)
    if isinstance(found, Expression):
        assert found == expected
        assert found.attributes == expected.attributes
        assert pickle.loads(pickle.dumps(found)) == expected


def outcome(read, *arguments):
    try:
        return read(*arguments)
    except ExpressionError as error:
        return error


@each("text", ATOMS + BROKEN)
def test_atoms(text):
    cache = ShapeCache(STOCK)
    assert_same(text, STOCK, cache)
    assert_same(text, STOCK, cache)


@given(st.lists(st.sampled_from(ATOMS + BROKEN[:8]), min_size=1, max_size=6), st.randoms())
def test_formulas_of_atoms(atoms, chance):
    text = atoms[0]
    for atom in atoms[1:]:
        word = chance.choice([" AND ", " OR ", " and not ", ") OR (", " AND NOT ("])
        text = f"({text}{word}{atom})"
    assert_same(text, STOCK, CACHE)


@given(st.lists(st.sampled_from(ATOMS), min_size=1, max_size=5), st.randoms())
def test_formulas_of_any_atoms_need_no_parser(atoms, chance):
    text = atoms[0]
    for atom in atoms[1:]:
        sides = [text, atom] if chance.random() < 0.5 else [atom, text]
        negation = chance.choice(["", "", "NOT ", "!"])
        text = f"{negation}({sides[0]} {chance.choice(['AND', 'or'])} {sides[1]})"
    assert_same(text, STOCK, CACHE)
    assert isinstance(CACHE.parse(text), ShapedExpression)


CACHE = ShapeCache(STOCK)
TYPED_CACHE = ShapeCache(SCHEMA)


@given(filters())
def test_random_filters(text):
    assert_same(text, SCHEMA, TYPED_CACHE)


@given(st.lists(filters(depth=1), min_size=2, max_size=4))
def test_one_cache_for_many_filters(texts):
    cache = ShapeCache(SCHEMA)
    for text in texts * 2:
        assert_same(text, SCHEMA, cache)


def test_constants_of_one_class_share_a_shape():
    cache = ShapeCache(STOCK)
    for n in range(1000):
        cache.parse(f"symbol = 'S{n}' AND price BETWEEN {n}.25 AND {n + 1}.5 AND volume > {n}")
        cache.parse(f"price < {n / 7!r}")  # as Python prints a double
    assert len(cache.structures) == 2
    assert len(cache.pieces.shapes) == 4


def test_string_tests_share_a_shape_unless_their_constants_are_unusual():
    cache = ShapeCache(STOCK)
    tests = [
        "symbol LIKE '?'", "symbol NOT LIKE '?'", "like(symbol, '?')", "contains(symbol, '?')",
        "endswith('?', symbol)", "'?' SUBSTRING OF symbol", "symbol SUBSTRING OF '?'",
    ]  # fmt: skip
    for test in tests:
        shapes = set()
        for text in ("a", "a%", "%b%", "_", "", "a AND b", ") (", "é", "x" * 9_000):
            assert_same(test.replace("?", text), STOCK, cache)
            shapes.add(cache.parse(test.replace("?", text)).atoms[0].shape)
        assert len(shapes) == 1, test
        assert None not in shapes
        # What a string means, and whether a pattern may be used, is for the parser to say.
        for text in ("it''s", "a\\%", "a\\n", "a\\"):
            assert_same(test.replace("?", text), STOCK, cache)
    assert_same("symbol LIKE '" + "x" * (MAX_PATTERN + 1) + "'", STOCK, cache)
    for text in ("symbol LIKE 'a/%' ESCAPE '/'", "side LIKE 's%'", "contains(side, 'u')"):
        assert cache.parse(text).atoms[0].shape is None


def test_decimals_share_a_shape_if_they_fit():
    schema = Schema({"total": "decimal(10, 2)", "long": "decimal(38, 2)"})
    cache = ShapeCache(schema)
    for n in range(100):
        assert_same(f"total <= {n}.{n % 10} AND NOT total = -{n} AND long < {n}.5", schema, cache)
    atom = cache.parse("total <= 7.25").atoms[0]
    assert atom.shape is cache.parse("total <= 8.5").atoms[0].shape
    # What has more digits than the attribute is compared in another type, and has no shape.
    for text in ("total <= 7.255", "total <= 123456789.5", "total <= 99999999.99"):
        assert_same(text, schema, cache)
        assert cache.parse(text).atoms[0].shape is None


@pytest.mark.parametrize("known", ["level = 3", "level <> 2", "level IN (1, 2)", "side = 'buy'"])
@given(st.integers(-9, 9), st.sampled_from(["buy", "sell", "x", ""]))
def test_constants_outside_a_domain_are_refused_by_a_shape_too(known, number, word):
    cache = ShapeCache(STOCK)
    for text in (known, f"level = {number}", f"level <> {number}", f"level IN ({number}, 3)",
                 f"side = '{word}'", f"level BETWEEN {number} AND 4"):  # fmt: skip
        assert_same(text, STOCK, cache)


def test_no_tree_is_built_before_it_is_needed():
    expression = ShapeCache(STOCK).parse("price < 10 AND volume > 5")
    assert isinstance(expression, ShapedExpression)
    assert not hasattr(expression, "_tree")
    assert str(expression) == "price < 10 AND volume > 5"
    assert hasattr(expression, "_tree")


def test_the_cache_stays_bounded(monkeypatch):
    monkeypatch.setattr(shape_cache, "MOST_PIECES", 10_000)
    monkeypatch.setattr(shape_cache, "MOST_STRUCTURES", 1_000)
    cache = ShapeCache(STOCK)
    for n in range(100):
        text = " AND ".join(f"price {op} {n}{'  ' * (n % 7)}" for op in ("<", ">") * (n % 5 + 1))
        assert_same(text, STOCK, cache)
    assert cache.pieces.nbytes <= 10_000
    assert cache.structures.nbytes <= 1_000
    assert cache.glue.nbytes <= 1_000


def test_deep_structures_are_left_to_the_parser():
    assert_same("(" * 99 + "price < 1" + ")" * 99, STOCK, ShapeCache(STOCK))
    assert_same("(" * 101 + "price < 1" + ")" * 101, STOCK, ShapeCache(STOCK))
    assert_same("NOT " * 40 + "price < 1", STOCK, ShapeCache(STOCK))


ARRAYS = Schema({"tags": "array<string>", "ns": "array<int>", "xs": "array<double>", "s": "string"})


@each(
    "text",
    [
        "array_contains(tags, 'a')", "array_contains(tags, 'b')", "array_contains(ns, -3)",
        "NOT array_contains(ns, 5) AND array_contains(xs, -0.0)", "array_contains(ns, 1.5)",
        "array_contains(ns, 2.5)", "array_contains(ns, 99999999999)", "array_contains(xs, 2)",
        "array_contains(xs, 2.5) OR s = 'a'", "array_contains(xs, -3.5)", "array_contains(s, 'a')",
        "array_contains(tags, 5)", "exists(tags, t -> t = 'a' AND s = 'b')", "tags[0] = 'a'",
    ],
)  # fmt: skip
def test_tests_for_elements(text):
    cache = ShapeCache(ARRAYS)
    cache.parse("array_contains(tags, 'z') AND array_contains(ns, 7) AND array_contains(xs, 7.5)")
    try:
        expected = parse(text, ARRAYS)
    except ExpressionError as error:
        with pytest.raises(type(error)):
            cache.parse(text)
    else:
        assert cache.parse(text) == expected
