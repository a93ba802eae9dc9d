"""Random filters and events, typed, for every property test.

Filters are made as text, the way users make them. Values are drawn from the places where engines go
wrong: missing, nan, infinities, -0.0, the ends of int64, numbers that a double cannot hold, empty
and non-ASCII strings, quotes, ``%``, ``_``, backslashes and newlines.
"""

import math
from collections.abc import Sequence
from decimal import Context, Decimal
from functools import cache, lru_cache

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from tamis import Schema
from tamis.language.literals import string_text
from tamis.timestamps import timestamp_text


@lru_cache(1000)  # some are texts that were just drawn, and will not come again
def _one_of(texts):
    return st.sampled_from(texts)


def one_of_these(values):
    """One of some values. To make a strategy takes long, so that of the same texts is made once."""
    if all(type(one) is str for one in values):  # 1, 1.0 and True would be the same key
        return _one_of(tuple(values))
    return st.sampled_from(values)


SCHEMA = Schema(
    {
        "i": "int", "j": "int", "x": "double", "y": "double", "s": "string", "t": "string",
        "b": "bool", "c": "bool", "at": "timestamp", "until": "timestamp",
        "r.k": "int", "r.name": "string", "`odd ``name``.`": "double",
        "d": "decimal(9, 2)", "e": "decimal(38, 10)",
    }
)  # fmt: skip

NAMES = {
    "int": ["i", "j", "r.k"],
    "double": ["x", "y", "`odd ``name``.`"],
    "string": ["s", "t", "r.name"],
    "bool": ["b", "c"],
    "timestamp": ["at", "until"],
    "decimal": ["d", "e"],
}

INTS = [0, 1, -1, 2, 3, 5, 10, 250, 2**31 - 1, -(2**31), 2**31, 2**53, 2**53 + 1, -(2**53) - 1,
        2**63 - 1, -(2**63), 2**63 - 2]  # fmt: skip
DOUBLES = [0.0, -0.0, 1.0, -1.0, 0.1, 0.5, 2.5, 3.0, 10.0, 1e-300, 5e-324, 1e300, -1e300, 2.0**53,
           2.0**63, math.inf, -math.inf, math.nan]  # fmt: skip
STRINGS = ["", "a", "b", "aa", "ab", "abc", "A", "IBM", "ibm", "a%", "a_b", "%", "_", "\\", "a\\b",
           "it's", '"', "`", "a\nb", "\n", "a\n", "\r\n", "é", "É", "ß", "ǅ", "İ", "Σς", "日本",
           "😀", " a ", "\t", "\x00", "\x0b", "null", "10", "--", "/*"]  # fmt: skip
MOMENTS = [0, 1, -1, 1_704_067_200_000_000, 1_704_067_200_000_001, 1_706_745_599_999_999,
           -62_135_596_800_000_000, 253_402_300_799_999_999]  # fmt: skip

EXACT = Context(prec=60)
DECIMALS = [
    Decimal(text).quantize(Decimal("0.01"))
    for text in (
        "0", "1", "-1", "0.5", "-0.1", "2.50", "99.99", "-99.99", "10", "1234567.89", "9999999.99",
        "-9999999.99",
    )
]  # fmt: skip
LONG_DECIMALS = [
    Decimal(text).quantize(Decimal("1e-10"), context=EXACT)
    for text in (
        *map(str, DECIMALS), "0.0000000001", "12345678901234567.0000000001", "12345678901234567",
        "9999999999999999999", "9999999999999999999999999999.9999999999",
        "-9999999999999999999999999999.9999999999", "-1234567890123456789012345678.0123456789",
    )
]  # fmt: skip

LIKE_PATTERNS = ["%", "", "a", "a%", "%a", "%a%", "_", "__", "a_", "_b%", "%a%b%", "a\\%", "%\\_%",
                 "\\\\", "%\\\\%", "a%b", "%é%", "_%_", "\n%", "%'%"]  # fmt: skip
REGEXES = ["a", "^a", "a$", "^a*$", ".", "^.$", "a.b", "[ab]+", "[^a]", "\\s", "^\\S+$",
           "\\d+", "a|b$", "(a|b)c", "^$", "\\.", "(?s)a.b", "(?i)IBM", "\\bab\\b", "\\u0061",
           "é", "^[A-Z]{3}$", "a{2}", "\\Qa%\\E", "(?:a|b)$", "$", "[\\s]", "x*"]  # fmt: skip


