"""The fast way to leaves means what the slow way means, and what `naive` answers."""

import gc
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from filter_readings import STOCK, STOCK_ROW, as_set, assert_same_meaning, prepared, semantics_of
from strategies import SCHEMA, STRINGS, delicate_rows, filters, rows, values
from tamis import ExpressionError, Schema, parse
from tamis.engines.sliced import filter_reader, fragments
from tamis.engines.sliced.filter_reader import FilterReader
from tamis.engines.sliced.leaves import (
    leaves_of,
)
from tamis.language import ast, shape_cache
from tamis.language.literals import string_text
from tamis.language.shape_cache import ShapeCache
from tamis.semantics import NAMES, Semantics

# --- filters and events


@st.composite
def plain_atoms(draw):
    """Atoms of the kinds that rules are for, and a few others."""
    name, constant = draw(st.sampled_from(ATTRIBUTES))
    form = draw(st.integers(0, 9))
    negation = draw(st.sampled_from(["", "", "NOT "]))
    if form < 5:
        op = draw(st.sampled_from(["=", "<>", "<", "<=", ">", ">=", "<=>", "!=", "=="]))
        return f"{name} {op} {draw(constant)}"
    if form < 7:
        return f"{name} {negation}BETWEEN {draw(constant)} AND {draw(constant)}"
    if form < 9:
        members = draw(st.lists(constant, min_size=1, max_size=4))
        return f"{name} {negation}IN ({', '.join(members)})"
    return draw(
        st.sampled_from(
            ["n IS NULL", "s IS NOT NULL", "b = TRUE", "n < m", "s LIKE 'a%'", "s NOT LIKE 'b'",
             "contains(s, 'a')", "at > '2024-01-01'", "n > 9223372036854775807", "n = 1.5",
             "side LIKE 'other'", "b"]
        )
    )  # fmt: skip


WHOLE = st.sampled_from(
    ["0", "1", "-1", "5", "-0", "007", "2147483647", "2147483648", "-2147483648", "-2147483649",
     "4294967296", "9007199254740993", "-999999999999999999", "999999999999999999",
     "9223372036854775807", "-9223372036854775808", "3L", "1e1", "2.50"]
) | st.integers(-9, 9).map(str)  # fmt: skip
LEVELS = st.sampled_from(["1", "250", "2", "249", "007", "3.0", "1e1"])
BIG = st.sampled_from(["-5", "-4", "0", "9999999999", "2147483648", "9999999998", "77"])
NUMBERS = WHOLE | st.sampled_from(
    ["0.1", "-0.1", "1.5", "-1.50", "0.0", "-0.0", "10.000", "81.07", "1e300", "-5e-324", "0.5D",
     "123456789.123456789", "1234567890.5", ".5", "3.", "5BD"]
)  # fmt: skip
WORDS = (
    st.sampled_from([*STRINGS, "x AND y", "a OR b", " BETWEEN ", "5"]) | st.text(max_size=3)
).map(string_text) | st.sampled_from(['"it\'s"', "'it''s'", '"a"', "r'a\\b'", "'a'", "'b'"])
SIDES = st.sampled_from(["'buy'", "'sell'", '"hold"'])
ATTRIBUTES = [
    ("n", WHOLE), ("m", WHOLE), ("level", LEVELS), ("x", NUMBERS), ("s", WORDS), ("side", SIDES),
    ("big", BIG),
]  # fmt: skip


@st.composite
def plain_filters(draw, depth=3):
    """Formulas of plain atoms, as people write them."""
    if depth == 0 or draw(st.integers(0, 2)) == 0:
        return draw(plain_atoms())
    parts = draw(st.lists(plain_filters(depth - 1), min_size=2, max_size=3))
    word = draw(st.sampled_from([" AND ", " OR ", " and ", "\nOR "]))
    text = word.join(part if draw(st.booleans()) else f"({part})" for part in parts)
    return draw(st.sampled_from(["", "", "", "NOT ", "not ", "! "])) + f"({text})"


STOCK_ROWS = st.tuples(
    values("int"), values("int"), st.sampled_from([None, 1, 2, 5, 100, 249, 250]),
    values("double"), values("string"), st.sampled_from([None, "buy", "sell", "hold"]),
    values("bool"), values("timestamp"),
    st.sampled_from([None, -5, -4, 0, 2147483648, 9999999998, 9999999999]),
)  # fmt: skip


def read(cache, text):
    """The expression of a text, None if it is none."""
    try:
        return cache.parse(text)
    except ExpressionError:
        return None


