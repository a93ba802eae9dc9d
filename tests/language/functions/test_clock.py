"""now() and current_date(): one moment for all filters and events of a call."""

from datetime import UTC, datetime, timedelta
from itertools import product

import pytest

from cases import each
from tamis import BulkError, Matcher, OptionError, Schema, TypeMismatch, covers, parse
from tamis.compaction import compact
from tamis.engines import ENGINES
from tamis.engines.sliced.threads import in_order_of
from tamis.events.values import moment_of_call
from tamis.language.arrival import arrival, arriving
from tamis.types import DATE, TIMESTAMP

SCHEMA = Schema({"at": "timestamp", "n": "int"})
NOON = datetime(2024, 1, 2, 12, tzinfo=UTC)
EVENTS = [{"at": NOON - timedelta(hours=h), "n": h} for h in (-1, 0, 1, 3, 23, 25, 48)] + [{}]
# Filters, and the events that match at noon.
FILTERS = {
    "at > now() - INTERVAL 1 DAY": [0, 1, 2, 3, 4],
    "now() > TIMESTAMP '2024-01-01'": [0, 1, 2, 3, 4, 5, 6, 7],
    "now() < TIMESTAMP '2024-01-01'": [],
    "current_date = DATE '2024-01-02' AND n = 3": [3],
    "current_date() > to_date(at)": [4, 5, 6],
    "hour(current_timestamp) = 12 AND n > 24": [5, 6],
    "at BETWEEN now() - INTERVAL 2 HOURS AND now()": [1, 2],
    "n > 30 OR now() < at": [0, 6],
    "datediff(curdate(), at) = 1": [4, 5],
    "at IN (now(), TIMESTAMP '2024-01-02 11:00:00')": [1, 2],
    "NOT at < now()": [0, 1],
    "coalesce(at, now()) >= now()": [0, 1, 7],
}


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_every_engine_sees_the_moment_that_is_given(engine):
    matcher = Matcher(SCHEMA, engine=engine)
    matcher.subscribe_many([(text, text) for text in FILTERS])
    found = matcher.match_batch(EVENTS, "lists", now=NOON).to_pylist()
    expected = [{text for text, events in FILTERS.items() if n in events} for n in range(8)]
    assert [set(one["subscriptions"]) for one in found] == expected
    assert [set(matcher.match(event, now=NOON)) for event in EVENTS] == expected
    tables = matcher.match_batches(EVENTS, "lists", now="2024-01-02 12:00:00")
    assert [set(one["subscriptions"]) for t in tables for one in t.to_pylist()] == expected


@each("semantics", ["strict", "total"])
def test_no_attribute_is_needed_for_the_time(semantics):
    matcher = Matcher({"n": "int"}, semantics=semantics)
    matcher.subscribe("late", "n = 1 AND now() > TIMESTAMP '2024-01-01'")
    assert matcher.match({"n": 1}, now="2024-01-02") == ["late"]
    assert matcher.match({"n": 1}, now="2023-01-02") == []


def test_without_a_moment_it_is_the_present():
    matcher = Matcher(SCHEMA)
    matcher.subscribe("fresh", "at BETWEEN now() - INTERVAL 1 HOUR AND now() + INTERVAL 1 HOUR")
    event = {"at": datetime.now(UTC)}
    assert matcher.match(event) == ["fresh"]
    assert matcher.match_batch([event]).num_rows == 1
    assert matcher.match({"at": NOON}) == []


def test_saved_filters_and_explanations_have_the_clock(tmp_path):
    matcher = Matcher(SCHEMA, engine="sliced")
    matcher.subscribe("today", "to_date(at) = current_date")
    matcher.save(tmp_path / "rules.tamis")
    loaded = Matcher.load(tmp_path / "rules.tamis")
    assert loaded.match({"at": NOON}, now=NOON) == ["today"]
    assert loaded.match({"at": NOON}, now=NOON + timedelta(days=1)) == []
    assert loaded.why("today", {"at": NOON}, now=NOON).matched
    assert not loaded.why("today", {"at": NOON}, now="2024-02-01").matched


@each("now", [5, 1.5, "soon", b"2024", ["2024-01-01"]])
def test_what_is_not_a_moment_is_refused(now):
    with pytest.raises(OptionError, match="now is a datetime or a text"):
        Matcher(SCHEMA).match({}, now=now)


