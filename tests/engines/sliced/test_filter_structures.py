"""How filters are cut into predicates, and which structures their readers find."""

from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from filter_readings import STOCK, STOCK_ROW, assert_same_meaning, prepared, semantics_of
from tamis import ExpressionError, parse
from tamis.engines.sliced.filter_reader import FilterReader
from tamis.engines.sliced.leaves import (
    LEAF_KINDS,
    PRESENT,
    leaves_of,
)
from tamis.language.shape_cache import ShapeCache, ShapedExpression
from tamis.semantics import NAMES

# --- structures


@each(
    ("text", "shape"),
    [
        ("n = 1", "a"),
        ("n = 1 AND x = 1 AND s = 'a'", "aa&a&"),
        ("(n = 1 AND x = 1) AND (s = 'a' AND m = 1)", "aa&a&a&"),
        ("n BETWEEN 1 AND 2 AND m = 1", "aa&a&"),
        ("n = 1 AND (x = 1 OR s = 'a')", "aaa|&"),
        ("(x = 1 OR s = 'a') AND n = 1", "aa|a&"),
        ("n BETWEEN 1 AND 2 OR m = 1", "aa&a|"),
        ("NOT (n BETWEEN 1 AND 2) AND m = 1", "aa|a&"),
        ("NOT (n = 1 AND (x = 1 OR NOT s = 'a'))", "aaa&|"),
        ("(n = 1 OR m = 1) AND (n = 2 OR m = 2 OR x = 2)", "aa|aa|a|&"),
        ("(n = 1 AND m = 1) OR (x = 1 AND (n < 0 OR m < 0)) OR b = TRUE", "aa&aaa|&|a|"),
    ],
)
def test_shapes(text, shape):
    expression = ShapeCache(STOCK).parse(text)
    assert isinstance(expression, ShapedExpression)
    assert FilterReader(semantics_of("sql")).leaves(expression).shape == shape
    slow = leaves_of(expression, semantics_of("sql")).shape
    assert sorted(slow) == sorted(shape)


@each("name", NAMES)
def test_deep_and_long_filters(name):
    meaning, cache = semantics_of(name), ShapeCache(STOCK)
    reader = FilterReader(meaning)
    deep = "n = 1"
    for k in range(29):
        deep = f"({deep}) {['AND', 'OR NOT'][k % 2]} m <> {k}"
    wide = " OR ".join(f"(n = {k} AND NOT m > {k})" for k in range(500))
    texts = [deep, "NOT " * 25 + "(n = 1 OR x < 2)", "(" * 29 + "n = 1" + ")" * 29, wide[:6000]]
    texts[-1] = texts[-1].rpartition(" OR ")[0]
    for text in texts:
        expression = cache.parse(text)
        asked = prepared(meaning, [STOCK_ROW, (None,) * len(STOCK)], STOCK_ROW)
        assert_same_meaning(expression, reader, meaning, asked)


@each("name", NAMES)
@each(
    "text",
    [
        "n > 9223372036854775807", "n > 9223372036854775807 AND m = 1",
        "n <= 9223372036854775807 OR m = 1", "NOT (n = 1.5)", "n = 1.5 OR m = 1",
        "s LIKE '%' AND n = 1", "TRUE", "NOT b", "n + 1 = 2 AND m = 1", "n = m AND n < 5",
    ],
)  # fmt: skip
def test_constants_and_other_filters(name, text):
    meaning = semantics_of(name)
    expression = ShapeCache(STOCK).parse(text)
    asked = prepared(meaning, [STOCK_ROW, (None,) * len(STOCK)], STOCK_ROW)
    assert_same_meaning(expression, FilterReader(meaning), meaning, asked)


