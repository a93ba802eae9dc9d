"""The answers of the sliced engine: values and constants at the edges, and errors."""

import math

import numpy as np
import pyarrow as pa
import pytest

from cases import each
from oracles import Both, some_of
from sliced_ways import taken
from stocks import SMALL, stock_filters, stock_rows
from strategies import MOMENTS
from tamis import EventError, Matcher, Schema
from tamis.semantics import NAMES

EDGES = [
    (i, x, s, b, side)
    for i, b in ((None, None), (1, True), (2**63 - 1, False), (-(2**63), None), (2**53 + 1, True))
    for x, s in ((None, None), (0.0, ""), (-0.0, "a"), (math.nan, "b"), (math.inf, "a\x00"),
                 (-math.inf, "é"), (1.0, "A"), (5e-324, "😀"), (2.0**53, "ab"))
    for side in (None, "buy", "sell")
]  # fmt: skip


@pytest.mark.long
@each(
    "text",
    [
        "side LIKE 'sell'", "side LIKE 'other'", "NOT side LIKE 'other'", "side LIKE ''",
        "side IS NULL OR side LIKE 'other'", "side IN ('buy', 'sell')", "NOT side IN ('buy')",
        "side > 'buy'", "side <= 'buy'", "lower(side) = 'buy'", "side RLIKE 'l{2}'",
        "x IN (1, 1e308 * 10D)", "x < 1e308 * 10D", "x = 1e308 * 10D - 1e308 * 10D",
        "x IN (1, 1e308 * 10D - 1e308 * 10D)", "x NOT IN (1, 1e308 * 10D - 1e308 * 10D)",
        "x IN (0, 5)", "x NOT IN (0, 5)", "x = -0.0D", "x <> 0", "x >= 0", "x < 5e-324D",
        "x > 1.7976931348623157e308D", "x <= 9007199254740993", "x = 9007199254740993",
        "i = 9223372036854775807", "i >= 9223372036854775807", "i < -9223372036854775807",
        "i IN (1, -9223372036854775808)", "i <> -9223372036854775808", "i > 0.5",
        "s = ''", "s IN ('', 'a')", "s NOT IN ('', 'a')", "s <> 'a'", "s < 'a'", "s <= 'a'",
        "s > 'a'", "s >= 'é'", "s < '😀'", "s BETWEEN 'A' AND 'a'", "s > ''", "s LIKE 'a_'",
        "b", "NOT b", "b IS NULL", "b <=> NULL", "b = TRUE", "b <> TRUE", "b IN (TRUE, FALSE)",
        "i <=> 1", "x <=> NULL", "i IS NOT NULL", "NOT (i > 1 AND s = 'a')",
        "x > i", "x + i > 2", "x = x", "i % 2 = 1", "length(s) > 1", "s = lower(s)", "s > side",
        "abs(x) = x", "(x > i) IS NULL", "i + 1 IS NULL", "x / i > 0 OR b",
    ],
)  # fmt: skip
def test_the_edges_of_values(text):
    both = Both("sliced").put([text, f"({text}) AND i >= 1", f"({text}) OR x > 0", f"NOT ({text})"])
    both.check_all(EDGES, singles=len(EDGES))


TIMES = Schema({"at": "timestamp", "level": "int(1, 5)", "until": "timestamp", "n.k": "double"})


def test_moments_and_small_domains():
    texts = [
        f"at {op} TIMESTAMP '2024-01-0{day}'" for op in ("=", "<>", "<", "<=", ">", ">=")
        for day in (1, 2)
    ]  # fmt: skip
    texts += [
        "at IN (TIMESTAMP '2024-01-01', TIMESTAMP '1969-12-31')", "at < until", "at = until",
        "NOT at IN (TIMESTAMP '2024-01-01', TIMESTAMP '1969-12-31')", "level = 3", "level <> 3",
        "level IN (1, 5)", "level NOT IN (1, 5)", "level BETWEEN 2 AND 4", "n.k > level",
        "level >= 5 AND at IS NULL", "until IS NOT NULL AND (level < 2 OR n.k = 0)",
    ]  # fmt: skip
    moments = [None, *MOMENTS, 1_704_067_199_999_999, 1_704_153_600_000_000, -86_400_000_000]
    some = [
        (at, level, until, k)
        for at in moments
        for level, k in ((None, None), (1, 0.0), (3, -0.0), (5, math.nan))
        for until in (None, at, 0)
    ]
    Both("sliced", TIMES).put(texts).check_all(some, singles=len(some))


@each("way", ["as it is", "no names", "clusters", "clusters without names"])
def test_sets_and_missing_values(way):
    texts = [
        f"{word} {name} IN ({members})"
        for word in ("", "NOT")
        for name, lists in {
            "i": ["1, 2", "1, 2, NULL", "2, 3, 99", "-5"],
            "s": ["'T1', 'T2'", "'T1', NULL", "'x', 'y'"],
            "side": ["'buy', 'sell'", "'buy'"],
            "b": ["TRUE", "TRUE, FALSE"],
            "x": ["1, 2.5", "0, -0.0D"],
        }.items()
        for members in lists
    ]
    texts += [f"{one} AND {other}" for one in texts[::3] for other in texts[::4]]
    with taken(way):
        both = Both("sliced", threads=1).put(texts)
        pool = [*stock_rows(17, 200), (None,) * 5, *EDGES[::7]]
        both.check_all(some_of(pool, 600), singles=60)


