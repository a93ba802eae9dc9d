"""The answers of the sliced engine: batches of every size, every way through it, and every edge.

`test_conformance.py` has what all engines share.
"""

import math
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from stocks import SMALL, stock_filters, stock_rows
from strategies import DOUBLES, INTS, MOMENTS, SCHEMA, STRINGS, delicate_rows, filters, rows
from tamis import EventError, ExpressionError, Matcher, Schema, parse
from tamis.columns import plain_type
from tamis.engines import make_engine
from tamis.engines.sliced import (
    blocks,
    buffers,
    layout,
    segment,
    segment_merges,
    segment_predicates,
    value_classes,
)
from tamis.kernels.programs import FEW
from tamis.predicates.event_batches import Batch, batch_of_rows, batch_of_table
from tamis.semantics import NAMES, Semantics

DEFAULTS = dict(zip(SCHEMA, delicate_rows()[7], strict=True)) | {
    "x": None, "s": "", "b": None, "at": "2024-01-01", "until": None,
}  # fmt: skip

NEVER, EVER = -1, 10**9
# Every way through the engine, whatever the numbers of subscriptions and matches.
WAYS = {
    "as it is": {},
    "by matrix": {(blocks, "DENSE"): NEVER},
    "by lists": {(blocks, "DENSE"): EVER},
    "no names": {(layout, "NAMED"): 0},
    "clusters": {(layout, "SELECTIVE"): 2.0},
    "clusters without names": {(layout, "SELECTIVE"): 2.0, (layout, "NAMED"): 0},
    "clusters in a matrix": {
        (layout, "SELECTIVE"): 2.0, (layout, "NAMED"): 0, (blocks, "DENSE"): NEVER,
    },
    "no clusters": {(layout, "SELECTIVE"): 0.0, (layout, "COMMON"): EVER, (layout, "NAMED"): 0},
    "all in common": {(layout, "SELECTIVE"): 0.0, (layout, "COMMON"): 1, (layout, "NAMED"): 0},
    "all in common, named": {(layout, "SELECTIVE"): 0.0, (layout, "COMMON"): 1},
    "events in another order": {
        (layout, "SELECTIVE"): 2.0, (segment, "SORTED"): -1.0, (blocks, "DENSE"): EVER,
    },
    "a window is two blocks": {
        (layout, "SELECTIVE"): 2.0, (layout, "NAMED"): 0, (segment, "SORTED"): -1.0,
        (blocks, "WINDOW"): 2,
    },
    "many segments": {(segment_merges, "GROWTH"): 0},
    "coarse tables": {
        (segment_predicates, "HOMES"): 4,
        (buffers, "COARSE"): 4,
        (layout, "NAMED"): 0,
    },
    "nothing remembered": {(value_classes, "MOST_REMEMBERED"): 1},
    "small pieces": {(blocks, "DENSE"): NEVER, (blocks, "PIECE"): 40},
    "small windows": {(blocks, "DENSE"): EVER, (blocks, "MOST_MATCHES"): 900},
    "small windows and pieces": {
        (blocks, "DENSE"): NEVER, (blocks, "PIECE"): 1, (blocks, "MOST_MATCHES"): 900,
        (segment_merges, "GROWTH"): 0,
    },
    "words sorted": {(blocks, "DENSE"): EVER, (blocks, "FEW_SORTED"): EVER},
    "matches sorted": {(blocks, "DENSE"): EVER, (blocks, "FEW_SORTED"): 0},
    "marks": {(blocks, "SPARSE"): EVER},
    "no marks": {(blocks, "SPARSE"): 0},
}  # fmt: skip


@contextmanager
def taken(way):
    """The engine goes one way."""
    with pytest.MonkeyPatch.context() as patch:
        for (module, name), value in WAYS[way].items():
            patch.setattr(module, name, value)
        yield


def table_of(some, schema):
    """Rows as a table; a timestamp is a number of microseconds in a row."""
    columns = {}
    for n, attribute in enumerate(schema.attributes):
        column = pa.array([row[n] for row in some], plain_type(attribute))
        if str(attribute.type) == "timestamp":
            column = column.cast(pa.timestamp("us", "UTC"))
        columns[".".join(attribute.path)] = column
    return pa.table(columns)


