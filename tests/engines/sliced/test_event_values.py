"""Single events in the buffers of a thread: nothing is left of the event before."""

import math
import threading

import pytest

from cases import each
from tamis import Matcher, Schema
from tamis.engines.sliced.event_values import (
    MOST_KEPT,
    ROOM_FOR_ELEMENTS,
    ROOM_FOR_TEXT,
    ValueBuffers,
)

SCHEMA = Schema({
    "n": "int", "x": "double", "s": "string", "side": "enum('sell', 'buy')", "b": "bool",
    "d": "decimal(5, 2)", "t": "string", "tags": "array<string>", "codes": "array<int>",
    "at": "timestamp", "xs": "array<double>", "unused": "double",
})  # fmt: skip
RULES = [
    "n = 3", "n IS NULL", "n <> 3", "x > 0.5", "x IS NULL", "x = 0.0", "x >= CAST('NaN' AS DOUBLE)",
    "s = 'é'", "s IS NULL", "s > 'ab'", "side = 'buy'", "side IS NULL", "b", "NOT b", "b IS NULL",
    "d = 1.25", "d IS NULL", "t = ''", "t IS NULL", "t LIKE '%z%'", "array_contains(tags, 'é')",
    "NOT array_contains(tags, 'é')", "tags IS NULL", "array_contains(codes, 3)",
    "NOT array_contains(codes, 7)", "size(tags) > 2", "at > '2024-01-31'", "n + x > 4",
    "array_contains(xs, 0.0)", "arrays_overlap(codes, array(1, 2))", "n IN (1, 3) AND s <> 'a'",
]  # fmt: skip
FULL = {
    "n": 3, "x": 0.75, "s": "é", "side": "buy", "b": True, "d": "1.25", "t": "", "tags": ["é"],
    "codes": [3, 7], "at": "2024-02-01 00:00:00", "xs": [-0.0], "unused": 1.0,
}  # fmt: skip
EVENTS = [
    FULL, {}, FULL, *({k: v for k, v in FULL.items() if k != name} for name in FULL),
    FULL | {"x": math.nan, "n": -(2**63)}, FULL | {"x": -0.0, "n": 2**63 - 1},
    FULL | {"x": -math.inf, "xs": [math.nan, math.inf]}, {"x": -1.5, "s": "", "t": "az"},
    FULL | {"s": "long" * ROOM_FOR_TEXT, "t": "z" * ROOM_FOR_TEXT}, {"t": "z" * 10 * ROOM_FOR_TEXT},
    FULL | {"tags": ["é", *("ab" * k for k in range(3 * ROOM_FOR_ELEMENTS))]},
    {"tags": ["b", None]},
    {"codes": list(range(2 * ROOM_FOR_ELEMENTS))}, {"codes": [None, 3]}, {"tags": [], "codes": []},
    FULL,
]  # fmt: skip


def matchers(rules):
    made = Matcher(SCHEMA, "sliced"), Matcher(SCHEMA, "naive")
    for matcher in made:
        matcher.subscribe_many(dict(enumerate(rules)))
    return made


@each("rules", [RULES, RULES[:3], [rule for rule in RULES if rule.startswith("s ")], RULES[-4:]])
def test_each_event_is_matched_as_if_it_were_the_first(rules):
    sliced, naive = matchers(rules)
    expected = [naive.match(event) for event in EVENTS]
    assert [sliced.match(event) for event in EVENTS] == expected
    assert [sliced.match(event) for event in reversed(EVENTS)] == expected[::-1]


def test_the_found_handles_are_not_changed_by_the_next_event():
    sliced, _ = matchers(RULES)
    engine = sliced._held.engine
    rows = [sliced.reader.row(event) for event in EVENTS]
    found = [engine.match(row) for row in rows]
    kept = [one.tolist() for one in found]
    for row in rows:
        engine.match(row)
    assert [one.tolist() for one in found] == kept


def test_room_for_a_large_event_is_not_kept():
    buffers = ValueBuffers(2)
    assert not buffers.are_large
    buffers.put_text(0, "x" * MOST_KEPT)
    assert buffers.are_large
    sliced, naive = matchers(RULES)
    for event in (FULL, FULL | {"t": "z" * MOST_KEPT}, FULL):
        assert sliced.match(event) == naive.match(event)
        kept = [
            made for part in sliced._held.engine.snapshot().parts for made in part._event_buffers
        ]
        assert not any(made.values.are_large for made in kept)


@pytest.mark.long
def test_threads_have_buffers_of_their_own():
    sliced, naive = matchers(RULES)
    expected = [naive.match(event) for event in EVENTS]
    wrong = []

    def run(start):
        for k in range(start, start + 300):
            place = k % len(EVENTS)
            if sliced.match(EVENTS[place]) != expected[place]:
                wrong.append(place)

    threads = [threading.Thread(target=run, args=(7 * number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong
