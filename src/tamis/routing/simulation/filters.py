"""The schema, filters and events of simulations.

The schema is small, so that many filters cover each other, are equal or can be merged.
"""

import functools
import itertools
import random
from collections.abc import Callable, Iterable
from typing import Any

from tamis.errors import TamisError
from tamis.events.event_reader import EventReader, Row
from tamis.language.expression import parse_with
from tamis.relations.covering import intersects
from tamis.schema import Schema
from tamis.semantics import Semantics

SCHEMA = {
    "symbol": "enum('A', 'B', 'C')",
    "price": "int(0, 9)",
    "volume": "int",
    "name": "string",
}
DEFAULTS = {"symbol": "A", "price": 0, "volume": None, "name": ""}

# Values that lie on both sides of every constant of the filters below.
VALUES: dict[str, tuple[Any, ...]] = {
    "symbol": ("A", "B", "C"),
    "price": tuple(range(10)),
    "volume": (5, 10, 50, 100, 500, 1000, 2000),
    "name": ("", "a", "ab", "abc", "b", "ba", "c"),
}
BROAD = (
    "TRUE", "price >= 0", "price < 5", "price >= 5", "symbol = 'A'", "symbol IN ('A', 'B')",
    "symbol <> 'A'", "volume >= 100", "name LIKE 'a%' OR price > 3",
)  # fmt: skip
NEVER = ("price > 5 AND price < 3", "symbol = 'A' AND symbol = 'B'", "FALSE")
FAMILIES, FAMILY = 80, 7  # groups of filters, and filters of each
WRONG = ("prise = 3", "price >", "name > 4 OR", "price LIKE 'a%'")  # not filters of the schema
WRONG_EVENTS: tuple[dict[str, Any], ...] = ({"price": 77}, {"symbol": "Z"}, {"price": "cheap"})


@functools.cache
def schema() -> Schema:
    return Schema(SCHEMA)


@functools.cache
def meaning(semantics: str) -> Semantics:
    """The semantics with a name, over the schema of simulations."""
    return Semantics(semantics, schema(), DEFAULTS if semantics == "default" else None)


@functools.cache
def _reader() -> EventReader:
    return EventReader(schema())


def row_of(event: dict[str, Any], semantics: str) -> Row | None:
    """The prepared row of an event, or None if it does not fit."""
    try:
        return meaning(semantics).prepare(_reader().row(event))
    except TamisError:
        return None


@functools.lru_cache(maxsize=20_000)
def condition(text: str, semantics: str) -> Callable[[Row], bool] | None:
    """A filter as a function of a prepared row, or None if the text is not a filter."""
    try:
        return meaning(semantics).condition(parse_with(text, schema()))
    except TamisError:
        return None


@functools.lru_cache(maxsize=20_000)
def some_event_matches(text: str, semantics: str) -> bool:
    """Whether any event matches: tries one of each sort that some filter could tell apart."""
    matches = condition(text, semantics)
    return matches is not None and any(map(matches, _all_rows(semantics)))


@functools.lru_cache(maxsize=100_000)
def may_share_events(text: str, other: str, semantics: str) -> bool:
    """Whether it cannot be ruled out that an event matches both filters."""
    defaults = DEFAULTS if semantics == "default" else None
    one, two = parse_with(text, schema()), parse_with(other, schema())
    return intersects(one, two, semantics=semantics, defaults=defaults)


@functools.cache
def _all_rows(semantics: str) -> list[Row]:
    """Every combination of VALUES, shuffled: most filters match one of the first rows."""
    missing = () if semantics == "total" else (None,)
    rows = itertools.product(*(VALUES[name] + missing for name in SCHEMA))
    prepared = [meaning(semantics).prepare(row) for row in rows]
    random.Random(0).shuffle(prepared)  # noqa: S311 - reproducible, no secret
    return prepared


def random_event(chance: random.Random, semantics: str) -> dict[str, Any]:
    """An event; attributes are missing from it now and then, if the semantics allows that."""
    missing = 0.0 if semantics == "total" else 0.15
    return {
        name: chance.choice(values) for name, values in VALUES.items() if chance.random() >= missing
    }


