"""Frames of events: what of them are attributes, what is sent to workers, and what is refused."""

import pytest

from tamis import OptionError, Schema, SchemaError
from tamis.spark.tables.event_chunks import EventLayout
from tamis.spark.tables.event_table import EventTable, attributes_to_read, unusable_columns

pytestmark = pytest.mark.spark

WIDE = """
    1Y tiny, 2S small, 3 `int`, 4L big, 1.5F f, 1.5D d, 1.25 dec, 'a' s, true b,
    DATE '2024-01-01' day, TIMESTAMP '2024-01-01 00:00:00' at,
    TIMESTAMP_NTZ '2024-01-01 00:00:00' local, CAST('a' AS CHAR(3)) c, CAST('a' AS VARCHAR(3)) v,
    array(1) arr, map('a', 1) m, X'00' bin, NULL nothing, INTERVAL '1' DAY gap,
    named_struct('k', 1, 'deep', named_struct('x', 'a', 'l', array(1)), 'w', X'00') r,
    named_struct('only', array(1)) e
"""


@pytest.fixture(scope="module")
def wide(spark):
    return spark.sql(f"SELECT {WIDE}")


def test_attributes_are_the_columns_that_filters_can_use(wide):
    events = EventTable(wide, "big", None, ())
    assert events.schema == Schema(
        {
            "tiny": "int", "small": "int", "int": "int", "big": "int", "f": "double", "d": "double",
            "dec": "decimal(3, 2)", "s": "string", "b": "bool", "day": "timestamp",
            "at": "timestamp", "local": "timestamp", "c": "string", "v": "string",
            "arr": "array<int>",
            "m": "map<string, int>", "r.k": "int", "r.deep.x": "string", "r.deep.l": "array<int>",
            "e.only": "array<int>",
        }
    )  # fmt: skip
    assert events.skipped == unusable_columns(wide.schema)
    assert events.skipped == {
        "bin": "binary", "nothing": "void", "gap": "interval day", "r.w": "binary",
    }  # fmt: skip


def test_workers_get_what_is_asked_for(wide):
    events = EventTable(wide, "big", None, ["arr", "r", "big"])
    assert events.layout({"s", "r.deep.x"}) == EventLayout(
        ("s", "r"), ("arr", "r", "big"), False, moment=events.moment
    )
    projected = events.project({"s", "r.deep.x"})
    assert [(field.name, field.dataType.simpleString()) for field in projected.schema] == [
        ("id", "bigint"), ("e0", "string"), ("e1", "struct<deep:struct<x:string>>"),
        ("k0", "array<int>"),
        ("k1", "struct<k:int,deep:struct<x:string,l:array<int>>,w:binary>"), ("k2", "bigint"),
    ]  # fmt: skip
    assert events.project(()).columns == ["id", "k0", "k1", "k2"]
    assert events.numbered({"s"}).dtypes == [("id", "bigint"), ("e0", "string"), ("k0", "bigint")]
    assert events.id_type.simpleString() == "bigint"
    assert [(name, kind.simpleString()) for name, kind in events.kept_fields()] == [
        ("arr", "array<int>"),
        ("r", "struct<k:int,deep:struct<x:string,l:array<int>>,w:binary>"),
        ("big", "bigint"),
    ]


def test_odd_names(spark):
    frame = spark.sql(
        "SELECT 1 `a.b`, 2 `odd ``name``.`, 3 `größe`, 4 `SELECT`, 5 `A b`,"
        " named_struct('x.y', 6, 'z`', named_struct('ü ', 7)) `r.s`, 8 event_id, 9 subscription"
    )
    events = EventTable(frame, "a.b", None, ["r.s"])
    names = list(events.schema)
    assert names == [
        "`a.b`", "`odd ``name``.`", "`größe`", "SELECT", "`A b`", "`r.s`.`x.y`", "`r.s`.`z```.`ü `",
        "event_id", "subscription",
    ]  # fmt: skip
    projected = events.project(names)
    assert [field.dataType.simpleString() for field in projected.schema] == [
        *["int"] * 6, "struct<x.y:int,z`:struct<ü :int>>", "int", "int",
        "struct<x.y:int,z`:struct<ü :int>>",
    ]  # fmt: skip
    assert events.layout(names).names[-3:] == ("r.s", "event_id", "subscription")


