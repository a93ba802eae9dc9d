"""Decoding many events at once gives what reading them one by one gives."""

import json

import pyarrow as pa
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis import Schema
from tamis.broker.log.event_decoder import EventDecoder
from tamis.errors import EventError
from tamis.events.columns import table_rows
from tamis.events.event_reader import EventReader

SCHEMA = Schema(
    {"n": "int", "x": "double", "s": "string", "b": "bool", "t": "timestamp",
     "place.city": "string", "place.zone.level": "int", "`a.b`": "string"}
)  # fmt: skip
DECODER, READER = EventDecoder(SCHEMA), EventReader(SCHEMA)

INTS = st.integers(-(2**63), 2**63 - 1)
DOUBLES = st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.integers(-(2**70), 2**70))
MOMENTS = st.sampled_from(["2024-01-31", "2024-01-31 12:30:00.5+01:00", "2024-01-31T12:30:00Z"])
TEXTS = st.text(max_size=5)
GOOD = {
    "n": INTS, "x": DOUBLES, "s": TEXTS, "b": st.booleans(), "t": MOMENTS, "a.b": TEXTS,
    "place": st.fixed_dictionaries(
        {}, optional={"city": TEXTS, "zone": st.fixed_dictionaries({}, optional={"level": INTS})}
    ),
    "more": st.lists(st.none()),
}  # fmt: skip
EVENTS = st.fixed_dictionaries({}, optional={k: v | st.none() for k, v in GOOD.items()})
BAD = st.sampled_from([{"n": "1"}, {"t": "never"}, {"place": 3}, {"n": 2**64}, {"s": 1}])


def decoded(texts):
    found = DECODER.decode(b",".join(texts), len(texts), lambda: texts)
    table = pa.table({"_": pa.nulls(len(texts) - len(found.bad)), **found.columns})
    return table_rows(table, SCHEMA, refuse_unknown=False), list(found.bad)


@settings(max_examples=25)
@given(st.lists(EVENTS | BAD, max_size=6))
def test_columns_have_the_values_that_the_reader_gives(events):
    texts = [json.dumps(event).encode() for event in events]
    rows, bad = [], []
    for number, text in enumerate(texts):
        try:
            rows.append(READER.row(text))
        except EventError:
            bad.append(number)
    assert decoded(texts) == (rows, bad)


def test_the_path_of_an_attribute_may_be_a_name():
    assert decoded([b'{"place.city": "Rome", "place": {"zone": null}}'])[0][0][5] == "Rome"


def test_a_text_of_two_objects_is_bad():
    assert decoded([b"{},{}", b"{}"]) == ([(None,) * 8], [0])


def test_arrays_and_maps():
    schema = Schema(
        {"tags": "array<string>", "at": "array<timestamp>", "m": "map<string, double>", "r.ns":
         "array<int>"}
    )  # fmt: skip
    events = [
        {"tags": ["a", None], "at": ["2024-01-31", None], "m": {"k": 1, "n": None}},
        {}, {"tags": [], "m": {}, "r": {"ns": [1, 2]}},
    ]  # fmt: skip
    texts = [json.dumps(event).encode() for event in events]
    found = EventDecoder(schema).decode(b",".join(texts), len(texts), lambda: texts)
    assert found.bad == ()
    rows = table_rows(pa.table(found.columns), schema, refuse_unknown=True)
    assert rows == [EventReader(schema).row(text) for text in texts]
    bad = [*texts, b'{"tags": ["a", 5]}']
    found = EventDecoder(schema).decode(b",".join(bad), len(bad), lambda: bad)
    assert found.bad == [3]
    assert table_rows(pa.table(found.columns), schema, refuse_unknown=True) == rows
