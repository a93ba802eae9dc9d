"""Files as tables, without Spark; `tests/local_job/test_agreement.py` compares them with Spark."""

import gzip
import json
from datetime import date

import pyarrow as pa
import pytest

from cases import each
from tamis.errors import FileError
from tamis.file_tables import json_files, lines, xml_files
from tamis.file_tables.csv_files import fields_of
from tamis.file_tables.dirty_columns import advice, dirty_columns
from tamis.file_tables.file_table import FileTable
from tamis.file_tables.type_names import type_name
from tamis.file_tables.unreadable_rows import UNKNOWN, RowFormat
from tamis.schema import Schema


def rows(table):
    return [row for batch in table.batches() for row in batch.to_pylist()]


def types(table):
    return {field.name: type_name(field.type) for field in table.schema}


@each(
    ("row", "fields"),
    [
        ("a,b", ["a", "b"]),
        (",", [None, None]),
        ('"a,b",c', ["a,b", "c"]),
        ('"a""b"', ['a"b']),
        ('"",x', [None, "x"]),
        ('a"b,c', ['a"b', "c"]),
        ('"a"b,c', ['"a"b', "c"]),
        ('"a" ,c', ["a", "c"]),
        ('"open,c', ["open,c"]),
        ('x,"open', ["x", "open"]),
    ],
)
def test_fields_of_a_row_of_csv(row, fields):
    assert fields_of(row) == fields


def test_folders_of_partitions_are_columns(put):
    put("e/day=2024-01-01/hour=1/x.csv", "a\n1\n")
    put("e/day=2024-01-02/hour=2/x.csv", "a\n2\n")
    put("e/day=__HIVE_DEFAULT_PARTITION__/hour=3/x.csv", "a\n3\n")
    table = FileTable(put("e/_SUCCESS", "").parent, row_tag="event")
    assert types(table) == {"a": "int", "day": "date", "hour": "int", "_corrupt_record": "string"}
    found = sorted((row["a"], row["day"], row["hour"]) for row in rows(table))
    assert found == [(1, date(2024, 1, 1), 1), (2, date(2024, 1, 2), 2), (3, None, 3)]


def test_patterns_and_compressed_files(put):
    put("a1.jsonl.gz", gzip.compress(b'{"a": 1}\n'))
    folder = put("a2.jsonl", '{"a": 2}\n').parent
    put("b.txt", "")
    assert [row["a"] for row in rows(FileTable(folder / "a*.jsonl*", row_tag="event"))] == [1, 2]
    pattern = f"{folder}/{{a1,a2}}.jsonl*"
    assert [row["a"] for row in rows(FileTable(pattern, row_tag="event"))] == [1, 2]


def test_a_document_of_json_is_read_piece_by_piece(put, monkeypatch):
    monkeypatch.setattr(json_files, "_CHUNK", 7)
    objects = [{"a": n, "s": "x" * n} for n in range(40)]
    table = FileTable(put("e.json", json.dumps(objects, indent=1)), row_tag="event")
    assert [(row["a"], row["s"]) for row in rows(table)] == [(n, "x" * n) for n in range(40)]


def test_a_document_of_json_that_breaks_off_is_one_row(put):
    put("e/good.json", '[\n{"a": 1}\n]')
    folder = put("e/bad.json", '[\n{"a": 1},\n{"a":').parent
    assert rows(FileTable(folder, row_tag="event")) == [
        {"a": None, "_corrupt_record": '[\n{"a": 1},\n{"a":'}, {"a": 1, "_corrupt_record": None},
    ]  # fmt: skip


def test_xml_is_read_piece_by_piece(put, monkeypatch):
    monkeypatch.setattr(xml_files, "_CHUNK", 5)
    monkeypatch.setattr(xml_files, "LINES", 2)
    text = "<all>" + "".join(f"<event><a>{n}</a></event>" for n in range(9)) + "</all>"
    table = FileTable(put("e.xml", text), row_tag="event")
    assert [row["a"] for row in rows(table)] == list(range(9))
    assert max(batch.num_rows for batch in table.batches()) <= 2
    with pytest.raises(FileError, match="nothing that can be read as xml"):
        FileTable(put("dtd.xml", "<!DOCTYPE x><event><a>1</a></event>"), row_tag="event")


def test_batches_are_bounded(put, monkeypatch):
    monkeypatch.setattr(lines, "LINES", 3)
    table = FileTable(put("e.csv", "a\n" + "1\n" * 10), row_tag="event")
    assert [batch.num_rows for batch in table.batches()] == [3, 3, 3, 1]


def test_parquet_files_that_drifted_apart_are_read_as_one(put):
    put("e/1.parquet", pa.table({"a": pa.array([1], pa.int32()), "b": [1.5], "r": [{"x": 1}]}))
    last = put("e/2.parquet", pa.table({"a": pa.array([2], pa.int64()), "r": [{"y": "z"}]}))
    table = FileTable(last.parent, row_tag="event")
    assert types(table) == {"a": "bigint", "b": "double", "r": "struct<x:bigint,y:string>"}
    assert rows(table)[1] == {"a": 2, "b": None, "r": {"x": None, "y": "z"}}
    put("e/3.parquet", pa.table({"r": [{"x": "1"}]}))
    with pytest.raises(FileError, match=r"column r\.x is bigint in some files, such as .*1\.parq"):
        FileTable(last.parent, row_tag="event")


def test_files_that_are_not_what_they_should_be(put, tmp_path):
    put("mixed/a.csv", "a\n1\n")
    put("mixed/b.jsonl", "{}\n")
    (tmp_path / "empty").mkdir()
    for path, problem in (
        (tmp_path / "nothing.csv", "/nothing.csv does not exist"),
        (tmp_path / "empty", "it has no files"),
        (tmp_path / "mixed", r"several extensions \(.csv, .jsonl\)"),
        (put("e.txt", "x"), "the extension '.txt' is unknown"),
        (put("e.parquet", b"PAR1 and nothing"), "/e.parquet cannot be read: is not a Parquet file"),
        (put("bytes.csv", bytes(range(256)) * 4), "is not text|without a name|two columns"),
        (put("none.csv", ""), "has no row to infer columns from"),
        (put("bad.jsonl", "x\ny\n"), "has nothing that can be read as jsonl"),
        (put("twice.csv", "a,a\n1,2\n"), "its header has two columns named 'a'"),
        (put("e.csv.gz", "a\n1\n"), "cannot be read: Not a gzipped file"),
        (put("two.json", '{\n"a": 1}\n{"a": 2}'), "has several JSON values"),
    ):
        with pytest.raises(FileError, match=problem):
            FileTable(path, row_tag="event")


SCHEMA = pa.schema([("id", pa.int64()), ("r", pa.struct([("x", pa.float64())])), ("b", pa.bool_())])
FLAT = pa.schema([("id", pa.int64()), ("price", pa.float64())])
CSV = RowFormat("csv", FLAT, is_inferred=True)
JSON = RowFormat("jsonl", SCHEMA, is_inferred=True)


@each(
    ("rows", "text", "problem"),
    [
        (CSV, "1,x", ", column price is 'x', expected double"),
        (CSV, "1", ", it has 1 field, and the header has 2"),
        (JSON, '{"r": {"x": "y"}}', ", column r.x is 'y', expected double"),
        (JSON, '{"b": 1}', ", column b is 1, expected boolean"),
        (JSON, "[]", ", it is an empty array"),
        (JSON, '{"b": ', ", it is not valid JSON (expecting value at character 7)"),
        (JSON, "5", ""),
        (UNKNOWN, "5", ""),
    ],
)  # fmt: skip
def test_reasons_name_the_column_and_the_value(rows, text, problem):
    assert rows.reasons([text]) == [f"the row cannot be read{problem}: {text}"]


def test_reasons_for_xml_are_those_of_its_elements():
    """Spark gives the text of the whole file for each bad row."""
    text = (
        "<all><event><id>1</id></event><event><id>x</id></event><event><price>y</price></event>"
        "<event></all>"
    )
    found = RowFormat("xml", FLAT, is_inferred=True).reasons([text] * 3)
    assert [reason.removeprefix("the row cannot be read, ") for reason in found] == [
        "column id is 'x', expected bigint: <event><id>x</id></event>",
        "column price is 'y', expected double: <event><price>y</price></event>",
        f"it is not well-formed XML: {text}",
    ]


def test_a_column_with_a_few_dirty_values_is_named_with_the_way_out():
    batch = pa.record_batch({"a": ["1", "2.5", "n/a", None], "b": ["x", "y", "1", "z"]})
    (dirty,) = dirty_columns([batch, batch], [("a",), ("b",)])
    assert (dirty.dirty, dirty.values, dirty.example) == (2, 6, "n/a")
    found = list(advice(Schema({"a": "string", "b": "string"}), [dirty]))
    assert found[0].startswith("column a was read as text, because 2 of 6 values cannot be read as")
    assert found[1].endswith('--schema "a:double,b:string"')
