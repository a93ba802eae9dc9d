"""Which values of which attributes an event must have to match a filter.

``symbol = 'A' AND price < 3`` is true only of events whose symbol is ``'A'``. Whoever divides many
filters among several places divides them by such values.
"""

from typing import Any

from tamis.engines.sliced.filter_reader import FilterReader
from tamis.engines.sliced.leaves import EQUAL, LEAF_KINDS, ONE_OF
from tamis.language.expression import Expression
from tamis.language.structures import needed_atoms
from tamis.semantics import Semantics


class RequiredValues:
    """Finds the values that filters require; most filters are read without building their tree."""

    def __init__(self, semantics: Semantics) -> None:
        self._reader = FilterReader(semantics)

    def of(self, expression: Expression, most: int) -> dict[int, tuple[Any, ...]]:
        """By the position of an attribute, the values of which an event must have one.

        An attribute with more than `most` such values is left out. A filter that the engines refuse
        is an error here, too.
        """
        leaves = self._reader.leaves(expression)
        found: dict[int, tuple[Any, ...]] = {}
        if not leaves.codes:
            return found
        needed = needed_atoms(leaves.shape)
        for is_needed, code, constant in zip(needed, *leaves[1:], strict=True):
            attribute, kind = divmod(code, LEAF_KINDS)
            if not is_needed or kind not in {EQUAL, ONE_OF}:
                continue
            values = constant if kind == ONE_OF else (constant,)
            if len(values) <= min(most, len(found.get(attribute, values))):
                found[attribute] = values
        return found