def test_a_schema_of_ones_own(wide):
    schema = Schema({"int": "double", "r.k": "int(1, 5)", "s": "enum('a')", "gone": "int"})
    events = EventTable(wide, "big", schema, ())
    assert events.schema == schema
    assert events.layout(schema).names == ("int", "r", "s")
    assert attributes_to_read(schema, {"int"}, "sql") == {"int", "r.k", "s"}
    assert attributes_to_read(schema, {"int"}, "total") == {"int", "r.k", "s", "gone"}


def test_a_frame_without_records_may_have_their_fields(spark):
    frame = spark.sql("SELECT 1 id, 2 `r.k`, named_struct('x', 3) q, 4 `q.k`")
    events = EventTable(frame, "id", Schema({"r.k": "int", "q.x": "int", "q.k": "int"}), ())
    assert events.layout(["r.k", "q.x", "q.k"]).names == ("r.k", "q", "q.k")
    assert events.project(["r.k"]).columns == ["id", "e0"]
    twice = spark.sql("SELECT 1 id, named_struct('k', 3) q, 4 `q.k`")
    for schema in (Schema({"q.k": "int"}), None):
        with pytest.raises(SchemaError, match=r"have q.k twice: in the record q and as a column"):
            EventTable(twice, "id", schema, ())


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        ({"arr": "int"}, "column arr is of type array<int>, expected int"),
        ({"arr": "array<string>"}, "column arr is of type array<int>, expected array<string>"),
        ({"m.a": "int"}, "column m is of type map<string, int>, expected a record with 'a'"),
        ({"bin": "int"}, "column bin has the type binary, which no filter can use; expected int"),
        ({"r.w.x": "int"}, "column r.w has the type binary, .* expected a record with 'x'"),
        ({"r": "int"}, "column r is a record, expected int"),
        ({"s.x.y": "int"}, "column s is of type string, expected a record with 'x'"),
        ({"s": "int"}, "column s is of type string, expected int; convert"),
        ({"d": "int(1, 3)"}, r"column d is of type double, expected int\(1, 3\)"),
        ({"gone": "int"}, "the events have none of the attributes gone; they have tiny, small"),
        ({}, "the events have no column that a filter can use"),
    ],
)
def test_schemas_that_do_not_fit(wide, schema, said):
    with pytest.raises(SchemaError, match=said):
        EventTable(wide, "big", Schema(schema), ())


@pytest.mark.parametrize(
    ("event_id", "keep", "said"),
    [
        ("bg", [], "event_id: the events have no column 'bg'; did you mean 'big'?"),
        ("big", ["sx"], "keep: the events have no column 'sx'"),
        ("big", "s", r"keep is a list of columns, not 's'; write \['s'\]"),
        ("big", ["s", "s"], "keep names a column twice"),
    ],
)
def test_columns_that_are_not_there(wide, event_id, keep, said):
    with pytest.raises(OptionError, match=said):
        EventTable(wide, event_id, None, keep)


@pytest.mark.parametrize("name", ["event_id", "Event_ID", "subscription", "subscriptions", "COUNT"])
def test_names_of_the_columns_of_matches(spark, name):
    frame = spark.sql(f"SELECT 1 id, 2 `{name}`")
    with pytest.raises(OptionError, match=f"keep: the column '{name}' has the name of a column of"):
        EventTable(frame, "id", None, [name])
    assert name in EventTable(frame, name, None, ()).schema


def test_frames_that_cannot_be_events(spark):
    with pytest.raises(OptionError, match="two columns named 'a'"):
        EventTable(spark.sql("SELECT 1 id, 2 a, 3 a"), "id", None, ())
    with pytest.raises(
        SchemaError, match=r"no column that a filter can use; they have id \(array<b"
    ):
        EventTable(spark.sql("SELECT array(X'1') id"), "id", None, ())


def test_the_text_of_a_row_that_could_not_be_read(spark):
    events = EventTable(spark.sql("SELECT 1 id, '{' _corrupt_record"), "id", None, ())
    assert list(events.schema) == ["id"]
    assert events.project(["id"]).columns == ["id", "e0", "corrupt"]
    own = EventTable(spark.sql("SELECT 1 id, 2 _corrupt_record"), "id", None, ())
    assert list(own.schema) == ["id", "_corrupt_record"]
    assert not own.has_corrupt
