"""Tests for elements in compiled filters: found by value, saved, merged and widened."""

import numpy as np
import pyarrow as pa
import pytest

from array_strategies import ARRAYS
from oracles import Both
from tamis import Matcher, Schema
from tamis.engines.sliced.element_sets import element_classes
from tamis.engines.sliced.segment_predicates import texts_of
from tamis.predicates.event_batches import batch_of_rows

TAGS = Schema({"n": "int", "tags": "array<string>", "ns": "array<int>", "m": "map<string, double>"})
FILTERS = [
    *(f"array_contains(tags, 't{k}')" for k in range(3000)),
    *(f"array_contains(ns, {k}) AND n > 1" for k in range(50)),
    *(f"NOT array_contains(tags, 't{k}')" for k in range(20)),
    *(f"arrays_overlap(tags, array('t{k}', 't{k + 1}'))" for k in range(100)),
    *(f"NOT arrays_overlap(array('t{k}', 't{k + 7}'), tags)" for k in range(5)),
    *(f"map_contains_key(m, 'k{k}')" for k in range(9)),
    *(f"m['k{k}'] > {k}" for k in range(9)),
    "tags IS NULL", "ns IS NOT NULL AND size(ns) > 1", "exists(tags, t -> t LIKE 't1%')",
    "array_contains(tags, 't1') OR array_contains(ns, 1)", "array_contains(tags, 'x') IS NULL",
]  # fmt: skip


def some_rows(seed, size):
    chance = np.random.default_rng(seed)
    rows = []
    for _ in range(size):
        tags = [None if k == 0 else f"t{k}" for k in chance.integers(0, 60, chance.integers(0, 5))]
        ns = chance.integers(0, 9, chance.integers(0, 4)).tolist()
        keys = {f"k{k}": float(k) for k in chance.integers(0, 12, 3)}
        row = (int(chance.integers(0, 5)), tuple(tags), tuple(ns), tuple(keys.items()))
        missing = chance.random(4) < 0.1
        rows.append(tuple(None if gone else one for one, gone in zip(row, missing, strict=True)))
    return rows


def events_of(rows):
    events = [dict(zip(TAGS, row, strict=True)) for row in rows]
    return [event | {"m": None if event["m"] is None else dict(event["m"])} for event in events]


@pytest.mark.long
def test_many_filters_agree_with_the_oracle():
    events = events_of(some_rows(1, 700))
    naive, sliced = Matcher(TAGS, engine="naive"), Matcher(TAGS, engine="sliced")
    for matcher in (naive, sliced):
        matcher.subscribe_many(enumerate(FILTERS))
    expected = naive.match_batch(events).to_pydict()
    assert sliced.match_batch(events).to_pydict() == expected
    assert len(expected["event"]) > 10_000
    for event in events[:40]:
        assert sliced.match(event) == naive.match(event)
    plan = str(sliced.explain())
    assert "found by elements of tags" in plan
    assert "found by elements of ns" in plan


def test_a_saved_matcher_answers_the_same(tmp_path):
    events = events_of(some_rows(2, 60))
    matcher = Matcher(TAGS, engine="sliced")
    matcher.subscribe_many(enumerate(FILTERS[::7]))
    matcher.save(tmp_path / "rules.tamis")
    loaded = Matcher.load(tmp_path / "rules.tamis")
    expected = matcher.match_batch(events).to_pydict()
    assert loaded.match_batch(events).to_pydict() == expected
    assert [loaded.match(event) for event in events[:9]] == [matcher.match(e) for e in events[:9]]
    wider = Matcher(Schema({"first": "array<int>"}).with_attributes(TAGS), engine="sliced")
    wider.subscribe_many([(9001, "array_contains(first, 3)"), (9002, "array_contains(ns, 2)")])
    wider.absorb(tmp_path / "rules.tamis")
    for event in events[:9]:
        own = [9001, 9002] if 2 in (event["ns"] or ()) else [9001]
        assert wider.match(event | {"first": [3]}) == [*own, *matcher.match(event)]


def test_filters_come_and_go():
    rows = [(None,) * 13, *((None, "a", None, ("a", "b"), ("b", None)) + (None,) * 8 for _ in "xy")]
    both = Both("sliced", ARRAYS)
    texts = [f"array_contains({name}, '{c}')" for name in ("tags", "more") for c in "abc"]
    both.put([*texts, *(f"NOT {text}" for text in texts)]).check(rows)
    both.drop(range(0, 12, 2)).check(rows)
    both.put(["arrays_overlap(tags, array('b', 'c'))", *texts], first=20).check(rows)
    both.drop(range(40)).check(rows)


def test_classes_of_elements():
    rows = [(1, ("a", None, "c"), None, None), (1, None, None, None), (1, ("b",), None, None)]
    column = batch_of_rows(rows, TAGS).columns[1]
    cuts = texts_of(pa.array(["a", "b"]))
    assert element_classes(column, cuts, 10).tolist() == [21, 20, 24, 23]
