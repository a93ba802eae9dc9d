"""Filters that have an event in common are found, and compared with few others."""

import random

from cases import each
from tamis.relations.tables.intersections import IntersectionTable
from tamis.routing.filter_cache import shared_cache

SCHEMA = {"symbol": "string", "price": "double", "volume": "int(0, 9)"}
CACHE = shared_cache(SCHEMA, "sql", None)


def some_filter(chance):
    low = chance.randrange(9)
    tests = [
        f"symbol = 'S{chance.randrange(4)}'", f"symbol IN ('S{low % 3}', 'S3')",
        "symbol LIKE 'S%'", "symbol IS NULL", f"price < {low}", f"price > {low}",
        f"price BETWEEN {low} AND {low + 2}", f"volume = {low}", f"volume >= {low}",
        f"(price < {low} OR volume > {low})", "TRUE",
    ]  # fmt: skip
    return " AND ".join(chance.sample(tests, chance.randrange(1, 4)))


@each("seed", range(20))
def test_those_with_a_common_event_are_found(seed):
    chance = random.Random(seed)  # noqa: S311 - repeated
    table = IntersectionTable(CACHE.schema, CACHE.may_intersect)
    held = set()
    for _ in range(60):
        text = some_filter(chance)
        if text in held:
            held.remove(text)
            table.remove(text)
        else:
            held.add(text)
            table.add(text, CACHE.prepare(text))
        asked = some_filter(chance)
        expected = sorted(one for one in held if CACHE.may_intersect(asked, one))
        assert sorted(table.meeting(asked, CACHE.prepare(asked))) == expected, asked
    assert len(table) == sum(CACHE.prepare(text) is not None for text in held)


def test_one_symbol_of_many_is_compared_with_its_own_filters_only():
    compared = []
    table = IntersectionTable(CACHE.schema, lambda one, other: compared.append((one, other)))
    for number in range(1000):
        text = f"symbol = 'S{number}' AND price < {number}"
        table.add(text, CACHE.prepare(text))
    asked = "symbol = 'S7'"
    assert list(table._candidates(CACHE.prepare(asked))) == ["symbol = 'S7' AND price < 7"]
    assert not compared
