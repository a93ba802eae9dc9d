"""Events in columns say the same as the same events in rows, errors included."""

import datetime as dt
import math
from decimal import Decimal

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from strategies import DOUBLES, INTS, MOMENTS, SCHEMA, STRINGS, delicate_rows, rows
from tamis import EventError, Schema
from tamis.events.columns import table_rows
from tamis.predicates.event_batches import (
    batch_of_rows,
    batch_of_table,
    rows_of_batch,
    slice_of,
)
from tamis.semantics import NAMES, Semantics

MIXED = Schema(
    {
        "i": "int", "x": "double", "s": "string", "b": "bool", "at": "timestamp",
        "level": "int(-2, 3)", "side": "enum('sell', 'é', 'buy')", "r.k": "int",
        "r.q.name": "string",
    }
)  # fmt: skip
DEFAULTS = {
    "i": -7, "x": math.nan, "s": "", "b": True, "at": "2024-01-01", "level": 0, "side": "buy",
    "r.k": None, "r.q.name": "none",
}  # fmt: skip


def semantics_of(name, schema=MIXED, defaults=None):
    if name != "default":
        return Semantics(name, schema)
    return Semantics(name, schema, DEFAULTS if defaults is None else defaults)


def rows_of_table(table, meaning, *, refuse_unknown=False):
    """The way of rows: what `match_batch` does for engines that take one event at a time."""
    found = []
    read = table_rows(table, meaning.schema, refuse_unknown=refuse_unknown)
    try:
        found.extend(map(meaning.prepare, read))
    except EventError as error:
        raise error.at(len(found)) from None
    return found


def plain(some):
    """Rows that compare: nan as a word, both zeros as one, each value with its type."""
    return [
        [(type(v).__name__, "nan" if v != v else v) for v in row]  # noqa: PLR0124 - nan
        for row in some
    ]


def outcome(read):
    """What reading gives: rows, or the error with its place."""
    try:
        return plain(read())
    except EventError as error:
        return str(error), error.row


def check(table, meaning, *, refuse_unknown=False):
    schema = meaning.schema
    expected = outcome(lambda: rows_of_table(table, meaning, refuse_unknown=refuse_unknown))
    got = outcome(
        lambda: rows_of_batch(batch_of_table(table, meaning, refuse_unknown=refuse_unknown), schema)
    )
    assert got == expected
    return got


def check_columns(batch, schema):
    """What engines rely on."""
    assert len(batch.columns) == len(schema)
    for column in batch.columns:
        assert column.present.dtype == np.uint8
        assert column.keys.dtype == np.int64
        assert len(column.present) == len(column.keys) == batch.size
        assert set(column.present.tolist()) <= {0, 1}
        assert not column.keys[column.present == 0].any()
        if column.distinct is not None:
            values = column.distinct.to_pylist()
            assert None not in values
            assert len(set(values)) == len(values)
            assert ((column.keys >= 0) & (column.keys < max(1, len(values)))).all()


# --- random tables

ZONES = [None, "UTC", "+05:30", "America/New_York"]


WORDS = [pa.string(), pa.large_string(), pa.string_view()]
CODES = [pa.dictionary(pa.int8(), pa.string()), pa.dictionary(pa.uint16(), pa.large_string())]


def whole(some):
    kinds = [pa.int64()]
    if all(v is None or abs(v) < 100 for v in some):
        kinds += [pa.int8(), pa.int32(), pa.dictionary(pa.int32(), pa.int64())]
    if all(v is None or v >= 0 for v in some):
        kinds.append(pa.uint64())
    return some, st.sampled_from(kinds)


def doubles(some):
    kinds = [pa.float64()]
    if all(v is None or not math.isfinite(v) or abs(v) <= 10 for v in some):
        kinds.append(pa.float32())
    if all(v is None or (math.isfinite(v) and v == int(v) and abs(v) < 2**53) for v in some):
        return [None if v is None else int(v) for v in some], st.just(pa.int64())
    return some, st.sampled_from(kinds)