def values(kind: str) -> SearchStrategy[object]:
    """Values of one type, None for a missing one."""
    some: dict[str, SearchStrategy[object]] = {
        "int": one_of_these(INTS) | st.integers(-20, 20) | st.integers(-(2**63), 2**63 - 1),
        "double": one_of_these(DOUBLES) | st.floats(width=64) | st.integers(-20, 20).map(float),
        "string": one_of_these(STRINGS) | st.text(max_size=5),
        "bool": st.booleans(),
        "timestamp": one_of_these(MOMENTS),
        "decimal(9, 2)": one_of_these(DECIMALS)
        | st.integers(-2000, 2000).map(lambda n: Decimal(n).scaleb(-2)),
        "decimal(38, 10)": one_of_these(LONG_DECIMALS)
        | st.integers(-(10**30), 10**30).map(lambda n: Decimal(n).scaleb(-10, EXACT)),
    }
    return st.one_of(st.none(), some[kind], some[kind])


def rows(schema: Schema = SCHEMA) -> SearchStrategy[tuple[object, ...]]:
    """Events as rows, in the order of the schema."""
    return st.tuples(*(values(str(attribute.type)) for attribute in schema.attributes))


def delicate_rows(schema: Schema = SCHEMA) -> list[tuple[object, ...]]:
    """Rows in which every delicate value of every type occurs at least once."""
    pools: dict[str, Sequence[object]] = {
        "int": INTS, "double": DOUBLES, "string": STRINGS, "bool": [True, False],
        "timestamp": MOMENTS, "decimal(9, 2)": DECIMALS, "decimal(38, 10)": LONG_DECIMALS,
    }  # fmt: skip
    return [
        tuple(
            pools[str(attribute.type)][(row + shift) % len(pools[str(attribute.type)])]
            for shift, attribute in enumerate(schema.attributes)
        )
        for row in range(max(map(len, pools.values())))
    ]


def literals(kind: str) -> SearchStrategy[str]:
    """Constants of one type, as text."""
    match kind:
        case "int":
            whole = one_of_these(INTS) | st.integers(-20, 20)
            return whole.map(str) | st.integers(-9, 9).map("{}L".format)
        case "double":
            finite = [repr(value) for value in DOUBLES if math.isfinite(value)]
            doubles = one_of_these([text if "e" in text else text + "D" for text in finite])
            decimals = one_of_these(
                ["0.5", "2.50", "-0.1", "10.0", ".5", "3.", "0.000001", "-99.99", "5BD", "1.5e3BD"]
            )
            return doubles | decimals | literals("int")
        case "string":
            return (one_of_these(STRINGS) | st.text(max_size=5)).map(string_text)
        case "bool":
            return one_of_these(["TRUE", "FALSE"])
        case "decimal":
            exact = one_of_these(LONG_DECIMALS).map(lambda d: format(d, "f"))
            return exact | st.integers(-2000, 2000).map(lambda n: f"{n / 100:.2f}")
        case _:
            return one_of_these(MOMENTS).map(lambda m: f"TIMESTAMP '{timestamp_text(m)}'")


@cache
@st.composite
def terms(draw: DrawFn, kind: str, depth: int = 2) -> str:
    """Values of one type, as text: constants, attributes, arithmetic and functions of them."""
    if depth == 0 or draw(st.integers(0, 3)) < 2:
        if draw(st.integers(0, 3)) == 0:
            return draw(literals(kind))
        return draw(one_of_these(NAMES[kind]))
    if draw(st.integers(0, 5)) == 0:
        return draw(chosen(kind, depth - 1))
    if kind == "int":
        return draw(whole_numbers(depth))
    if kind == "decimal":
        return draw(decimals(depth))
    if kind == "double":
        choice = draw(st.integers(0, 6))
        if choice == 0:
            return f"abs({draw(terms('double', depth - 1))})"
        if choice > 4:
            function = draw(one_of_these(["sqrt({})", "round({}, 1)", "CAST({} AS DOUBLE)"]))
            return function.format(draw(terms("double", depth - 1)))
        if choice == 1:
            return f"-({draw(terms('double', depth - 1))})"
        left = draw(terms(draw(one_of_these(["int", "double"])), depth - 1))
        right = draw(terms(draw(one_of_these(["int", "double"])), depth - 1))
        return f"({left} {draw(one_of_these(['+', '-', '*', '/', '%']))} {right})"
    if kind == "string":
        if draw(st.booleans()):
            function = draw(one_of_these(["lower", "upper", "trim", "ltrim", "rtrim"]))
            return f"{function}({draw(terms('string', depth - 1))})"
        return draw(string_functions(depth - 1))
    if kind == "bool":
        return f"({draw(filters(depth - 1))})"
    return draw(moments(depth - 1))


