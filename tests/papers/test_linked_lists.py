"""Linked lists find what a scan of all comparisons finds."""

import random

import numpy as np

from tamis.papers.linked_lists import LinkedLists, StoredComparison

TESTS = {
    "=": int.__eq__, "<>": int.__ne__, "<": int.__lt__, "<=": int.__le__, ">": int.__gt__,
    ">=": int.__ge__,
}  # fmt: skip


def test_walking_finds_what_a_scan_finds():
    chance = random.Random(1)  # noqa: S311 - seeded
    drawn = {
        (chance.randrange(3), chance.choice([*TESTS]), chance.randrange(20)) for _ in range(200)
    }
    stored = [StoredComparison(*one, number) for number, one in enumerate(sorted(drawn))]
    chance.shuffle(stored)
    lists = LinkedLists(3, stored)
    for _ in range(50):
        row = [chance.randrange(-1, 21) for _ in range(3)]
        present = [chance.randrange(4) > 0 for _ in range(3)]
        found = lists.satisfied(np.array(row), np.array(present, np.uint8))
        expected = [
            number for position, op, constant, number in stored
            if present[position] and TESTS[op](row[position], constant)
        ]  # fmt: skip
        assert sorted(found.tolist()) == sorted(expected)


def test_without_comparisons_nothing_is_found():
    lists = LinkedLists(2, [])
    assert lists.satisfied(np.zeros(2, np.int64), np.ones(2, np.uint8)).tolist() == []
