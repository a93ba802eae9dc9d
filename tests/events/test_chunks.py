"""Events in parts: the answers of one batch, piece by piece, no more of them than asked for."""

import json

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from stocks import SMALL, stock_filters, stock_rows
from tamis import CapacityError, EventError, Matcher, OptionError
from tamis.engines import auto
from tamis.engines.sliced import blocks
from tamis.events import chunks
from tamis.events.chunks import event_chunks

OUTPUTS = ["pairs", "lists", "counts"]


def table_of(size, seed=1):
    kinds = pa.schema([("i", pa.int64()), ("x", pa.float64()), ("s", pa.string()),
                       ("b", pa.bool_()), ("side", pa.string())])  # fmt: skip
    return pa.Table.from_pylist(
        [dict(zip(SMALL, row, strict=True)) for row in stock_rows(seed, size)], kinds
    )


def made(engine="auto", size=40, **options):
    matcher = Matcher(SMALL, engine, **options)
    matcher.subscribe_many({f"s{n}": text for n, text in enumerate(stock_filters(1, size))})
    return matcher


def rows_of(tables):
    """The rows of tables one behind the other, event numbers included."""
    return [row for table in tables for row in zip(*table.to_pydict().values(), strict=True)]


@pytest.fixture
def small_parts(monkeypatch):
    """So that a few events make several parts."""
    monkeypatch.setattr(chunks, "ROWS", 7)
    monkeypatch.setattr(chunks, "EVENTS", 5)


FORMS = {
    "a table": lambda table: table,
    "a record batch": lambda table: table.combine_chunks().to_batches()[0],
    "chunks": lambda table: pa.concat_tables([table.slice(0, 9), table.slice(9)]),
    "a reader": lambda table: table.to_reader(max_chunksize=4),
    "an iterator of batches": lambda table: iter(table.to_batches(max_chunksize=8)),
    "a list of batches": lambda table: table.to_batches(max_chunksize=3),
    "tables": lambda table: [table.slice(0, 1), table.slice(1, 0), table.slice(1, 20),
                             table.slice(21)],
    "a generator of tables": lambda table: (table.slice(n, 3) for n in range(0, len(table), 3)),
    "frames": lambda table: (table.slice(n, 10).to_pandas().astype({"i": "Int64"})
                             for n in range(0, len(table), 10)),
    "pandas": lambda table: table.to_pandas().astype({"i": "Int64"}),
    "polars": pl.from_arrow,
    "dicts": lambda table: table.to_pylist(),
    "a generator of dicts": lambda table: (event for event in table.to_pylist()),
    "texts": lambda table: [json.dumps(event).encode() for event in table.to_pylist()],
}  # fmt: skip


@pytest.mark.long
@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
@pytest.mark.parametrize("engine", ["auto", "sliced", "counting-list"])
def test_every_form(form, engine):
    matcher = made(engine)
    table = table_of(33).filter(pa.compute.invert(pa.compute.is_nan(table_of(33)["x"])))
    for output in OUTPUTS:
        whole = matcher.match_batch(table, output)
        tables = list(matcher.match_batches(form(table), output))
        assert rows_of(tables) == rows_of([whole])
        assert len(tables) > 2
        assert all(one.schema == whole.schema for one in tables)


def test_whole_tables_in_one_part():
    """Without a reason to cut there is one part."""
    matcher, table = made(), table_of(500)
    for output in OUTPUTS:
        (only,) = matcher.match_batches(table, output)
        assert only == matcher.match_batch(table, output)


@given(
    sizes=st.lists(st.integers(0, 9), max_size=6),
    form=st.sampled_from(["tables", "batches", "dicts"]),
    output=st.sampled_from(OUTPUTS),
    most=st.sampled_from([1, 3, 100]),
)
@settings(max_examples=20)
def test_any_parts(sizes, form, output, most):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "ROWS", most)
        patch.setattr(chunks, "EVENTS", most)
        parts, start = [], 0
        whole = table_of(sum(sizes))
        for size in sizes:
            parts.append(whole.slice(start, size))
            start += size
        matcher = made(size=12)
        events = {
            "tables": iter(parts),
            "batches": (batch for part in parts for batch in part.to_batches()),
            "dicts": (event for part in parts for event in part.to_pylist()),
        }[form]
        tables = list(matcher.match_batches(events, output))
    expected = matcher.match_batch(whole, output)
    assert rows_of(tables) == rows_of([expected])


