"""Schemas that grow: the same answers as if the attributes had been there from the beginning."""

import math
import random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from saved_matchers import DEFAULTS, TEXTS, WIDE, semantics_of, stock_table, view, wide_events
from stocks import SMALL, stock_filters
from tamis import Matcher, OptionError, Schema, SchemaError
from tamis.engines import ENGINES
from tamis.semantics import NAMES

NEW = {"a new one": "string", "r.new": "int(1, 5)", "zzz": "timestamp"}


def seen(matcher, table):
    """What a user can see of a matcher, but for its schema."""
    found = view(matcher, table)
    del found["settings"]
    return found | {"filters": [str(one) for one in found["filters"]]}


def shuffled(schema, seed):
    """The attributes of a schema among new ones, in any order."""
    names = [*schema, *NEW]
    random.Random(seed).shuffle(names)  # noqa: S311 - not a secret
    kinds = {name: str(schema[name]) for name in schema} | NEW
    return Schema({name: kinds[name] for name in names})


@pytest.mark.long
@each("engine", ENGINES)
def test_every_engine_keeps_its_subscriptions(engine):
    matcher = Matcher(SMALL, engine)
    matcher.subscribe_many({f"{n}": text for n, text in enumerate(stock_filters(3, 30))})
    matcher.unsubscribe("7")
    matcher.subscribe("3", "i IS NULL OR s LIKE 'T1%'")
    table = stock_table(15)
    before = seen(matcher, table)
    wider = matcher.with_attributes(NEW)
    assert list(wider.schema) == [*SMALL, *Schema(NEW)]
    assert seen(wider, table) == before
    wider.subscribe("new", "`a new one` = 'x' AND r.new > 2 AND i = 1")
    wider.unsubscribe_many(["1", "2"])
    event = {"i": 1, "a new one": "x", "r": {"new": 3}}
    assert wider.match(event)[-1] == "new"
    assert seen(matcher, table) == before
    assert matcher.schema == SMALL


@pytest.mark.long
@each("engine", ["auto", "sliced"])
@each("name", NAMES)
def test_every_kind_of_filter_in_every_semantics(tmp_path, engine, name):
    """Compiled filters are numbered anew, by growing and by absorbing in another order."""
    narrow = Matcher(WIDE, engine, **semantics_of(name))
    narrow.subscribe_many([*enumerate(TEXTS * 3)])
    narrow.save(tmp_path / "narrow.tamis")
    more = dict.fromkeys(NEW) if name == "default" else None
    table = wide_events(complete=name == "total")
    if name == "total":
        new = {"a new one": pa.array(["x"] * len(table)), "zzz": pa.array([0] * len(table)).cast(
            pa.timestamp("us"))}  # fmt: skip
        record = pa.array([one | {"new": 1} for one in table["r"].to_pylist()])
        table = table.set_column(table.column_names.index("r"), "r", record)
        for column, values in new.items():
            table = table.append_column(column, values)
    expected = seen(narrow, table)
    assert seen(narrow.with_attributes(NEW, defaults=more), table) == expected
    for seed in range(2):
        schema = shuffled(Schema(WIDE), seed)
        defaults = dict.fromkeys(NEW) | DEFAULTS if name == "default" else None
        other = Matcher(schema, engine, name, defaults=defaults)
        other.absorb(tmp_path / "narrow.tamis")
        assert seen(other, table) == expected
        other.save(tmp_path / "wide.tamis")
        assert seen(Matcher.load(tmp_path / "wide.tamis"), table) == expected


@settings(max_examples=15)
@given(
    some=st.lists(st.sampled_from(stock_filters(2, 40)), min_size=1, max_size=80),
    own=st.lists(st.sampled_from(stock_filters(5, 40)), max_size=5),
    seed=st.integers(0, 10**6),
)
def test_absorbing_fewer_attributes_is_like_subscribing(tmp_path_factory, some, own, seed):
    path = tmp_path_factory.mktemp("narrow") / "rules.tamis"
    narrow = Matcher(SMALL, "sliced")
    narrow.subscribe_many([*enumerate(some)])
    narrow.save(path)
    whole, joined = (Matcher(shuffled(SMALL, seed), "sliced") for _ in range(2))
    for matcher in (whole, joined):
        matcher.subscribe_many([*enumerate(own, 50)])
    joined.absorb(path)
    for number in [n for n in range(len(some)) if n in whole]:
        whole.unsubscribe(number)  # what is absorbed counts as new
    whole.subscribe_many([*enumerate(some)])
    table = stock_table(20, seed)
    assert seen(joined, table) == seen(whole, table)


def test_growing_twice_and_by_what_is_there():
    matcher = Matcher({"i": "int"})
    matcher.subscribe_many({n: f"i = {n}" for n in range(2000)})  # compiled
    wider = matcher.with_attributes({"s": "string"}).with_attributes({"i": "int", "x": "double"})
    wider.subscribe_many({5000 + n: f"i = {n} AND x > 1" for n in range(100)})
    assert list(wider.schema) == ["i", "s", "x"]
    assert wider.match({"i": 7, "x": 2}) == [7, 5007]
    assert wider.engine == "sliced"
    again = wider.with_attributes(pa.schema([("b", pa.bool_())]))
    assert again.match({"i": 7, "x": 2, "b": True}) == [7, 5007]
    assert wider.with_attributes({}).schema == wider.schema


def test_settings_are_kept():
    matcher = Matcher({"i": "int"}, "sliced", "strict", unknown="refuse", options={"threads": 1})
    wider = matcher.with_attributes({"j": "int"})
    assert (wider.engine, wider.semantics) == ("sliced", "strict")
    assert wider.reader.refuse_unknown
    assert wider._held.engine._options.threads == 1


def test_defaults_of_new_attributes():
    matcher = Matcher({"x": "double"}, semantics="default", defaults={"x": math.nan})
    matcher.subscribe("a", "x > 1")
    wider = matcher.with_attributes({"j": "int"}, defaults={"j": 7})
    wider.subscribe("b", "j = 7")
    assert wider.match({}) == ["a", "b"]
    for defaults, said in (
        (None, "the defaults lack j"),
        ({"k": 1}, "unknown attribute 'k'"),
        ({"j": 1, "x": 2}, "unknown attribute 'x'"),
        ({"j": "y"}, "attribute j expects int"),
    ):
        with pytest.raises(OptionError, match=said):
            matcher.with_attributes({"j": "int"}, defaults=defaults)
    with pytest.raises(OptionError, match="defaults belong to"):
        Matcher({"x": "double"}).with_attributes({"j": "int"}, defaults={"j": 1})


@each(
    "attributes, message",
    [
        ({"i": "double"}, "attribute i is int already, and cannot become double"),
        ({"r.k": "int(1, 6)"}, r"attribute r\.k is int\(1, 5\) already"),
        ({"i.k": "int"}, r"attribute i\.k lies inside i"),
        ({"r": "int"}, r"attribute r\.k lies inside r"),
        ({"j": "number"}, "attribute 'j' has the unknown type"),
        (5, "a schema is a"),
    ],
)
def test_attributes_that_cannot_be_added(attributes, message):
    matcher = Matcher({"i": "int", "r.k": "int(1, 5)"})
    with pytest.raises(SchemaError, match=message):
        matcher.with_attributes(attributes)