POOLS = {
    "i": [*INTS, None, None], "x": [*DOUBLES, None, None], "s": [*STRINGS, None, None],
    "b": [True, False, None], "at": [*MOMENTS, None], "level": [-2, 0, 3, None],
    "side": ["buy", "sell", "é", None], "r.k": [0, 5, -1, None], "r.q.name": ["", "a", "ab", None],
}  # fmt: skip


@st.composite
def columns(draw, name, size, complete):
    pool = [v for v in POOLS[name] if v is not None or not complete]
    some = draw(st.lists(st.sampled_from(pool), min_size=size, max_size=size))
    kind = str(MIXED[name].type)
    if not complete and draw(st.integers(0, 9)) == 0:
        return pa.nulls(size)
    if kind == "string":
        return pa.array(some, pa.string()).cast(draw(st.sampled_from(WORDS + CODES)))
    if kind == "timestamp":
        return pa.array(some, pa.int64()).cast(pa.timestamp("us", draw(st.sampled_from(ZONES))))
    if kind == "bool":
        return pa.array(some, pa.bool_())
    values, kinds = (doubles if kind == "double" else whole)(some)
    chosen = draw(kinds)
    if pa.types.is_dictionary(chosen):
        return pa.array(values, chosen.value_type).dictionary_encode()
    return pa.array(values, chosen)


@st.composite
def tables(draw, *, complete=False):
    """Tables over MIXED: any types that fit, chunks, slices, records and lacking columns."""
    size = draw(st.sampled_from([0, 1, 2, 7, 30]))
    made = {name: draw(columns(name, size, complete)) for name in MIXED}
    if draw(st.booleans()):  # records as records, with nulls of their own
        names = pa.StructArray.from_arrays([made.pop("r.q.name")], ["name"])
        gaps = np.zeros(size, bool)
        if not complete:
            gaps = np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)), bool)
        record = pa.StructArray.from_arrays(
            [made.pop("r.k"), names], ["k", "q"], mask=pa.array(gaps)
        )
        made["r"] = record
    if not complete:
        for name in draw(st.sets(st.sampled_from(sorted(made)), max_size=3)):
            del made[name]
    if draw(st.booleans()):
        made["stranger"] = pa.array(range(size), pa.int64())
    order = draw(st.permutations(sorted(made)))
    table = pa.table({name: made[name] for name in order})
    if draw(st.booleans()):
        cut = draw(st.integers(0, size))
        table = pa.concat_tables([table.slice(0, cut), table.slice(cut)])
    if size > 2 and draw(st.booleans()):
        table = table.slice(1, size - 2)
    return table


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
@given(data=st.data())
@settings(max_examples=30)
def test_any_table(name, data):
    table = data.draw(tables(complete=name == "total" and data.draw(st.integers(0, 3)) > 0))
    meaning = semantics_of(name)
    check(table, meaning)
    check(table, meaning, refuse_unknown=True)


@pytest.mark.long
@pytest.mark.parametrize("name", NAMES)
@given(table=tables(complete=True))
@settings(max_examples=25)
def test_what_engines_rely_on(name, table):
    meaning = semantics_of(name)
    batch = batch_of_table(table, meaning, refuse_unknown=False)
    check_columns(batch, MIXED)
    prepared = rows_of_table(table, meaning)
    again = batch_of_rows(prepared, MIXED)
    check_columns(again, MIXED)
    assert plain(rows_of_batch(again, MIXED)) == plain(prepared)


@given(st.lists(rows(), max_size=6))
@settings(max_examples=20)
def test_rows_there_and_back(some):
    some = [*some, *delicate_rows()[:4], (None,) * len(SCHEMA)]
    batch = batch_of_rows(some, SCHEMA)
    check_columns(batch, SCHEMA)
    assert plain(rows_of_batch(batch, SCHEMA)) == plain(some)


