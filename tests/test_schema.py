import pickle
import re

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from tamis import Matcher, OptionError, Schema, SchemaError
from tamis.schema import Attribute, Enumeration, IntRange, as_schema
from tamis.types import BOOL, DOUBLE, INT, STRING, TIMESTAMP

TYPES = {"int": INT, "double": DOUBLE, "string": STRING, "bool": BOOL, "timestamp": TIMESTAMP}


# --- types and domains


@each(("text", "kind"), TYPES.items())
def test_the_five_types(text, kind):
    assert Schema({"a": text})["a"] == Attribute(("a",), kind)


@each(
    ("text", "low", "high"),
    [
        ("int(1, 250)", 1, 250),
        ("int(1,250)", 1, 250),
        (" int ( -5 , -5 ) ", -5, -5),
        (f"int({-(2**63)}, {2**63 - 1})", -(2**63), 2**63 - 1),
    ],
)
def test_a_range_of_integers(text, low, high):
    attribute = Schema({"a": text})["a"]
    assert attribute.type == INT
    assert attribute.domain == IntRange(low, high)


@each(
    ("text", "values"),
    [
        ("enum('buy', 'sell')", ("buy", "sell")),
        ("enum('buy','sell')", ("buy", "sell")),
        ("enum ( 'a' )", ("a",)),
        ("enum('it''s', '''')", ("it's", "'")),
        ("enum('')", ("",)),
        ("enum('a,b', 'c)', '(')", ("a,b", "c)", "(")),
        ("enum('a\nb', ' é ')", ("a\nb", " é ")),
    ],
)
def test_an_enumeration(text, values):
    attribute = Schema({"a": text})["a"]
    assert attribute.type == STRING
    assert attribute.domain == Enumeration(values)


def test_an_enumeration_keeps_the_order_of_the_schema():
    assert Schema({"a": "enum('z', 'a', 'm')"})["a"].domain.values == ("z", "a", "m")


@given(st.lists(st.text(alphabet="a', ()\n") | st.text(), min_size=1, max_size=5, unique=True))
def test_every_enumeration_survives_being_written(values):
    domain = Enumeration(tuple(values))
    assert Schema({"a": str(domain)})["a"].domain == domain


@each(("value", "inside"), [(0, False), (1, True), (5, True), (6, False)])
def test_the_ends_of_a_range_belong_to_it(value, inside):
    assert (value in IntRange(1, 5)) is inside


@each(
    ("text", "message"),
    [
        ("int(5, 1)", r"'a': the domain int\(5, 1\) is empty"),
        ("enum()", r"'a': the domain enum\(\) is empty"),
        ("enum( )", r"'a': the domain enum\(\) is empty"),
        (f"int(0, {2**63})", "exceeds 64 bits"),
        (f"int({-(2**63) - 1}, 0)", "exceeds 64 bits"),
        ("enum('a', 'a')", "lists 'a' twice"),
        ("enum(a, b)", r"must list quoted strings: enum\('a', 'b'\)"),
        ("enum('a' 'b')", "must list quoted strings"),
        ("enum('a, 'b')", "must list quoted strings"),
        ("enum('it's')", "must list quoted strings"),
        ("enum('a', 5)", "must list quoted strings"),
    ],
)
def test_domains_that_cannot_be(text, message):
    with pytest.raises(SchemaError, match=message):
        Schema({"a": text})


@each(
    ("text", "hint"),
    [
        ("long", "did you mean 'int'?"),
        ("INTEGER", "did you mean 'int'?"),
        ("Int", "did you mean 'int'?"),
        ("float64", "did you mean 'double'?"),
        ("decimal", "did you mean 'decimal(10, 2)'? It has 10 digits, 2 of them after the point"),
        ("NUMERIC", "did you mean 'decimal(10, 2)'?"),
        ("str", "did you mean 'string'?"),
        ("varchar", "did you mean 'string'?"),
        ("boolean", "did you mean 'bool'?"),
        ("date", "did you mean 'timestamp'?"),
        ("strng", "did you mean 'string'?"),
        ("int(1 5)", "did you mean 'int(1, 250)'?"),
        ("ENUM('a')", "did you mean \"enum('a', 'b')\"?"),
        ("list<int>", "available: 'int', 'double', 'string', 'bool', 'timestamp'"),
        ("", "available: 'int'"),
    ],
)
def test_an_unknown_type_brings_a_hint(text, hint):
    with pytest.raises(SchemaError) as caught:
        Schema({"volume": text})
    assert f"attribute 'volume' has the unknown type {text!r}; {hint}" in str(caught.value)


