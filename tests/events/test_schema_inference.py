import datetime as dt
import math
from decimal import Decimal

import pytest

from cases import each
from tamis import ParseError, Schema, SchemaError, parse
from tamis.events.schema_inference import schema_of_filter, schema_of_records


def of_values(*records):
    return schema_of_records((record, False) for record in records)


def of_texts(*records):
    return schema_of_records((record, True) for record in records)


# --- from events


@each(
    ("value", "kind"),
    [
        (True, "bool"),
        (5, "int"),
        (2**63 - 1, "int"),
        (2**63, "double"),
        (0.5, "double"),
        (math.nan, "double"),
        (Decimal("0.5"), "double"),
        ("", "string"),
        ("2024-01-01", "string"),
        (dt.date(2024, 1, 1), "timestamp"),
        (dt.datetime(2024, 1, 1, tzinfo=dt.UTC), "timestamp"),
    ],
)
def test_the_type_of_a_value(value, kind):
    assert of_values({"a": value}) == Schema({"a": kind})


@each(
    ("text", "kind"),
    [
        ("5", "int"),
        ("-5", "int"),
        (str(2**63), "double"),
        ("9" * 300, "double"),
        ("9" * 5000, "string"),  # no double is as large
        ("0.5", "double"),
        ("1e3", "double"),
        ("true", "bool"),
        ("FALSE", "bool"),
        ("2024-01-01", "timestamp"),
        ("2024-01-01 12:00:00Z", "timestamp"),
        ("2024", "int"),
        ("IBM", "string"),
        (" ", "string"),
        ("yes", "string"),
    ],
)
def test_the_type_of_a_text(text, kind):
    assert of_texts({"a": text}) == Schema({"a": kind})


@each("value", [None, [[1]], [{"x": 1}], b"a", object()])
def test_a_value_without_a_type_gives_no_attribute(value):
    assert of_values({"a": value, "b": 1}) == Schema({"b": "int"})


def test_an_empty_text_says_nothing():
    assert of_texts({"a": "", "b": "x"}, {"a": "5", "b": "x"}) == Schema(
        {"b": "string", "a": "int"}
    )


@each("values", [(1, 0.5), (0.5, 1), (1, None, 0.5), (1, 2**63)])
def test_whole_and_other_numbers_are_doubles(values):
    assert of_values(*({"a": value} for value in values)) == Schema({"a": "double"})


@each("values", [(1, "a"), ("a", 0.5), (True, 1), (True, 0.5)])
def test_values_without_a_common_type_are_refused(values):
    with pytest.raises(SchemaError, match=r"attribute a has values of type .* and of type"):
        of_values(*({"a": value} for value in values))


@each("texts", [("1", "a"), ("true", "5"), ("2024-01-01", "soon"), ("a", "1")])
def test_texts_without_a_common_type_are_strings(texts):
    assert of_texts(*({"a": text} for text in texts)) == Schema({"a": "string"})


def test_nested_records_become_paths():
    schema = of_values({"r": {"k": 1, "s": {"t": "x"}}}, {"r": {"odd name": True}})
    assert schema == Schema({"r.k": "int", "r.s.t": "string", "r.`odd name`": "bool"})


def test_a_name_with_a_dot_is_one_name():
    assert of_values({"a.b": 1}).attributes[0].path == ("a.b",)


def test_a_value_that_is_a_record_elsewhere_is_refused():
    with pytest.raises(SchemaError, match=r"a\.b lies inside a"):
        of_values({"a": 1}, {"a": {"b": 1}})


def test_no_events_give_no_attributes():
    assert of_values() == Schema({})


# --- from a filter


