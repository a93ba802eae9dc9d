"""What engines that hold conjunctions have in common.

A filter becomes its disjuncts; each gets a slot, a small dense number that is reused when the
filter goes, and its predicates are interned. An engine fills in three hooks about slots and
predicates.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

import numpy as np

from tamis.engines.base import Options
from tamis.engines.slots import Slots
from tamis.errors import CapacityError, LimitError
from tamis.events.event_reader import Row
from tamis.kernels.handles import Handles
from tamis.language.expression import Expression
from tamis.predicates.comparison_index import Ids
from tamis.predicates.disjuncts import Conjunction, conjunctions
from tamis.predicates.index import PredicateIndex
from tamis.semantics import Semantics

Prepared = tuple[Conjunction, ...]

MAX_PREDICATES = 65_535  # of one conjunction; they are counted in 16 bits


class ConjunctionEngine(ABC):
    """The workflow of these engines; `insert`, `delete` and `complete` are the hooks."""

    name = "conjunctive"
    options_class: ClassVar[type[Options]] = Options

    def __init__(self, semantics: Semantics, options: Any) -> None:
        self.options = options
        self._semantics = semantics
        self.predicates = PredicateIndex(semantics.schema)
        self._slots = Slots()
        self._held: dict[int, tuple[int, ...]] = {}  # handle -> slots
        self._predicates: list[bytes] = []  # slot -> its predicates, packed to save memory
        self._always: set[int] = set()  # slots without any predicate

    # --- hooks

    @abstractmethod
    def insert(self, slot: int, predicates: Ids) -> None:
        """Hold a conjunction of at least one predicate in a free slot."""

    @abstractmethod
    def delete(self, slot: int, predicates: Ids) -> None:
        """Drop the conjunction of a slot."""

    @abstractmethod
    def complete(self, satisfied: Ids) -> Ids:
        """The slots whose predicates are all satisfied."""

    def complete_rows(self, rows: Sequence[Row]) -> Iterator[Ids]:
        """`complete` for each row; an engine that can take many rows at once overrides it."""
        for row in rows:
            satisfied = self.predicates.satisfied(row)
            yield self.complete(satisfied) if len(satisfied) else satisfied

    # --- the contract of engines

    def prepare(self, expression: Expression) -> Prepared:
        prepared = conjunctions(expression, self._semantics)
        if any(len(conjunction) > MAX_PREDICATES for conjunction in prepared):
            raise LimitError(
                f"a conjunction has more than {MAX_PREDICATES:,} predicates", str(expression), 0
            )
        return prepared

    def add(self, handle: int, prepared: Prepared) -> None:
        slots: list[int] = []
        try:
            for conjunction in prepared:
                slots.append(self._hold(handle, conjunction))  # noqa: PERF401 - kept if one fails
        except CapacityError:
            for slot in slots:
                self._drop(slot)
            raise
        self._held[handle] = tuple(slots)

    def remove(self, handle: int) -> None:
        for slot in self._held.pop(handle):
            self._drop(slot)

    def match(self, row: Row) -> Handles:
        (found,) = self.match_many([row])
        return found

    def match_many(self, rows: Sequence[Row]) -> Iterator[Handles]:
        always = np.fromiter(self._always, np.int32)
        for slots in self.complete_rows(rows):
            found = np.concatenate([slots, always]) if len(always) else slots
            yield self._slots.handles_of(found)

    # --- slots

    def _hold(self, handle: int, conjunction: Conjunction) -> int:
        slot = self._slots.take(handle)
        predicates = np.array([self.predicates.intern(p) for p in conjunction], np.int32)
        try:
            if len(predicates):
                self.insert(slot, predicates)
            else:
                self._always.add(slot)
        except CapacityError:
            self._let_go(slot, predicates)
            raise
        if slot == len(self._predicates):
            self._predicates.append(b"")
        self._predicates[slot] = predicates.tobytes()
        return slot

    def _drop(self, slot: int) -> None:
        predicates = np.frombuffer(self._predicates[slot], np.int32).copy()  # writable
        self._predicates[slot] = b""
        if len(predicates):
            self.delete(slot, predicates)
        self._let_go(slot, predicates)

    def _let_go(self, slot: int, predicates: Ids) -> None:
        self._always.discard(slot)
        for predicate in predicates.tolist():
            self.predicates.release(predicate)
        self._slots.give_back(slot)

    def statistics(self) -> dict[str, int]:
        """Sizes, for explanations and measurements."""
        return {
            "subscriptions": len(self._held),
            "conjunctions": sum(len(slots) for slots in self._held.values()),
            "predicates": len(self.predicates),
        }
