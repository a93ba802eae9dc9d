"""The fast way to leaves means what the slow way means, and what `naive` answers."""

import gc
import operator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from strategies import SCHEMA, STRINGS, delicate_rows, filters, rows, values
from tamis import ExpressionError, Schema, parse
from tamis.engines import make_engine
from tamis.engines.sliced import filter_reader, fragments
from tamis.engines.sliced.filter_reader import FilterReader, template_of
from tamis.engines.sliced.formulas import ALWAYS, NEVER, of_structure
from tamis.engines.sliced.leaves import (
    ABSENT,
    LEAF_KINDS,
    NONE_OF,
    ONE_OF,
    PRESENT,
    TEST,
    leaves_of,
)
from tamis.language import ast, shape_cache
from tamis.language.arithmetic import order_key
from tamis.language.evaluation import compile_tree
from tamis.language.literals import string_text
from tamis.language.shape_cache import ShapeCache, ShapedExpression, structure_tree
from tamis.semantics import NAMES, Semantics

STOCK = Schema(
    {"n": "int", "m": "int", "level": "int(1, 250)", "x": "double", "s": "string",
     "side": "enum('sell', 'buy', 'hold')", "b": "bool", "at": "timestamp",
     "big": "int(-5, 9999999999)"}
)  # fmt: skip
STOCK_ROW = (5, 6, 7, 1.5, "a", "buy", True, 0, 8)
TYPED_DEFAULTS = dict(zip(SCHEMA, delicate_rows()[7], strict=True)) | {
    "x": None, "s": "", "b": None, "at": "2024-01-01", "until": None,
}  # fmt: skip
STOCK_DEFAULTS = dict(zip(STOCK, STOCK_ROW, strict=True)) | {
    "m": None, "x": None, "at": "2024-01-01", "side": None,
}  # fmt: skip


def semantics_of(name, schema=STOCK):
    defaults = STOCK_DEFAULTS if schema is STOCK else TYPED_DEFAULTS
    return Semantics(name, schema, defaults if name == "default" else None)


# --- leaves by the book

COMPARISONS = (operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge)


def ordered(value):
    return order_key(value) if isinstance(value, float) else value


def leaf_holds(code, constant, row, schema):
    position, kind = divmod(code, LEAF_KINDS)
    value = row[position] if position < len(schema) else "of no attribute"
    if value is None or kind in {PRESENT, ABSENT}:
        return (value is None) is (kind == ABSENT)
    if kind == TEST:
        return compile_tree(constant, schema)(row) is True
    if kind in {ONE_OF, NONE_OF}:
        return (ordered(value) in map(ordered, constant)) is (kind == ONE_OF)
    return COMPARISONS[kind](ordered(value), ordered(constant))


def evaluated(leaves, row, schema):
    """Leaves by the book: a stack of truth values."""
    if leaves.shape in {ALWAYS, NEVER}:
        assert leaves.codes == leaves.constants == ()
        return leaves.shape == ALWAYS
    pairs = zip(leaves.codes, leaves.constants, strict=True)
    return truth_of_shape(leaves.shape, [leaf_holds(*pair, row, schema) for pair in pairs])


def truth_of_shape(shape, truths):
    rest, stack = iter(truths), []
    for sign in shape:
        if sign == "a":
            stack.append(next(rest))
        else:
            right, left = stack.pop(), stack.pop()
            stack.append(left and right if sign == "&" else left or right)
    assert next(rest, None) is None
    (answer,) = stack
    return answer


def assert_same_meaning(expression, reader, meaning, some_rows):
    """The leaves of both ways and `naive` agree; fast leaves are slow ones, perhaps twice."""
    schema = meaning.schema
    fast, slow = reader.leaves(expression), leaves_of(expression, meaning)
    assert type(fast) is type(slow)
    naive = make_engine("naive", meaning)
    naive.add(0, expression)
    for row in some_rows:
        expected = bool(len(naive.match(row)))
        assert evaluated(slow, row, schema) is expected
        assert evaluated(fast, row, schema) is expected
    fast_leaves, slow_leaves = as_set(fast), as_set(slow)
    assert fast_leaves == slow_leaves
    if "|" not in fast.shape and fast.shape not in {ALWAYS, NEVER}:
        assert fast.shape == "a" + "a&" * (len(fast.codes) - 1)


def as_set(leaves):
    # repr tells 1 from 1.0 and 0.0 from -0.0.
    return {(c, repr(k)) for c, k in zip(leaves.codes, leaves.constants, strict=True)}


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


def prepared(meaning, some, whole):
    """Rows that filters may be asked about."""
    if meaning.name == "total":
        some = [tuple(w if v is None else v for v, w in zip(r, whole, strict=True)) for r in some]
    return [meaning.prepare(row) for row in some]


