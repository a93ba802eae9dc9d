from types import SimpleNamespace

import pytest
from pyspark.sql.types import ArrayType, IntegerType, StructType

from cases import each
from tamis import Matcher, Schema
from tamis.cli.input_files import read_typed, schema_of_file, subscribe_file
from tamis.errors import FileError, SchemaError
from tamis.events.files import read_records


def write(folder, name, content):
    path = folder / name
    path.write_text(content, encoding="utf-8")
    return str(path)


# --- without Spark


def test_the_schema_of_the_events_that_can_be_read(tmp_path):
    path = write(tmp_path, "e.jsonl", '{"a": 1}\nno JSON\n{"a": 2.5, "b": {"c": "x"}}\n')
    found = schema_of_file(read_records(path), path)
    assert {name: str(of) for name, of in found.items()} == {"a": "double", "b.c": "string"}
    path = write(tmp_path, "e.jsonl", "no JSON\n")
    with pytest.raises(SchemaError, match="no readable event to infer a schema from"):
        schema_of_file(read_records(path), path)


def test_rows_that_cannot_be_used_are_counted(tmp_path):
    matcher = Matcher({"a": "int"})
    path = write(
        tmp_path,
        "s.jsonl",
        '{"id": "x", "filter": "a < 3"}\n[]\n{"filter": "a < 3"}\n{"id": "y", "filter": "a <"}\n',
    )
    assert subscribe_file(matcher, path) == 3
    assert list(matcher) == ["x"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [("", "no readable subscription"), ('{"id": "y", "filter": "b"}\n', "no usable")],
)
def test_files_without_a_subscription(tmp_path, content, problem):
    with pytest.raises(FileError, match=problem):
        subscribe_file(Matcher({"a": "int"}), write(tmp_path, "s.jsonl", content))


# --- with the types of --schema

CORRUPT = ("_corrupt_record", "string")


def struct(*fields):
    made = StructType()
    for name, of in fields:
        made.add(name, of)
    return made


def typed(found, schema):
    """How columns are read, and how often the files were read."""
    calls = []

    def read(schema=found):
        calls.append(schema)
        return SimpleNamespace(columns=schema.names, schema=schema)

    return read_typed(read, {"schema": schema}).schema, len(calls)


def test_text_is_read_with_the_types_of_the_schema():
    schema = Schema(
        {
            "zip": "string", "price": "double", "level": "int(1, 5)", "side": "enum('a')",
            "on": "bool", "at": "timestamp", "address.no": "int", "`a.b`": "int", "gone": "int",
        }
    )  # fmt: skip
    tags = ArrayType(IntegerType())
    found = struct(
        ("id", "integer"), ("zip", "integer"), ("price", "integer"), ("level", "string"),
        ("side", "integer"), ("on", "string"), ("at", "string"), ("a.b", "string"), ("tags", tags),
        ("address", struct(("no", "string"), ("city", "string"))), CORRUPT,
    )  # fmt: skip
    expected = struct(
        ("id", "integer"), ("zip", "string"), ("price", "double"), ("level", "long"),
        ("side", "string"), ("on", "boolean"), ("at", "timestamp"), ("a.b", "long"), ("tags", tags),
        ("address", struct(("no", "long"), ("city", "string"))), CORRUPT,
    )  # fmt: skip
    assert typed(found, schema) == (expected, 2)


@each(
    ("found", "schema", "looks"),
    [
        (struct(("zip", "integer")), Schema({"zip": "string"}), 1),  # no text
        (struct(("zip", "integer"), CORRUPT), None, 1),
        (struct(("zip", struct(("a", "integer"))), CORRUPT), Schema({"zip": "string"}), 2),
    ],
)
def test_columns_that_keep_their_types(found, schema, looks):
    assert typed(found, schema) == (found, looks)