@each("kind", [int, None, 5, INT])
def test_a_type_is_written_as_a_string(kind):
    with pytest.raises(SchemaError, match="'a': a type is written as a string"):
        Schema({"a": kind})


# --- names


@each(
    ("name", "path"),
    [
        ("address.city", ("address", "city")),
        ("`a.b`", ("a.b",)),
        ("zip code", ("zip code",)),
        ("`a``b`", ("a`b",)),
        ("", ("",)),
        ("é", ("é",)),
        ("日本.東京", ("日本", "東京")),
        ("select", ("select",)),
        ("and", ("and",)),
        ("a\nb", ("a\nb",)),
    ],
)
def test_odd_names(name, path):
    schema = Schema({name: "int"})
    assert schema.attributes == (Attribute(path, INT),)
    assert name in schema
    assert schema[name].path == path


@each(
    "path",
    [("a.b",), ("zip code",), ("a`b",), ("",), ("é",), ("日本", "東京"), ("and",), ("a\nb",)],
)
def test_filters_reach_attributes_of_odd_names(path):
    schema = Schema.of_attributes([Attribute(path, INT)])
    event = 5
    for part in reversed(path):
        event = {part: event}
    matcher = Matcher(schema)
    matcher.subscribe("five", f"{schema.attributes[0].name} = 5")
    assert matcher.match(event) == ["five"]


@each("name", [5, None, ("a",), b"a"])
def test_a_name_is_a_string(name):
    with pytest.raises(SchemaError, match="an attribute name must be a string"):
        Schema({name: "int"})


@each(("first", "second"), [("a", "a"), ("a", "`a`"), ("a.b", "`a`.b")])
def test_a_name_twice_is_refused(first, second):
    with pytest.raises(SchemaError, match="is declared twice"):
        Schema([(first, "int"), (second, "string")])


@each("names", [("a", "a.b"), ("a.b", "a"), ("a.b", "a.b.c")])
def test_a_path_inside_a_value_is_refused(names):
    with pytest.raises(SchemaError, match=r"lies inside a.*, which is declared as a value"):
        Schema(dict.fromkeys(names, "int"))


@each("names", [("a.b", "a.c"), ("a", "`a.b`"), ("ab", "a.b"), ("a", "A")])
def test_names_that_only_look_alike_stand_side_by_side(names):
    assert len(Schema(dict.fromkeys(names, "int"))) == 2


# --- a mapping


def test_a_schema_is_a_mapping_in_the_order_of_its_attributes():
    schema = Schema([("b", "int"), ("a.c", "string"), ("x y", "bool")])
    assert list(schema) == ["b", "a.c", "`x y`"]
    assert len(schema) == 3
    assert schema["x y"] is schema["`x y`"]
    assert [str(attribute) for attribute in schema.values()] == ["int", "string", "bool"]


@each("name", ["c", "a", "B", 5, None])
def test_what_a_schema_does_not_have(name):
    assert name not in Schema({"b": "int", "a.c": "string"})


def test_an_unknown_name_is_a_key_error():
    schema = Schema({"a": "int"})
    assert schema.get("b") is None
    with pytest.raises(KeyError):
        schema["b"]


def test_a_schema_may_be_empty():
    assert len(Schema({})) == 0
    assert Schema({}) == Schema([])


def test_find_goes_by_path():
    schema = Schema({"a.b": "int"})
    assert schema.find(("a", "b")) == schema["a.b"]
    assert schema.find(("a",)) is None
    assert schema.find(("a.b",)) is None


EXAMPLE = {"a.b": "int(1, 5)", "`x y`": "enum('it''s', 'b')", "t": "timestamp"}


def test_schemas_are_equal_if_their_attributes_are():
    assert Schema(EXAMPLE) == Schema(list(EXAMPLE.items()))
    assert hash(Schema(EXAMPLE)) == hash(Schema(list(EXAMPLE.items())))


