"""The columns of files of JSON, and their types."""

import json

import pyarrow as pa

from cases import each
from tamis.file_tables.json_files import inferred, is_document, items_of

STRING, LONG, DOUBLE, BOOL = pa.string(), pa.int64(), pa.float64(), pa.bool_()


def columns_of(tmp_path, values, *, as_document=False):
    path = tmp_path / "events.json"
    if as_document:
        path.write_text(json.dumps(values, indent=1))
    else:
        path.write_text("\n".join(map(json.dumps, values)))
    schema, any_bad = inferred([path], are_documents=as_document)
    assert not any_bad
    return dict(zip(schema.names, schema.types, strict=True))


@each(
    "values, expected",
    [
        ([1, None, 2], LONG),
        ([1, 2.5], DOUBLE),
        ([1, True], STRING),
        ([True, False], BOOL),
        ([2**63], pa.decimal128(19, 0)),
        ([1, 2**63], pa.decimal128(20, 0)),
        ([-(2**63), 2**63 - 1], LONG),
        (["", None], STRING),
        (["2024-01-31T12:30:00"], pa.timestamp("us")),
        (["2024-01-31T12:30:00", "2024-01-31T12:30:00Zzz"], STRING),
        (["2024-01-31T12:30:00", "soon"], STRING),
        (["soon", "2024-01-31T12:30:00"], STRING),
        ([[1, 2], [2.5]], pa.list_(DOUBLE)),
        ([[1, 2], ["a"]], pa.list_(STRING)),
        ([[], [None]], pa.list_(STRING)),
        ([[], [True]], pa.list_(BOOL)),
        ([1, [1]], STRING),
        ([{"b": 1}, {"a": "x", "b": 2.5}], pa.struct({"a": STRING, "b": DOUBLE})),
        ([[{"a": 1}], [{"b": True}]], pa.list_(pa.struct({"a": LONG, "b": BOOL}))),
    ],
)
def test_the_type_of_a_column(tmp_path_factory, values, expected):
    folder = tmp_path_factory.mktemp("json")
    records = [{"v": value} for value in values]
    for as_document in (False, True):
        (found,) = columns_of(folder, records, as_document=as_document).values()
        if pa.types.is_timestamp(expected):
            assert pa.types.is_timestamp(found)
        else:
            assert found == expected


def test_columns_are_those_of_all_records_by_name(tmp_path):
    found = columns_of(tmp_path, [{"b": 1}, [{"a": "x"}, {"c": {}}], {"b": 2.5, "c": {"d": 1}}])
    assert found == {"a": STRING, "b": DOUBLE, "c": pa.struct({"d": LONG})}


@each("line", ["5", '"a"', "[1]", "{", "nothing"])
def test_what_is_not_an_object_is_a_bad_row(tmp_path_factory, line):
    path = tmp_path_factory.mktemp("json") / "events.jsonl"
    path.write_text('{"a": 1}\n' + line + "\n")
    schema, any_bad = inferred([path], are_documents=False)
    assert (schema.names, any_bad) == (["a"], True)


@each(
    "text, expected",
    [
        ('{"a": 1}\n{"a": 2}', False),
        ("[\n{}\n]", True),
        ('{"a":\n1}', True),
        ('[{"a": 1},\n{"a": 2}]', True),
        ("{} 5", True),
        ("\n \n{}", False),
        ("5", False),
        ("", False),
    ],
)
def test_whether_a_file_is_one_document(tmp_path_factory, text, expected):
    path = tmp_path_factory.mktemp("json") / "events.json"
    path.write_text(text)
    assert is_document(path) is expected


def test_the_objects_of_a_document(tmp_path):
    path = tmp_path / "events.json"
    path.write_text('[ {"a": 1} ,\n {"a": [2, {"b": "]"}]}\n]\n')
    assert [item.value for item in items_of(path)] == [{"a": 1}, {"a": [2, {"b": "]"}]}]
