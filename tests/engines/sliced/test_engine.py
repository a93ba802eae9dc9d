"""The answers of the sliced engine: batches of every size, and every way through it.

`test_conformance.py` has what all engines share, `test_engine_values.py` values at the edges.
"""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from oracles import DEFAULTS, Both, accepted, listed, some_of, table_of
from sliced_ways import EVER, WAYS, taken
from stocks import SMALL, stock_filters, stock_rows
from strategies import (
    DECIMALS,
    DOUBLES,
    INTS,
    LONG_DECIMALS,
    MOMENTS,
    SCHEMA,
    STRINGS,
    delicate_rows,
    filters,
)
from tamis import Schema
from tamis.engines.sliced import (
    blocks,
    buffers,
    engine,
    layout,
)
from tamis.kernels.programs import FEW
from tamis.predicates.event_batches import Batch, batch_of_rows, batch_of_table
from tamis.semantics import NAMES


def both_of(name):
    return Both("sliced", SCHEMA, name, DEFAULTS if name == "default" else None)


def many_rows(seed, size):
    """Rows with many ties and gaps, and every delicate value."""
    chance = np.random.default_rng(seed)
    pools = {"int": INTS, "double": DOUBLES, "string": STRINGS, "bool": [True, False],
             "timestamp": MOMENTS, "decimal(9, 2)": DECIMALS,
             "decimal(38, 10)": LONG_DECIMALS}  # fmt: skip
    columns = []
    for attribute in SCHEMA.attributes:
        pool = [*pools[str(attribute.type)], None, None]
        columns.append([pool[k] for k in chance.integers(0, len(pool), size)])
    return list(zip(*columns, strict=True))


# --- batches


@each("most", [1, 7, 3 * 600])
def test_computed_values_of_few_events_at_a_time(most, monkeypatch):
    monkeypatch.setattr(engine, "MOST_COMPUTED", most)
    both = both_of("sql").put(["i + j > 2", "length(s) = 1", "i * 2 < j"])
    events = many_rows(3, 1_300)
    sliced = both.tested
    pieces = sliced._pieces(sliced.snapshot(), batch_of_rows(events, SCHEMA))
    sizes = [piece.size for piece in pieces]
    assert sum(sizes) == len(events)
    assert max(sizes) == {1: 1, 7: 2, 3 * 600: 512}[most]
    both.check_all(events[:40] if most < 10 else events)


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
@given(texts=st.lists(filters(), min_size=1, max_size=12), seed=st.integers(0, 999))
@settings(max_examples=3)
def test_every_way(way, texts, seed):
    with taken(way):
        both, texts = both_of("sql"), accepted(texts)
        batch = some_of(many_rows(seed, 50) + delicate_rows()[:6], 70)
        both.put(texts[:4]).check_all(batch[:1])
        both.put(texts[4:], first=100, step=3).check_all(batch)


@pytest.mark.long
@each("way", WAYS)
def test_every_way_over_many_blocks(way):
    """A way may depend on the block before, so there are several, and unlike each other."""
    with taken(way):
        both = Both("sliced", threads=1).put(stock_filters(41, 150), step=2)
        some = [
            *some_of(stock_rows(1, 60), 700),
            *[stock_rows(2, 1)[0]] * 520,
            *[(None,) * 5] * 520,
            *some_of(stock_rows(3, 60), 300),
        ]
        both.check_all(some)
        both.drop(range(0, 300, 6))
        both.put(["i > 0 AND x > 0", "s = 'T5'", "s <> 'T5'"], first=1, step=2)
        both.check_all(some[300:900])


