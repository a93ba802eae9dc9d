"""A process that sees ever new filters and values needs no more memory than before."""

import gc
import random
import tracemalloc

import pytest

from cases import each
from tamis import Matcher, Schema, covers, parse
from tamis.bounded_caches import BoundedCache
from tamis.engines.sliced import fragments, segment_tests
from tamis.language import shape_cache
from tamis.predicates import attribute_index

SMALL = 500_000  # bytes of each cache


@pytest.fixture
def small_caches(monkeypatch):
    """All caches are small: those that are made from now on, and those of functions."""
    for module in (segment_tests, attribute_index):
        monkeypatch.setattr(module, "MOST_REMEMBERED", SMALL)
    for name in ("MOST_PIECES", "MOST_SHAPES", "MOST_STRUCTURES"):
        monkeypatch.setattr(shape_cache, name, SMALL)
    for name in ("MOST_FRAGMENTS", "MOST_RULES"):
        monkeypatch.setattr(fragments, name, SMALL)
    gc.unfreeze()  # conftest.py has hidden what was there before the tests
    objects = gc.get_objects()
    gc.freeze()
    for one in objects:
        if isinstance(one, BoundedCache):
            one.clear()
            monkeypatch.setattr(one, "_half", SMALL // 2)


def growth(step, early, late):
    """How many bytes are held after `late` steps that were not after `early` ones."""
    step(-1)  # whatever is compiled is compiled before, since it takes long while memory is traced
    tracemalloc.start()
    try:
        for n in range(early):
            step(n)
        gc.collect()
        before = tracemalloc.get_traced_memory()[0]
        for n in range(early, late):
            step(n)
        gc.collect()
        return tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()


pytestmark = [pytest.mark.long, pytest.mark.usefixtures("small_caches")]


@each("engine", ["sliced", "counting-list"])
def test_new_strings(engine):
    matcher = Matcher({"s": "string"}, engine)
    matcher.subscribe_many({n: f"contains(s, 'a{n}c')" for n in range(5)})
    matcher.match({"s": "x"})
    # 50 kB in each of 60 events
    assert growth(lambda n: matcher.match({"s": f"{n}" + "x" * 50_000}), 30, 90) < SMALL


def test_new_filters_of_one_subscription():
    matcher = Matcher({"i": "int", "s": "string"})
    chance = random.Random(1)  # noqa: S311 - not for secrets

    def replace(n):
        count = 600 + n % 7  # about 5 kB
        listed = ", ".join(str(chance.randrange(10**6)) for _ in range(count))
        matcher.subscribe("one", f"i IN ({listed}) OR s LIKE '{n}%{'a' * 500}_'")

    assert growth(replace, 15, 40) < 2 * SMALL


def test_new_lists_that_are_compared():
    schema, chance = Schema({"i": "int"}), random.Random(1)  # noqa: S311 - not for secrets

    def compare(_):
        one, other = (
            parse(f"i IN ({', '.join(str(chance.randrange(10**6)) for _ in range(200))})", schema)
            for _ in range(2)
        )
        covers(one, other)

    assert growth(compare, 20, 40) < 2 * SMALL
