"""Bad events, ids of events and kept columns: every form of events gives one answer."""

import json
import logging
import math

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from tamis import CapacityError, EventError, Matcher, Matches, OptionError, Schema
from tamis.engines import ENGINES
from tamis.events import chunks
from tamis.semantics import NAMES

SCHEMA = Schema({"price": "double", "level": "int(1, 5)", "at": "timestamp"})
FILTERS = {"cheap": "price < 10", "dear": "price >= 5", "low": "level <= 2 OR at IS NULL"}
ARROW = pa.schema([("id", pa.string()), ("price", pa.float64()), ("level", pa.int64()),
                   ("at", pa.string()), ("note", pa.int64())])  # fmt: skip
EVENTS = [
    {"id": "a", "price": 7.0, "level": 1, "at": None, "note": 10},
    {"id": "b", "price": 1.0, "level": 9, "at": None, "note": 11},
    {"id": None, "price": 1.0, "level": 2, "at": None, "note": None},
    {"id": "d", "price": 20.0, "level": None, "at": "2024-01-01", "note": 13},
    {"id": "e", "price": None, "level": None, "at": "soon", "note": 14},
    {"id": "f", "price": None, "level": None, "at": None, "note": 15},
]
FORMS = {
    "a table": lambda events: pa.Table.from_pylist(events, ARROW),
    "chunks": lambda events: pa.concat_tables(
        [pa.Table.from_pylist(events[:2], ARROW), pa.Table.from_pylist(events[2:], ARROW)]
    ),
    "views": lambda events: pa.Table.from_pylist(events, ARROW).cast(
        pa.schema([f.with_type(pa.string_view()) if f.type == pa.string() else f for f in ARROW])
    ),
    "polars": lambda events: pl.from_arrow(pa.Table.from_pylist(events, ARROW)),
    "pandas": lambda events: pa.Table.from_pylist(events, ARROW).to_pandas(
        types_mapper={pa.int64(): pd.Int64Dtype()}.get
    ),
    "dicts": list,
    "texts": lambda events: [json.dumps(event) for event in events],
    "a generator": iter,
}


def made(engine="auto", **settings_):
    matcher = Matcher(SCHEMA, engine, **settings_)
    matcher.subscribe_many(FILTERS)
    return matcher


def one_by_one(events, matcher, output, event_id, keep):
    """What `match` says about each event, as the columns of a table."""
    rows, bad = [], {}
    for number, event in enumerate(events):
        try:
            found = matcher.match(event)
            if event_id is not None and event[event_id] is None:
                raise EventError("the event has no id")
        except EventError as error:
            bad[number] = error.problem
            continue
        about = (number if event_id is None else event[event_id],)
        kept = tuple(event[name] for name in keep)
        matched = {"lists": [found], "counts": [len(found)], "pairs": found}[output]
        rows += [(*about, one, *kept) for one in matched]
    return rows, bad


def rows_of(table):
    return list(zip(*table.to_pydict().values(), strict=True))


@each("form", FORMS)
@each("output", ["pairs", "lists", "counts"])
@each("event_id, keep", [(None, []), ("id", []), (None, ["note"]), ("id", ["note", "price", "id"])])
def test_every_form(form, output, event_id, keep):
    matcher = made()
    rows, bad = one_by_one(EVENTS, matcher, output, event_id, keep)
    found = matcher.match_batch(
        FORMS[form](EVENTS), output, on_bad="skip", event_id=event_id, keep=keep
    )
    assert rows_of(found) == rows
    assert {letter.row: letter.reason for letter in found.bad} == bad
    assert [letter.id for letter in found.bad] == [event_id and EVENTS[n]["id"] for n in bad]
    assert all(letter.source == "events" for letter in found.bad)
    assert json.loads(found.bad[0].value)["level"] == 9
    first = {"pairs": "subscription", "lists": "subscriptions", "counts": "count"}[output]
    assert found.column_names == ["event" if event_id is None else "event_id", first, *keep]


@pytest.mark.long
@each("engine", ENGINES)
def test_every_engine(engine):
    matcher = made(engine)
    for events in (EVENTS, pa.Table.from_pylist(EVENTS, ARROW)):
        for output in ("pairs", "lists", "counts"):
            choices = {"on_bad": "skip", "event_id": "id", "keep": ["note"]}
            found = matcher.match_batch(events, output, **choices)
            rows, bad = one_by_one(EVENTS, matcher, output, "id", ["note"])
            assert rows_of(found) == rows
            assert [letter.row for letter in found.bad] == list(bad)
            (part,) = matcher.match_batches(events, output, **choices)
            assert part == found