@each(
    "other",
    [
        Schema({**EXAMPLE, "a.b": "int(1, 6)"}),
        Schema({**EXAMPLE, "t": "int"}),
        Schema({**EXAMPLE, "u": "int"}),
        Schema(dict(reversed(EXAMPLE.items()))),
        EXAMPLE,
        None,
    ],
)
def test_schemas_that_differ_are_not_equal(other):
    assert Schema(EXAMPLE) != other


def test_a_schema_survives_pickling():
    copy = pickle.loads(pickle.dumps(Schema(EXAMPLE)))
    assert copy == Schema(EXAMPLE)
    assert hash(copy) == hash(Schema(EXAMPLE))
    assert copy["a.b"].domain == IntRange(1, 5)


def test_the_text_of_a_schema_makes_it_again():
    assert eval(repr(Schema(EXAMPLE)), {"Schema": Schema}) == Schema(EXAMPLE)  # noqa: S307 - our own text


# --- what is taken for a schema


def test_a_schema_stays_itself():
    schema = Schema(EXAMPLE)
    assert as_schema(schema) is schema


def test_a_dict_is_a_schema():
    assert as_schema(EXAMPLE) == Schema(EXAMPLE)


def test_an_arrow_schema_is_a_schema():
    assert as_schema(pa.schema([("a", pa.int8())])) == Schema({"a": "int"})


@each("thing", [None, 5, "a:int", ["a"], object()])
def test_anything_else_is_not_a_schema(thing):
    with pytest.raises(SchemaError, match=f"not {type(thing).__name__}"):
        as_schema(thing)


# --- Arrow


@each(
    ("arrow", "kind"),
    [
        *((t, "int") for t in (pa.int8(), pa.int16(), pa.int32(), pa.int64())),
        *((t, "int") for t in (pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64())),
        *((t, "double") for t in (pa.float16(), pa.float32(), pa.float64())),
        *(
            (t, "decimal(5, 2)")
            for t in (pa.decimal128(5, 2), pa.decimal256(5, 2), pa.decimal32(5, 2))
        ),
        (pa.decimal128(3, -2), "decimal(5, 0)"),
        (pa.decimal128(2, 4), "decimal(4, 4)"),
        *((t, "string") for t in (pa.string(), pa.large_string(), pa.string_view())),
        (pa.dictionary(pa.int8(), pa.string()), "string"),
        (pa.dictionary(pa.int32(), pa.int64()), "int"),
        (pa.bool_(), "bool"),
        (pa.date32(), "timestamp"),
        (pa.date64(), "timestamp"),
        *((pa.timestamp(unit), "timestamp") for unit in ("s", "ms", "us", "ns")),
        (pa.timestamp("us", "UTC"), "timestamp"),
        (pa.timestamp("ns", "Europe/Paris"), "timestamp"),
    ],
)
def test_types_of_arrow(arrow, kind):
    assert Schema.from_arrow(pa.schema([("a", arrow)])) == Schema({"a": kind})


@each(
    ("arrow", "kind"),
    [
        (pa.list_(pa.int8()), "array<int>"), (pa.large_list(pa.large_string()), "array<string>"),
        (pa.list_(pa.float32(), 3), "array<double>"), (pa.list_view(pa.bool_()), "array<bool>"),
        (pa.list_(pa.dictionary(pa.int8(), pa.string())), "array<string>"),
        (pa.list_(pa.date32()), "array<timestamp>"),
        (pa.map_(pa.string(), pa.int64()), "map<string, int>"),
        (pa.map_(pa.large_string(), pa.timestamp("s")), "map<string, timestamp>"),
    ],
)  # fmt: skip
def test_arrays_and_maps_of_arrow(arrow, kind):
    schema = Schema.from_arrow(pa.schema([("a", arrow)]))
    assert schema == Schema({"a": kind})
    assert repr(schema) == f"Schema({{'a': '{kind}'}})"


DECIMALS = pa.list_(pa.decimal128(9, 2))


