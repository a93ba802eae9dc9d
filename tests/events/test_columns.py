import datetime as dt
import math
from datetime import UTC, timedelta
from decimal import Decimal

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from strategies import SCHEMA, rows
from tamis import EventError, Schema
from tamis.events.columns import as_table, table_rows
from tamis.events.event_reader import EventReader
from tamis.timestamps import EPOCH

NEW_YEAR = 1_704_067_200_000_000
DAY = dt.date(2024, 1, 1)
MOMENT = dt.datetime(2024, 1, 1)  # noqa: DTZ001 - no zone means UTC


def read(column, kind):
    """The values of one column as an attribute of one type."""
    table = pa.table({"a": column})
    return [a for (a,) in table_rows(table, Schema({"a": kind}), refuse_unknown=False)]


def read_table(table, schema, *, refuse_unknown=False):
    return table_rows(as_table(table), Schema(schema), refuse_unknown=refuse_unknown)


# --- types of columns

INTS = [pa.int8(), pa.int16(), pa.int32(), pa.int64(),
        pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64()]  # fmt: skip


@each("arrow", INTS)
def test_integers_of_any_width(arrow):
    assert read(pa.array([1, None, 100], arrow), "int") == [1, None, 100]


@each("arrow", INTS)
def test_integers_as_doubles(arrow):
    values = read(pa.array([1, None], arrow), "double")
    assert values == [1.0, None]
    assert type(values[0]) is float


@pytest.mark.parametrize("value", [2**63, 2**64 - 1])
def test_an_unsigned_integer_beyond_64_bits(value):
    with pytest.raises(EventError, match=f"expects int, got {value} .*64 bits"):
        read(pa.array([1, value], pa.uint64()), "int")


@each(
    "column",
    [
        pa.array([0.5, None], pa.float16()),
        pa.array([0.5, None], pa.float32()),
        pa.array([0.5, None], pa.float64()),
        pa.array([Decimal("0.50"), None], pa.decimal128(5, 2)),
        pa.array([Decimal("0.50"), None], pa.decimal256(60, 20)),
        pa.array([Decimal("0.50"), None], pa.decimal32(5, 2)),
        pa.array([Decimal("0.50"), None]).dictionary_encode(),
    ],
)
def test_doubles_and_decimals(column):
    assert read(column, "double") == [0.5, None]


def test_a_decimal_becomes_the_nearest_double():
    assert read(pa.array([Decimal("0.1"), Decimal("1e20")]), "double") == [0.1, 1e20]


def test_nan_and_infinities_of_arrow_are_values():
    nan, inf, missing = read(pa.array([math.nan, -math.inf, None]), "double")
    assert math.isnan(nan)
    assert (inf, missing) == (-math.inf, None)


@each(
    "column",
    [
        pa.array(["é", None]),
        pa.array(["é", None], pa.large_string()),
        pa.array(["é", None], pa.string_view()),
        pa.array(["é", None]).dictionary_encode(),
        pa.array(["é", None], pa.large_string()).dictionary_encode(),
    ],
)
def test_strings(column):
    assert read(column, "string") == ["é", None]


def test_bools():
    assert read(pa.array([True, None, False]), "bool") == [True, None, False]