@each(
    "some",
    [
        [],
        [(None,) * 9],
        [(None,) * 9, (1, math.nan, "", False, 0, -2, "é", -1, "日本")],
        [(-(2**63), -0.0, "\x00", True, -1, 3, "sell", 2**63 - 1, None)] * 3,
        [(0, -math.inf, "a", None, None, None, "buy", 0, "a")] * 600,
    ],
)
def test_all_rows_at_once(some):
    found = rows_of_batch(batch_of_rows(some, MIXED), MIXED)
    assert plain(found) == plain(some)


@each("name", ["sql", "strict", "default"])
def test_missing_values_are_filled_up_or_stay(name):
    table = pa.table({"i": [None, 3], "side": [None, "é"], "r.q.name": pa.array([None, None])})
    missing = (None,) * 9
    given_values = (3, None, None, None, None, None, "é", None, None)
    moment = 1_704_067_200_000_000
    filled = (-7, math.nan, "", True, moment, 0, "buy", None, "none")
    expected = {"default": [filled, (3, *filled[1:6], "é", *filled[7:])]}
    assert check(table, semantics_of(name)) == plain(expected.get(name, [missing, given_values]))


# --- parts

PARTS = Schema(
    {
        "s": "string", "x": "double", "d": "decimal(38, 2)", "side": "enum('buy', 'sell')",
        "tags": "array<string>", "numbers": "array<double>", "props": "map<string, string>",
    }
)  # fmt: skip
SOME = [
    ("c", -0.0, Decimal("0.10"), "sell", ("z", None, "a"), (0.5, -0.0), {"k": "v", "a": "z"}),
    (None, None, None, None, None, None, None),
    ("a", math.nan, Decimal(10) ** 30, "buy", (), (), {}),
    ("c", 1.5, Decimal(-1), "sell", ("a", "a"), (None,), {"b": None}),
    ("b", None, None, None, ("é",), (math.inf, 3.0), {"k": "w"}),
]


@each("start", range(6))
def test_a_part_of_the_events(start):
    batch = batch_of_rows(SOME, PARTS)
    every = rows_of_batch(batch, PARTS)
    for end in range(start, 6):
        part = slice_of(batch, start, end)
        check_columns(part, PARTS)
        assert repr(rows_of_batch(part, PARTS)) == repr(every[start:end])


def test_a_part_has_its_own_elements_and_no_more_strings_than_values():
    names = [f"name {n}" for n in range(9)]
    rows_of_names = [(name, (name, "y", "x"), {name: name}) for name in names]
    schema = Schema({"s": "string", "tags": "array<string>", "props": "map<string, string>"})
    texts, tags, props = slice_of(batch_of_rows(rows_of_names, schema), 7, 10).columns
    assert texts.distinct.to_pylist() == names[7:]
    assert tags.offsets.tolist() == [0, 3, 6]
    assert sorted(tags.parts[0].distinct.to_pylist()) == [*names[7:], "x", "y"]
    assert [part.distinct.to_pylist() for part in props.parts] == [names[7:], names[7:]]


# --- small tables


@each("name", NAMES)
@each(
    "table",
    [
        pa.table({}),
        pa.table({"i": pa.array([], pa.int64())}),
        pa.table({"stranger": pa.array([], pa.int64())}),
        pa.table({"i": pa.chunked_array([], pa.int64()), "s": pa.chunked_array([], pa.string())}),
        pa.table({"s": pa.array([], pa.dictionary(pa.int32(), pa.string()))}),
        pa.table({"side": pa.array([], pa.null()), "at": pa.array([], pa.timestamp("s"))}),
    ],
)
def test_tables_without_events(name, table):
    """There is no event that could miss anything."""
    assert check(table, semantics_of(name)) == []


@each("name", NAMES)
def test_a_schema_without_attributes(name):
    empty = Schema({})
    meaning = semantics_of(name, empty, {})
    assert check(pa.table({"i": [1, 2]}), meaning) == [[], []]
    assert check(pa.table({}), meaning) == []
    batch = batch_of_table(pa.table({"i": [1, 2]}), meaning, refuse_unknown=False)
    assert (batch.size, batch.columns) == (2, ())
    assert batch_of_rows([(), ()], empty).size == 2
    assert rows_of_batch(batch, empty) == [(), ()]