@each(
    ("text", "complaint"),
    [
        ("array<int(1, 2)>", "arrays hold values of the types int, double, string, bool"),
        ("array<decimal(9, 2)>", "not 'decimal(9, 2)'; write double, or int for amounts in their"),
        ("map<string, decimal(9, 2)>", "not 'decimal(9, 2)'; write double, or int for amounts in"),
        ("array<array<int>>", "not 'array<int>'"), ("array<>", "not ''"),
        ("array<text>", "not 'text'; did you mean 'string'?"),
        ("map<int, string>", "the keys of a map are strings; write map<string, int>"),
        ("map<string>", "the keys of a map are strings"), ("map<string, map<string, int>>", "maps"),
        ("array", "unknown type 'array'"), ("list<int>", "unknown type 'list<int>'"),
    ],
)  # fmt: skip
def test_arrays_and_maps_that_are_refused(text, complaint):
    with pytest.raises(SchemaError, match=re.escape(complaint)):
        Schema({"a": text})


def test_columns_of_decimals_in_arrays_are_refused_with_the_way_out():
    table = pa.table({"a": pa.array([["0.10"]], pa.list_(pa.string())).cast(DECIMALS)})
    with pytest.raises(SchemaError, match="elements that are decimals can be double; leave it out"):
        Schema.from_arrow(table.schema)
    matcher = Matcher({"a": "array<double>"})
    matcher.subscribe("tenth", "array_contains(a, 0.1)")
    assert matcher.match_batch(table).num_rows == 1


@each("text", ["array<string>", "array < string >", "map<string,int>", " map<string , int> "])
def test_arrays_and_maps_as_text(text):
    assert str(Schema({"a": text})["a"]) in {"array<string>", "map<string, int>"}


UNSUPPORTED = [
    pa.list_(pa.list_(pa.int64())), pa.large_list(pa.binary()), pa.list_(pa.struct([])), pa.null(),
    pa.map_(pa.int64(), pa.string()), pa.map_(pa.string(), pa.list_(pa.int8())), pa.binary(),
    pa.large_binary(), pa.time32("s"),
    pa.time64("us"), pa.duration("us"), pa.month_day_nano_interval(), pa.binary(16),
    pa.dictionary(pa.int8(), pa.binary()),
]  # fmt: skip


@each("arrow", UNSUPPORTED)
def test_columns_that_no_filter_can_use_are_refused(arrow):
    with pytest.raises(SchemaError, match=r"column `odd name` has the type .*pass unsupported="):
        Schema.from_arrow(pa.schema([("odd name", arrow)]))


@each("arrow", UNSUPPORTED)
def test_columns_that_no_filter_can_use_are_skipped_on_demand(arrow):
    schema = pa.schema([("a", pa.int64()), ("b", arrow), ("c", pa.struct([("d", arrow)]))])
    assert Schema.from_arrow(schema, unsupported="skip") == Schema({"a": "int"})


def test_structs_become_dotted_paths():
    inner = pa.struct([("city", pa.string()), ("zip code", pa.int32())])
    arrow = pa.schema([("address", pa.struct([("home", inner), ("since", pa.date32())]))])
    assert Schema.from_arrow(arrow) == Schema(
        {
            "address.home.city": "string",
            "address.home.`zip code`": "int",
            "address.since": "timestamp",
        }
    )


@each("name", ["a.b", "a`b", "", "zip code", "日本", "and"])
def test_a_column_name_is_one_part_whatever_is_in_it(name):
    assert Schema.from_arrow(pa.schema([(name, pa.int64())])).attributes[0].path == (name,)


def test_a_refused_column_inside_a_struct_is_named_by_its_path():
    arrow = pa.schema([("a", pa.struct([("b", pa.list_(pa.binary()))]))])
    with pytest.raises(SchemaError, match=r"column a\.b has the type list"):
        Schema.from_arrow(arrow)


def test_columns_of_the_same_name_are_refused():
    with pytest.raises(SchemaError, match="attribute a is declared twice"):
        Schema.from_arrow(pa.schema([("a", pa.int8()), ("a", pa.string())]))


def test_an_unknown_treatment_of_unsupported_columns():
    with pytest.raises(OptionError, match="'drop'; choices: refuse, skip"):
        Schema.from_arrow(pa.schema([("a", pa.int8())]), unsupported="drop")