@each("size", [0, 1, 63, 64, 65, 511, 512, 513, 1025, 9000])
def test_batches_of_any_size(size):
    both = Both("sliced").put([*stock_filters(size, 80), "TRUE", "1 > 2", "NULL IS NULL"])
    some = some_of(stock_rows(size, 200), size)
    expected = both.check_all(some).expected(some)
    table = table_of(some, SMALL)
    sliced = batch_of_table(table.slice(1), both.meaning, refuse_unknown=True)
    assert listed(both.tested.match_batch(sliced)) == expected[1:]
    chunks = [table.slice(0, size // 3), table.slice(size // 3)]
    chunked = batch_of_table(pa.concat_tables(chunks), both.meaning, refuse_unknown=True)
    assert listed(both.tested.match_batch(chunked)) == expected


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
@given(texts=st.lists(filters(), min_size=4, max_size=12))
@settings(max_examples=2)
def test_more_events_than_a_block_holds(name, texts):
    some = some_of(many_rows(len(texts), 150), 1030)
    both_of(name).put(accepted(texts)).check_all(some)


def test_columns_of_a_table_may_be_missing():
    both = Both("sliced").put(
        ["i IS NULL", "s IS NULL AND b IS NULL", "s LIKE 'a%'", "s = 'a'", "x < 1"]
    )
    table = pa.table({"x": [0.5, None]})
    batch = batch_of_table(table, both.meaning, refuse_unknown=True)
    assert listed(both.tested.match_batch(batch)) == [[0, 1, 4], [0, 1]]
    assert both.tested.count_batch(batch).tolist() == [3, 2]
    nothing = batch_of_table(pa.table({}), both.meaning, refuse_unknown=True)
    assert listed(both.tested.match_batch(nothing)) == []


# --- the order of events in a window


@pytest.mark.long
@pytest.mark.parametrize(
    ("named", "window", "threads"), [(0, 1, 1), (4096, 2, 2), (4096, 16, 1), (0, 16, 2), (0, 3, 4)]
)
def test_events_come_in_any_order(monkeypatch, named, window, threads):
    """Most filters ask for a ticker, so events are brought into its order, and back."""
    monkeypatch.setattr(layout, "NAMED", named)
    monkeypatch.setattr(blocks, "WINDOW", window)
    both = Both("sliced", threads=threads)
    both.put(f"s = 'T{n % 40}' AND x > {n % 7} AND i <> {n % 5}" for n in range(200))
    both.put(stock_filters(7, 40), first=1000, step=5)
    some = some_of([*stock_rows(5, 150), (None,) * 5], 9000 if window == 16 else 2600)
    both.check_all(some, singles=3)
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
    both = Both("sliced").put(f"i > {n % 7}" for n in range(70))
    full, empty = ([(i, None, None, None, None)] * 130 for i in (100, -1))
    for some in (full, empty, full, full[:1], empty[:3], full * 9, empty * 9):
        both.check_all(some, singles=1)


@each(("first", "step"), [(0, 1), (5, 1), (5, 3), (2**31 - 70, 1), (2**40, 1)])
def test_many_matches_of_handles_with_gaps_and_without(first, step):
    both = Both("sliced", threads=1).put((f"i > {n % 9}" for n in range(150)), first, step)
    some = some_of([(i, None, None, None, None) for i in range(12)], 2000)
    both.check_all(some, singles=12)
    assert both.tested.segments[0].is_gapless == (first + 150 * step < 2**31 and step == 1)
    both.drop([first, first + 10 * step, first + 149 * step])
    both.check_all(some, singles=12)


def test_lists_of_single_events_have_room(monkeypatch):
    """Clusters that events visit one by one list a match for each of up to 64 events."""
    made, sizes = buffers.BlockBuffers.__init__, []

    def roomy(self, of):  # what does not fit is counted, not written somewhere
        made(self, of)
        self.promised, self._most = self._most, FEW * len(of.handles) + 1

    def listing(self):
        out = given_room(self)
        sizes.append((out.size, self.promised))
        return out

    given_room = buffers.BlockBuffers.listing
    monkeypatch.setattr(buffers.BlockBuffers, "__init__", roomy)
    monkeypatch.setattr(buffers.BlockBuffers, "listing", listing)
    monkeypatch.setattr(blocks, "DENSE", EVER)
    monkeypatch.setattr(layout, "NAMED", 0)
    both = Both("sliced", threads=1)
    both.put(f"s = 'T{n % 30}' AND x > {n}" for n in range(300))
    some = [(None, 1e9, f"T{n % 8}", None, None) for n in range(512)]
    both.check_all(some, singles=1)
    assert sizes
    assert all(size[0] <= promised for size, promised in sizes), (sizes[0][0][0], sizes[0][1])


# --- clusters


@pytest.mark.long
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
    both = Both("sliced", threads=1).put(texts)
    pool = [*stock_rows(11, 120), *[(n, float(n), f"T{n}", None, "buy") for n in range(40)]]
    both.check_all(some_of(pool, 1500), singles=60)
    assert len(both.tested.segments[0].programs.access) > 20
    both.drop(range(0, len(texts), 3))
    both.check_all(some_of(pool, 600), singles=60)


@pytest.mark.parametrize("events", [0, 1, 2, FEW - 1, FEW, FEW + 1, 512])
@pytest.mark.parametrize("alike", [True, False])
def test_as_many_events_as_are_looked_at_one_by_one(monkeypatch, events, alike):
    monkeypatch.setattr(layout, "NAMED", 0)
    both = Both("sliced", threads=1)
    both.put(f"s = 'T{n % 30}' AND x {'<>'[n // 30 % 2 and not alike]} {n}" for n in range(270))
    one, other = ("T7", "T8")
    some = [(None, 70.5, one, None, None)] * events + [(None, 70.5, other, None, None)] * 512
    some = some_of(some[:512], 512)
    both.check_all(some)
    signatures = both.tested.segments[0].programs.signatures
    assert (signatures >= 0).any() == alike
    both.drop(range(7, 270, 60))
    both.check_all(some)
    both.check_all(some * 3, singles=1)


@pytest.mark.long
@pytest.mark.parametrize("size", [1, 15, 16, 17, 63, 64, 65, 129])
@pytest.mark.parametrize("named", [0, 4096])
def test_filters_with_their_first_predicate_in_common(monkeypatch, size, named):
    monkeypatch.setattr(layout, "NAMED", named)
    both = Both("sliced", threads=1)
    both.put(f"side = 'buy' AND x > {n % 12}" for n in range(size))
    both.put((f"b AND (x > {n % 12} OR i < {n % 9})" for n in range(size)), first=10_000)
    both.put((f"x > {n} AND i < {n}" for n in range(-3, 3)), first=20_000)
    both.check_all(some_of(stock_rows(12, 100), 700), singles=60)


@pytest.mark.long
def test_more_references_than_have_names():
    both = Both("sliced", threads=1)
    both.put(f"s = 'T{n % 40}' AND x > {n % 99} AND i < {n - 5000}" for n in range(2000))
    both.put((f"x > {n} AND i < {n}" for n in range(-600, 600)), first=5000)
    both.check_all(some_of(stock_rows(13, 30), 700))
    assert len(both.tested.segments[0].programs.named) == 0


# --- filters without predicates


@pytest.mark.parametrize("held", [[], ["i > 0"]])
def test_filters_that_are_always_true_keep_their_order(held):
    some = [(1, None, None, None, None), (None,) * 5]
    both = Both("sliced").put(["TRUE", "TRUE", "FALSE", "1 = 1", *held])
    both.check_all(some)
    both.drop([0, 2])
    both.put(["2 = 2"], 0).put(["TRUE"], 2)
    both.check_all(some)
    both.drop([1, 3])
    both.put(["TRUE"], 1).put(["FALSE"], 3)
    both.check_all(some)


def test_answers_belong_to_whoever_asked():
    both = Both("sliced").put(["TRUE", "1 = 1"])
    for _ in range(2):
        both.check_all(stock_rows(1, 3))
        both.tested.match((None,) * 5)[:] = 99
        for counts, found in both.tested.match_batch(batch_of_rows(stock_rows(1, 3), SMALL)):
            counts[:] = found[:] = 99


def test_a_schema_without_attributes():
    both = Both("sliced", Schema({})).put(["TRUE", "FALSE", "1 < 2 OR NULL"])
    assert both.tested.match(()).tolist() == [0, 2]
    batch = Batch(3, (), Schema({}))
    assert listed(both.tested.match_batch(batch)) == [[0, 2]] * 3
    assert both.tested.count_batch(batch).tolist() == [2, 2, 2]


def test_an_empty_engine():
    both = Both("sliced")
    both.check_all(stock_rows(0, 600))
    both.put(["FALSE"]).check_all(stock_rows(0, 600))


def test_few_events_and_many_computed_values():
    texts = [f"i * {n} + 1 < x" for n in range(engine.MANY_TERMS)]
    both = Both("sliced").put([*texts, "i > 3", "TRUE", "FALSE"])
    for size in (1, 2, engine.FEW_EVENTS, engine.FEW_EVENTS + 1):
        both.check_all(stock_rows(size, size))
