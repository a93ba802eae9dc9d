"""Covering with general filters, which are not boxes: refuted by witnesses, decided by entailment.

A filter that covers another is true of its witnesses, so only such filters are compared; a filter
that it covers has witnesses of which it is true. What is left is decided exactly, pair by pair.
"""

from collections.abc import Iterator

from tamis.events.event_reader import Row
from tamis.language import ast
from tamis.relations.tables.constraints import ConstraintPool
from tamis.relations.tables.prepared_filters import PreparedFilter
from tamis.relations.tables.search import CoverSearch
from tamis.relations.tables.witnesses import WitnessedForm, Witnesses


class GeneralSearch:
    """General filters under numbers, and their covering relations with boxes and each other."""

    def __init__(self, pool: ConstraintPool, boxes: CoverSearch) -> None:
        self._pool = pool
        self._witnesses = Witnesses(pool.space)
        self._boxes = boxes
        self._generals: dict[int, WitnessedForm] = {}
        self._of_boxes: dict[int, WitnessedForm] = {}  # of those that were compared

    def __len__(self) -> int:
        return len(self._generals)

    def witnessed(self, prepared: PreparedFilter) -> WitnessedForm:
        """The normal form of a filter, with its witnesses."""
        return self._witnesses.witnessed(prepared.form)

    def add(self, number: int, general: WitnessedForm) -> None:
        """Add a general filter."""
        self._generals[number] = general

    def remove(self, number: int) -> None:
        """Remove a general filter, or what is remembered of a box."""
        self._generals.pop(number, None)
        self._of_boxes.pop(number, None)

    def generals_covering(self, new: WitnessedForm) -> Iterator[int]:
        """The general filters that cover a new filter."""
        missing = ~new.present
        bits, known = self._witnesses.bits(new), new.known
        for number, wide in self._generals.items():
            # The common case first: refuted by what is known already.
            if (wide.known >= known and bits & ~wide.bits) or wide.required & missing:
                continue
            if self._witnesses.covers(wide, new):
                yield number

    def generals_covered(self, new: WitnessedForm) -> Iterator[int]:
        """The general filters that a new filter covers."""
        required_by_new = new.required
        others, known = ~self._witnesses.bits(new), new.known
        for number, narrow in self._generals.items():
            if (narrow.known <= known and narrow.bits & others) or (
                required_by_new & ~narrow.present
            ):
                continue
            if self._witnesses.covers(new, narrow):
                yield number

    def boxes_covering(self, new: WitnessedForm, roots: dict[int, PreparedFilter]) -> Iterator[int]:
        """The boxes that cover a new general filter."""
        point = self._point(new.rows[0]) if new.rows else None
        found = self._boxes.testing(0) if point is None else self._boxes.covering(point)
        for number in found:
            if self._witnesses.covers(self._of_box(number, roots[number]), new):
                yield number

    def boxes_covered(self, new: WitnessedForm, roots: dict[int, PreparedFilter]) -> Iterator[int]:
        """The boxes that a new general filter covers."""
        for number in self._boxes.testing(new.required):
            if self._witnesses.covers(new, self._of_box(number, roots[number])):
                yield number

    def _of_box(self, number: int, prepared: PreparedFilter) -> WitnessedForm:
        found = self._of_boxes.get(number)
        if found is None:
            found = self._of_boxes[number] = self.witnessed(prepared)
        return found

    def _point(self, row: Row) -> PreparedFilter | None:
        """The box of a single row; None if it has an array or a map, which no condition equals."""
        if any(isinstance(value, tuple | dict) for value in row):
            return None
        points = (self._pool.point(position, value) for position, value in enumerate(row))
        return PreparedFilter(lambda: ast.TRUE, tuple(points))
