"""The sliced engine in its own ways: batches of every size, edges, errors and threads.

`test_conformance.py` has what all engines share.
"""

import math
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stocks import SMALL, stock_filters, stock_rows
from strategies import DOUBLES, INTS, MOMENTS, SCHEMA, STRINGS, delicate_rows, filters, rows
from tamis import EventError, ExpressionError, Matcher, parse
from tamis.columns import plain_type
from tamis.engines import make_engine
from tamis.engines.sliced import blocks, engine, segment
from tamis.predicates.batches import batch_of_rows
from tamis.semantics import NAMES, Semantics

DEFAULTS = dict(zip(SCHEMA, delicate_rows()[7], strict=True)) | {
    "x": None, "s": "", "b": None, "at": "2024-01-01", "until": None,
}  # fmt: skip
OUTPUTS = ("pairs", "lists", "counts")

# Every way through the engine, whatever the numbers of subscriptions and matches.
WAYS = {
    "as it is": {},
    "rows one by one": {(blocks, "SEARCH"): 0},
    "rows in one pass": {(blocks, "SEARCH"): 10**9},
    "by matrix": {(blocks, "DENSE"): -1},
    "by lists": {(blocks, "DENSE"): 10**9},
    "all clusters": {(segment, "SELECTIVE"): 0.0},
    "clusters of events": {(segment, "SELECTIVE"): 0.4},
    "many segments": {(engine, "GROWTH"): 0},
    "marks": {(segment, "SPREAD"): 10**6},
    "no marks": {(segment, "SPREAD"): 0},
}


@contextmanager
def taken(way):
    """The engine goes one way."""
    with pytest.MonkeyPatch.context() as patch:
        for (module, name), value in WAYS[way].items():
            patch.setattr(module, name, value)
        yield


def semantics_of(name):
    return Semantics(name, SCHEMA, DEFAULTS if name == "default" else None)


def total(row):
    """A row without missing values, for the semantics that allows none."""
    return tuple(d if v is None else v for v, d in zip(row, delicate_rows()[3], strict=True))


def table_of(some, schema=SCHEMA):
    """Rows as a table; a timestamp is a number of microseconds in a row."""
    columns = {}
    for n, attribute in enumerate(schema.attributes):
        column = pa.array([row[n] for row in some], plain_type(attribute))
        if str(attribute.type) == "timestamp":
            column = column.cast(pa.timestamp("us", "UTC"))
        columns[".".join(attribute.path)] = column
    return pa.table(columns)


def many_rows(seed, size):
    """Rows with many ties and gaps, and every delicate value."""
    chance = np.random.default_rng(seed)
    pools = {"int": INTS, "double": DOUBLES, "string": STRINGS, "bool": [True, False],
             "timestamp": MOMENTS}  # fmt: skip
    columns = []
    for attribute in SCHEMA.attributes:
        pool = [*pools[str(attribute.type)], None, None]
        columns.append([pool[k] for k in chance.integers(0, len(pool), size)])
    return list(zip(*columns, strict=True))


def readable(texts, schema=SCHEMA):
    for text in texts:
        try:
            yield parse(text, schema)
        except ExpressionError:
            continue


def answers(matcher, table):
    """All three outputs; what they say of each other is checked on the way."""
    lists = matcher.match_batch(table, "lists").to_pydict()
    assert lists["event"] == list(range(table.num_rows))
    found = lists["subscriptions"]
    pairs = matcher.match_batch(table, "pairs").to_pydict()
    assert pairs["event"] == [n for n, one in enumerate(found) for _ in one]
    assert pairs["subscription"] == [name for one in found for name in one]
    counts = matcher.match_batch(table, "counts").to_pydict()
    assert counts == {"event": lists["event"], "count": [len(one) for one in found]}
    return found


def two_matchers(schema=SCHEMA, name="sql"):
    defaults = DEFAULTS if name == "default" else None
    return (
        Matcher(schema, "sliced", name, defaults=defaults),
        Matcher(schema, "naive", name, defaults=defaults),
    )


# --- batches