def listed(pieces):
    """The handles of each event."""
    found = []
    for counts, handles in pieces:
        assert counts.dtype == np.int64
        assert counts.sum() == len(handles)
        ends = np.cumsum(counts).tolist()
        parts = zip(counts.tolist(), ends, strict=True)
        found += [handles[end - count : end].tolist() for count, end in parts]
    return found


class Both:
    """The engine under test and the oracle, which asks about each distinct row once."""

    def __init__(self, schema=SMALL, name="sql", defaults=None, **options):
        self.schema = schema
        self.meaning = Semantics(name, schema, defaults)
        self.tested = make_engine("sliced", self.meaning, options)
        self.oracle = make_engine("naive", self.meaning)

    def put(self, texts, first=0, step=1):
        for number, text in enumerate(texts):
            try:
                expression = parse(text, self.schema)
            except ExpressionError:
                continue
            self.tested.add(first + step * number, self.tested.prepare(expression))
            self.oracle.add(first + step * number, expression)
        return self

    def drop(self, handles):
        for handle in handles:
            self.tested.remove(handle)
            self.oracle.remove(handle)

    def expected(self, some):
        known = {}
        for row in some:
            if row not in known:
                known[row] = self.oracle.match(row).tolist()
        return [known[row] for row in some]

    def check(self, some, singles=30):
        """Every question that an engine answers."""
        tested = self.tested
        ready = [self.meaning.prepare(row) for row in some]
        expected = self.expected(ready)
        counts = [len(found) for found in expected]
        for row, found in list(zip(ready, expected, strict=True))[:singles]:
            one = tested.match(row)
            assert one.dtype == np.int64
            assert one.tolist() == found
        several = list(tested.match_many(ready))
        assert [found.tolist() for found in several] == expected
        assert {found.dtype for found in several} <= {np.dtype(np.int64)}
        table = table_of(some, self.schema)
        by_table = batch_of_table(table, self.meaning, refuse_unknown=True)
        by_rows = batch_of_rows(ready, self.schema)
        for batch, asked in ((by_table, None), (by_rows, None), (by_rows, ready)):
            assert listed(tested.match_batch(batch, asked)) == expected
            assert tested.count_batch(batch, asked).tolist() == counts
        return expected


def total(row):
    """A row without missing values, for the semantics that allows none."""
    return tuple(d if v is None else v for v, d in zip(row, delicate_rows()[3], strict=True))


def both_of(name, **options):
    return Both(SCHEMA, name, DEFAULTS if name == "default" else None, **options)


def some_of(pool, size, seed=0):
    """Events drawn from a few rows."""
    places = np.random.default_rng(seed).integers(0, len(pool), size)
    return [pool[place] for place in places]


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


# --- batches


@pytest.mark.parametrize("name", NAMES)
@given(texts=st.lists(filters(), min_size=1, max_size=8), some=st.lists(rows(), max_size=8))
@settings(max_examples=15)
def test_any_filters_and_events(name, texts, some):
    some = [*some, *delicate_rows()[:6], (None,) * len(SCHEMA)]
    both_of(name).put(texts).check([total(row) for row in some] if name == "total" else some)


@pytest.mark.parametrize("way", WAYS)
@given(texts=st.lists(filters(), min_size=1, max_size=12), seed=st.integers(0, 999))
@settings(max_examples=3)
def test_every_way(way, texts, seed):
    with taken(way):
        both = both_of("sql")
        batch = some_of(many_rows(seed, 50) + delicate_rows()[:6], 70)
        both.put(texts[:4]).check(batch[:1])
        both.put(texts[4:], first=100, step=3).check(batch)


@each("way", WAYS)
def test_every_way_over_many_blocks(way):
    """A way may depend on the block before, so there are several, and unlike each other."""
    with taken(way):
        both = Both(threads=1).put(stock_filters(41, 150), step=2)
        some = [
            *some_of(stock_rows(1, 60), 700),
            *[stock_rows(2, 1)[0]] * 520,
            *[(None,) * 5] * 520,
            *some_of(stock_rows(3, 60), 300),
        ]
        both.check(some)
        both.drop(range(0, 300, 6))
        both.put(["i > 0 AND x > 0", "s = 'T5'", "s <> 'T5'"], first=1, step=2)
        both.check(some[300:900])