def read(cache, text):
    """The expression of a text, None if it is none."""
    try:
        return cache.parse(text)
    except ExpressionError:
        return None


# One reader a semantics for all examples: rules and templates of earlier ones are used by later.
CACHES = {name: ShapeCache(STOCK) for name in NAMES}
READERS = {name: FilterReader(semantics_of(name)) for name in NAMES}
TYPED_CACHES = {name: ShapeCache(SCHEMA) for name in NAMES}
TYPED_READERS = {name: FilterReader(semantics_of(name, SCHEMA)) for name in NAMES}


@pytest.mark.parametrize("name", NAMES)
@given(texts=st.lists(plain_filters(), min_size=1, max_size=3), some=st.lists(STOCK_ROWS))
@settings(max_examples=60)
def test_plain_filters(name, texts, some):
    meaning = semantics_of(name)
    asked = prepared(meaning, [*some, STOCK_ROW, (None,) * len(STOCK)], STOCK_ROW)
    for text in texts:
        expression = read(CACHES[name], text)
        if expression is not None:
            assert expression == parse(text, STOCK)
            assert_same_meaning(expression, READERS[name], meaning, asked)


@pytest.mark.parametrize("name", NAMES)
@given(text=filters(), some=st.lists(rows(), max_size=4))
@settings(max_examples=70)
def test_all_filters(name, text, some):
    meaning = semantics_of(name, SCHEMA)
    asked = prepared(meaning, [*some, *delicate_rows()[:4], (None,) * 13], delicate_rows()[3])
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
        ("s LIKE ?", ["'a'", "'a%'", "'%a%'", "'a_'", "'%'"]),
        ("s SUBSTRING OF ?", ["'aa'", "'b'"]),
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


def check_exactly(name, texts):
    """Filters that say nothing twice have just the leaves of the slow way, also by rules."""
    meaning, cache = semantics_of(name), ShapeCache(STOCK)
    reader = FilterReader(meaning)
    for text in texts * 3:
        cache.atoms.clear()  # so that each atom is new, and only its shape is known
        expression = cache.parse(text)
        fast, slow = reader.leaves(expression), leaves_of(expression, meaning)
        assert fast.shape == slow.shape, text
        assert sorted(as_set(fast)) == sorted(as_set(slow)), text
        assert sorted(fast.codes) == sorted(slow.codes), text


# --- what is remembered


STOCK_TEXTS = [
    f"s = 'S{n}' AND x BETWEEN {n}.25 AND {n + 1}.50 AND n >= {n * 1000} AND NOT m < -{n} "
    f"AND NOT (n IN ({n}, {n % 9}) OR s NOT IN ('a{n}', 'a{n % 7}') OR x NOT BETWEEN -{n} AND {n})"
    for n in range(30, 80)
]


@pytest.mark.parametrize("name", ["sql", "strict", "total", "default"])
def test_known_shapes_need_no_normal_form(name, monkeypatch):
    meaning, cache = semantics_of(name), ShapeCache(STOCK)
    reader = FilterReader(meaning)
    expressions = [cache.parse(text) for text in STOCK_TEXTS]
    expected = [leaves_of(parse(text, STOCK), meaning) for text in STOCK_TEXTS]
    assert [reader.leaves(e) for e in expressions[:3]] == expected[:3]
    monkeypatch.setattr(fragments, "normalize", None)
    monkeypatch.setattr(filter_reader, "template_of", None)
    assert [reader.leaves(expression) for expression in expressions] == expected
    assert not any(hasattr(expression, "_tree") for expression in expressions)


def test_an_atom_is_normalised_once(monkeypatch):
    calls = []
    normalize = fragments.normalize
    monkeypatch.setattr(fragments, "normalize", lambda *a: calls.append(a) or normalize(*a))
    cache, reader = ShapeCache(STOCK), FilterReader(semantics_of("sql"))
    for n in range(100):
        reader.leaves(cache.parse(f"s LIKE 'a_b' AND n = {n}"))
    likes = [tree for tree, _ in calls if isinstance(tree, ast.Like)]
    assert len(likes) == 1
    assert len(calls) == 2


def test_an_atom_that_is_gone_is_not_mistaken_for_another():
    reader, meaning = FilterReader(semantics_of("sql")), semantics_of("sql")
    for n in range(200):  # each cache is freed, and the next one may lie in its place
        expression = ShapeCache(STOCK).parse(f"n = {n} AND s = 'S{n}'")
        assert reader.leaves(expression) == leaves_of(expression, meaning)
        del expression
        gc.collect(0)