@pytest.mark.parametrize("name", NAMES)
@given(texts=st.lists(filters(), min_size=1, max_size=8), some=st.lists(rows(), max_size=8))
@settings(max_examples=25)
def test_any_filters_and_events(name, texts, some):
    sliced, naive = two_matchers(name=name)
    for number, expression in enumerate(readable(texts)):
        sliced.subscribe(number, expression)
        naive.subscribe(number, expression)
    some = [*some, *delicate_rows()[:6], (None,) * len(SCHEMA)]
    if name == "total":
        some = [total(row) for row in some]
    table = table_of(some)
    expected = answers(naive, table)
    assert answers(sliced, table) == expected
    prepared = [sliced.meaning.prepare(row) for row in some]
    rows_again = sliced.match_rows(prepared, "lists")["subscriptions"].to_pylist()
    assert rows_again == expected


@pytest.mark.parametrize("way", WAYS)
@given(texts=st.lists(filters(), min_size=1, max_size=12), seed=st.integers(0, 999))
@settings(max_examples=6)
def test_every_way(way, texts, seed):
    sliced, naive = two_matchers()
    batch = many_rows(seed, 60) + delicate_rows()[:6]
    with taken(way):
        for number, expression in enumerate(readable(texts)):
            sliced.subscribe(number, expression)
            naive.subscribe(number, expression)
            if number % 3 == 0:
                sliced.match_rows(batch[:1])
        table = table_of(batch)
        expected = answers(naive, table)
        assert answers(sliced, table) == expected
        for row, names in list(zip(batch, expected, strict=True))[::9]:
            assert sliced._engine.match(row).tolist() == names  # handles are numbered like these


