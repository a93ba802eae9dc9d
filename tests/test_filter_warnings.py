import logging

import pytest

from cases import each
from tamis import Matcher, filter_warnings

SCHEMA = {"status": "string", "n": "int", "x": "double", "ok": "bool"}


@pytest.fixture
def said(caplog):
    caplog.set_level(logging.WARNING, "tamis")
    return caplog


@each(
    ("text", "reason"),
    [
        ("status = NULL", "a comparison with NULL is never true; write status IS NULL"),
        ("n > 1 AND NULL <> status", "write status IS NULL"),
        ("NOT (status = NULL)", "write status IS NULL"),
        ("n > 5 AND n < 3", ": no value of n passes all its tests"),
        ("ok AND n = 1 AND n = 2", "no value of n passes all its tests"),
        ("x BETWEEN 5 AND 1", "no value of x passes all its tests"),
        ("status IS NULL AND status = 'a'", "no value of status passes all its tests"),
    ],
)
def test_a_filter_that_can_never_match_is_warned_of(text, reason, said):
    for subscribe in (
        lambda m: m.subscribe("a", text),
        lambda m: m.subscribe_many([("a", text)]),
    ):
        said.clear()
        matcher = Matcher(SCHEMA)
        subscribe(matcher)
        assert matcher.match({"n": 1, "status": "a"}) == []
        (message,) = said.messages
        assert message.startswith("no event can match the filter ")
        assert reason in message


@each("text", ["status IS NULL", "n > 3 AND n < 5", "status <=> NULL", "FALSE", "n = 1 OR n > 2"])
def test_others_are_not(text, said):
    Matcher(SCHEMA).subscribe("a", text)
    assert said.messages == []


def test_the_meaning_of_a_missing_attribute_counts(said):
    Matcher(SCHEMA, semantics="strict").subscribe("a", "status IS NULL")
    assert len(said.messages) == 1


def test_there_is_no_flood_and_only_the_first_filters_are_looked_at(said):
    matcher = Matcher(SCHEMA)
    matcher.subscribe_many([(i, f"n > {i} AND n < {i}") for i in range(200)])
    assert len(said.messages) == filter_warnings.MOST_SAID
    assert "there may be more" in said.messages[-1]
    said.clear()
    matcher = Matcher(SCHEMA)
    matcher.subscribe_many([(i, f"n > {i}") for i in range(filter_warnings.CHECKED)])
    matcher.subscribe(-1, "n > 5 AND n < 3")
    assert said.messages == []


def test_a_large_filter_is_not_looked_at(said):
    values = ", ".join(map(str, range(5_000)))
    Matcher(SCHEMA).subscribe("a", f"n IN ({values}) AND n = -1")
    assert said.messages == []
