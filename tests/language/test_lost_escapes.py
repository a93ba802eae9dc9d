import logging

import pytest

from cases import each
from tamis import Matcher, parse
from tamis.language import lost_escapes

SCHEMA = {"s": "string", "t": "string"}


@pytest.fixture
def said(monkeypatch, caplog):
    """The warnings, in a process that has not given any."""
    monkeypatch.setattr(lost_escapes, "_said", set())
    caplog.set_level(logging.WARNING, "tamis")
    return caplog


def test_a_pattern_that_loses_its_backslashes_is_warned_of_once(said):
    for _ in range(3):
        parse(r"s RLIKE '^\d+$'", SCHEMA)
        Matcher(SCHEMA).subscribe("a", r"s RLIKE '^\d+$' AND t = 'x'")
    (message,) = said.messages
    assert r"the string '^\d+$' of a regular expression means '^d+$'" in message
    assert r"write r'^\d+$'" in message


@each(
    "text",
    [
        r"s RLIKE '^\\d+$'",
        r"s RLIKE r'^\d+$'",
        r"s RLIKE 'it\'s \n'",
        r"s LIKE '\%d'",
        r"s = '\d'",
        "s RLIKE '^[0-9]+$'",
        r"s RLIKE '\\\\b'",
    ],
)
def test_others_are_not(text, said):
    parse(text, SCHEMA)
    assert said.messages == []


@each(
    "text",
    [
        r"s REGEXP 'a\.b'",
        r's NOT RLIKE "\bword\b"',
        r"s rlike '\\\d'",
        r"s RLIKE'\w'",
        r"regexp_like(s, '\s')",
        r"rlike(lower(s), '\D')",
    ],
)
def test_spellings(text, said):
    said.clear()
    parse(text, SCHEMA)
    assert len(said.messages) == 1


def test_there_is_no_flood(said):
    matcher = Matcher(SCHEMA)
    matcher.subscribe_many([(i, rf"s RLIKE '\d{i}'") for i in range(200)])
    assert len(said.messages) == lost_escapes.MOST_SAID
