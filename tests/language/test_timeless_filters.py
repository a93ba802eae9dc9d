"""Filters without a clock that match whatever a filter with one matches."""

from datetime import UTC, datetime, timedelta
from itertools import product

from cases import each
from tamis import Matcher, Schema, parse
from tamis.language.shape_cache import ShapeCache
from tamis.language.timeless_filters import timeless

SCHEMA = Schema({"at": "timestamp", "n": "int"})
NOON = datetime(2024, 1, 2, 12, tzinfo=UTC)
FILTERS = {
    "n = 1": "n = 1",
    "at > now() AND n = 1": "n = 1",
    "at > now() AND n > 1 AND n < 9": "n > 1 AND n < 9",
    "at > now()": "TRUE",
    "at > now() OR n = 1": "TRUE",
    "NOT (at > now() AND n = 1)": "TRUE",
    "(at > now() AND n = 1) OR n = 2": "n = 1 OR n = 2",
    "n > 0 AND (at > now() OR to_date(at) = current_date)": "n > 0",
    "n IN (1, 2) AND hour(now()) = 12 AND (now() < at AND n = 2)": "n IN (1, 2) AND n = 2",
    "if(at > now(), n = 1, n = 2)": "TRUE",
}


@each("text, expected", FILTERS.items())
def test_what_is_left_of_a_filter(text, expected):
    found = timeless(parse(text, SCHEMA))
    assert str(found) == expected
    assert not found.has_clock
    assert timeless(found) is found


@each("semantics", ["sql", "strict", "default", "total"])
def test_it_matches_whatever_the_filter_matches_at_any_time(semantics):
    defaults = {"at": NOON, "n": 0} if semantics == "default" else None
    matcher = Matcher(SCHEMA, semantics=semantics, defaults=defaults)
    for text in FILTERS:
        matcher.subscribe(text, text)
        matcher.subscribe(f"{text} -> ", timeless(parse(text, SCHEMA)))
    times = [NOON + timedelta(hours=h) for h in (-24, -1, 0, 1)]
    matches = 0
    for at, n, now in product([None, *times], [None, 0, 1, 2, 9], times):
        event = {"at": at, "n": n}
        if semantics == "total" and None in event.values():
            continue
        found = set(matcher.match(event, now=now))
        matches += len(found)
        assert all(f"{text} -> " in found for text in FILTERS if text in found)
    assert matches > 100


def test_a_filter_of_the_cache_knows_its_clock():
    cache = ShapeCache(SCHEMA)
    for text in FILTERS:
        assert cache.parse(text).has_clock == parse(text, SCHEMA).has_clock == (text != "n = 1")