@each(
    ("text", "asked"),
    [
        ("n = 1 AND x BETWEEN 1 AND 2", []),
        ("n = 1 AND (n = 2 OR m = 1)", ["m"]),
        ("n = 1 OR x = 1", ["n", "x"]),
        ("n IS NULL AND m = 1", ["n"]),
        ("n < m AND (n = 1 OR x = 1)", ["x"]),
        ("NOT (n = 1 OR m = 1)", []),
        ("NOT (n = 1 AND m = 1)", ["n", "m"]),
        ("NOT n BETWEEN 1 AND 2", ["n"]),
        ("n = 1 OR n > 5 AND m = 1", ["n", "m"]),
        ("n IS NULL OR n = 1", ["n"]),
        ("n NOT IN (1, 2)", []),
    ],
)
def test_strict_adds_only_the_tests_that_are_missing(text, asked):
    meaning = semantics_of("strict")
    expression = ShapeCache(STOCK).parse(text)
    assert isinstance(expression, ShapedExpression)
    found = FilterReader(meaning).leaves(expression)
    presence = [code // LEAF_KINDS for code in found.codes if code % LEAF_KINDS == PRESENT]
    assert presence == [list(STOCK).index(name) for name in asked]
    assert_same_meaning(
        expression, FilterReader(meaning), meaning, [STOCK_ROW, (None,) * len(STOCK)]
    )


# --- how the shape cache cuts: at AND and OR, but never inside a string


PIECES = [
    "s = 'x", "y'", "s = 'x'", " AND ", " OR ", " AND ", " OR ", "`", "n` = 5", "(", ")", "NOT ",
    "not ", "n = 5", "n = -5", "x < 1.5", "x BETWEEN 1", "x BETWEEN 1 AND 2", "2", "'", '"', " ",
    "s LIKE 'a%'", "s IN ('a', 'b')", "n IN (1, 2)", "b", "level = 300", "side = 'bye'", "\\",
    "n = 5000000000", "m = '5'", "n = \u0663", "s = 'a'", "n = 5 ", "! ", "'a' SUBSTRING OF s",
    "at > '2024-01-01'", "r'", "''",
]  # fmt: skip


def outcome(read_it, *arguments):
    try:
        return read_it(*arguments)
    except ExpressionError as error:
        return type(error), str(error)


def warm_cache():
    cache = ShapeCache(STOCK)
    cache.parse("n = 5 AND x < 1.5 AND s = 'a' AND x BETWEEN 1 AND 2 AND x BETWEEN 1 AND 2.5")
    cache.parse("level = 3 OR side = 'buy' OR NOT n = 5 OR n IN (1, 2) OR n = 5000000000")
    return cache


WARM = warm_cache()


@given(st.lists(st.sampled_from(PIECES), max_size=9).map("".join))
@settings(max_examples=200)
def test_any_text_is_cut_as_the_parser_reads_it(text):
    assert outcome(WARM.parse, text) == outcome(parse, text, STOCK)


@each(
    "text",
    [
        "s = 'x AND y'", "s = 'x OR n = 5' AND n = 5", "s = 'x' AND s = 'y OR n = 5 OR z'",
        "s = 'x AND s = 'y'", "s = 'a' AND s = 'a", "n = 5 AND n = 5 AND", " AND n = 5",
        "s = ' BETWEEN ' AND n = 5", "x BETWEEN 1 AND 2 AND n = 5", "x BETWEEN 1 AND n = 5",
        "x NOT BETWEEN 1 AND 2 OR x BETWEEN 3 AND 4", "x BETWEEN n AND m AND n = 5",
        "NOT n = 5 AND NOT NOT n = 5", "(NOT n = 5) OR (NOT (n = 6))", "NOT(n = 5)", "NOTn = 5",
        "n = \u0663 AND n = 5", "n = 5 and x < 1.5", "n = 5\nAND x < 1.5", "n = 5  AND  x < 1.5",
        "n = -2147483649 OR n = -2147483648", "level = 251 AND n = 5", "level = -1", "big = -6",
        "'a' SUBSTRING OF s AND n = 5", "n = 5 AND 'a' SUBSTRING OF s", "b AND n = 5",
        "s = \"a' AND s = 'b\"", "s = 'a' AND s = \"it's\" AND s = 'b'", "n = 5AND n = 5",
        "s = 'a'AND n = 5", "s = 'a\\' AND n = 5 AND s = \\'b'", "n = 12345678901234567890",
        "NOT level = 251", "s IN ('a', 'b AND c') AND n = 5", "n = 0000000000005",
    ],
)  # fmt: skip
def test_texts_that_are_hard_to_cut(text):
    assert outcome(WARM.parse, text) == outcome(parse, text, STOCK)
    assert outcome(warm_cache().parse, text) == outcome(parse, text, STOCK)


def test_wide_numbers_share_a_shape():
    cache = ShapeCache(STOCK)
    for n in range(3_000_000_000, 3_000_001_000):
        cache.parse(f"n = {n} AND x < {n} AND m > -{n}")
    assert len(cache.pieces.shapes) == 3
