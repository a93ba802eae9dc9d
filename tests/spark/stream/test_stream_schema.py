"""What filters of a stream can test when its events change."""

import pytest

from cases import each
from tamis import OptionError, Schema
from tamis.matcher_settings import MatcherSettings
from tamis.spark.stream.stream_schema import (
    StreamSchema,
    differences,
    is_wider,
    listed,
    merged,
    settings_for,
)

KNOWN = Schema({"price": "double", "side": "enum('buy', 'sell')"})
COLUMNS = Schema({"size": "int", "at.city": "string", "`odd``name`": "bool"}).attributes
NOW = StreamSchema(KNOWN, COLUMNS)


def test_attributes_of_the_setting_are_added_at_the_end():
    given = Schema({"size": "int", "price": "double", "side": "enum('sell', 'buy', 'none')"})
    found = merged(KNOWN, given)
    assert list(found) == ["price", "side", "size"]
    assert str(found["side"]) == "enum('sell', 'buy', 'none')"
    with pytest.raises(OptionError, match="price is double in the checkpoint, and int in the sch"):
        merged(KNOWN, Schema({"price": "int"}))


@each(
    ("new", "old", "answer"),
    [
        ("int", "int", True),
        ("int", "int(1, 5)", True),
        ("int(1, 5)", "int", False),
        ("int(0, 5)", "int(1, 5)", True),
        ("int(2, 5)", "int(1, 5)", False),
        ("double", "int", False),
        ("string", "enum('a')", True),
        ("enum('b', 'a')", "enum('a')", True),
        ("enum('b')", "enum('a')", False),
        ("enum('b')", "string", False),
    ],
)
def test_a_domain_may_grow(new, old, answer):
    assert is_wider(Schema({"a": new})["a"], Schema({"a": old})["a"]) is answer


def test_good_filters_ask_for_the_columns_that_they_test():
    filters = [None, "size > 3", "at.city = 'size'", "size > 3 AND at.city > 5", "price > 3"]
    assert NOW.named(filters[:2]) == {"size"}
    assert NOW.named(filters[2:3]) == {"at.city"}
    assert NOW.named(filters[3:]) == set()
    assert NOW.named(["`odd``name`"]) == {"`odd``name`"}
    assert StreamSchema(KNOWN).named(["size > 3"]) == set()
    assert list(NOW.grown({"at.city", "nonsense"})) == ["price", "side", "at.city"]
    assert len(NOW.whole) == 5


def test_what_differs_is_said():
    now = StreamSchema(merged(KNOWN, Schema({"a": "int", "side": "string"})), COLUMNS)
    said = differences(KNOWN, now, [KNOWN["price"]])
    assert said[0].startswith(
        "the events have columns that are not attributes: size (int), at.city (string), "
        "`odd``name` (bool); each of them is ignored until the filter of a change"
    )
    assert said[1:] == [
        "new attributes: a (int)",
        "the attribute side was enum('buy', 'sell') and is string",
        "the events have no column for the attributes price (double): they lack them",
    ]
    assert differences(KNOWN, StreamSchema(KNOWN), []) == []


def test_of_many_attributes_the_first_are_listed():
    many = Schema({f"a{n}": "int" for n in range(13)}).attributes
    shown = ", ".join(f"a{n} (int)" for n in range(10))
    assert listed(many) == f"{shown} and 3 more"
    assert listed(many[:10]) == shown


def test_a_version_has_the_defaults_of_its_attributes():
    settings = MatcherSettings(Schema({"a": "int", "b": "int"}), "default", {"a": 1, "b": None})
    older = settings_for(settings, Schema({"a": "int"}))
    assert (older.defaults, older.semantics) == ({"a": 1}, "default")