@pytest.mark.parametrize("size", [0, 1, 63, 64, 65, 511, 512, 513, 1025])
def test_batches_of_any_size(size):
    sliced, naive = two_matchers(SMALL)
    subscriptions = {f"n{n}": text for n, text in enumerate(stock_filters(size, 60))}
    subscriptions |= {"always": "TRUE", "never": "1 > 2", "ever": "NULL IS NULL"}
    sliced.subscribe_many(subscriptions)
    naive.subscribe_many(subscriptions)
    table = table_of(stock_rows(size, size), SMALL)
    expected = answers(naive, table)
    assert answers(sliced, table) == expected
    assert answers(sliced, table.slice(1)) == expected[1:]
    chunked = pa.concat_tables([table.slice(0, size // 3), table.slice(size // 3)])
    assert answers(sliced, chunked) == expected


@pytest.mark.parametrize("name", NAMES)
@given(texts=st.lists(filters(), min_size=4, max_size=12))
@settings(max_examples=2)
def test_more_events_than_a_block_holds(name, texts):
    sliced, naive = two_matchers(name=name)
    for number, expression in enumerate(readable(texts)):
        sliced.subscribe(number, expression)
        naive.subscribe(number, expression)
    some = many_rows(len(texts), 530)
    table = table_of([total(row) for row in some] if name == "total" else some)
    assert answers(sliced, table) == answers(naive, table)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("first", ["a name", 17])
def test_a_life_between_batches(way, first):
    """Subscriptions come, are replaced and go; ids keep their age."""
    names = [f"{first} {n}" if isinstance(first, str) else first + 7 * n for n in range(60)]
    sliced, naive = two_matchers(SMALL)
    chance = np.random.default_rng(5)
    texts = [*stock_filters(3, 400), "TRUE", "FALSE", "TRUE"] * 2
    table = table_of(stock_rows(9, 70), SMALL)
    for step in range(12):
        for _ in range(25):
            name = names[chance.integers(len(names))]
            if name in naive and chance.random() < 0.4:
                sliced.unsubscribe(name)
                naive.unsubscribe(name)
            else:
                text = texts[chance.integers(len(texts))]
                sliced.subscribe(name, text)
                naive.subscribe(name, text)
        event = {"i": int(chance.integers(-9, 9)), "s": "T3", "b": True}
        with taken(way):
            assert answers(sliced, table) == answers(naive, table), step
            assert sliced.match(event) == naive.match(event)
    for name in list(naive):
        sliced.unsubscribe(name)
    assert answers(sliced, table) == [[]] * 70
    assert set(sliced._engine.statistics().values()) == {0}


def test_several_segments():
    sliced, naive = two_matchers(SMALL)
    table = table_of(stock_rows(1, 100), SMALL)
    number = 0
    for size in (120, 25, 5, 1):
        for text in stock_filters(size, size):
            sliced.subscribe(number, text)
            naive.subscribe(number, text)
            number += 1
        assert answers(sliced, table) == answers(naive, table)
    assert sliced._engine.statistics()["segments"] == 4
    for gone in range(0, number, 2):
        sliced.unsubscribe(gone)
        naive.unsubscribe(gone)
    assert answers(sliced, table) == answers(naive, table)


def test_a_segment_that_every_event_matches_and_then_none():
    """It writes a matrix once it was dense, also when nothing is left to write."""
    sliced, naive = two_matchers(SMALL)
    for n in range(70):
        for matcher in (sliced, naive):
            matcher.subscribe(n, f"i > {n % 7}")
    full, empty = ([(i, None, None, None, None)] * 130 for i in (100, -1))
    for some in (full, empty, full, full[:1], empty[:3], full * 9):
        table = table_of(some, SMALL)
        assert answers(sliced, table) == answers(naive, table)


# --- filters without predicates


@pytest.mark.parametrize("held", [[], ["i > 0"]])
def test_filters_that_are_always_true_keep_their_order(held):
    sliced, naive = two_matchers(SMALL)
    table = table_of([(1, None, None, None, None), (None,) * 5], SMALL)
    for matcher in (sliced, naive):
        for name, text in [("a", "TRUE"), ("b", "TRUE"), ("c", "FALSE"), ("d", "1 = 1")]:
            matcher.subscribe(name, text)
        for text in held:
            matcher.subscribe("e", text)
        matcher.subscribe("a", "2 = 2")  # its handle is the oldest, its entry the newest
        matcher.subscribe("c", "TRUE")
    assert answers(sliced, table) == answers(naive, table)
    assert sliced.match({"i": 1}) == naive.match({"i": 1})
    for matcher in (sliced, naive):
        matcher.unsubscribe("b")
        matcher.subscribe("b", "TRUE")
        matcher.subscribe("d", "FALSE")
    assert answers(sliced, table) == answers(naive, table)
    assert sliced.match({}) == naive.match({})


def test_a_schema_without_attributes():
    sliced = Matcher({}, "sliced")
    sliced.subscribe_many({"a": "TRUE", "b": "FALSE"})
    assert sliced.match({}) == ["a"]
    assert answers(sliced, pa.table({"z": [1, 2]})) == [["a"], ["a"]]
    assert answers(sliced, pa.table({})) == []


def test_an_empty_matcher():
    sliced = Matcher(SMALL, "sliced")
    table = table_of(stock_rows(0, 600), SMALL)
    assert answers(sliced, table) == [[]] * 600
    assert sliced.match({"i": 1}) == []


# --- values and constants at the edges


@pytest.mark.parametrize(
    "text",
    [
        "side LIKE 'sell'", "side LIKE 'other'", "NOT side LIKE 'other'", "side LIKE ''",
        "side IS NULL OR side LIKE 'other'", "side IN ('buy', 'sell')", "NOT side IN ('buy')",
        "side > 'buy'", "side <= 'buy'", "lower(side) = 'buy'", "side RLIKE 'l{2}'",
        "x IN (1, 1e308 * 10D)", "x < 1e308 * 10D", "x = 1e308 * 10D - 1e308 * 10D",
        "x IN (1, 1e308 * 10D - 1e308 * 10D)", "x NOT IN (1, 1e308 * 10D - 1e308 * 10D)",
        "x IN (0, 5)", "x = -0.0D", "x <> 0", "i = 9223372036854775807",
        "i >= 9223372036854775807", "i < -9223372036854775807", "i IN (1, -9223372036854775808)",
        "s = ''", "s IN ('', 'a')", "s <> 'a'", "b", "NOT b", "b IS NULL", "b <=> NULL",
        "i <=> 1", "x <=> NULL",
    ],
)  # fmt: skip
def test_the_edges_of_values(text):
    sliced, naive = two_matchers(SMALL)
    some = [
        (i, x, s, b, side)
        for i, b in ((None, None), (1, True), (2**63 - 1, False), (-(2**63), None))
        for x, s in ((None, None), (0.0, ""), (-0.0, "a"), (math.nan, "b"), (math.inf, "a\x00"),
                     (-math.inf, "é"), (1.0, "A"))
        for side in (None, "buy", "sell")
    ]  # fmt: skip
    for matcher in (sliced, naive):
        matcher.subscribe("tested", text)
        matcher.subscribe("both", f"({text}) AND i >= 1")
        matcher.subscribe("either", f"({text}) OR x > 0")
    table = table_of(some, SMALL)
    assert answers(sliced, table) == answers(naive, table)
    for row in some[::5]:
        assert sliced._engine.match(row).tolist() == naive._engine.match(row).tolist()


def test_an_equality_that_nobody_uses_any_more():
    """A set is as selective as the constants its attribute is compared with; there may be none."""
    sliced = Matcher(SMALL, "sliced")
    sliced.subscribe("a", "i = 5")
    sliced.unsubscribe("a")
    sliced.subscribe("b", "i IN (1, 2) AND x > 0")
    assert sliced.match({"i": 1, "x": 1}) == ["b"]


# --- errors


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "table",
    [
        pa.table({"side": ["buy", "bye"]}),
        pa.table({"i": ["a"]}),
        pa.table({"i": [1, None]}),
        pa.table({"stranger": pa.array([], pa.int64())}),
        pa.table({"i": [1], "stranger": [2]}),
    ],
)
@pytest.mark.parametrize("unknown", ["ignore", "refuse"])
def test_errors_are_those_of_naive(name, table, unknown):
    defaults = dict.fromkeys(SMALL, None) if name == "default" else None

    def outcome(kind):
        matcher = Matcher(SMALL, kind, name, defaults=defaults, unknown=unknown)
        matcher.subscribe("a", "i IS NULL OR i > 0")
        try:
            return answers(matcher, table)
        except EventError as error:
            return str(error), error.row

    assert outcome("sliced") == outcome("naive")


def test_a_bad_batch_changes_nothing():
    sliced = Matcher(SMALL, "sliced")
    sliced.subscribe("a", "i > 0")
    with pytest.raises(EventError):
        sliced.match_batch(pa.table({"side": ["bye"]}))
    assert sliced.match({"i": 1}) == ["a"]


def test_nothing_is_lost_when_compiling_fails(monkeypatch):
    """Memory may run out: what waited still waits."""
    sliced, naive = two_matchers(SMALL)
    table = table_of(stock_rows(2, 40), SMALL)
    for number, text in enumerate(stock_filters(2, 30)):
        for matcher in (sliced, naive):
            matcher.subscribe(number, text)
        if number == 20:
            answers(sliced, table)

    def fail(*_):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(engine, "Segment", fail)
        with pytest.raises(MemoryError):
            sliced.match_batch(table)
    assert answers(sliced, table) == answers(naive, table)


# --- results


def test_the_same_batch_twice_and_another_engine_between():
    """Engines share no scratch."""
    meaning = Semantics("sql", SMALL)
    one, other = make_engine("sliced", meaning), make_engine("sliced", meaning)
    for handle, text in enumerate(stock_filters(25, 60)):
        one.add(handle, one.prepare(parse(text, SMALL)))
    other.add(0, other.prepare(parse("i > 0", SMALL)))
    batch = batch_of_rows(stock_rows(8, 520), SMALL)
    first = [[part.tolist() for part in piece] for piece in one.match_batch(batch)]
    pieces = zip(one.match_batch(batch), other.match_batch(batch), strict=True)
    assert [[part.tolist() for part in piece] for piece, _ in pieces] == first


def test_ids_with_gaps_and_their_types():
    for names, kind in ((["a", "b", "c"], str), ([30, 10, 20], int)):
        sliced = Matcher(SMALL, "sliced")
        for name in names:
            sliced.subscribe(name, "i > 0")
        sliced.unsubscribe(names[1])
        found = answers(sliced, pa.table({"i": [1, 0, 2]}))
        assert found == [[names[0], names[2]], [], [names[0], names[2]]]
        assert all(type(name) is kind for one in found for name in one)
        sliced.subscribe(names[1], "i > 1")
        assert answers(sliced, pa.table({"i": [1, 2]})) == [
            [names[0], names[2]], [names[0], names[2], names[1]],
        ]  # fmt: skip


def test_two_threads_may_ask_at_once():
    """The kernels let go of the interpreter's lock, so scratch must not be shared."""
    sliced = Matcher(SMALL, "sliced")
    chance = np.random.default_rng(3)
    for n, (low, high) in enumerate(chance.integers(-50, 50, (2000, 2)).tolist()):
        sliced.subscribe(n, f"i > {low} AND x < {high}")
    tables = [
        pa.table({"i": chance.integers(-50, 50, 2000), "x": chance.normal(0, 30, 2000)})
        for _ in range(2)
    ]
    expected = [sliced.match_batch(table, "counts") for table in tables]
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda table: sliced.match_batch(table, "counts"), tables * 8))
    assert found == expected * 8
