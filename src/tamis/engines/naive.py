"""Evaluates every filter for every event: slow, short, and the oracle of all other engines."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from tamis.engines.base import Options
from tamis.events.event_reader import Row
from tamis.language.expression import Expression
from tamis.semantics import Semantics

if TYPE_CHECKING:  # numba is heavy, and nothing here needs it
    from tamis.kernels.handles import Handles


class NaiveEngine:
    """One function per filter, called for each event; it is made when first needed."""

    name = "naive"
    options_class: ClassVar[type[Options]] = Options

    def __init__(self, semantics: Semantics, options: Options) -> None:  # noqa: ARG002 - has none
        self._semantics = semantics
        self._expressions: dict[int, Expression] = {}
        self._conditions: dict[int, Callable[[Row], bool]] = {}

    def prepare(self, expression: Expression) -> Expression:
        return expression

    def add(self, handle: int, prepared: Expression) -> None:
        self._expressions[handle] = prepared

    def remove(self, handle: int) -> None:
        del self._expressions[handle]
        self._conditions.pop(handle, None)

    def match(self, row: Row) -> "Handles":
        found = sorted(h for h in self._expressions if self._condition(h)(row))
        return np.array(found, np.int64)

    def match_many(self, rows: Sequence[Row]) -> "Iterator[Handles]":
        return map(self.match, rows)

    def __len__(self) -> int:
        return len(self._expressions)

    def __contains__(self, handle: int) -> bool:
        return handle in self._expressions

    def conditions(self) -> list[tuple[int, Callable[[Row], bool]]]:
        """The filters as functions, by ascending handle."""
        return [(handle, self._condition(handle)) for handle in sorted(self._expressions)]

    def filters(self) -> list[tuple[int, Expression]]:
        """The handles and their filters."""
        return list(self._expressions.items())

    def statistics(self) -> dict[str, int]:
        return {"subscriptions": len(self._expressions)}

    def _condition(self, handle: int) -> Callable[[Row], bool]:
        condition = self._conditions.get(handle)
        if condition is None:
            condition = self._semantics.condition(self._expressions[handle])
            self._conditions[handle] = condition
        return condition