@cache
@st.composite
def moments(draw: DrawFn, depth: int) -> str:
    """Dates and timestamps that are computed, as text."""
    moment, n = draw(terms("timestamp", depth)), draw(st.integers(-40, 40))
    unit = draw(one_of_these(["YEAR", "quarter", "MON", "week", "DAY", "hour", "MINUTE"]))
    text = draw(one_of_these(["s", "'2024-02-29'", "'1582-10-10 01:02:03'", "'x'"]))
    return draw(
        one_of_these(
            [
                f"date_trunc('{unit}', {moment})", f"to_date({moment})", f"date_add({moment}, {n})",
                f"date_sub({moment}, {n})", f"CAST({moment} AS DATE)", f"last_day({moment})",
                f"add_months({moment}, {n})", f"CAST({text} AS TIMESTAMP)", f"to_date({text})",
                "DATE '2024-01-01'", f"({moment} + INTERVAL {n} DAYS)",
                f"({moment} - INTERVAL 1 HOUR {n} MINUTES)", f"({moment} + INTERVAL '{n}' MONTHS)",
            ]
        )
    )  # fmt: skip


@cache
@st.composite
def parts_of_moments(draw: DrawFn, depth: int) -> str:
    """Whole numbers that dates and timestamps are made of, as text."""
    name = draw(
        one_of_these(
            ["year", "quarter", "month", "day", "dayofweek", "weekday", "dayofyear", "weekofyear",
             "hour", "minute", "second", "datediff"]
        )
    )  # fmt: skip
    moment = draw(terms("timestamp", depth))
    if name == "datediff":
        return f"datediff({moment}, {draw(terms('timestamp', depth))})"
    return f"{name}({moment})"


@cache
@st.composite
def decimals(draw: DrawFn, depth: int) -> str:
    """Decimals that are computed, as text."""
    a, b = draw(terms("decimal", depth - 1)), draw(terms("decimal", depth - 1))
    n = draw(terms("int", 0))
    return draw(
        one_of_these(
            [
                f"({a} + {b})", f"({a} - {b})", f"({a} * {b})", f"({a} / {b})", f"({a} % {b})",
                f"({a} * {n})", f"({n} - {a})", f"round({a}, 1)", f"floor({a})", f"ceil({a})",
                f"CAST({a} AS DECIMAL(12, 1))", f"CAST({n} AS DECIMAL(20, 3))",
            ]
        )
    )  # fmt: skip


@cache
@st.composite
def whole_numbers(draw: DrawFn, depth: int) -> str:
    """Whole numbers that are computed, as text."""
    choice = draw(st.integers(0, 6))
    if choice == 6:
        return draw(parts_of_moments(depth - 1))
    if choice == 0:
        return f"length({draw(terms('string', depth - 1))})"
    if choice == 4:
        function = draw(one_of_these(["floor({})", "ceil({})", "CAST({} AS INT)"]))
        return function.format(draw(terms("double", depth - 1)))
    if choice == 5:
        function = draw(one_of_these(["CAST({} AS BIGINT)", "TRY_CAST({} AS INT)"]))
        return function.format(draw(terms("string", depth - 1)))
    if choice == 1:
        return f"abs({draw(terms('int', depth - 1))})"
    if choice == 2:
        return f"-({draw(terms('int', depth - 1))})"
    op = draw(one_of_these(["+", "-", "*", "%", "DIV"]))
    return f"({draw(terms('int', depth - 1))} {op} {draw(terms('int', depth - 1))})"


@cache
@st.composite
def chosen(draw: DrawFn, kind: str, depth: int) -> str:
    """One of several values of one type, as text."""
    a, b = draw(terms(kind, depth)), draw(terms(kind, depth))
    condition = draw(filters(min(depth, 1)))
    return draw(
        one_of_these(
            [
                f"coalesce({a}, {b})", f"nullif({a}, {b})", f"greatest({a}, {b})",
                f"least({a}, {b})", f"if({condition}, {a}, {b})",
                f"CASE WHEN {condition} THEN {a} END",
                f"CASE {draw(one_of_these(NAMES[kind]))} WHEN {a} THEN {b} ELSE {a} END",
            ]
        )
    )  # fmt: skip


@cache
@st.composite
def string_functions(draw: DrawFn, depth: int) -> str:
    """Functions of strings and whole numbers, as text."""
    s, t = draw(terms("string", depth)), draw(terms("string", depth))
    n, m = draw(st.integers(-3, 4)), draw(st.integers(-1, 3))
    return draw(
        one_of_these(
            [
                f"concat({s}, {t})", f"({s} || {t})", f"substring({s}, {n})",
                f"substring({s}, {n}, {m})", f"left({s}, {m})", f"right({s}, {m})",
                f"replace({s}, {t})", f"replace({s}, {t}, 'é')",
                f"CAST({draw(one_of_these(['i', 'b']))} AS STRING)",
            ]
        )
    )  # fmt: skip


@cache
@st.composite
def atoms(draw: DrawFn, depth: int = 2) -> str:
    """One test, as text."""
    kind = draw(
        one_of_these(
            ["int", "double", "string", "int", "double", "string", "bool", "timestamp", "decimal"]
        )
    )
    numbers = ["int", "double", "decimal"] if kind == "decimal" else ["int", "double"]
    other = draw(one_of_these(numbers)) if kind in {"int", "double", "decimal"} else kind
    left = draw(terms(kind, depth))
    negation = draw(one_of_these(["", "", "NOT "]))
    form = draw(
        one_of_these(["compare"] * 5 + ["between", "in", "null", "truth", "string", "string"])
    )
    if form == "between":
        return f"{left} {negation}BETWEEN {draw(terms(other, 1))} AND {draw(terms(kind, 1))}"
    if form == "in":
        items: Sequence[str] = draw(
            st.lists(terms(other, 1) | literals(kind) | st.just("NULL"), min_size=1, max_size=4)
        )
        return f"{left} {negation}IN ({', '.join(items)})"
    if form == "null":
        return f"{left} IS {negation}NULL"
    if form == "truth" and kind == "bool":
        return f"{left} IS {negation}{draw(one_of_these(['TRUE', 'FALSE', 'UNKNOWN']))}"
    if form == "string" and kind == "string":
        test = draw(one_of_these(["LIKE", "RLIKE", "contains", "startswith", "endswith"]))
        if test == "LIKE":
            word = draw(one_of_these(["LIKE", "LIKE", "ILIKE", "LIKE ANY", "ILIKE ALL"]))
            patterns = [string_text(draw(one_of_these(LIKE_PATTERNS)))]
            if " " in word:
                patterns.append(string_text(draw(one_of_these(LIKE_PATTERNS))))
                return f"{left} {negation}{word} ({', '.join(patterns)})"
            return f"{left} {negation}{word} {patterns[0]}"
        if test == "RLIKE":
            return f"{left} {negation}RLIKE {string_text(draw(one_of_these(REGEXES)))}"
        return f"{test}({left}, {draw(terms('string', 1))})"
    op = draw(one_of_these(["=", "<>", "<", "<=", ">", ">=", "<=>"]))
    if form == "string" and kind == "timestamp":
        hours = draw(st.integers(-9, 9))
        return f"{left} - {draw(terms(kind, 1))} {op} INTERVAL {hours} HOURS"
    return f"{left} {op} {draw(terms(other, depth))}"


@cache
@st.composite
def filters(draw: DrawFn, depth: int = 3) -> str:
    """Whole filters, as text; all of them are well typed, a few exceed a limit of decimals."""
    if depth <= 0 or draw(st.integers(0, 2)) == 0:
        return draw(atoms(min(depth, 2)))
    choice = draw(st.integers(0, 4))
    if choice == 0:
        return f"NOT ({draw(filters(depth - 1))})"
    word = " AND " if choice < 3 else " OR "
    parts = draw(st.lists(filters(depth - 1), min_size=2, max_size=3))
    return word.join(f"({part})" for part in parts)