# One reader a semantics for all examples: rules of earlier ones are used by later.
CACHES = {name: ShapeCache(STOCK) for name in NAMES}
READERS = {name: FilterReader(semantics_of(name)) for name in NAMES}
TYPED_CACHES = {name: ShapeCache(SCHEMA) for name in NAMES}
TYPED_READERS = {name: FilterReader(semantics_of(name, SCHEMA)) for name in NAMES}


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
@given(texts=st.lists(plain_filters(), min_size=1, max_size=3), some=st.lists(STOCK_ROWS))
@settings(max_examples=30)
def test_plain_filters(name, texts, some):
    meaning = semantics_of(name)
    asked = prepared(meaning, [*some, STOCK_ROW, (None,) * len(STOCK)], STOCK_ROW)
    for text in texts:
        expression = read(CACHES[name], text)
        if expression is not None:
            assert expression == parse(text, STOCK)
            assert_same_meaning(expression, READERS[name], meaning, asked)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
@given(text=filters(), some=st.lists(rows(), max_size=4))
@settings(max_examples=35)
def test_all_filters(name, text, some):
    meaning = semantics_of(name, SCHEMA)
    empty = (None,) * len(SCHEMA)
    asked = prepared(meaning, [*some, *delicate_rows()[:4], empty], delicate_rows()[3])
    expression = read(TYPED_CACHES[name], text)
    if expression is not None:
        assert_same_meaning(expression, TYPED_READERS[name], meaning, asked)


@given(st.lists(plain_filters(depth=2), min_size=2, max_size=8))
@settings(max_examples=30)
def test_a_fresh_reader_for_many_filters(texts):
    meaning, cache = semantics_of("sql"), ShapeCache(STOCK)
    reader = FilterReader(meaning)
    for expression in filter(None, [read(cache, text) for text in texts * 2]):
        assert_same_meaning(expression, reader, meaning, [STOCK_ROW])


# --- rules, one by one


@pytest.mark.long
@each("name", NAMES)
@each("around", ["{}", "NOT {}", "NOT ({})", "m = 0 OR NOT ({} AND m > 1)"])
@each(
    ("atom", "constants"),
    [
        *((f"n {op} ?", ["5", "0", "-7", "007", "-0", "2147483647", "2147483648", "-2147483648",
                         "999999999999999999", "-999999999999999999", "1000000000000000000",
                         "9223372036854775807", "-9223372036854775808", "9223372036854775808",
                         "5.5", "1e3", "12L", "5000000000", "1234567890"])
          for op in ("=", "<>", "<", "<=", ">", ">=", "<=>")),
        *((f"level {op} ?", ["1", "250", "17", "001"]) for op in ("=", "<", "<=", ">", ">=")),
        *((f"big {op} ?", ["-5", "0", "9999999999", "3000000000"]) for op in ("<", ">=")),
        *((f"x {op} ?", ["5", "0", "-7", "-0", "0.0", "-0.0", "81.07", "-81.070", "1e300",
                         "0.000000001", "999999999.999999999", "9007199254740993", ".5", "7D"])
          for op in ("=", "<>", "<", ">=", "<=>")),
        *((f"s {op} ?", ["'S17'", '"S17"', "'it''s'", "'a\\tb'", "''", "'é'", "'a b'", "' AND '",
                         "r'\\d'", "'5'"]) for op in ("=", "<>", "<", "<=", ">", ">=")),
        *((f"side {op} ?", ["'buy'", "'sell'", '"hold"']) for op in ("=", "<>", "<", ">=")),
        ("at < ?", ["'2024-01-01'", "'2024-01-02 03:04:05'"]),
        *((atom, ["'a'", "'bc'", "'a%'", "'%a'", "'%%b'", "'%a%'", "'%bc%'", "'b%'", "'a%b'",
                  "'a_'", "'b_%'", "'%'", "'%%'", "''", "'a b'", "' AND '", "'a%%'", "'%a%b%'",
                  "'it''s'", '"a%"', "'\\%'", "r'b'", "'é%'"])
          for atom in ("s LIKE ?", "s NOT LIKE ?", "side LIKE ?", "contains(s, ?)",
                       "contains(?, s)", "startswith(s, ?)", "endswith(?, s)", "? SUBSTRING OF s",
                       "s SUBSTRING OF ?", "contains(side, ?)", "endswith(?, side)")),
        ("s LIKE ? ESCAPE '/'", ["'a'", "'a/%'", "'b%'"]),
        ("b = ?", ["TRUE", "FALSE"]),
    ],
)  # fmt: skip
def test_comparisons(name, around, atom, constants):
    check_exactly(name, [around.format(atom.replace("?", text)) for text in constants])


