"""Columns of texts, moments and flat names: what single values give, and the same reasons."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from tamis import EventError, Matcher, OptionError, Schema
from tamis.events.bad_events import faults_of
from tamis.events.columns import as_table, table_rows
from tamis.events.event_reader import EventReader
from tamis.semantics import Semantics
from tamis.types import INT64_MAX, INT64_MIN

AT = Schema({"at": "timestamp"})
PLAIN = ["2024-01-01", "2024-01-31 12:30:00", "2024-01-31T12:30:00.5Z", "0001-01-01", "9999-12-31"]
ODD = ["2024", "2024-1-3", " 2024-01-01 ", "2024-01-01 1:2", "2024-01-31 12:30:00+01:00",
       "2024-01-31 12:30:00.123456789", "1969-12-31 23:59:59.999999 UTC"]  # fmt: skip
WRONG = ["", "x", "2024-02-30", "2024-01-01 12", "2024-01-01T25:00:00", "0000-01-01", "10000-01-01",
         "2024-01-01 00:00:60", "24-01-01", "2024-01-01Z", "2024-01-01 00:00:00 +19:00",
         "0001-01-01 00:00:00+01:00", "２０２４-01-01"]  # fmt: skip
TEXTS = st.sampled_from([*PLAIN, *PLAIN, *ODD, *WRONG, None])
STRINGS = [pa.string(), pa.large_string(), pa.string_view(), pa.dictionary(pa.int8(), pa.string())]


def of_dicts(events, schema=AT):
    """What the reader of single events says: the rows, and the reasons of those it refuses."""
    reader, rows, faults = EventReader(schema), [], {}
    for number, event in enumerate(events):
        try:
            rows.append(reader.row(event))
        except EventError as error:
            faults[number] = error.problem
    return rows, faults


@settings(max_examples=60)
@given(st.lists(TEXTS, max_size=6), st.sampled_from(STRINGS), st.integers(1, 3))
def test_texts_of_moments_give_what_single_values_give(texts, kind, chunks):
    column = pa.array(texts, pa.string()).cast(kind)
    step = max(1, len(texts) // chunks)
    parts = [column[n : n + step] for n in range(0, len(texts), step)]
    table = pa.table({"at": pa.chunked_array(parts, kind)})
    rows, faults = of_dicts([{"at": text} for text in texts])
    assert faults_of(table, Semantics("sql", AT)) == faults
    good = pa.table({"at": [t for n, t in enumerate(texts) if n not in faults]})
    assert table_rows(good.cast(pa.schema([("at", pa.string())])), AT, refuse_unknown=False) == rows
    if faults:
        first = min(faults)
        with pytest.raises(EventError) as caught:
            table_rows(table, AT, refuse_unknown=False)
        assert (caught.value.row, caught.value.problem) == (first, faults[first])


def test_a_matcher_takes_texts_of_moments():
    matcher = Matcher(AT)
    matcher.subscribe("a", "at >= TIMESTAMP '2024-01-02'")
    table = pa.table({"at": ["2024-01-01", None, "2024-01-02 00:00:00Z", "2024"]})
    assert matcher.match_batch(table)["event"].to_pylist() == [2]


@each("unit, per", [("s", 1_000_000), ("ms", 1000), ("us", 1), ("ns", 0)])
def test_moments_at_the_limits(unit, per):
    most = INT64_MAX // per if per else INT64_MAX
    numbers = [INT64_MIN, -most - 1, -most, -1, 0, None, 1, most, INT64_MAX]
    table = pa.table({"at": pa.array(numbers, pa.timestamp(unit))})
    inside = [n is None or -most - (per <= 1) <= n <= most for n in numbers]
    faults = faults_of(table, Semantics("sql", AT))
    assert list(faults) == [row for row, fits in enumerate(inside) if not fits]
    for row, reason in faults.items():
        assert reason.startswith(f"column at: {numbers[row]} of the type timestamp[{unit}] is out")
        assert "microseconds in 64 bits" in reason
    rows = table_rows(table.filter(pa.array(inside)), AT, refuse_unknown=False)
    kept = [n for n, fits in zip(numbers, inside, strict=True) if fits]
    expected = [n if n is None else n * per if per else n // 1000 for n in kept]
    assert [at for (at,) in rows] == expected


def test_large_numbers_without_a_sign():
    table = pa.table({"i": pa.array([0, 2**63 - 1, 2**63, None, 2**64 - 1], pa.uint64())})
    schema = Schema({"i": "int(0, 5)"})
    _, expected = of_dicts(table.to_pylist(), schema)
    assert faults_of(table, Semantics("sql", schema)) == expected
    assert list(expected) == [1, 2, 4]


# --- flat names of paths


def test_a_column_and_a_field_of_one_name_exclude_each_other():
    table = pa.table({"n": [{"x": 1}], "n.x": [2]})
    with pytest.raises(EventError, match=r"have n\.x twice: in the record n and as a column"):
        table_rows(table, Schema({"n.x": "int"}), refuse_unknown=False)


@each("record", [pa.array([{"y": 5}]), pa.nulls(1)])
def test_a_flat_name_beside_a_record_without_it(record):
    table = pa.table({"n": record, "n.x": [2]})
    assert table_rows(table, Schema({"n.x": "int"}), refuse_unknown=False) == [(2,)]


# --- frames without rows


def test_frames_that_have_no_rows_yet():
    import polars as pl
    import pyarrow.dataset as ds

    matcher, frame = Matcher({"i": "int"}), pl.LazyFrame({"i": [1], "id": ["a"], "filter": ["i>0"]})
    for call in (matcher.match_batch, matcher.subscribe_many, as_table,
                 lambda events: list(matcher.match_batches(events))):  # fmt: skip
        with pytest.raises(OptionError, match=r"a LazyFrame has no rows yet; call collect\(\)"):
            call(frame)
    with pytest.raises(OptionError, match=r"Dataset has no rows yet; to_table\(\)"):
        matcher.match_batch(ds.dataset(pa.table({"i": [1]})))
    matcher.subscribe_many(frame.collect())
    dataset = ds.dataset(pa.table({"i": [1, 0]}))
    assert [len(t) for t in matcher.match_batches(dataset.to_batches())] == [1]
