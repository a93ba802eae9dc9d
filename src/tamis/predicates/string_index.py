"""Comparisons of strings with constants, by ordered lists (COUNT, section 3.1).

There is one list per operator, in the order of the constants; equalities are in a hash table. A
value satisfies a stretch of each list, found by bisection: all ``v < c`` after it, all ``v > c``
before it.

New constants wait unsorted until there are enough of them to be worth a sort. So neither a million
additions nor single ones between events cost a pass over the list each.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from typing import Any

import numpy as np

from tamis.kernels.comparisons import OPERATORS

Ids = np.ndarray[Any, np.dtype[np.int32]]

MOST_WAITING = 32


class OrderedConstants:
    """The constants of one operator, in order, each with the id of its predicate."""

    def __init__(self) -> None:
        self.constants: list[Any] = []
        self.ids: Ids = np.empty(0, np.int32)
        self.waiting: dict[Any, int] = {}
        self.removed = 0  # entries of `ids` that are -1

    def add(self, constant: Any, predicate: int) -> None:
        self.waiting[constant] = predicate

    def remove(self, constant: Any) -> None:
        if self.waiting.pop(constant, None) is None:
            self.ids[bisect_left(self.constants, constant)] = -1
            self.removed += 1

    def settle(self) -> None:
        """Sort in the waiting constants and drop the removed ones."""
        pairs = [(c, i) for c, i in zip(self.constants, self.ids.tolist(), strict=True) if i >= 0]
        pairs += self.waiting.items()
        pairs.sort(key=_constant)
        self.constants = [constant for constant, _ in pairs]
        self.ids = np.array([predicate for _, predicate in pairs], np.int32)
        self.waiting, self.removed = {}, 0

    def stretch(self, start: int, end: int) -> Ids:
        found = self.ids[start:end]
        return found[found >= 0] if self.removed else found


def _constant(pair: tuple[Any, int]) -> Any:
    return pair[0]


class OrderedStrings:
    """The comparisons of one string attribute."""

    def __init__(self) -> None:
        self.size = 0
        self._equal: dict[Any, int] = {}
        self._lists = {op: OrderedConstants() for op in OPERATORS if op != "="}

    def add(self, op: str, constant: Any, predicate: int) -> None:
        self.size += 1
        if op == "=":
            self._equal[constant] = predicate
        else:
            self._lists[op].add(constant, predicate)

    def remove(self, op: str, constant: Any) -> None:
        self.size -= 1
        if op == "=":
            del self._equal[constant]
        else:
            self._lists[op].remove(constant)

    def satisfied(self, value: Any) -> Iterator[Ids]:
        """The ids of the comparisons that are true of a value."""
        equal = self._equal.get(value)
        if equal is not None:
            yield np.array([equal], np.int32)
        for op, listed in self._lists.items():
            if len(listed.waiting) > MOST_WAITING or listed.removed > len(listed.ids) // 2:
                listed.settle()
            yield from _settled(op, listed, value)
            if listed.waiting:
                yield np.array(
                    [p for c, p in listed.waiting.items() if _holds(op, value, c)],
                    np.int32,
                )


def _settled(op: str, listed: OrderedConstants, value: Any) -> Iterator[Ids]:
    size = len(listed.constants)
    if not size:
        return
    left = bisect_left(listed.constants, value)
    right = bisect_right(listed.constants, value)
    match op:
        case "<":
            yield listed.stretch(right, size)
        case "<=":
            yield listed.stretch(left, size)
        case ">":
            yield listed.stretch(0, left)
        case ">=":
            yield listed.stretch(0, right)
        case _:
            yield listed.stretch(0, left)
            yield listed.stretch(right, size)


def _holds(op: str, value: Any, constant: Any) -> bool:
    match op:
        case "<":
            return bool(value < constant)
        case "<=":
            return bool(value <= constant)
        case ">":
            return bool(value > constant)
        case ">=":
            return bool(value >= constant)
        case _:
            return bool(value != constant)