@each("name", NAMES)
@each("negation", ["", "NOT "])
@each(
    ("attribute", "pairs"),
    [
        ("n", [("1", "2"), ("5", "-5"), ("7", "7"), ("-9", "5000000000"), ("1", "2.5")]),
        ("level", [("1", "250"), ("249", "2"), ("3", "3")]),
        ("x", [("81.07", "99.50"), ("1", "2"), ("2.5", "1"), ("-0.0", "0"), ("-3", "-2.5")]),
        ("s", [("'a'", "'b'"), ("'b'", '"a"'), ("'x'", "'x'"), ("''", "'é'")]),
        ("side", [("'buy'", "'sell'"), ("'sell'", "'buy'"), ("'hold'", "'hold'")]),
    ],
)
def test_between(name, negation, attribute, pairs):
    texts = [f"{attribute} {negation}BETWEEN {low} AND {high}" for low, high in pairs]
    check_exactly(name, texts)
    check_exactly(name, [f"NOT {text}" for text in texts])
    check_exactly(name, [f"NOT ({text})" for text in texts])


@pytest.mark.long
@each("name", NAMES)
@each("negation", ["", "NOT "])
@each(
    ("attribute", "lists"),
    [
        ("n", ["1", "5", "1, 2", "2, 1", "3, 3", "-3, 3", "7, 5000000000", "1, 2.5", "1, 1.0"]),
        ("level", ["1, 250", "250, 1", "7, 7", "1, 2, 3"]),
        ("x", ["1, 2", "2, 1", "1, 1", "2.5, 1.5", "1, 1.0", "-0.0, 0.0", "-1, -2", "0, -0"]),
        ("s", ["'a', 'b'", "'b', 'a'", "'c', \"c\"", "'it''s', 'x'", "'x'"]),
        ("side", ["'buy', 'sell'", "'sell', 'buy'", "'hold', 'hold'", "'buy', 'sell', 'hold'"]),
        ("n", [", ".join(map(str, range(k, 3 * k, 2))) for k in (300, 300, 400)]),
        ("s", [", ".join(f"'w{(k + j) * 7 % 91}'" for j in range(99)) for k in range(3)]),
    ],
)
def test_membership(name, negation, attribute, lists):
    texts = [f"{attribute} {negation}IN ({members})" for members in lists]
    check_exactly(name, texts)
    check_exactly(name, [f"NOT ({text})" for text in texts])


@pytest.mark.parametrize("name", ["sql", "default"])
def test_decimals(name):
    schema = Schema({"d": "decimal(4, 2)"})
    meaning = Semantics(name, schema, {"d": None} if name == "default" else None)
    # At both ends, beyond them, with more digits than d, and whole.
    constants = ["1.25", "0.5", "99.98", "99.99", "100.00", "1.255", "1.250", "7", "99", "100"]
    signed = [*constants, *(f"-{text}" for text in constants), "0.00", "-0.00"]
    for op in ("=", "<>", "<", "<=", ">", ">="):
        check_exactly(name, [f"d {op} {text}" for text in signed], meaning)
        check_exactly(name, [f"NOT d {op} {text}" for text in signed], meaning)
    texts = [f"d BETWEEN {a} AND {b}" for a, b in itertools.pairwise(signed)]
    check_exactly(name, texts, meaning)
    check_exactly(name, [f"d IN ({a}, {b}, 2.50)" for a, b in itertools.pairwise(signed)], meaning)


def check_exactly(name, texts, meaning=None):
    """Filters that say nothing twice have just the leaves of the slow way, also by rules."""
    meaning = meaning or semantics_of(name)
    cache = ShapeCache(meaning.schema)
    reader = FilterReader(meaning)
    parsed = {text: parse(text, meaning.schema) for text in texts}
    leaves = {text: leaves_of(expression, meaning) for text, expression in parsed.items()}
    for text in texts * 3:
        cache.pieces.clear()  # so that each atom is new, and only its shape is known
        expression = cache.parse(text)
        assert expression == parsed[text]
        fast, slow = reader.leaves(expression), leaves[text]
        assert sorted(fast.shape) == sorted(slow.shape), text
        assert sorted(as_set(fast)) == sorted(as_set(slow)), text
        assert sorted(fast.codes) == sorted(slow.codes), text


# --- what is remembered