def test_memory_stays_bounded(monkeypatch):
    monkeypatch.setattr(fragments, "MOST_FRAGMENTS", 3)
    monkeypatch.setattr(fragments, "MOST_RULES", 3)
    monkeypatch.setattr(filter_reader, "MOST_TEMPLATES", 3)
    monkeypatch.setattr(shape_cache, "MOST_ATOMS", 5)
    monkeypatch.setattr(shape_cache, "MOST_SHAPES", 5)
    meaning, cache = semantics_of("sql"), ShapeCache(STOCK)
    reader = FilterReader(meaning)
    for n in range(150):
        word = [" AND ", " OR ", ") AND NOT (", " OR NOT "][n % 4]
        name, ops = "nmx"[n % 3], ["<", ">", "=", "<>", ">="][: n % 5 + 1]
        text = f"({word.join(f'{name} {op} {n}' for op in ops)})"
        expression = cache.parse(text)
        assert_same_meaning(expression, reader, meaning, [STOCK_ROW])
        assert len(reader._templates) <= 3
        assert len(reader._getters) <= 3
        for known in (reader._plain.__self__, reader._negated.__self__):
            assert len(known) <= 3
            assert len(known._rules) <= 3
        assert len(cache.atoms) <= 5
        assert len(cache.atoms.shapes) <= 5
        assert len(cache.atoms.words) <= 5


# --- structures


@each(
    ("text", "shape"),
    [
        ("n = 1", "a"),
        ("n = 1 AND x = 1 AND s = 'a'", "aa&a&"),
        ("(n = 1 AND x = 1) AND (s = 'a' AND m = 1)", "aa&a&a&"),
        ("n BETWEEN 1 AND 2 AND m = 1", "aa&a&"),
        ("n = 1 AND (x = 1 OR s = 'a')", "aaa|&"),
        ("(x = 1 OR s = 'a') AND n = 1", "aaa|&"),
        ("n BETWEEN 1 AND 2 OR m = 1", "aaa&|"),
        ("NOT (n BETWEEN 1 AND 2) AND m = 1", "aaa|&"),
        ("NOT (n = 1 AND (x = 1 OR NOT s = 'a'))", "aaa&|"),
        ("(n = 1 OR m = 1) AND (n = 2 OR m = 2 OR x = 2)", "aa|aa|a|&"),
        ("(n = 1 AND m = 1) OR (x = 1 AND (n < 0 OR m < 0)) OR b = TRUE", "aaa&|aaa|&|"),
    ],
)
def test_shapes(text, shape):
    expression = ShapeCache(STOCK).parse(text)
    assert isinstance(expression, ShapedExpression)
    assert FilterReader(semantics_of("sql")).leaves(expression).shape == shape
    slow = leaves_of(expression, semantics_of("sql")).shape
    assert sorted(slow) == sorted(shape)


@st.composite
def structures(draw, depth=4):
    if depth == 0 or draw(st.integers(0, 2)) == 0:
        return draw(st.sampled_from(["a", "a", "!a", "!!a", "(a)"]))
    parts = draw(st.lists(structures(depth - 1), min_size=2, max_size=3))
    text = parts[0]
    for part in parts[1:]:
        text += draw(st.sampled_from("&|")) + part
    return draw(st.sampled_from(["{}", "({})", "!({})", "(!(({})))"])).format(text)


@given(structures(), st.randoms())
@settings(max_examples=200)
def test_structures_mean_what_the_parser_says(structure, chance):
    formula, signs = of_structure(structure)
    tree = structure_tree(structure, STOCK)
    template = template_of(structure, ("a",) * len(signs), 0)
    for _ in range(10):
        truths = [chance.random() < 0.5 for _ in signs]
        expected = truth_of(tree, truths)
        signed = [truth is sign for truth, sign in zip(truths, signs, strict=True)]
        assert truth_of_formula(formula, signed) is expected
        ordered_leaves = tuple(signed) if template.pick is None else template.pick(tuple(signed))
        assert truth_of_shape(template.shape, ordered_leaves) is expected


def truth_of(tree, truths):
    match tree:
        case ast.Slot(index):
            return truths[index]
        case ast.Not(operand):
            return not truth_of(operand, truths)
        case ast.And(items):
            return all(truth_of(item, truths) for item in items)
        case ast.Or(items):
            return any(truth_of(item, truths) for item in items)


def truth_of_formula(formula, truths):
    if isinstance(formula, int):
        return truths[formula]
    assert not any(getattr(item, "sign", "") == formula.sign for item in formula.items)
    together = all if formula.sign == "&" else any
    return together(truth_of_formula(item, truths) for item in formula.items)


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
def test_strict_asks_for_what_is_not_asked_for_anyway(text, asked):
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
@settings(max_examples=400)
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
    assert len(cache.atoms.shapes) == 3