VALUES = {
    "id": st.sampled_from(["x", "y", None]),
    "price": st.sampled_from([1.0, 7.0, math.inf, None]),
    "level": st.sampled_from([1, 3, 0, None]),
    "at": st.sampled_from(["2024-01-01", "soon", None]),
    "note": st.sampled_from([1, None]),
}


@settings(max_examples=20)
@given(
    events=st.lists(st.fixed_dictionaries(VALUES), max_size=8),
    semantics=st.sampled_from(NAMES),
    output=st.sampled_from(["pairs", "lists", "counts"]),
    event_id=st.sampled_from([None, "id"]),
    at_once=st.sampled_from([1, 3, 100]),
)
def test_any_events(events, semantics, output, event_id, at_once):
    defaults = {"price": 2, "level": 3, "at": None} if semantics == "default" else None
    matcher = made(semantics=semantics, defaults=defaults)
    rows, bad = one_by_one(events, matcher, output, event_id, ["note"])
    table = pa.Table.from_pylist(events, ARROW)
    choices = {"on_bad": "skip", "event_id": event_id, "keep": ["note"]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks, "ROWS", at_once)
        patch.setattr(chunks, "EVENTS", at_once)
        for given_ in (table, events):
            found = matcher.match_batch(given_, output, **choices)
            assert rows_of(found) == rows
            assert {one.row: one.reason for one in found.bad} == bad
            parts = list(matcher.match_batches(given_, output, **choices))
            assert [row for part in parts for row in rows_of(part)] == rows
            assert [letter for part in parts for letter in part.bad] == found.bad
    if bad:
        with pytest.raises(EventError) as caught:
            matcher.match_batch(table, output, event_id=event_id)
        assert caught.value.row in bad


# --- raising


def test_without_skip_the_first_bad_event_is_an_error():
    matcher, table = made(), pa.Table.from_pylist(EVENTS, ARROW)
    for events in (EVENTS, table):
        with pytest.raises(EventError, match=r"event 1: attribute level: 9 \(int\) lies outside"):
            matcher.match_batch(events)
    for events in (EVENTS[2:], table.slice(2)):
        with pytest.raises(EventError, match="event 0: the event has no id"):
            matcher.match_batch(events, event_id="id")
        with pytest.raises(EventError, match="event 6: the event has no id"):
            list(matcher.match_batches([table.slice(0, 1)] * 6 + [table.slice(2, 1)],
                                       event_id="id"))  # fmt: skip
    plain = matcher.match_batch(table.slice(0, 1), event_id="id")
    assert isinstance(plain, pa.Table)
    assert plain.to_pydict() == {"event_id": ["a"] * 3, "subscription": list(FILTERS)}


def test_a_column_of_another_type_is_an_error_even_with_skip():
    with pytest.raises(EventError, match="column price has the type string, expected double"):
        made().match_batch(pa.table({"price": ["1"]}), on_bad="skip")
    with pytest.raises(EventError, match="column price has the type string, expected double"):
        list(made().match_batches(pa.table({"price": pa.array([], pa.string())})))


@each(
    "choices, message",
    [
        ({"output": "sets"}, "unknown output 'sets'"),
        ({"on_bad": "keep"}, "unknown treatment of bad rows 'keep'; .*choices: raise, skip"),
        ({"event_id": "ID"}, "event_id: the events have no column 'ID'; did you mean 'id'"),
        ({"event_id": 5}, "event_id is the name of a column, not 5"),
        ({"keep": ["Note"]}, "keep: the events have no column 'Note'; did you mean 'note'"),
        ({"keep": "note"}, r"keep is a list of columns, not 'note'; write \['note'\]"),
        ({"keep": ["note", "note"]}, "keep names a column twice"),
        ({"keep": ["event"]}, "'event' has the name of a column of the matches; rename"),
        ({"keep": ["count"]}, "'count' has the name of a column of the matches"),
        ({"keep": ["event_id"], "event_id": "id"}, "'event_id' has the name of a column"),
    ],
)
def test_choices_that_cannot_be(choices, message):
    table = pa.Table.from_pylist(EVENTS[:1], ARROW)
    with pytest.raises(OptionError, match=message):
        made().match_batch(table, **choices)
    with pytest.raises(OptionError, match=message):
        list(made().match_batches(table, **choices))