@each(
    "nothing",
    [[], iter([]), {}.values(), pa.table({"i": pa.array([], pa.int64())}),
     iter([pa.table({"i": pa.array([], pa.int64())})]), pd.DataFrame({"i": []}).astype("Int64")],
)  # fmt: skip
def test_no_events(nothing):
    assert rows_of(made().match_batches(nothing)) == []


@each("strange", [{"i": 1}, "{}", b"{}", None, 5, Matcher])
def test_what_is_not_a_stream(strange):
    with pytest.raises(OptionError, match="match takes a single event"):
        list(made().match_batches(strange))


@pytest.mark.parametrize("output", ["pair", None])
def test_an_unknown_output(output):
    with pytest.raises(OptionError, match="choices: pairs, lists, counts"):
        list(made().match_batches([], output))


# --- errors have the number of the event


def events_with(bad, size=40):
    events = table_of(size).to_pylist()
    events[23] |= bad
    return events


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("output", OUTPUTS)
@pytest.mark.parametrize("engine", ["auto", "sliced", "counting-list"])
def test_a_bad_event_is_named_by_its_number(engine, output):
    matcher = made(engine)
    whole = table_of(40)
    sides = whole["side"].to_pylist()
    sides[23] = "bye"
    outside = whole.set_column(4, "side", [sides])
    for events in (
        outside, outside.to_reader(max_chunksize=6), iter(outside.to_batches(max_chunksize=10)),
        events_with({"side": "bye"}), iter(events_with({"i": "x"})), iter(outside.to_pylist()),
    ):  # fmt: skip
        before = []
        with pytest.raises(EventError, match=r"^event 23: ") as caught:
            before.extend(matcher.match_batches(events, output))
        assert caught.value.row == 23
        expected = rows_of([matcher.match_batch(whole, output)])
        found = rows_of(before)
        assert found == expected[: len(found)]
        assert max((event for event, *_ in found), default=0) >= 10


@pytest.mark.usefixtures("small_parts")
@pytest.mark.parametrize("engine", ["auto", "counting-list"])
def test_an_event_that_misses_something(engine):
    matcher = Matcher({"i": "int", "j": "int"}, engine, semantics="total")
    matcher.subscribe("a", "i > 0")
    whole = pa.table({"i": range(40), "j": [*range(30), None, *range(9)]})
    for events in (whole, whole.to_reader(max_chunksize=4), whole.to_pylist()):
        with pytest.raises(EventError, match=r"^event 30: the event lacks j"):
            list(matcher.match_batches(events))


@pytest.mark.usefixtures("small_parts")
def test_errors_about_no_event_in_particular():
    """A column of the wrong type is not the fault of one event; the message says what it is."""
    good, wrong = table_of(10), pa.table({"i": ["a", "b"]})
    with pytest.raises(EventError, match="column i has the type string, expected int"):
        list(made().match_batches(iter([good, wrong])))


def test_a_bad_event_ends_the_stream_after_good_parts(monkeypatch):
    monkeypatch.setattr(chunks, "EVENTS", 10)
    stream = made().match_batches(events_with({"i": "x"}), "counts")
    assert [len(next(stream)), len(next(stream))] == [10, 10]
    with pytest.raises(EventError):
        next(stream)
    assert list(stream) == []


# --- no more than needed


class Counting:
    """An iterator that knows how often it was asked."""

    def __init__(self, items):
        self.items, self.asked = iter(items), 0

    def __iter__(self):
        return self

    def __next__(self):
        self.asked += 1
        return next(self.items)


def test_nothing_is_asked_before_somebody_wants_something():
    source = Counting(table_of(30).to_pylist())
    stream = made().match_batches(source)
    assert source.asked == 0
    next(stream)
    assert source.asked > 0


