"""Letters about subscriptions and events, found in batches without a session."""

import json
import pickle

import pyarrow as pa
from pyspark import cloudpickle

from tamis import Schema
from tamis.dead_letters import VALUE
from tamis.matcher_settings import MatcherSettings
from tamis.spark.dead_letters.worker import EventCheckTask, FilterCheckTask
from tamis.spark.tables.event_chunks import EventLayout

SCHEMA = Schema({"level": "int(1, 5)", "s": "string", "day": "timestamp", "r.k": "int"})
LAYOUT = EventLayout(("level", "s", "day", "r"), ("row",), True)


def letters_of(task, batches):
    return pa.Table.from_batches(task(batches)).to_pylist()


def test_letters_about_filters():
    batch = pa.record_batch(
        {
            "id": pa.array([7, 8, None, 10, 11, 7], pa.int64()),
            "filter": ["level = 1", "levl = 1", "TRUE", None, "s = 'x'\nAND r.k >", "level = 2"],
            "row": pa.array([5, 3, 1, 2**40, 0, 9], pa.int64()),
        }
    )
    found = letters_of(
        FilterCheckTask(MatcherSettings(SCHEMA)), [batch.slice(0, 3), batch.slice(3)]
    )
    assert [(row["row"], row["id"], row["line"], row["column"]) for row in found] == [
        (3, "8", 1, 1), (1, None, None, None), (2**40, "10", None, None), (0, "11", 2, 10),
    ]  # fmt: skip
    assert {row["source"] for row in found} == {"subscriptions"}
    assert found[-1]["value"] == "s = 'x'\nAND r.k >"


def test_letters_about_events():
    events = {
        "id": ["a", None, "c", "d", "e", "f", "g"],
        "e0": pa.array([1, 1, 9, 5, None, 2, 0], pa.int8()),
        "e1": pa.array([b"e", b"", b"", b"\xff", None, b"x" * 2000, b""], pa.binary()).view(
            pa.string()
        ),
        "e2": pa.array([0, 0, 0, 0, None, 2**31 - 1, 0], pa.date32()),
        "e3": pa.array([None, {"k": 1}, {"k": 2}, {"k": 3}, {"k": None}, None, {"k": 4}]),
        "k0": [10, 11, 12, 13, 14, 2**40, 16],
        "corrupt": [None, None, None, None, None, None, "{broken"],
    }
    whole = pa.record_batch(events)
    for step in (1, 3, 7):
        batches = [whole.slice(n, step) for n in range(0, 7, step)]
        found = letters_of(EventCheckTask(MatcherSettings(SCHEMA), LAYOUT), batches)
        assert [(row["row"], row["id"]) for row in found] == [
            (11, None), (12, "c"), (13, "d"), (2**40, "f"), (16, "g"),
        ]  # fmt: skip
        reasons = [row["reason"] for row in found]
        assert reasons[0] == "the event has no id"
        assert reasons[1] == "attribute level: 9 (int) lies outside the domain int(1, 5)"
        assert reasons[2] == "column s holds invalid UTF-8: invalid start byte"
        assert "out of bounds" in reasons[3]
        assert reasons[4] == "the row cannot be read: {broken"
        assert json.loads(found[1]["value"]) == {
            "level": 9, "s": "", "day": "1970-01-01", "r": {"k": 2},
        }  # fmt: skip
        assert json.loads(found[2]["value"])["s"] == "�"
        assert len(found[3]["value"]) == VALUE + 3
        assert all(row["source"] == "events" and row["line"] is None for row in found)


def test_events_that_are_fine_have_no_letters():
    batch = pa.record_batch({"id": [1, 2], "e0": [1, 5], "k0": [0, 1]})
    check = EventCheckTask(MatcherSettings(SCHEMA), EventLayout(("level",), ("row",), False))
    assert letters_of(check, [batch]) == []
    assert letters_of(EventCheckTask(MatcherSettings(SCHEMA, "total"), check.layout), [batch]) != []


def test_events_of_which_no_attribute_is_asked_for():
    batch = pa.record_batch({"id": pa.array([1, None], pa.int64()), "k0": [0, 1]})
    (letter,) = letters_of(
        EventCheckTask(MatcherSettings(SCHEMA), EventLayout((), ("row",), False)), [batch]
    )
    assert (letter["row"], letter["reason"], letter["value"]) == (1, "the event has no id", "{}")


def test_ids_that_are_hard_to_show():
    ids = [
        pa.array([b"\xff"], pa.binary()).view(pa.string()),
        pa.array([2**62], pa.timestamp("us", "UTC")),
        pa.array([{"a": 1}]),
        pa.array([b"\x00"]),
    ]
    for column in ids:
        batch = pa.record_batch({"id": column, "e0": [9], "k0": [0]})
        check = EventCheckTask(MatcherSettings(SCHEMA), EventLayout(("level",), ("row",), False))
        (letter,) = letters_of(check, [batch])
        assert letter["reason"].startswith("attribute level: 9")
        assert letter["id"]


def test_checks_are_sent_by_reference():
    for check in (
        FilterCheckTask(MatcherSettings(SCHEMA)),
        EventCheckTask(MatcherSettings(SCHEMA), LAYOUT),
    ):
        sent = cloudpickle.dumps(check)
        assert b"_make_function" not in sent
        assert pickle.loads(sent) == check
