"""Columns of arrays and maps, in all layouts of Arrow."""

import pyarrow as pa
import pytest

from cases import each
from tamis import EventError, Schema
from tamis.events.column_values import values_of
from tamis.events.columns import table_rows
from tamis.events.nested_columns import repeated_keys, taken_apart

SCHEMA = Schema({"a": "array<string>"})
NUMBERS = Schema({"a": "array<double>"})
MAPS = Schema({"a": "map<string, int>"})
TEXTS = [["x", None], None, [], ["y"]]


def rows_of(column, schema=SCHEMA):
    table = pa.table({"a": column})
    return [row[0] for row in table_rows(table, schema, refuse_unknown=False)]


@each(
    "kind",
    [
        pa.list_(pa.string()), pa.large_list(pa.large_string()), pa.list_view(pa.string_view()),
        pa.large_list_view(pa.string()), pa.list_(pa.dictionary(pa.int8(), pa.string())),
    ],
)  # fmt: skip
def test_layouts_of_lists(kind):
    column = pa.array([*TEXTS, ["z"]], kind)
    expected = [("x", None), None, (), ("y",), ("z",)]
    assert rows_of(column) == expected
    assert rows_of(column.slice(1, 3)) == expected[1:4]
    chunks = pa.chunked_array([column.slice(0, 2), column.slice(2, 0), column.slice(2)])
    assert rows_of(chunks) == expected
    assert rows_of(pa.chunked_array([], kind)) == []


def test_lists_of_one_length_and_dictionaries_of_lists():
    assert rows_of(pa.array([["x", "y"], None], pa.list_(pa.string(), 2))) == [("x", "y"), None]
    lists = pa.array([["x"], ["y"]])
    encoded = pa.DictionaryArray.from_arrays(pa.array([1, None, 0]), lists)
    assert rows_of(encoded) == [("y",), None, ("x",)]


def test_values_under_nulls_are_not_read():
    values = pa.array(["x", "hidden", "y"])
    column = pa.ListArray.from_arrays(
        pa.array([0, 1, 2, 3], pa.int32()), values, mask=pa.array([False, True, False])
    )
    assert rows_of(column) == [("x",), None, ("y",)]
    apart = taken_apart(pa.chunked_array([column]), SCHEMA["a"].type)
    assert apart.offsets.tolist() == [0, 1, 1, 2]


def test_elements_are_converted():
    assert rows_of(pa.array([[1, None], []], pa.list_(pa.int8())), NUMBERS) == [(1.0, None), ()]
    moments = Schema({"a": "array<timestamp>"})
    assert rows_of(pa.array([["1970-01-01 00:00:01Z"]]), moments) == [(1_000_000,)]
    assert rows_of(pa.array([[], None], pa.list_(pa.null()))) == [(), None]
    assert rows_of(pa.nulls(2)) == [None, None]
    assert rows_of(pa.nulls(1), MAPS) == [None]


@each(
    "kind",
    [
        pa.map_(pa.string(), pa.int64()), pa.map_(pa.large_string(), pa.int8()),
        pa.list_(pa.struct([("key", pa.string()), ("value", pa.int32())])),
    ],
)  # fmt: skip
def test_maps(kind):
    maps = [[("k", 1), ("n", None)], None, [], [("z", 5)]]
    if not pa.types.is_map(kind):
        maps = [m and [{"key": k, "value": v} for k, v in m] for m in maps]
    column = pa.array(maps, kind)
    expected = [{"k": 1, "n": None}, None, {}, {"z": 5}]
    assert rows_of(column, MAPS) == expected
    assert rows_of(column.slice(2), MAPS) == expected[2:]


@each(
    ("column", "schema", "complaint"),
    [
        (pa.array([[1]]), SCHEMA, r"has the type list<item: int64>, expected array<string>"),
        (pa.array(["x"]), SCHEMA, "expected array<string>"),
        (pa.array([{"k": 1}]), MAPS, "make the column one of Arrow's maps"),
        (pa.array([["x"]]), Schema({"a": "string"}), "expected string"),
        (pa.array([[["x"]]]), SCHEMA, "expected array<string>"),
    ],
)
def test_columns_of_other_types(column, schema, complaint):
    with pytest.raises(EventError, match=complaint):
        rows_of(column, schema)


def test_a_row_with_a_bad_element_is_bad():
    column = pa.chunked_array([pa.array([["2024-01-01"], None, ["x", "y"], []])])
    read = values_of(column, Schema({"a": "array<timestamp>"})["a"])
    assert read.bad.tolist() == [2]
    assert "element 0 is 'x'" in read.reason(2)


def test_a_key_is_not_there_twice():
    keys = pa.chunked_array([["a", "b", "a", "a", "a"]])
    assert repeated_keys(keys, pa.array([0, 2, 3, 5]).to_numpy()).tolist() == [2]
    column = pa.array([[("k", 1)], [("k", 1), ("k", 2)]], pa.map_(pa.string(), pa.int64()))
    with pytest.raises(EventError, match="it has the key 'k'"):
        rows_of(column, MAPS)