STOCK_TEXTS = [
    f"s = 'S{n}' AND x BETWEEN {n}.25 AND {n + 1}.50 AND n >= {n * 1000} AND NOT m < -{n} "
    f"AND NOT (n IN ({n}, {n % 9}) OR s NOT IN ('a{n}', 'a{n % 7}') OR x NOT BETWEEN -{n} AND {n} "
    f"OR '{n}' SUBSTRING OF s OR s LIKE '{n}%' OR s LIKE '{n}_' OR startswith('ab {n}', s))"
    for n in range(30, 80)
]


@pytest.mark.parametrize("name", ["sql", "strict", "total", "default"])
def test_known_shapes_need_no_normal_form(name, monkeypatch):
    meaning, cache = semantics_of(name), ShapeCache(STOCK)
    reader = FilterReader(meaning)
    expressions = [cache.parse(text) for text in STOCK_TEXTS]
    expected = [leaves_of(parse(text, STOCK), meaning) for text in STOCK_TEXTS]
    as_read = [reader.leaves(e) for e in expressions[:3]]
    assert [leaves[1:] for leaves in as_read] == [leaves[1:] for leaves in expected[:3]]
    monkeypatch.setattr(fragments, "normalize", None)
    as_read = [reader.leaves(expression) for expression in expressions]
    assert [leaves[1:] for leaves in as_read] == [leaves[1:] for leaves in expected]
    assert not any(hasattr(expression, "_tree") for expression in expressions)


def test_an_atom_is_normalised_once(monkeypatch):
    calls = []
    normalize = fragments.normalize
    monkeypatch.setattr(fragments, "normalize", lambda *a: calls.append(a) or normalize(*a))
    cache, reader = ShapeCache(STOCK), FilterReader(semantics_of("sql"))
    for n in range(100):
        reader.leaves(cache.parse(f"s RLIKE 'a.b' AND n = {n}"))
    patterns = [tree for tree, _ in calls if isinstance(tree, ast.RLike)]
    assert len(patterns) == 1
    assert len(calls) == 2


def test_many_leaves_of_atoms_that_become_larger_are_read_by_the_normal_form(monkeypatch):
    reader, meaning, cache = (
        FilterReader(semantics_of("sql")),
        semantics_of("sql"),
        ShapeCache(STOCK),
    )
    larger, plain = cache.parse("(n > 1) = (m > 1) AND x > 1"), cache.parse("n > 1 AND x > 1 AND b")
    few = reader.leaves(larger), reader.leaves(plain)
    assert all(not hasattr(expression, "_tree") for expression in (larger, plain))
    monkeypatch.setattr(filter_reader, "MOST_LEAVES", len(few[0].codes) - 1)
    many = reader.leaves(larger), reader.leaves(plain)
    assert many[0] == leaves_of(larger, meaning)
    assert many[1] == few[1]
    assert [hasattr(expression, "_tree") for expression in (larger, plain)] == [True, False]


def test_an_atom_that_is_gone_is_not_mistaken_for_another():
    reader, meaning = FilterReader(semantics_of("sql")), semantics_of("sql")
    for n in range(200):  # each cache is freed, and the next one may lie in its place
        expression = ShapeCache(STOCK).parse(f"n = {n} AND s = 'S{n}'")
        assert reader.leaves(expression) == leaves_of(expression, meaning)
        del expression
        gc.collect(0)


def test_memory_stays_bounded(monkeypatch):
    monkeypatch.setattr(fragments, "MOST_FRAGMENTS", 3_000)
    monkeypatch.setattr(fragments, "MOST_RULES", 3_000)
    monkeypatch.setattr(shape_cache, "MOST_STRUCTURES", 3_000)
    monkeypatch.setattr(shape_cache, "MOST_PIECES", 5_000)
    monkeypatch.setattr(shape_cache, "MOST_SHAPES", 5_000)
    meaning, cache = semantics_of("sql"), ShapeCache(STOCK)
    reader = FilterReader(meaning)
    for n in range(150):
        word = [" AND ", " OR ", ") AND NOT (", " OR NOT "][n % 4]
        name, ops = "nmx"[n % 3], ["<", ">", "=", "<>", ">="][: n % 5 + 1]
        text = f"({word.join(f'{name} {op} {n}' for op in ops)})"
        expression = cache.parse(text)
        assert_same_meaning(expression, reader, meaning, [STOCK_ROW])
        assert cache.structures.nbytes <= 3_000
        for known in (reader._plain.__self__, reader._negated.__self__):
            assert known.nbytes <= 3_000
            assert len(known._rules) <= 10
        assert cache.pieces.nbytes <= 5_000
        assert len(cache.pieces.shapes) <= 10
        assert len(cache.pieces.words) <= 10
