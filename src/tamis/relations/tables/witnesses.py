"""Events that make filters true, used to refute covering: a covering filter matches all of them.

The search that decides entailment gives an event for each filter, and another one each time that it
refutes a pair. These are remembered and refute most later pairs without a search: a filter has one
bit for each event, which is set if it matches, and it has all bits of any filter that it covers.
"""

from collections.abc import Callable
from typing import Any

from tamis.events.event_reader import Row
from tamis.language.ast import FALSE, Node
from tamis.language.evaluation import compile_tree
from tamis.predicates.event_space import EventSpace
from tamis.predicates.presence import required_attributes
from tamis.predicates.value_orders import order_of
from tamis.predicates.value_sets import all_values
from tamis.relations.entailment.array_elements import ArrayCells
from tamis.relations.entailment.decision import Answer, entails, witness
from tamis.schema import Attribute

MOST_ROWS = 1_000  # that are remembered for all filters together
MOST_OWN = 8  # that are remembered for one filter, besides


class WitnessedForm:
    """A normal form, a function that evaluates it, and events that make it true."""

    __slots__ = ("bits", "form", "holds", "known", "present", "required", "rows")

    def __init__(self, form: Node, space: EventSpace, required: int) -> None:
        evaluate = compile_tree(form, space.schema)
        self.form = form
        self.required = required  # the attributes that may be missing, and that it requires
        self.holds: Callable[[Row], bool] = lambda row: evaluate(row) is True
        self.rows: list[Row] = []  # that make it true
        self.present = -1  # one bit for each attribute of the first row, all if there is no row
        self.bits = 0  # one for each of the first `known` common rows
        self.known = 0


class Witnesses:
    """Decides covering between forms of one event space, and remembers events that refuted it."""

    def __init__(self, space: EventSpace) -> None:
        self._space = space
        self._optional = sum(1 << position for position in space.optional)
        self._rows: list[Row] = []  # that all forms are tried with

    def witnessed(self, form: Node) -> WitnessedForm:
        """A form with its first witness, where one can be found."""
        required = required_attributes(form, self._space.schema) & self._optional
        made = WitnessedForm(form, self._space, required)
        row = self._full(witness(form, FALSE, self._space), made)
        if row is not None:
            made.rows.append(row)
            made.present = sum(1 << p for p, value in enumerate(row) if value is not None)
        return made

    def covers(self, wide: WitnessedForm, narrow: WitnessedForm) -> bool:
        """Whether every event that makes one form true is known to make another true."""
        if self.bits(narrow) & ~self.bits(wide):
            return False
        if not all(map(wide.holds, narrow.rows)):
            return False
        answer = entails(narrow.form, wide.form, self._space)
        if answer is Answer.NO:
            self._learn(wide, narrow)
        return answer is Answer.YES

    def bits(self, one: WitnessedForm) -> int:
        """The bits of a form; it is tried with the rows that came since the last call."""
        if one.known < len(self._rows):
            for place in range(one.known, len(self._rows)):
                one.bits |= one.holds(self._rows[place]) << place
            one.known = len(self._rows)
        return one.bits

    def _learn(self, wide: WitnessedForm, narrow: WitnessedForm) -> None:
        """Remember an event that makes one form true and another not."""
        if len(self._rows) >= MOST_ROWS and len(narrow.rows) >= MOST_OWN:
            return
        row = self._full(witness(narrow.form, wide.form, self._space), narrow)
        if row is not None:
            (self._rows if len(self._rows) < MOST_ROWS else narrow.rows).append(row)

    def _full(self, row: Row | None, one: WitnessedForm) -> Row | None:
        """A row with values where a search left them open although none may be missing.

        None if it does not make the form true, because it would refute what is true.
        """
        if row is None:
            return None
        full = tuple(
            _some(attribute) if value is None and not self._space.may_miss(position) else value
            for position, (attribute, value) in enumerate(
                zip(self._space.schema.attributes, row, strict=True)
            )
        )
        return full if one.holds(full) else None


def _some(attribute: Attribute) -> Any:
    """A value of an attribute, for events that must have one."""
    if attribute.type.is_nested:
        return ArrayCells(attribute.type).examples(0)[0]
    order = order_of(attribute)
    return order.value(all_values(order).intervals[0][0])