@each(
    "column",
    [
        *(pa.array([MOMENT, None], pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")),
        pa.array([MOMENT, None], pa.timestamp("ms", "UTC")),
        pa.array([MOMENT, None], pa.timestamp("us", "Europe/Paris")),
        pa.array([DAY, None], pa.date32()),
        pa.array([DAY, None], pa.date64()),
        pa.array([MOMENT, None]).dictionary_encode(),
    ],
)
def test_timestamps_and_dates(column):
    assert read(column, "timestamp") == [NEW_YEAR, None]


def test_nanoseconds_are_cut_to_microseconds():
    assert read(pa.array([1_999], pa.timestamp("ns")), "timestamp") == [1]


@each("kind", ["int", "double", "string", "bool", "timestamp", "int(1, 5)"])
def test_a_column_of_nothing_but_nulls(kind):
    assert read(pa.nulls(2), kind) == [None, None]


@each(
    ("column", "kind"),
    [
        (["1"], "int"),
        ([1.0], "int"),
        ([True], "int"),
        ([Decimal(1)], "int"),
        ([MOMENT], "int"),
        (["1"], "double"),
        ([True], "double"),
        ([1], "string"),
        ([b"a"], "string"),
        ([["a"]], "string"),
        ([1], "bool"),
        (["true"], "bool"),
        ([1], "timestamp"),
        ([dt.time(1)], "timestamp"),
        ([{"b": 1}], "int"),
    ],
)
def test_a_column_of_the_wrong_type(column, kind):
    column = pa.array(column)
    with pytest.raises(EventError) as caught:
        read(column, kind)
    assert str(caught.value).startswith(f"column a has the type {column.type}, expected {kind}")


def test_the_wrong_type_of_an_empty_column_is_an_error_too():
    with pytest.raises(EventError, match="column a has the type string, expected int"):
        read(pa.array([], pa.string()), "int")


# --- names of columns


def test_columns_go_by_name_not_by_place():
    table = pa.table({"z": [9], "b": ["x"], "a": [1]})
    assert read_table(table, {"a": "int", "b": "string"}) == [(1, "x")]


def test_a_column_that_is_not_there_is_missing():
    assert read_table(pa.table({"a": [1, 2]}), {"a": "int", "b": "string"}) == [
        (1, None),
        (2, None),
    ]


def test_a_schema_without_attributes_still_counts_the_events():
    assert read_table(pa.table({"a": [1, 2]}), {}) == [(), ()]


def test_two_columns_of_one_name():
    table = pa.Table.from_arrays([pa.array([n]) for n in range(4)], names=["b", "a", "c", "a"])
    with pytest.raises(EventError, match="two columns named 'a'"):
        read_table(table, {"a": "int"})


@each(("name", "attribute"), [("a.b", "`a.b`"), ("x y", "x y"), ("", "``")])
def test_odd_names_of_columns(name, attribute):
    assert read_table(pa.table({name: [1]}), {attribute: "int"}) == [(1,)]


def test_structs_are_reached_by_path():
    column = pa.array([{"b": {"c": 1}}, {"b": {"c": None}}, {"b": None}, None])
    assert read_table(pa.table({"a": column}), {"a.b.c": "int"}) == [
        (1,),
        (None,),
        (None,),
        (None,),
    ]


def test_a_null_record_hides_the_values_below_it():
    column = pa.StructArray.from_arrays(
        [pa.array([1, 2])], names=["b"], mask=pa.array([False, True])
    )
    assert read_table(pa.table({"a": column}), {"a.b": "int"}) == [(1,), (None,)]


def test_a_field_that_the_struct_does_not_have_is_missing():
    assert read_table(pa.table({"a": [{"b": 1}]}), {"a.c": "int"}) == [(None,)]


def test_a_value_where_a_record_was_expected():
    with pytest.raises(EventError, match="column a has the type int64, expected a record with 'b'"):
        read_table(pa.table({"a": [1]}), {"a.b": "int"})


@each(
    ("columns", "message"),
    [
        ({"prize": [1]}, r"unknown attribute 'prize'; did you mean 'price'\?"),
        ({"home": [{"cty": "x"}]}, r"unknown attribute 'home\.cty'; did you mean 'home\.city'\?"),
        ({"tags": [["a"]]}, "unknown attribute 'tags'"),
    ],
)
def test_unknown_columns_are_refused_on_demand(columns, message):
    schema = {"price": "double", "home.city": "string"}
    assert read_table(pa.table(columns), schema) == [(None, None)]
    with pytest.raises(EventError, match=message):
        read_table(pa.table(columns), schema, refuse_unknown=True)


def test_known_columns_pass_when_unknown_ones_are_refused():
    table = pa.table({"home": [{"city": "Paris"}]})
    schema = {"price": "double", "home.city": "string"}
    assert read_table(table, schema, refuse_unknown=True) == [(None, "Paris")]


# --- domains


def test_values_inside_their_domains():
    assert read(pa.array([1, None, 5]), "int(1, 5)") == [1, None, 5]
    assert read(pa.array(["b", None]), "enum('a', 'b')") == ["b", None]


@each(
    ("column", "kind", "message"),
    [
        (pa.array([1, None, 6, 7]), "int(1, 5)", r"event 2: attribute a: 6 .* domain int\(1, 5\)"),
        (pa.chunked_array([[1, 2], [0]]), "int(1, 5)", r"event 2: attribute a: 0 "),
        (pa.array([0], pa.int8()), "int(1, 5)", "event 0: attribute a: 0 "),
        (pa.array(["buy", None, "sel"]), "enum('buy', 'sell')", r"event 2: .* mean 'sell'\?"),
        (pa.array(["x"]).dictionary_encode(), "enum('buy')", "event 0: attribute a: 'x'"),
    ],
)
def test_a_value_outside_its_domain_names_its_event(column, kind, message):
    with pytest.raises(EventError, match=message) as caught:
        read(column, kind)
    assert caught.value.row == int(message.split(":")[0].removeprefix("event "))


# --- frames


def test_what_is_already_a_table_or_batch():
    table = pa.table({"a": [1]})
    assert as_table(table) is table
    assert as_table(table.to_batches()[0]) == table


@each("events", [[{"a": 1}], {"a": [1]}, "text", None, iter([])])
def test_what_is_not_in_columns(events):
    assert as_table(events) is None


def test_a_stream_of_batches():
    reader = pa.table({"a": [1, 2]}).to_reader(max_chunksize=1)
    assert read_table(reader, {"a": "int"}) == [(1,), (2,)]


FRAME = {"a": "int", "x": "double", "s": "string", "at": "timestamp", "b": "bool"}


def test_pandas():
    frame = pd.DataFrame(
        {
            "a": pd.array([1, None], dtype="Int64"),
            "x": [math.nan, 0.5],
            "s": pd.Categorical(["é", None]),
            "at": pd.to_datetime(["2024-01-01", None]),
            "b": [True, None],
        },
        index=[7, 7],
    )
    # The index is not an attribute, not even an unknown one.
    assert read_table(frame, FRAME, refuse_unknown=True) == [
        (1, None, "é", NEW_YEAR, True),
        (None, 0.5, None, None, None),
    ]


def test_pandas_with_a_zone_and_plain_objects():
    frame = pd.DataFrame(
        {
            "at": pd.to_datetime(["2024-01-01 01:00"]).tz_localize("Europe/Paris"),
            "x": [Decimal("0.5")],
            "s": pd.Series(["a"], dtype=object),
        }
    )
    assert read_table(frame, FRAME) == [(None, 0.5, "a", NEW_YEAR, None)]


def test_polars():
    frame = pl.DataFrame(
        {
            "a": pl.Series([1, None], dtype=pl.UInt16),
            "x": pl.Series([Decimal("0.5"), None]),
            "s": ["é", None],
            "at": pl.Series([MOMENT, None], dtype=pl.Datetime("ns")),
            "b": [True, None],
        }
    )
    assert read_table(frame, FRAME) == [(1, 0.5, "é", NEW_YEAR, True), (None,) * 5]


def test_polars_keeps_nan_apart_from_missing():
    ((nan,), (missing,)) = read_table(pl.DataFrame({"x": [math.nan, None]}), {"x": "double"})
    assert math.isnan(nan)
    assert missing is None


def test_polars_structs_dates_and_nulls():
    frame = pl.DataFrame({"r": [{"k": 1}, None], "at": [DAY, None], "n": [None, None]})
    schema = {"r.k": "int", "at": "timestamp", "n": "string"}
    assert read_table(frame, schema) == [(1, NEW_YEAR, None), (None, None, None)]


# --- columns and dicts give the same rows


def event_of(row):
    """A row of SCHEMA as people have it."""
    event = {}
    for attribute, value in zip(SCHEMA.attributes, row, strict=True):
        *parents, last = attribute.path
        record = event
        for part in parents:
            record = record.setdefault(part, {})
        is_moment = str(attribute.type) == "timestamp" and value is not None
        record[last] = EPOCH + timedelta(microseconds=value) if is_moment else value
    return event


ARROW = pa.schema(
    [
        *((name, pa.int64()) for name in "ij"),
        *((name, pa.float64()) for name in "xy"),
        *((name, pa.string()) for name in "st"),
        *((name, pa.bool_()) for name in "bc"),
        *((name, pa.timestamp("us", "UTC")) for name in ("at", "until")),
        ("r", pa.struct([("k", pa.int64()), ("name", pa.string())])),
        ("odd `name`.", pa.float64()),
        ("d", pa.decimal128(9, 2)),
        ("e", pa.decimal128(38, 10)),
    ]
)


@settings(max_examples=25)
@given(st.lists(rows(), max_size=5))
def test_an_arrow_table_gives_the_rows_of_its_dicts(wanted):
    events = [event_of(row) for row in wanted]
    table = pa.Table.from_pylist(events, schema=ARROW)
    from_table = table_rows(table, SCHEMA, refuse_unknown=True)
    from_dicts = [EventReader(SCHEMA, "refuse").row(event) for event in events]
    assert repr(from_table) == repr(from_dicts) == repr(wanted)


def test_a_moment_with_a_zone_is_the_same_in_columns_and_dicts():
    zone = dt.timezone(timedelta(hours=2))
    moments = [dt.datetime(2024, 1, 1, 2, tzinfo=zone), dt.datetime(2024, 1, 1, tzinfo=UTC)]
    table = pa.table({"at": moments})
    assert read_table(table, {"at": "timestamp"}) == [(NEW_YEAR,), (NEW_YEAR,)]


# --- what once went wrong


def test_a_polars_categorical_is_a_string():
    frame = pl.DataFrame({"a": ["x", None, "y"]}, schema={"a": pl.Categorical})
    assert rows_of(frame, {"a": "string"}) == [("x",), (None,), ("y",)]


def test_a_dictionary_of_nulls_is_missing():
    column = pa.DictionaryArray.from_arrays(pa.array([None, None], pa.int8()), pa.nulls(0))
    assert rows_of(pa.table({"a": column}), {"a": "string"}) == [(None,), (None,)]


def test_whole_numbers_beyond_doubles_are_rounded_as_single_values_are():
    assert rows_of(pa.table({"a": [2**53 + 1]}), {"a": "double"}) == [(float(2**53 + 1),)]


def test_nanoseconds_are_floored_as_single_values_are():
    table = pa.table({"a": pa.array([-1, 1999], pa.timestamp("ns"))})
    assert rows_of(table, {"a": "timestamp"}) == [(-1,), (1,)]


@pytest.mark.parametrize(
    "column", [pa.array([2**60], pa.timestamp("s")), pa.array([2**31 - 1], pa.date32())]
)
def test_moments_that_do_not_fit_are_an_error_or_exact(column):
    try:
        ((value,),) = rows_of(pa.table({"a": column}), {"a": "timestamp"})
    except EventError:
        return
    assert value == (2**31 - 1) * 86_400 * 10**6


def test_a_column_of_nulls_stands_for_a_record():
    assert rows_of(pa.table({"r": pa.nulls(2)}), {"r.k": "int"}) == [(None,), (None,)]


def test_a_path_may_be_a_flat_name():
    assert rows_of(pa.table({"r.k": [1]}), {"r.k": "int"}) == [(1,)]


def test_an_unknown_list_in_a_known_record_is_refused_on_demand():
    table = pa.table({"r": [{"k": 1, "junk": [1]}]})
    with pytest.raises(EventError, match=r"unknown attribute 'r\.junk'"):
        table_rows(table, Schema({"r.k": "int"}), refuse_unknown=True)


def test_invalid_utf_8_is_an_error():
    text = pa.array([b"\xff"], pa.binary()).view(pa.string())
    with pytest.raises(EventError, match="column a holds invalid UTF-8"):
        rows_of(pa.table({"a": text}), {"a": "string"})


@pytest.mark.parametrize("junk", [pd.DataFrame({"a": [1, "x"]}), pa.chunked_array([[1]])])
def test_what_is_not_a_table_is_an_error(junk):
    with pytest.raises(EventError, match="cannot be read as a table"):
        rows_of(junk, {"a": "int"})


def rows_of(events, schema):
    return table_rows(as_table(events), Schema(schema), refuse_unknown=False)
