"""A small schema of offers that the tests of the matcher share."""

from datetime import timedelta

from hypothesis import assume

from strategies import SCHEMA
from tamis import (
    ExpressionError,
    Matcher,
    Schema,
    parse,
)
from tamis.timestamps import EPOCH

OFFERS = Schema({"company": "string", "price": "double", "level": "int(1, 5)"})
EVENTS = [
    {"company": "IBM", "price": 900},
    {"company": "Dell", "price": 10.5, "level": 3},
    {"company": "Acer"},
    {},
]


def offers(**subscriptions):
    matcher = Matcher(OFFERS)
    matcher.subscribe_many(subscriptions)
    return matcher


def state(matcher):
    """All that a user can see of a matcher."""
    return (
        len(matcher),
        [(name, str(matcher.get(name))) for name in matcher],
        [matcher.match(event) for event in EVENTS],
        matcher.match_batch(EVENTS, "lists").to_pydict(),
        repr(matcher),
    )


def event_of(row):
    """A row of SCHEMA as people have it, without what is missing."""
    event = {}
    for attribute, value in zip(SCHEMA.attributes, row, strict=True):
        if value is None:
            continue
        *parents, last = attribute.path
        record = event
        for part in parents:
            record = record.setdefault(part, {})
        is_moment = str(attribute.type) == "timestamp"
        record[last] = EPOCH + timedelta(microseconds=value) if is_moment else value
    return event


def parsed(text):
    """The expression of a random filter; a few of them exceed a limit of decimals."""
    try:
        return parse(text, SCHEMA)
    except ExpressionError:
        assume(False)