def test_types_and_texts():
    assert parse("now() = at", SCHEMA).tree.left.type == TIMESTAMP
    assert parse("current_date = DATE '2024-01-01'", SCHEMA).tree.left.type == DATE
    assert str(parse("CURRENT_TIMESTAMP > at", SCHEMA)) == "now() > at"
    assert parse("now() > at", SCHEMA).attributes == {("at",)}
    named = Schema({"current_date": "int"})  # an attribute of the name comes first
    assert parse("current_date = 5", named).attributes == {("current_date",)}
    with pytest.raises(TypeMismatch, match="takes 0 arguments"):
        parse("now(5) > at", SCHEMA)


def test_threads_see_the_moment_that_is_given():
    matcher = Matcher(SCHEMA, engine="sliced", options={"threads": 2})
    matcher.subscribe_many([(text, text) for text in FILTERS])
    found = matcher.match_batch(EVENTS * 1500, "counts", now=NOON)["count"].to_pylist()
    expected = [sum(n in events for events in FILTERS.values()) for n in range(8)]
    assert found == expected * 1500
    pairs = matcher.match_batch(EVENTS * 1500, now=NOON)
    assert pairs.num_rows == 1500 * sum(expected)


def test_work_in_other_threads_is_done_at_the_moment_of_the_caller():
    with arriving(7):
        assert list(in_order_of(lambda *_: arrival(), lambda: 1, 5, 2)) == [7] * 5
        assert list(in_order_of(lambda *_: arrival(), lambda: 1, 5, 1)) == [7] * 5


def test_places_that_match_again_refuse_a_clock():
    schema = SCHEMA.without_clock()
    assert schema == SCHEMA
    with pytest.raises(BulkError, match="cannot use the clock in compacted tables, for"):
        compact({"a": "at > now()"}, SCHEMA)
    with pytest.raises(TypeMismatch, match="filters cannot use the clock here: now") as caught:
        parse("at > now()", schema)
    assert caught.value.hint == "give events an attribute with the time, and name that"
    assert not schema.with_attributes({"k": "int"}).has_clock


def test_covering_never_takes_the_present_for_a_constant():
    day, hour, past = (
        parse(text, SCHEMA)
        for text in (
            "at > now() - INTERVAL 1 DAY", "at > now() - INTERVAL 1 HOUR",
            "now() > TIMESTAMP '2020-01-01'",
        )
    )  # fmt: skip
    assert covers(day, day)
    assert covers(day, hour)
    assert not covers(hour, day)
    assert not covers(past, parse("n = 1", SCHEMA))
    assert not covers(parse("at > TIMESTAMP '2020-01-01'", SCHEMA), day)


DOMAINS = Schema({"n": "int(1, 7)", "e": "enum('a', 'b')", "f": "bool", "at": "timestamp"})
# Of attributes whose values can be tried one by one: what is true at one time is not at another.
TRIED = [
    "n = dayofweek(now())", "NOT n = dayofweek(now())", "n IN (dayofweek(current_date), 3)",
    "e = if(hour(now()) = 5, 'a', 'b')", "f = (hour(now()) = 5)", "n > dayofweek(now())",
    "n = dayofweek(now()) AND e = 'a'", "n + dayofweek(now()) > 8", "hour(now()) = 5",
    "n = 2 AND hour(now()) = 5", "n < 3 OR hour(now()) = 5", "f AND n <> dayofweek(now())",
    "n BETWEEN 2 AND dayofweek(now())", "NOT f OR hour(now()) < 5",
    "array_contains(array(n, dayofweek(now())), 3)",
    "date_add(current_date, n) > DATE '2024-01-10'",
]  # fmt: skip
PLAIN = ["TRUE", "FALSE", *(f"n = {n}" for n in range(1, 8)), "n < 7", "e = 'a'", "e = 'b'", "f",
         "NOT f", "n IN (3, 4)", "n > 1", "n IS NOT NULL"]  # fmt: skip
WORLD = [
    {"n": n, "e": e, "f": f} for n in (*range(1, 8), None) for e in "ab" for f in (True, False)
]
TIMES = [f"2024-01-{day:02} {hour:02}:00:00" for day in range(7, 14) for hour in (4, 5)]


def true_of(text):
    """The events and the times for which a filter is true, by evaluation."""
    matcher = Matcher(DOMAINS, engine="naive")
    matcher.subscribe(0, text)
    found = (matcher.match_batch(WORLD, now=now)["event"].to_pylist() for now in TIMES)
    return {(now, event) for now, events in zip(TIMES, found, strict=True) for event in events}