@each(
    ("text", "schema"),
    [
        ("price < 10", {"price": "double"}),
        ("10 > price", {"price": "double"}),
        ("price > -5", {"price": "double"}),
        ("price BETWEEN 1 AND 2", {"price": "double"}),
        ("price NOT BETWEEN 1 AND 2", {"price": "double"}),
        ("price IN (1, 2)", {"price": "double"}),
        ("company = 'IBM'", {"company": "string"}),
        ("'IBM' = company", {"company": "string"}),
        ('company <> "IBM"', {"company": "string"}),
        ("company IN ('IBM', 'Dell')", {"company": "string"}),
        ("company in ('IBM')", {"company": "string"}),
        ("company LIKE 'I%'", {"company": "string"}),
        ("company NOT LIKE 'I%' ESCAPE '!'", {"company": "string"}),
        ("company RLIKE '^I'", {"company": "string"}),
        ("contains(company, 'B')", {"company": "string"}),
        ("'B' SUBSTRING OF company", {"company": "string"}),
        ("lower(company) = 'ibm'", {"company": "string"}),
        ("length(company) > 3", {"company": "string"}),
        ("halted", {"halted": "bool"}),
        ("NOT halted", {"halted": "bool"}),
        ("!halted", {"halted": "bool"}),
        ("(halted)", {"halted": "bool"}),
        ("halted = TRUE", {"halted": "bool"}),
        ("halted OR price < 1", {"halted": "bool", "price": "double"}),
        ("at > TIMESTAMP '2024-01-01'", {"at": "timestamp"}),
        ("change IS NULL", {"change": "double"}),
        ("price * volume > 400", {"price": "double", "volume": "double"}),
        ("address.city = 'Paris'", {"address.city": "string"}),
        ("`odd name` = 'x'", {"`odd name`": "string"}),
        ("`a``b`.c < 1", {"`a``b`.c": "double"}),
        ("a IS NULL OR a = 'x'", {"a": "string"}),
        ("a = 'x' OR a IS NULL", {"a": "string"}),
        ("TRUE", {}),
        ("1 < 2", {}),
        (
            "company = 'LIKE' AND price < 5 AND NOT halted",
            {"company": "string", "price": "double", "halted": "bool"},
        ),
    ],
)
def test_the_schema_that_a_filter_is_about(text, schema):
    guessed = schema_of_filter(text)
    assert guessed == Schema(schema)
    parse(text, guessed)


def test_text_that_is_not_a_filter():
    with pytest.raises(ParseError):
        schema_of_filter("price < 'unfinished")


@each(
    ("text", "types"),
    [
        ("company LIKE 'A%' AND price > 5", "string double"),
        ("halted AND company LIKE 'x'", "bool string"),
        ("s RLIKE '^a' OR b", "string bool"),
        ("at > TIMESTAMP '2024-01-01' AND price > 5", "timestamp double"),
        ("company NOT IN ('IBM')", "string"),
        ("halted IS TRUE", "bool"),
        ("halted IS NOT TRUE OR NOT (b AND (c))", "bool bool bool"),
        ("abs(change) > 4 AND price * volume > 400000", "double double double"),
        ("a IS NULL OR a = 'x'", "string"),
        ("x BETWEEN 1 AND 2 AND s = 'a'", "double string"),
        ("'PC' SUBSTRING OF product AND bid > ask", "string double double"),
        (" AND ".join(f"s{n} = 'x'" for n in range(15)), " ".join(["string"] * 15)),
    ],
)
def test_each_part_of_a_filter_is_inferred_by_itself(text, types):
    assert " ".join(map(str, schema_of_filter(text).values())) == types


@each(
    ("events", "kind"),
    [
        ([[1, None], [2]], "array<int>"), ([[1], [2.5], None], "array<double>"),
        ([[], None], "array<string>"), ([[], [True]], "array<bool>"), ([["a"]], "array<string>"),
    ],
)  # fmt: skip
def test_lists_are_arrays(events, kind):
    assert of_values(*({"a": event} for event in events)) == Schema({"a": kind})


@each("events", [[["a"], "a"], [[1], ["a"]], [[1, "a"]]])
def test_lists_of_different_types(events):
    with pytest.raises(SchemaError, match="attribute a has values of type"):
        of_values(*({"a": event} for event in events))


def test_elements_that_come_once_or_often():
    assert of_texts({"a": "1"}, {"a": ["2", ""]}) == Schema({"a": "array<int>"})
    assert of_texts({"a": ["1", "x"]}) == Schema({"a": "array<string>"})