@each(
    "column",
    [
        pa.array([0, 1, None], pa.timestamp("s")),
        pa.array([0, -1, None], pa.timestamp("ms", "Asia/Tokyo")),
        pa.array([1, -1, -1001], pa.timestamp("ns", "-08:00")),
        pa.array([1, None, 999], pa.timestamp("ns")),
        pa.array([dt.date(2024, 2, 29), None, dt.date(1, 1, 1)], pa.date32()),
        pa.array([dt.date(2024, 2, 29), None, dt.date(9999, 12, 31)], pa.date64()),
    ],
)
def test_moments_of_any_kind(column):
    table = pa.table({"at": column})
    assert len(check(table, semantics_of("sql"))) == 3
    assert check(table.slice(1), semantics_of("sql")) == check(table, semantics_of("sql"))[1:]


@each(
    "column",
    [
        pa.array([Decimal("0.10"), None, Decimal("-99.99")]),
        pa.array([2**53 + 1, None, -1], pa.int64()),
        pa.array([0.1, math.nan, None], pa.float32()),
        pa.array([1.5, -0.0, math.inf], pa.float16()),
        pa.array([1, 2, None], pa.uint8()),
        pa.array([0.1, None, 0.1]).dictionary_encode(),
        pa.array([math.nan, None, -math.nan]),
        pa.array([math.nan, 1.0], from_pandas=True),
    ],
)
def test_numbers_of_any_kind(column):
    for name in ("sql", "default"):
        check(pa.table({"x": column}), semantics_of(name))


def test_a_nan_is_not_missing():
    table = pa.table({"x": [math.nan, 1.0]})
    schema = Schema({"x": "double"})
    batch = batch_of_table(table, Semantics("total", schema), refuse_unknown=True)
    assert batch.columns[0].present.tolist() == [1, 1]
    check(table, Semantics("total", schema))
    check(table, Semantics("default", schema, {"x": 5.0}))


def test_a_dictionary_may_hold_more_than_is_used():
    codes = pa.array([1, None, 1, 2], pa.int8())
    words = pa.array(["never", "a", None, "b"])
    table = pa.table({"s": pa.DictionaryArray.from_arrays(codes, words)})
    (column,) = [
        c
        for c in batch_of_table(table, semantics_of("sql"), refuse_unknown=True).columns
        if c.distinct is not None and len(c.distinct)
    ]
    assert column.distinct.to_pylist() == ["a"]
    check(table, semantics_of("sql"))


def test_chunks_with_dictionaries_of_their_own():
    chunks = [pa.array(["a", "b"]).dictionary_encode(), pa.array(["b", None]).dictionary_encode()]
    sides = pa.chunked_array([["buy"], ["sell", None, "é"]])
    table = pa.table({"s": pa.chunked_array(chunks), "side": sides})
    assert len(check(table, semantics_of("sql"))) == 4


def test_equal_strings_share_a_code():
    table = pa.table({"s": pa.chunked_array([["a", "b", "a"], [None, "b"]])})
    column = batch_of_table(table, semantics_of("sql"), refuse_unknown=True).columns[2]
    assert column.keys.tolist() == [0, 1, 0, 0, 1]
    assert column.present.tolist() == [1, 1, 1, 0, 1]


# --- errors are those of the way of rows


def bad_text(kind, before=b"a"):
    """Two strings, the second of which is not valid text."""
    width = np.int64 if kind == pa.large_string() else np.int32
    ends = pa.py_buffer(np.array([0, len(before), len(before) + 1], width))
    return pa.Array.from_buffers(kind, 2, [None, ends, pa.py_buffer(before + b"\xff")])