def matching_event(
    chance: random.Random, semantics: str, filters: Iterable[str], trials: int = 100
) -> dict[str, Any]:
    """An event that matches all the filters, if one is found in time; otherwise any event."""
    conditions = [condition(text, semantics) for text in filters]
    for _ in range(trials):
        event = random_event(chance, semantics)
        row = row_of(event, semantics)
        if row is not None and all(matches and matches(row) for matches in conditions):
            break
    return event


def random_filter(chance: random.Random) -> str:
    """A filter of one to three conditions."""
    draw = chance.random()
    if draw < 0.45:
        return _random_condition_of_any(chance)
    if draw < 0.47:
        return "TRUE"
    first, second = (_random_condition(chance, name) for name in chance.sample(_ATTRIBUTES, 2))
    if draw < 0.75:
        return f"{first} AND {second}"
    if draw < 0.87:
        return f"{first} OR {second}"
    if draw < 0.92:
        return f"NOT ({first} AND {second})"
    return f"({first} OR {_random_condition(chance, 'price')}) AND {second}"


@functools.cache
def _families() -> list[list[str]]:
    """Groups of related filters: they cover each other, or they can be merged.

    All scenarios draw from the same groups, so that a process parses and compares each filter once.
    """
    chance = random.Random(FAMILIES)  # noqa: S311 - reproducible, no secret
    return [(_siblings if n % 2 else _descent)(chance) for n in range(FAMILIES)]


def _siblings(chance: random.Random) -> list[str]:
    """Filters that differ in one condition."""
    rest = f" AND {_random_condition(chance, chance.choice(('symbol', 'name')))}"
    rest = rest if chance.random() < 0.6 else ""
    return [f"{_random_condition(chance, 'price')}{rest}" for _ in range(FAMILY)]


def _descent(chance: random.Random) -> list[str]:
    """Filters of which about half are another one of them, made narrower."""
    family: list[str] = []
    while len(family) < FAMILY:
        narrower = (
            f"({chance.choice(family)}) AND {_random_condition_of_any(chance)}" if family else ""
        )
        if narrower and narrower.count("AND") < 4 and chance.random() < 0.5:
            family.append(narrower)
        else:
            family.append(random_filter(chance))
    return family


def random_pool(chance: random.Random) -> list[str]:
    """The filters of one scenario: those of one or two families."""
    return [text for family in chance.sample(_families(), chance.randint(1, 2)) for text in family]


def narrow_filter(chance: random.Random) -> str:
    """A filter that few events match."""
    low, high = sorted(chance.sample(range(10), 2))
    price = chance.choice((f"price = {low}", f"price BETWEEN {low} AND {min(low + 2, high)}"))
    text = f"symbol = '{chance.choice('ABC')}' AND {price}"
    return f"{text} AND {_random_condition(chance, 'volume')}" if chance.random() < 0.5 else text


def _random_condition_of_any(chance: random.Random) -> str:
    return _random_condition(chance, chance.choice(_ATTRIBUTES))


_ATTRIBUTES = ("price", "price", "price", "symbol", "symbol", "volume", "name")


def _random_condition(chance: random.Random, name: str) -> str:
    if chance.random() < 0.06:
        return f"{name} IS {chance.choice(('', 'NOT '))}NULL"
    if name == "price":
        low, high = sorted(chance.sample(range(10), 2))
        return chance.choice((
            f"price < {high}", f"price <= {high}", f"price > {low}", f"price >= {low}",
            f"price = {low}", f"price BETWEEN {low} AND {high}", f"price IN ({low}, {high})",
            f"NOT price = {low}",
        ))  # fmt: skip
    if name == "symbol":
        one, two = chance.sample("ABC", 2)
        return chance.choice((f"symbol = '{one}'", f"symbol IN ('{one}', '{two}')",
                              f"symbol <> '{one}'"))  # fmt: skip
    if name == "volume":
        return f"volume {chance.choice(('<', '>', '>=', '<='))} {chance.choice((10, 100, 1000))}"
    word = chance.choice(("a", "ab", "b"))
    return chance.choice((
        f"name LIKE '{word}%'", f"name = '{word}'", f"contains(name, '{word}')",
        f"name LIKE '%{word}'",
    ))  # fmt: skip