@each("output", OUTPUTS)
def test_a_table_is_taken_when_the_one_before_is_done(output):
    source = Counting(table_of(10, seed) for seed in range(5))
    stream = made().match_batches(source, output)
    for number in range(1, 6):
        next(stream)
        assert source.asked == number
    assert list(stream) == []
    assert source.asked == 6


@pytest.mark.parametrize("output", OUTPUTS)
def test_events_are_taken_a_part_at_a_time(monkeypatch, output):
    monkeypatch.setattr(chunks, "EVENTS", 10)
    source = Counting(table_of(35).to_pylist())
    stream = made().match_batches(source, output)
    for number in (10, 20, 30, 36):
        next(stream)
        assert source.asked == number
    assert list(stream) == []


def test_an_endless_stream():
    def forever():
        while True:
            yield table_of(20)

    stream = made().match_batches(forever(), "counts")
    for number in range(5):
        assert next(stream)["event"].to_pylist() == list(range(20 * number, 20 * number + 20))
    stream.close()


def test_chunks_of_a_large_table():
    table = pa.table({"i": range(3 * chunks.ROWS + 1)})
    parts = list(event_chunks(table))
    assert [len(part) for part in parts] == [chunks.ROWS] * 3 + [1]
    assert pa.concat_tables(parts) == table
    assert [len(part) for part in event_chunks([{}] * (chunks.EVENTS + 1))] == [chunks.EVENTS, 1]


# --- bounded pieces


@pytest.mark.parametrize("output", ["pairs", "lists"])
@pytest.mark.parametrize("engine", ["auto", "sliced", "a live part"])
def test_many_matches_come_in_small_pieces(monkeypatch, engine, output):
    """When all match everything, the pieces become as small as the bound says."""
    monkeypatch.setattr(blocks, "MOST_MATCHES", 64 * 20)
    monkeypatch.setattr(auto, "MOST_UNCOMPILED", 0)
    monkeypatch.setattr(auto, "MOST_LIVE_EVALUATIONS", 10**9)
    matcher = Matcher(SMALL, "sliced" if engine == "sliced" else "auto", options={"threads": 1})
    matcher.subscribe_many({n: f"i > {n - 1000}" for n in range(20)})
    if engine != "sliced":
        matcher._held.engine.compile()
    if engine == "a live part":
        matcher.subscribe(50, "i >= 10")
    table = pa.table({"i": range(1500)})
    for form in (table, table.to_reader(max_chunksize=700), table.to_pylist()):
        tables = list(matcher.match_batches(form, output))
        assert rows_of(tables) == rows_of([matcher.match_batch(table, output)])
        sizes = [len(set(one["event"].to_pylist())) for one in tables]
        assert max(sizes[1:]) <= 512
        assert sizes.count(64) > 10


def test_matches_are_those_of_the_moment_of_a_part(monkeypatch):
    """A part is matched with what was there when it began; the next one sees what came."""
    monkeypatch.setattr(chunks, "ROWS", 10)
    matcher = Matcher(SMALL)
    matcher.subscribe("a", "TRUE")
    stream = matcher.match_batches(table_of(30), "counts")
    assert next(stream)["count"].to_pylist() == [1] * 10
    matcher.subscribe("b", "TRUE")
    assert next(stream)["count"].to_pylist() == [2] * 10
    matcher.unsubscribe("a")
    matcher.unsubscribe("b")
    assert next(stream)["count"].to_pylist() == [0] * 10


def test_a_large_batch_is_refused_where_a_stream_is_not():
    """As the error says."""
    matcher = Matcher(SMALL, options={"memory": 200_000, "threads": 1})
    matcher.subscribe_many(dict.fromkeys(range(100), "i >= 0"))
    table = pa.table({"i": range(5000)})
    with pytest.raises(CapacityError, match="match_batches"):
        matcher.match_batch(table)
    assert matcher.match_batch(table, "counts")["count"].to_pylist() == [100] * 5000
    tables = matcher.match_batches(table)
    assert sum(len(one) for one in tables) == 500_000