ERRORS = {
    "two columns of a name": pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["i", "i"]),
    "text for a number": pa.table({"i": ["a"]}),
    "a double for a whole number": pa.table({"i": [1.0]}),
    "a number for a truth": pa.table({"b": [1]}),
    "text for a moment": pa.table({"at": ["yesterday"]}),
    "too large for 64 bits": pa.table({"i": pa.array([1, 2**64 - 1], pa.uint64())}),
    "a moment beyond microseconds": pa.table({"at": pa.array([2**62], pa.timestamp("s"))}),
    "a value for a record": pa.table({"r": [1, 2]}),
    "two fields of a name": pa.table(
        {"r": pa.StructArray.from_arrays([pa.array([1]), pa.array([2])], ["k", "k"])}
    ),
    "below a domain": pa.table({"level": [0, None, -3, 99]}),
    "above a domain": pa.table({"level": pa.chunked_array([[0, 1], [], [4, 5]])}),
    "outside an enumeration": pa.table({"side": ["buy", None, "Buy"]}),
    "outside, in a dictionary": pa.table({"side": pa.array(["buy", "by"]).dictionary_encode()}),
    "two columns outside": pa.table({"side": ["bye", "sell"], "level": [0, 77]}),
    "invalid UTF-8": pa.table({"s": bad_text(pa.string()), "i": [1, 2]}),
    "invalid UTF-8, large": pa.table({"s": bad_text(pa.large_string()), "i": [1, 2]}),
    "invalid UTF-8 in an enumeration": pa.table({"side": bad_text(pa.string(), b"buy")}),
    "a list": pa.table({"s": [["a"]]}),
    "binary": pa.table({"s": [b"a"]}),
}  # fmt: skip


@each("name", NAMES)
@each("table", ERRORS.values())
def test_errors(table, name):
    message, _ = check(table, semantics_of(name))
    assert isinstance(message, str)


def test_unknown_columns_are_refused_on_demand():
    table = pa.table({"i": [1], "r": [{"k": 1, "stranger": 2}]})
    assert len(check(table, semantics_of("sql"))) == 1
    message, row = check(table, semantics_of("sql"), refuse_unknown=True)
    assert "unknown attribute" in message
    assert row is None


def complete(size):
    """A table that misses nothing."""
    table = {
        "i": range(size), "x": [0.5] * size, "s": ["a"] * size, "b": [True] * size,
        "at": pa.array(range(size), pa.timestamp("us")), "level": [1] * size,
        "side": ["buy"] * size, "r.k": range(size), "r.q.name": ["n"] * size,
    }  # fmt: skip
    return {name: pa.array(values) for name, values in table.items()}


def with_gaps(gaps, size=6):
    columns = complete(size)
    for name, places in gaps.items():
        here = [None if n in places else v for n, v in enumerate(columns[name].to_pylist())]
        columns[name] = pa.array(here, columns[name].type)
    return pa.table(columns)


@each(
    ("table", "row"),
    [
        (with_gaps({"i": [3]}), 3),
        (with_gaps({"r.q.name": [5], "x": [4, 5]}), 4),
        (with_gaps({"b": [2], "side": [2], "at": [2], "s": [2], "i": [2], "x": [2]}), 2),
        (with_gaps({name: [0] for name in MIXED}), 0),
        (pa.concat_tables([with_gaps({}), with_gaps({"level": [0]})]), 6),
        (pa.table({"i": [1, 2]}), 0),
        (pa.table({"stranger": [1, 2]}), 0),
        (pa.table({name: v for name, v in complete(3).items() if name != "b"}), 0),
        (pa.table({**complete(2), "b": pa.nulls(2)}), 0),
    ],
)
def test_an_event_that_misses_something(table, row):
    message, found = check(table, semantics_of("total"))
    assert "the event lacks" in message
    assert found == row


def test_a_domain_is_checked_before_what_is_missing():
    """In both ways: the whole table is read before events are prepared."""
    table = with_gaps({"i": [0]})
    outside = table.set_column(table.column_names.index("level"), "level", pa.array([9] * 6))
    message, row = check(outside, semantics_of("total"))
    assert "lies outside the domain" in message
    assert row == 0


def test_a_complete_table_is_total():
    assert len(check(with_gaps({}), semantics_of("total"))) == 6
