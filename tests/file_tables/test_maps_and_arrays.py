"""Lists and maps of JSON files with a schema, as Spark reads them."""

import json

import pyarrow as pa

from tamis.file_tables.json_files import JsonText, columns_of

SCHEMA = pa.schema(
    [
        ("tags", pa.list_(pa.string())),
        ("m", pa.map_(pa.string(), pa.int64())),
        ("names", pa.map_(pa.string(), pa.string())),
    ]
)


def read(*records):
    rows = [JsonText(json.dumps(record), record) for record in records]
    columns, faults = columns_of(rows, SCHEMA, is_inferred=False)
    return [column.to_pylist() for column in columns], faults


def test_lists_and_maps():
    (tags, m, names), faults = read(
        {"tags": ["a", None], "m": {"k": 1, "n": None}}, {"tags": [], "m": {}}, {},
        {"names": {"a": "x", "b": 1.50}},
    )  # fmt: skip
    assert faults == {}
    assert tags == [["a", None], [], None, None]
    assert m == [[("k", 1), ("n", None)], [], None, None]
    assert names[3] == [("a", "x"), ("b", "1.5")]  # a value that is not a text is its text


def test_texts_that_are_not_unicode_stand_beside_other_values():
    (_, _, names), faults = read({"names": {"a": "\ud800", "b": 1}})
    assert faults == {}
    assert names == [[("a", "?"), ("b", "1")]]


def test_values_that_do_not_fit():
    (_, m, _), faults = read({"m": {"k": 1}}, {"m": [1]}, {"m": {"k": "x", "j": 2}}, {"tags": "a"})
    assert m == [[("k", 1)], None, None, None]
    assert sorted(faults) == [1, 2, 3]
    assert faults[2].path == ("m",)