def test_ids_of_several_types_make_no_column():
    events = [{"id": 1, "price": 1}, {"id": "x", "price": 1}]
    with pytest.raises(OptionError, match="the values of 'id' make no column"):
        made().match_batch(events, event_id="id")


def test_kept_columns_count_for_the_memory():
    matcher = made(options={"memory": 100_000})
    table = pa.table({"price": [7.0] * 100, "text": ["x" * 2000] * 100})
    assert len(matcher.match_batch(table)) == 300
    with pytest.raises(CapacityError, match="match_batches"):
        matcher.match_batch(table, keep=["text"])


# --- names


def test_attributes_that_are_kept_have_their_types():
    matcher = made(semantics="default", defaults={"price": 1, "level": 1, "at": "2024-01-01"})
    kept = ["at", "price", "level"]
    found = matcher.match_batch([{"at": "2024-01-02"}, {"price": 3}], "counts", keep=kept)
    assert [found.schema.field(name).type for name in kept] == [
        pa.timestamp("us", "UTC"), pa.float64(), pa.int64(),
    ]  # fmt: skip
    assert found["price"].to_pylist() == [None, 3.0]  # as given, without the default


def test_ids_and_kept_names_are_not_unknown():
    matcher = made(unknown="refuse")
    events = [{"id": 1, "price": 1.0, "note": 2}]
    for given_ in (events, pa.Table.from_pylist(events)):
        found = matcher.match_batch(given_, event_id="id", keep=["note"])
        assert found["note"].to_pylist() == [2, 2]
        with pytest.raises(EventError, match="unknown attribute 'note'"):
            matcher.match_batch(given_, event_id="id")


def test_a_warning_of_names_that_differ_only_in_case(caplog):
    matcher = made()
    with caplog.at_level(logging.WARNING, "tamis"):
        for events in (pa.table({"Price": [1.0], "x": [1]}), [{"PRICE": 1}, {"LEVEL": 1}]):
            matcher.match_batch(events)
            matcher.match_batch(events)
        matcher.match_batch(pa.table({"Price": [1.0], "price": [1.0]}))
    assert [record.getMessage().split(":")[0] for record in caplog.records] == [
        "the events have 'Price', and the schema has 'price'",
        "the events have 'PRICE', and the schema has 'price'",
    ]


# --- the answer


def test_matches_are_a_table_with_the_bad_rows():
    found = made().match_batch(EVENTS, on_bad="skip")
    assert isinstance(found, Matches)
    assert found.num_rows == len(found) == len(found.table)
    assert found["event"].to_pylist() == found.table["event"].to_pylist()
    assert pa.table(found) == found.table
    assert found.to_pandas().shape == (len(found), 2)
    assert pl.DataFrame(found).shape == (len(found), 2)
    assert repr(found).endswith("bad: 2")
    assert "to_pylist" in dir(found)
    assert found != found.table
    assert [str(letter) for letter in found.bad] == [
        "events, row 1: attribute level: 9 (int) lies outside the domain int(1, 5)",
        f"events, row 4: {found.bad[1].reason}",
    ]


def test_matches_can_be_sent():
    import copy
    import pickle

    found = made().match_batch(EVENTS, on_bad="skip")
    assert pickle.loads(pickle.dumps(found)) == copy.deepcopy(found) == found  # our own bytes


@each("event", [b"\xff", 5, None, {1: {2: object()}}, {("a",): 1, "level": 9}, "<a>", "[]"])
def test_anything_can_be_a_bad_event(event):
    found = made().match_batch([event, EVENTS[0]], on_bad="skip", event_id="id")
    assert found["event_id"].to_pylist() == ["a"] * 3
    (letter,) = found.bad
    assert letter.row == 0
    assert letter.reason
    (letter.value or "").encode()


def test_all_bad_and_none_at_all():
    matcher = made()
    for events in ([EVENTS[1]] * 3, pa.Table.from_pylist([EVENTS[1]] * 3, ARROW)):
        (found,) = matcher.match_batches(events, on_bad="skip")
        assert (len(found), [letter.row for letter in found.bad]) == (0, [0, 1, 2])
    (empty,) = matcher.match_batches(pa.Table.from_pylist([], ARROW), event_id="id", keep=["note"])
    assert empty.column_names == ["event_id", "subscription", "note"]
    assert empty.schema.field("event_id").type == pa.string()