def test_covering_is_true_at_every_time():
    """Brute force: a filter that covers another one matches whatever it matches, always."""
    truths = {text: true_of(text) for text in (*TRIED, *PLAIN)}
    covered = 0
    for wide, narrow in product(truths, truths):
        if wide in TRIED or narrow in TRIED:
            found = covers(parse(wide, DOMAINS), parse(narrow, DOMAINS))
            covered += found
            assert not found or truths[narrow] <= truths[wide], (wide, narrow)
    assert covered > 40


def test_covering_asked_at_any_time_gives_the_same():
    """What is known about filters is remembered: it must not be that of the moment."""
    for now in TIMES:
        with arriving(moment_of_call(now)):
            for wide, narrow in (
                ("n = 1", TRIED[0]), ("n = 2", TRIED[0]), ("e = 'a'", TRIED[3]), ("f", TRIED[4]),
                ("FALSE", TRIED[15]), ("n < 3", TRIED[10]), ("f", TRIED[13]),
            ):  # fmt: skip
                assert not covers(parse(wide, DOMAINS), parse(narrow, DOMAINS))


@pytest.mark.parametrize("engine", sorted(ENGINES))
def test_values_of_small_domains_are_not_tried_once_for_all_times(engine):
    matcher = Matcher(DOMAINS, engine=engine)
    matcher.subscribe_many([(text, text) for text in TRIED])
    truths = {text: true_of(text) for text in TRIED}
    for now in TIMES[::3]:
        pairs = matcher.match_batch(WORLD, now=now).to_pylist()
        found = {(row["event"], row["subscription"]) for row in pairs}
        assert found == {(n, text) for text in TRIED for at, n in truths[text] if at == now}


# Moments around the present, compared with it in many ways.
DISTANCES = [
    *(f"at {op} {moment}" for op in ("<", "<=", ">", ">=", "=", "<>") for moment in (
        "now()", "now() - INTERVAL 1 DAY", "now() + INTERVAL 1 HOUR", "now() - INTERVAL 1 HOUR")),
    "at + INTERVAL 1 HOUR > now()", "now() - INTERVAL 1 DAY < at - INTERVAL 1 HOUR",
    "INTERVAL 1 HOUR + at >= now() + INTERVAL 1 DAY", "now() < at + INTERVAL 1 DAY",
    "at BETWEEN now() - INTERVAL 2 HOURS AND now()", "NOT at > now() - INTERVAL 1 HOUR",
    "at - now() > INTERVAL 1 HOUR", "at > now() - INTERVAL 1 DAY - INTERVAL 1 HOUR",
    "at > now() - INTERVAL 1 MONTH", "at IS NULL", "at IS NOT NULL", "TRUE", "FALSE",
    "at > now() AND at < now()", "at > now() OR at <= now()", "at <=> now()",
    "at > TIMESTAMP '2024-01-02 11:00:00'", "now() > TIMESTAMP '2024-01-02 11:00:00'",
]  # fmt: skip
HOURS = (-800, -48, -25, -24, -23, -2, -1, 0, 1, 2, 23, 24, 25, 800)


def test_covering_knows_how_far_moments_are_from_the_present():
    """Brute force: whatever covers is true at every time; and of simple distances all is found."""
    nows = [NOON, NOON + timedelta(hours=30), NOON - timedelta(days=400)]
    matcher = Matcher(SCHEMA, engine="naive")
    matcher.subscribe_many([(text, text) for text in DISTANCES])
    truths = {text: set() for text in DISTANCES}
    for now in nows:
        micro = timedelta(microseconds=1)
        times = [now + timedelta(hours=h) + m for h in HOURS for m in (-micro, 0 * micro, micro)]
        events = [{"at": at} for at in times] + [{}]
        for row in matcher.match_batch(events, now=now).to_pylist():
            truths[row["subscription"]].add((now, row["event"]))
    simple = DISTANCES[:28]
    found = 0
    for wide, narrow in product(DISTANCES, DISTANCES):
        answer = covers(parse(wide, SCHEMA), parse(narrow, SCHEMA))
        is_true = truths[narrow] <= truths[wide]
        found += answer
        assert is_true or not answer, (wide, narrow)
        if wide in simple and narrow in simple:
            assert answer == is_true, (wide, narrow)
    assert found > 300
