"""What computed subjects and their inputs say about each other.

`Computing.narrow` leaves out cells that cannot be: a computed value is missing when an input is;
where the inputs have few values left, it is computed; and of two attributes that are compared, each
bounds the other. It may leave too much, never too little.
"""

import itertools
from collections.abc import Sequence
from typing import Any

from tamis.relations.entailment.cells import Stretches
from tamis.relations.entailment.questions import Pair
from tamis.relations.entailment.string_languages import TooLarge
from tamis.relations.entailment.subjects import Subject, Subjects

FEW_ROWS = 64  # combinations of the values of inputs that are tried at every step
MOST_COMPUTATIONS = 50_000  # in one search

Room = list[int]


def cells_of(mask: int) -> list[int]:
    """The numbers of the bits of a mask."""
    found = []
    while mask:
        low = mask & -mask
        found.append(low.bit_length() - 1)
        mask ^= low
    return found


class Computing:
    """The computed subjects of one search."""

    def __init__(self, subjects: Subjects) -> None:
        self.subjects = subjects.all
        self.row: list[Any] = [None] * len(subjects.world.schema)
        self.computations = 0
        self._known: dict[tuple[int, ...], int | None] = {}
        self._values: dict[tuple[int, int], list[Any] | None] = {}
        self._numbers = {
            subject.key: number
            for number, subject in enumerate(self.subjects)
            if isinstance(subject.cells, Stretches)
        }
        self._concerned = {n: self._concerns(n) for n in subjects.computed}

    def _concerns(self, number: int) -> set[int]:
        """The subjects whose room a computed subject may narrow."""
        subject = self.subjects[number]
        sides = subject.key if isinstance(subject.key, Pair) else ()
        return {number, *subject.inputs} | {self._numbers[n] for n in sides if n in self._numbers}

    def narrow(self, computed: Sequence[int], room: Room) -> bool:
        """Narrow the room until nothing changes; False if nothing is left of a subject."""
        changed = True
        while changed:
            changed = False
            for number in computed:
                subject = self.subjects[number]
                before = [room[n] for n in self._concerned[number]]
                self._missing(number, subject, room)
                self._try_values(number, subject, room)
                if isinstance(subject.key, Pair):
                    self._bounds(number, subject.key, room)
                after = [room[n] for n in self._concerned[number]]
                if 0 in after:
                    return False
                changed = changed or before != after
        return True

    def _missing(self, number: int, subject: Subject, room: Room) -> None:
        """Missing if an input is; there if all inputs are, unless it is fallible."""
        inputs = subject.inputs
        if any(room[n] == self.subjects[n].missing for n in inputs):
            room[number] &= subject.missing
        elif not subject.fallible and not any(room[n] & self.subjects[n].missing for n in inputs):
            room[number] &= ~subject.missing
        if not room[number] & subject.missing:
            for n in inputs:
                room[n] &= ~self.subjects[n].missing
        elif room[number] == subject.missing and not subject.fallible:
            lacking = [n for n in inputs if room[n] & self.subjects[n].missing]
            if len(lacking) == 1:
                room[lacking[0]] &= self.subjects[lacking[0]].missing

    def _try_values(self, number: int, subject: Subject, room: Room) -> None:
        """The cells that the remaining values of the inputs lead to, if these are few."""
        key = (number, *(room[n] for n in subject.inputs))
        if key not in self._known:
            self._known[key] = self._cells(subject, room)
        known = self._known[key]
        if known is not None:
            room[number] &= known

    def _cells(self, subject: Subject, room: Room) -> int | None:
        lists: list[list[Any]] = []
        size = 1
        for n in subject.inputs:
            values = self.few(n, room[n])
            if values is None:
                return None
            lists.append(values)
            size *= len(values)
            if size > FEW_ROWS:
                return None
        found = 0
        for row in itertools.product(*lists):
            found |= self.bit(subject, dict(zip(subject.inputs, row, strict=True)))
        return found

    def few(self, number: int, mask: int) -> list[Any] | None:
        """All values of some cells of an attribute, None if they are many."""
        key = number, mask
        if key not in self._values:
            self._values[key] = self._few(self.subjects[number], mask)
        return self._values[key]

    @staticmethod
    def _few(subject: Subject, mask: int) -> list[Any] | None:
        if mask.bit_count() > FEW_ROWS:
            return None
        found: list[Any] = []
        for cell in cells_of(mask & ~subject.missing):
            values = subject.cells.values(cell)
            if values is None:
                return None
            found.extend(values)
        return [*found, None] if mask & subject.missing else found

    def bit(self, subject: Subject, values: dict[int, Any]) -> int:
        """The cell of a computed subject, given the values of its inputs."""
        self.computations += 1
        if self.computations > MOST_COMPUTATIONS:
            raise TooLarge
        for n in subject.inputs:
            self.row[self.subjects[n].position] = values[n]
        value = subject.compute(self.row)
        return subject.missing if value is None else 1 << subject.cells.cell(value)

    def _bounds(self, number: int, pair: Pair, room: Room) -> None:
        """Below, equal or above: what the ends of both sides allow, and the other way round."""
        left, right = self._numbers.get(pair.left), self._numbers.get(pair.right)
        if left is None or right is None or pair.left == pair.right:
            return
        a, b = self.subjects[left].cells, self.subjects[right].cells
        if not isinstance(a, Stretches) or not isinstance(b, Stretches):
            return
        x, y = self._ends(left, a, room), self._ends(right, b, room)
        if x is None or y is None:
            return
        open_ = room[number]
        if not x[0] < y[1]:
            open_ &= ~0b001
        if x[0] > y[1] or x[1] < y[0]:
            open_ &= ~0b010
        if not x[1] > y[0]:
            open_ &= ~0b100
        room[number] &= open_
        outcomes = room[number]
        if outcomes & self.subjects[number].missing or not outcomes:
            return
        low, high = x
        if not outcomes & 0b100:  # the left is at most the right
            high = min(high, y[1] if outcomes & 0b010 else y[1] - 1)
        if not outcomes & 0b001:
            low = max(low, y[0] if outcomes & 0b010 else y[0] + 1)
        self._keep(left, a, room, low, high)
        low, high = y
        if not outcomes & 0b001:
            high = min(high, x[1] if outcomes & 0b010 else x[1] - 1)
        if not outcomes & 0b100:
            low = max(low, x[0] if outcomes & 0b010 else x[0] + 1)
        self._keep(right, b, room, low, high)

    def _ends(self, number: int, cells: Stretches, room: Room) -> tuple[int, int] | None:
        present = room[number] & ~self.subjects[number].missing
        if not present:
            return None
        first, last = (present & -present).bit_length() - 1, present.bit_length() - 1
        return cells.ends(first)[0], cells.ends(last)[1]

    @staticmethod
    def _keep(number: int, cells: Stretches, room: Room, low: int, high: int) -> None:
        """Only the cells that have a value from low to high."""
        room[number] &= cells.between(low, high)