@each("size", [0, 1, 63, 64, 65, 511, 512, 513, 1025, 9000])
def test_batches_of_any_size(size):
    both = Both().put([*stock_filters(size, 80), "TRUE", "1 > 2", "NULL IS NULL"])
    some = some_of(stock_rows(size, 200), size)
    expected = both.check(some)
    table = table_of(some, SMALL)
    sliced = batch_of_table(table.slice(1), both.meaning, refuse_unknown=True)
    assert listed(both.tested.match_batch(sliced)) == expected[1:]
    chunks = [table.slice(0, size // 3), table.slice(size // 3)]
    chunked = batch_of_table(pa.concat_tables(chunks), both.meaning, refuse_unknown=True)
    assert listed(both.tested.match_batch(chunked)) == expected


@pytest.mark.parametrize("name", NAMES)
@given(texts=st.lists(filters(), min_size=4, max_size=12))
@settings(max_examples=2)
def test_more_events_than_a_block_holds(name, texts):
    some = some_of(many_rows(len(texts), 150), 1030)
    both_of(name).put(texts).check([total(row) for row in some] if name == "total" else some)


def test_columns_of_a_table_may_be_missing():
    both = Both().put(["i IS NULL", "s IS NULL AND b IS NULL", "s LIKE 'a%'", "s = 'a'", "x < 1"])
    table = pa.table({"x": [0.5, None]})
    batch = batch_of_table(table, both.meaning, refuse_unknown=True)
    assert listed(both.tested.match_batch(batch)) == [[0, 1, 4], [0, 1]]
    assert both.tested.count_batch(batch).tolist() == [3, 2]
    nothing = batch_of_table(pa.table({}), both.meaning, refuse_unknown=True)
    assert listed(both.tested.match_batch(nothing)) == []


# --- the order of events in a window


@pytest.mark.parametrize(
    ("named", "window", "threads"), [(0, 1, 1), (4096, 2, 2), (4096, 16, 1), (0, 16, 2), (0, 3, 4)]
)
def test_events_come_in_any_order(monkeypatch, named, window, threads):
    """Most filters ask for a ticker, so events are brought into its order, and back."""
    monkeypatch.setattr(layout, "NAMED", named)
    monkeypatch.setattr(blocks, "WINDOW", window)
    both = Both(threads=threads)
    both.put(f"s = 'T{n % 40}' AND x > {n % 7} AND i <> {n % 5}" for n in range(200))
    both.put(stock_filters(7, 40), first=1000, step=5)
    some = some_of([*stock_rows(5, 150), (None,) * 5], 9000 if window == 16 else 2600)
    both.check(some, singles=3)
    (only,) = both.tested.segments
    assert only.sorted_by == list(SMALL).index("s")
    for ordered in (sorted(some, key=repr), sorted(some, key=repr, reverse=True)):
        batch = batch_of_rows(ordered, SMALL)
        assert listed(both.tested.match_batch(batch)) == both.expected(ordered)
        counts = both.tested.count_batch(batch).tolist()
        assert counts == [len(found) for found in both.expected(ordered)]


# --- many matches, or few


def test_a_segment_that_every_event_matches_and_then_none():
    """It writes a matrix once it was dense, also when nothing is left to write."""
    both = Both().put(f"i > {n % 7}" for n in range(70))
    full, empty = ([(i, None, None, None, None)] * 130 for i in (100, -1))
    for some in (full, empty, full, full[:1], empty[:3], full * 9, empty * 9):
        both.check(some, singles=1)


@each(("first", "step"), [(0, 1), (5, 1), (5, 3), (2**31 - 70, 1), (2**40, 1)])
def test_many_matches_of_handles_with_gaps_and_without(first, step):
    both = Both(threads=1).put((f"i > {n % 9}" for n in range(150)), first, step)
    some = some_of([(i, None, None, None, None) for i in range(12)], 2000)
    both.check(some, singles=12)
    assert both.tested.segments[0].is_gapless == (first + 150 * step < 2**31 and step == 1)
    both.drop([first, first + 10 * step, first + 149 * step])
    both.check(some, singles=12)


def test_lists_of_single_events_have_room(monkeypatch):
    """Clusters that events visit one by one list a match for each of up to 64 events."""
    made, sizes = buffers.Room.__init__, []

    def roomy(self, of):  # what does not fit is counted, not written somewhere
        made(self, of)
        self.promised, self._most = self._most, FEW * len(of.handles) + 1

    def listing(self):
        out = given_room(self)
        sizes.append((out.size, self.promised))
        return out

    given_room = buffers.Room.listing
    monkeypatch.setattr(buffers.Room, "__init__", roomy)
    monkeypatch.setattr(buffers.Room, "listing", listing)
    monkeypatch.setattr(blocks, "DENSE", EVER)
    monkeypatch.setattr(layout, "NAMED", 0)
    both = Both(threads=1)
    both.put(f"s = 'T{n % 30}' AND x > {n}" for n in range(300))
    some = [(None, 1e9, f"T{n % 8}", None, None) for n in range(512)]
    both.check(some, singles=1)
    assert sizes
    assert all(size[0] <= promised for size, promised in sizes), (sizes[0][0][0], sizes[0][1])


# --- clusters


@pytest.mark.parametrize("named", [0, 4096])
@pytest.mark.parametrize(
    "texts",
    [
        [f"s = 'T{n % 40}' AND x > {n % 9} AND i < {n % 4}" for n in range(400)],
        [f"s = 'T{n % 40}' AND x {'<>'[n % 2]} {n % 9}" for n in range(400)],
        [f"s IN ('T{n}', 'T{n + 1}') AND x > {n % 9}" for n in range(80)]
        + [f"s = 'T{n}'" for n in range(60)],
        [f"s LIKE '%{n}' AND x > {n % 9} AND i <> {n % 3}" for n in range(80)],
        [f"s = 'T{n}' AND (i < {n % 5} OR x > {n % 9} AND b)" for n in range(80)],
        [f"i = {n % 30} AND s NOT IN ('T1', 'T{n}') AND b IS NULL" for n in range(80)],
        [f"x = {n % 30} AND s <> 'T{n}' AND b IS NOT NULL AND side = 'buy'" for n in range(80)],
        [f"i = {n % 30} AND x > i AND s RLIKE '{n % 10}$'" for n in range(80)],
    ],
)
def test_clusters_that_events_find(monkeypatch, named, texts):
    monkeypatch.setattr(layout, "NAMED", named)
    both = Both(threads=1).put(texts)
    pool = [*stock_rows(11, 120), *[(n, float(n), f"T{n}", None, "buy") for n in range(40)]]
    both.check(some_of(pool, 1500), singles=60)
    assert len(both.tested.segments[0].programs.access) > 20
    both.drop(range(0, len(texts), 3))
    both.check(some_of(pool, 600), singles=60)


@pytest.mark.parametrize("events", [0, 1, 2, FEW - 1, FEW, FEW + 1, 512])
@pytest.mark.parametrize("alike", [True, False])
def test_as_many_events_as_are_looked_at_one_by_one(monkeypatch, events, alike):
    monkeypatch.setattr(layout, "NAMED", 0)
    both = Both(threads=1)
    both.put(f"s = 'T{n % 30}' AND x {'<>'[n // 30 % 2 and not alike]} {n}" for n in range(270))
    one, other = ("T7", "T8")
    some = [(None, 70.5, one, None, None)] * events + [(None, 70.5, other, None, None)] * 512
    some = some_of(some[:512], 512)
    both.check(some)
    signatures = both.tested.segments[0].programs.signatures
    assert (signatures >= 0).any() == alike
    both.drop(range(7, 270, 60))
    both.check(some)
    both.check(some * 3, singles=1)


@pytest.mark.parametrize("size", [1, 15, 16, 17, 63, 64, 65, 129])
@pytest.mark.parametrize("named", [0, 4096])
def test_filters_with_their_first_predicate_in_common(monkeypatch, size, named):
    monkeypatch.setattr(layout, "NAMED", named)
    both = Both(threads=1)
    both.put(f"side = 'buy' AND x > {n % 12}" for n in range(size))
    both.put((f"b AND (x > {n % 12} OR i < {n % 9})" for n in range(size)), first=10_000)
    both.put((f"x > {n} AND i < {n}" for n in range(-3, 3)), first=20_000)
    both.check(some_of(stock_rows(12, 100), 700), singles=60)


def test_more_references_than_have_names():
    both = Both(threads=1)
    both.put(f"s = 'T{n % 40}' AND x > {n % 99} AND i < {n - 5000}" for n in range(2000))
    both.put((f"x > {n} AND i < {n}" for n in range(-600, 600)), first=5000)
    both.check(some_of(stock_rows(13, 30), 700))
    assert len(both.tested.segments[0].programs.named) == 0


# --- filters without predicates


@pytest.mark.parametrize("held", [[], ["i > 0"]])
def test_filters_that_are_always_true_keep_their_order(held):
    some = [(1, None, None, None, None), (None,) * 5]
    both = Both().put(["TRUE", "TRUE", "FALSE", "1 = 1", *held])
    both.check(some)
    both.drop([0, 2])
    both.put(["2 = 2"], 0).put(["TRUE"], 2)
    both.check(some)
    both.drop([1, 3])
    both.put(["TRUE"], 1).put(["FALSE"], 3)
    both.check(some)


def test_answers_belong_to_who_asked():
    both = Both().put(["TRUE", "1 = 1"])
    for _ in range(2):
        both.check(stock_rows(1, 3))
        both.tested.match((None,) * 5)[:] = 99
        for counts, found in both.tested.match_batch(batch_of_rows(stock_rows(1, 3), SMALL)):
            counts[:] = found[:] = 99


def test_a_schema_without_attributes():
    both = Both(Schema({})).put(["TRUE", "FALSE", "1 < 2 OR NULL"])
    assert both.tested.match(()).tolist() == [0, 2]
    batch = Batch(3, ())
    assert listed(both.tested.match_batch(batch)) == [[0, 2]] * 3
    assert both.tested.count_batch(batch).tolist() == [2, 2, 2]


def test_an_empty_engine():
    both = Both()
    both.check(stock_rows(0, 600))
    both.put(["FALSE"]).check(stock_rows(0, 600))


# --- values and constants at the edges


EDGES = [
    (i, x, s, b, side)
    for i, b in ((None, None), (1, True), (2**63 - 1, False), (-(2**63), None), (2**53 + 1, True))
    for x, s in ((None, None), (0.0, ""), (-0.0, "a"), (math.nan, "b"), (math.inf, "a\x00"),
                 (-math.inf, "é"), (1.0, "A"), (5e-324, "😀"), (2.0**53, "ab"))
    for side in (None, "buy", "sell")
]  # fmt: skip


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
    both = Both().put([text, f"({text}) AND i >= 1", f"({text}) OR x > 0", f"NOT ({text})"])
    both.check(EDGES, singles=len(EDGES))


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
    Both(TIMES).put(texts).check(some, singles=len(some))


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
        both = Both(threads=1).put(texts)
        pool = [*stock_rows(17, 200), (None,) * 5, *EDGES[::7]]
        both.check(some_of(pool, 600), singles=60)


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
    Both(schema).put(texts).check(some_of(pool, 1100), singles=60)


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
        Both(schema, name).put(texts).check(some_of(pool, 600), singles=10)


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
    Both().put(texts).check(some_of([*stock_rows(19, 80), *EDGES[::3]], 700), singles=60)


def test_handles_with_gaps_and_beyond_32_bits():
    some = some_of(stock_rows(23, 80), 600)
    both = Both(threads=1)
    both.put(stock_filters(1, 30), first=3, step=1000).check(some)
    both.put(stock_filters(2, 30), first=2**31 - 20).check(some)
    both.put(stock_filters(3, 30), first=2**40, step=2**33).check(some)
    both.put(stock_filters(4, 9), first=2**63 - 10).check(some)
    both.drop([3, 2**31 - 1, 2**31, 2**40, 2**63 - 10])
    both.check(some)
    both.tested.compact()
    both.check(some)


def test_an_equality_that_nobody_uses_any_more():
    """A set is as selective as the constants its attribute is compared with; there may be none."""
    both = Both().put(["i = 5"])
    both.drop([0])
    both.put(["i IN (1, 2) AND x > 0"]).check(stock_rows(1, 60))


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
