"""What is particular to matching inside a database."""

import sys

import pytest

from cases import each
from tamis import Matcher, MissingDependency, Schema

ENGINES = ["sql-scan", "sql-grouped"]
SCHEMA = Schema({"s": "string", "i": "int", "x": "double", "b": "bool", "at": "timestamp"})
NASTY = ["'; DROP TABLE subs; --", "a'b", '"', "$s", "?", "\x00", "é😀", "{}"]


@each("engine", ENGINES)
@each("text", NASTY)
def test_no_text_of_a_user_is_part_of_a_query(engine, text):
    m = Matcher(SCHEMA, engine=engine)
    m.subscribe(text, "s = '" + text.replace("\\", "\\\\").replace("'", "''") + "'")
    assert m.match({"s": text}) == [text]
    assert m.match({"s": text + "x"}) == []


@pytest.mark.parametrize("engine", ENGINES)
def test_a_batch_is_asked_in_one_query_and_answered_as_single_events_are(engine):
    m = Matcher(SCHEMA, engine=engine)
    m.subscribe_many((n, f"i >= {n} AND x < {n * 10} AND s LIKE '_%'") for n in range(20))
    events = [{"i": n % 25, "x": n, "s": "ab"[: n % 3]} for n in range(250)]
    lists = m.match_batch(events, output="lists")["subscriptions"].to_pylist()
    naive = Matcher(SCHEMA, engine="naive")
    naive.subscribe_many(m.items())
    assert lists == naive.match_batch(events, output="lists")["subscriptions"].to_pylist()
    for place in (0, 1, 99, 100, 101, 200, 249):  # a query for each
        assert lists[place] == m.match(events[place])
    assert any(lists)


@pytest.mark.parametrize("engine", ENGINES)
def test_changes_between_questions(engine):
    m = Matcher(SCHEMA, engine=engine)
    m.subscribe_many({1: "i = 1", 2: "i = 1 AND b", 3: "at < '2024-01-01'"})
    event = {"i": 1, "b": True, "at": "2023-12-31"}
    assert m.match(event) == [1, 2, 3]
    m.unsubscribe(1)
    m.subscribe(4, "i = 2 OR x IS NULL")
    assert m.match(event) == [2, 3, 4]
    m.subscribe(2, "i > 5")  # takes ids that others had
    m.subscribe(4, "b AND i = 1")
    assert m.match(event) == [3, 4]


@pytest.mark.parametrize("engine", ENGINES)
def test_without_duckdb_the_error_says_what_to_install(engine, monkeypatch):
    monkeypatch.setitem(sys.modules, "duckdb", None)
    message = rf"the engine {engine} needs DuckDB: pip install 'tamis\[duckdb\]'"
    with pytest.raises(MissingDependency, match=message):
        Matcher(SCHEMA, engine=engine)