def test_tests_of_several_attributes():
    schema = Schema({"bid": "double", "ask": "double", "low": "int", "high": "int", "of": "string"})
    texts = [
        "bid > ask", "NOT bid > ask", "bid * 2 > ask + 1", "low + high > 10 AND bid > ask",
        "high - low = 3", "low % 3 = high % 3 AND of LIKE 'a%'", "low < bid OR high < ask",
        "length(of) > low", "bid > ask AND bid > low AND bid > high", "bid <=> ask",
        "(bid > ask) IS NULL", "upper(of) = of AND low <> high", "of IN ('a', 'ab') OR low = high",
    ]  # fmt: skip
    chance = np.random.default_rng(3)
    pools = [[0.0, 1.5, 2.0, math.nan, None]] * 2 + [[*range(-2, 8), None]] * 2
    pools.append(["a", "ab", "A", "", None])
    pool = [tuple(part[chance.integers(len(part))] for part in pools) for _ in range(200)]
    Both("sliced", schema).put(texts).check_all(some_of(pool, 1100), singles=60)


def test_a_wide_schema():
    kinds = ["int", "double", "string", "bool", "enum('a', 'b')"]
    schema = Schema({f"n{n}": kinds[n % 5] for n in range(200)})
    atoms = ["n{} = 1", "n{} > 0.5", "n{} <> 'a'", "n{}", "n{} = 'a'"]
    chance = np.random.default_rng(1)
    texts = []
    for _ in range(300):
        places = chance.choice(200, 3, replace=False).tolist()
        parts = [atoms[place % 5].format(place) for place in places]
        texts.append(f"{parts[0]} {chance.choice(['AND', 'OR'])} NOT ({parts[1]}) AND {parts[2]}")
    texts.append(" AND ".join(f"n{n} IS NULL" for n in range(200)))
    texts.append(" OR ".join(f"n{n} IS NOT NULL" for n in range(200)))
    texts.append(" AND ".join(f"n{n} NOT IN (1, {n})" for n in range(0, 200, 5)))
    values = [[1, 0, None], [0.0, 1.0, None], ["a", "b", None], [True, None], ["a", "b", None]]
    pool = [
        tuple(values[n % 5][chance.integers(len(values[n % 5]))] for n in range(200))
        for _ in range(30)
    ]
    pool += [(None,) * 200, (1, 1.0, "a", True, "a") * 40]
    for name in ("sql", "strict"):
        Both("sliced", schema, name).put(texts).check_all(some_of(pool, 600), singles=10)


@pytest.mark.long
def test_large_filters():
    deep = "i > 0"
    for n in range(40):
        deep = f"(x < {n} {'OR' if n % 2 else 'AND'} ({deep}))"
    texts = [
        f"i IN ({', '.join(map(str, range(0, 6000, 3)))})",
        f"i NOT IN ({', '.join(map(str, range(-6000, 6000, 4)))})",
        " AND ".join(f"i <> {n}" for n in range(300)),
        " OR ".join(f"(i = {n} AND x > {n})" for n in range(300)),
        " AND ".join(f"(s LIKE '%{n}%' OR x > {n})" for n in range(40)),
        deep,
    ]
    Both("sliced").put(texts).check_all(
        some_of([*stock_rows(19, 80), *EDGES[::3]], 700), singles=60
    )


def test_handles_with_gaps_and_beyond_32_bits():
    some = some_of(stock_rows(23, 80), 600)
    both = Both("sliced", threads=1)
    both.put(stock_filters(1, 30), first=3, step=1000).check_all(some)
    both.put(stock_filters(2, 30), first=2**31 - 20).check_all(some)
    both.put(stock_filters(3, 30), first=2**40, step=2**33).check_all(some)
    both.put(stock_filters(4, 9), first=2**63 - 10).check_all(some)
    both.drop([3, 2**31 - 1, 2**31, 2**40, 2**63 - 10])
    both.check_all(some)
    both.tested.merge_all()
    both.check_all(some)


def test_an_equality_that_nobody_uses_any_more():
    """A set is as selective as the constants its attribute is compared with; there may be none."""
    both = Both("sliced").put(["i = 5"])
    both.drop([0])
    both.put(["i IN (1, 2) AND x > 0"]).check_all(stock_rows(1, 60))


# --- errors


@each("name", NAMES)
@each(
    "table",
    [pa.table({"side": ["buy", "bye"]}), pa.table({"i": ["a"]}), pa.table({"i": [1, None]}),
     pa.table({"stranger": pa.array([], pa.int64())}), pa.table({"i": [1], "stranger": [2]})],
)  # fmt: skip
@each("unknown", ["ignore", "refuse"])
def test_errors_are_those_of_naive(name, table, unknown):
    defaults = dict.fromkeys(SMALL, None) if name == "default" else None

    def outcome(kind):
        matcher = Matcher(SMALL, kind, name, defaults=defaults, unknown=unknown)
        matcher.subscribe("a", "i IS NULL OR i > 0")
        try:
            return matcher.match_batch(table, "lists").to_pydict()
        except EventError as error:
            return str(error), error.row

    assert outcome("sliced") == outcome("naive")
