"""Schemas as one line of text."""

import pytest

from cases import each
from tamis.broker.schema_text import schema_of
from tamis.errors import SchemaError


@each(
    "text, attributes",
    [
        ("symbol string, price double", {"symbol": "string", "price": "double"}),
        (" a\tint ,b  bool ", {"a": "int", "b": "bool"}),
        ("l int(1, 250), s enum('a, b', 'it''s'), `x,y` int",
         {"l": "int(1, 250)", "s": "enum('a, b', 'it''s')", "`x,y`": "int"}),
        ("address.city string", {"address.city": "string"}),
        ("tags array<string>, m map<string, int>, n int", {"tags": "array<string>",
         "m": "map<string, int>", "n": "int"}),
    ],
)  # fmt: skip
def test_a_line_is_a_schema(text, attributes):
    assert schema_of(text) == schema_of(attributes)


@each(
    "text, problem",
    [
        ("", "expected a name and a type"),
        ("price", "expected a name and a type"),
        ("a int,", "ends with a comma"),
        ("a int, , b int", "expected a name and a type"),
        ("a int(1, 2", "expected a comma before"),
    ],
)
def test_what_is_not_a_schema_is_refused(text, problem):
    with pytest.raises(SchemaError, match=problem):
        schema_of(text)
