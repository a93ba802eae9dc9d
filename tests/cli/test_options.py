import json

import pytest

from cases import each
from tamis import OptionError, Schema, SchemaError
from tamis.cli.options import read_defaults, read_schema


@each(
    ("text", "schema"),
    [
        ("price:double", {"price": "double"}),
        ("price:double,company:string", {"price": "double", "company": "string"}),
        (" price : double , company : string ", {"price": "double", "company": "string"}),
        ("level:int(1, 5),b:bool", {"level": "int(1, 5)", "b": "bool"}),
        ("side:enum('a,b', 'c'),b:bool", {"side": "enum('a,b', 'c')", "b": "bool"}),
        ("side:enum('it''s', '(', ':'),b:bool", {"side": "enum('it''s', '(', ':')", "b": "bool"}),
        ("address.city:string", {"address.city": "string"}),
        ("`a.b`:int", {"`a.b`": "int"}),
        ("zip code:int", {"zip code": "int"}),
        ("a:b:int", {"a:b": "int"}),
        ("prix_é:double", {"prix_é": "double"}),
    ],
)
def test_a_schema_of_pairs(text, schema):
    assert read_schema(text) == Schema(schema)


@each(
    ("text", "message"),
    [
        ("price", "--schema: expected NAME:TYPE, got 'price'"),
        ("price:double,", "expected NAME:TYPE, got ''"),
        ("price:double,company", "expected NAME:TYPE, got 'company'"),
        (
            "price:doubel",
            r"attribute 'price' has the unknown type 'doubel'; did you mean 'double'\?",
        ),
        ("price:", "unknown type ''"),
        ("a:int,a:int", "attribute a is declared twice"),
        ("a:int(5, 1)", "is empty"),
        ("a:enum('x", "unknown type"),
    ],
)
def test_pairs_that_are_not_a_schema(text, message):
    with pytest.raises(SchemaError, match=message):
        read_schema(text)


@pytest.mark.parametrize("name", ["schema.json", "SCHEMA.JSON"])
def test_a_schema_in_a_file(tmp_path, name):
    content = {"price": "double", "level": "int(1, 5)", "s": "enum('a,b', 'c')", "é": "bool"}
    path = tmp_path / name
    path.write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    assert read_schema(str(path)) == Schema(content)


@pytest.mark.parametrize(
    ("content", "error", "message"),
    [
        (b"", OptionError, r"schema\.json is not valid JSON"),
        (b"{", OptionError, r"schema\.json is not valid JSON"),
        (b"\xff", OptionError, r"schema\.json is not valid JSON"),
        (b"[]", OptionError, r'schema\.json: expected an object \{"name": "type"\}'),
        (b'{"a": 5}', SchemaError, "a type is written as a string, not 5"),
        (b'{"a": {"b": "int"}}', SchemaError, "a type is written as a string"),
        (b'{"a": "list"}', SchemaError, "unknown type 'list'"),
    ],
)
def test_a_file_without_a_schema(tmp_path, content, error, message):
    path = tmp_path / "schema.json"
    path.write_bytes(content)
    with pytest.raises(error, match=message):
        read_schema(str(path))


def test_a_schema_file_that_is_not_there(tmp_path):
    with pytest.raises(OptionError, match=r"schema\.json: No such file"):
        read_schema(str(tmp_path / "schema.json"))


def test_a_folder_is_not_a_schema_file(tmp_path):
    folder = tmp_path / "schema.json"
    folder.mkdir()
    with pytest.raises(OptionError, match=r"--schema .*schema\.json"):
        read_schema(str(folder))


def test_defaults():
    assert read_defaults(None) is None
    assert read_defaults('{"price": -1, "company": null}') == {"price": -1, "company": None}


@each(
    ("text", "message"),
    [
        ("", "--defaults is not valid JSON"),
        ("price=1", "--defaults is not valid JSON"),
        ("[1]", '--defaults: expected an object {"name": value}'),
        ("null", "--defaults: expected an object"),
    ],
)
def test_defaults_that_are_none(text, message):
    with pytest.raises(OptionError, match=message):
        read_defaults(text)
