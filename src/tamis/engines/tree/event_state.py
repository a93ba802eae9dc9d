"""What a search knows of an event, and what it finds."""

from collections.abc import Callable

import numpy as np

from tamis.engines.tree.arrays import Array
from tamis.engines.tree.descriptions import NUMBERS
from tamis.engines.tree.elements import DistinctElements
from tamis.events.event_reader import Row
from tamis.kernels.growing_tree import NONE
from tamis.kernels.tree_match import (
    FOUND,
    VISITED,
    EventArrays,
    decide_elements,
    mark_predicates,
    mark_values,
    order_doubles,
)
from tamis.predicates.comparison_index import Ids
from tamis.predicates.index import PredicateIndex
from tamis.types import Kind

_NOTHING = np.empty(0, np.int32)


class EventState:
    """Arrays that are reused from event to event."""

    def __init__(self, predicates: PredicateIndex, elements: DistinctElements) -> None:
        self._predicates = predicates
        self._elements = elements
        attributes = predicates.schema.attributes
        self._kinds = [attribute.type.kind for attribute in attributes]
        self._codes: Array = np.full(len(attributes), NONE, np.int32)
        self._ordinals: Array = np.zeros(len(attributes), np.int64)
        self._doubles: Array = self._ordinals.view(np.float64)
        self._missing: Array = np.zeros(len(attributes), np.uint8)
        self._truth: Array = np.zeros(64, np.uint8)
        self._holds: Array = np.zeros(64, np.uint8)
        self._stack: Array = np.zeros(1024, np.int64)
        self._found: Array = np.zeros(64, np.int32)
        self._tally: Array = np.zeros(2, np.int64)
        self._satisfied: Ids = _NOTHING
        self._by_value = True

    def arrays(self) -> EventArrays:
        return (
            self._codes, self._ordinals, self._missing, self._truth, self._holds, self._stack,
            self._found, self._tally,
        )  # fmt: skip

    # --- reading an event

    def read(self, row: Row) -> None:
        """Note the values that are tested, and the predicates that values do not decide."""
        self.forget()
        codes, missing = self._codes, self._missing
        for attribute, values in self._elements.examined.items():
            codes[attribute] = values.get(row[attribute], NONE)
        doubles = []
        for attribute in self._elements.compared:
            value = row[attribute]
            missing[attribute] = value is None
            kind = self._kinds[attribute]
            if value is not None and kind in NUMBERS:
                if kind is Kind.DOUBLE:
                    self._doubles[attribute] = value
                    doubles.append(attribute)
                else:
                    self._ordinals[attribute] = value
        if doubles:
            order_doubles(self._ordinals, self._doubles, np.array(doubles, np.int32))
        if self._elements.index_tests:
            comparisons = self._elements.index_comparisons > 0
            self._assume(self._predicates.satisfied(row, comparisons=comparisons))

    def read_satisfied(self, satisfied: Ids) -> None:
        """Note what follows from the satisfied predicates alone, without any values."""
        self.forget()
        self._by_value = False
        elements = self._elements
        self._assume(satisfied)
        mark_values(satisfied, elements.of_predicate, elements.rows, self.arrays())

    def _assume(self, satisfied: Ids) -> None:
        if self._predicates.size > len(self._truth):
            self._truth = np.zeros(2 * self._predicates.size, np.uint8)
        self._satisfied = satisfied
        mark_predicates(satisfied, self.arrays(), 1)

    def forget(self) -> None:
        """Forget the last event."""
        self._codes.fill(NONE)
        self._by_value = True
        if len(self._satisfied):
            mark_predicates(self._satisfied, self.arrays(), 0)
            self._satisfied = _NOTHING

    def decide(self, expected: int) -> bool:
        """Perform all tests now, if a search is expected to perform at least as many anyway."""
        size = self._elements.size
        if self._by_value and size > expected:
            return False
        if size > len(self._holds):
            self._holds = np.zeros(2 * size, np.uint8)
        decide_elements(self._elements.rows, size, self.arrays(), self._by_value)
        return True

    # --- searching

    def run(self, search: Callable[[EventArrays], bool]) -> None:
        """Search, with a stack that is long enough."""
        while not search(self.arrays()):
            self._stack = np.zeros(2 * len(self._stack), np.int64)

    def make_room(self, slots: int) -> None:
        """Make room for all slots to be found."""
        if slots > len(self._found):
            self._found = np.zeros(slots, np.int32)

    def take(self) -> Ids:
        """The slots that were found; the next search starts with none."""
        found: Ids = self._found[: self._tally[FOUND]].copy()
        self._tally[FOUND] = 0
        return found

    @property
    def visited(self) -> int:
        """How many nodes were visited."""
        return int(self._tally[VISITED])

    def reset_visited(self) -> None:
        self._tally[VISITED] = 0
