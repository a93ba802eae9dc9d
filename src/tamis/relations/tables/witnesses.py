"""Events of which filters are true, to refute covering by: who covers a filter matches all of them.

The search that decides entailment gives an event for each filter, and another one each time that it
refutes a pair. Remembered, these refute most of what comes later without a search: a filter has a
bit for each event that is true if it matches, and all bits of one that it covers.
"""

import math
from collections.abc import Callable
from typing import Any

from tamis.events import Row
from tamis.language.ast import FALSE, Node
from tamis.language.evaluation import compile_tree
from tamis.predicates.regions import BOTTOM, whole
from tamis.relations.entailment.decision import Answer, entails, witness
from tamis.relations.event_space import World
from tamis.schema import Attribute
from tamis.types import BOOL, DOUBLE

MOST_ROWS = 1_000  # that are remembered for all filters together
MOST_OWN = 8  # that are remembered for one, besides


class Witnessed:
    """A form, a function that asks it, and events of which it is true."""

    __slots__ = ("bits", "form", "holds", "known", "present", "rows")

    def __init__(self, form: Node, world: World) -> None:
        evaluate = compile_tree(form, world.schema)
        self.form = form
        self.holds: Callable[[Row], bool] = lambda row: evaluate(row) is True
        self.rows: list[Row] = []  # of which it is true
        self.present = -1  # a bit for each attribute that the first row has, all if there is none
        self.bits = 0  # one for each of the first `known` common rows
        self.known = 0


class Witnesses:
    """Decides covering between forms of one world, and remembers what refuted it."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._rows: list[Row] = []  # that all forms are tried with

    def witnessed(self, form: Node) -> Witnessed:
        """A form with its first witness, where one can be found."""
        made = Witnessed(form, self._world)
        row = self._full(witness(form, FALSE, self._world), made)
        if row is not None:
            made.rows.append(row)
            made.present = sum(1 << p for p, value in enumerate(row) if value is not None)
        return made

    def covers(self, wide: Witnessed, narrow: Witnessed) -> bool:
        """Whether every event of one form is known to be one of another."""
        if self.bits(narrow) & ~self.bits(wide):
            return False
        if not all(map(wide.holds, narrow.rows)):
            return False
        answer = entails(narrow.form, wide.form, self._world)
        if answer is Answer.NO:
            self._learn(wide, narrow)
        return answer is Answer.YES

    def bits(self, one: Witnessed) -> int:
        """The bits of a form; it is tried with the rows that came since it was asked last."""
        if one.known < len(self._rows):
            for place in range(one.known, len(self._rows)):
                one.bits |= one.holds(self._rows[place]) << place
            one.known = len(self._rows)
        return one.bits

    def _learn(self, wide: Witnessed, narrow: Witnessed) -> None:
        """Remember an event of one form that is none of another."""
        if len(self._rows) >= MOST_ROWS and len(narrow.rows) >= MOST_OWN:
            return
        row = self._full(witness(narrow.form, wide.form, self._world), narrow)
        if row is not None:
            (self._rows if len(self._rows) < MOST_ROWS else narrow.rows).append(row)

    def _full(self, row: Row | None, one: Witnessed) -> Row | None:
        """A row with values where a search left them open and none may be missing.

        None if the form is not true of it, lest it refutes what is true.
        """
        if row is None:
            return None
        full = tuple(
            _some(attribute) if value is None and not self._world.may_miss(position) else value
            for position, (attribute, value) in enumerate(
                zip(self._world.schema.attributes, row, strict=True)
            )
        )
        return full if one.holds(full) else None


def _some(attribute: Attribute) -> Any:
    """A value of an attribute, for events that must have one."""
    low, _ = whole(attribute.type, attribute.domain)[0]
    if low == BOTTOM:
        return -math.inf if attribute.type == DOUBLE else ""
    return bool(low[1]) if attribute.type == BOOL else low[1]
