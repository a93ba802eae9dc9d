import json
from datetime import date, datetime
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from cases import each
from tamis.broker.records import Published, Refusal
from tamis.client import publications as module
from tamis.client.publications import ARROW, BATCH, JSON, LINES, Tally, publications, single
from tamis.errors import EventError, OptionError


@each(
    ("event", "text"),
    [
        ({"a": 1, "b": "ü"}, '{"a":1,"b":"ü"}'),
        ({"at": datetime(2025, 1, 2, 3)}, '{"at":"2025-01-02T03:00:00"}'),  # noqa: DTZ001 - no zone
        ({"on": date(2025, 1, 2)}, '{"on":"2025-01-02"}'),
        ({"n": Decimal("1.5"), "k": np.int64(3), "f": np.float32(0.5)}, '{"n":1.5,"k":3,"f":0.5}'),
        ('{"a":\n1}\n', '{"a": 1}'),
        (b'{"a":1}', '{"a":1}'),
    ],
)
def test_one_event(event, text):
    made = single(event, None)
    assert made.body.decode() == text
    assert made.headers == {"Content-Type": JSON, "Event-Id": made.key}
    assert made.key != single(event, None).key


def test_columns_are_a_table_and_rows_are_not():
    table = pa.table({"a": [1, 2]})
    for columns in (table, table.to_reader(), table.to_batches()[0], pl.DataFrame({"a": [1, 2]})):
        assert module.as_table(columns).to_pylist() == [{"a": 1}, {"a": 2}]
    assert module.as_table([{"a": 1}]) is None


@each("event", [3, [1], {"a": float("nan")}, {"a": {1, 2}}, {"a": "\ud800"}, None])
def test_what_is_not_an_event(event):
    with pytest.raises(EventError):
        single(event, None)


@each("key", ["", "a\nb", "ü"])
def test_ids_that_cannot_be(key):
    with pytest.raises(OptionError, match="id of an event"):
        single({}, key)


def test_many_events_go_in_pieces(monkeypatch):
    monkeypatch.setattr(module, "MOST_EVENTS", 2)
    monkeypatch.setattr(module, "MOST_BYTES", 20)
    found = list(publications([{"a": 1}, {"a": 2}, {"a": 3}, {"a": "x" * 30}, {"a": 4}]))
    assert [one.events for one in found] == [2, 1, 1, 1]
    assert {one.kind for one in found} == {LINES}
    assert found[0].body == b'{"a":1}\n{"a":2}\n'
    assert len({one.key for one in found}) == 4


@each("make", [pa.table, pd.DataFrame, pl.DataFrame, pa.RecordBatch.from_pydict])
def test_tables_and_frames_go_as_columns(make):
    (found,) = publications(make({"price": [1.0, 2.0]}))
    assert (found.kind, found.events) == (ARROW, 2)
    assert pa.ipc.open_stream(found.body).read_all().to_pydict() == {"price": [1.0, 2.0]}


def test_large_tables_go_in_pieces(monkeypatch):
    monkeypatch.setattr(module, "MOST_TABLE", 100)
    found = list(publications(pa.table({"price": [1.0] * 25})))
    assert [one.events for one in found] == [12, 12, 1]
    monkeypatch.setattr(module, "MOST_ROWS", 20)
    monkeypatch.setattr(module, "MOST_TABLE", 10_000)
    assert [one.events for one in publications(pa.table({"price": [1.0] * 25}))] == [20, 5]


def test_an_empty_table_is_not_a_publication():
    assert list(publications(pa.table({"price": pa.array([], pa.float64())}))) == []
    assert list(publications([])) == []


@each("events", [[{"a": 1}, {"a": 2}], pa.table({"a": [1, 2]})])
def test_own_ids_make_cloud_events(events):
    (found,) = publications(events, ids=["x", 7])
    assert found.kind == BATCH
    content = json.loads(found.body)
    assert [(one["id"], one["data"]) for one in content] == [("x", {"a": 1}), ("7", {"a": 2})]
    assert {one["specversion"] for one in content} == {"1.0"}


def test_own_ids_need_valid_events_and_as_many_ids():
    with pytest.raises(EventError, match="the event with the id 'x' is not valid JSON"):
        list(publications(["{"], ids=["x"]))
    with pytest.raises(ValueError, match="shorter"):
        list(publications([{}, {}], ids=["x"]))


@each("events", [{"a": 1}, '{"a": 1}', 3])
def test_one_event_is_not_many(events):
    with pytest.raises(OptionError, match="publish takes one"):
        list(publications(events))


def test_the_tally_counts_rows_over_all_pieces():
    tally = Tally()
    first, second, third = (single({}, None)._replace(events=n) for n in (3, 2, 1))
    tally.add(first, {"accepted": 2, "offset": 9, "refused": [{"row": 1, "reason": "bad"}]})
    tally.refuse(second, [Refusal(0, "b"), Refusal(1, "c")])
    tally.add(third, {"accepted": 1, "offset": 10, "refused": []})
    refused = (Refusal(1, "bad"), Refusal(3, "b"), Refusal(4, "c"))
    assert tally.result() == Published(3, 10, refused)


def test_that_all_were_refused_is_an_error():
    tally = Tally()
    tally.refuse(single({}, None), [Refusal(0, "bad")])
    with pytest.raises(EventError, match="bad"):
        tally.result()
    assert Tally().result() == Published(0, None)
