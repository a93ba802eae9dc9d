"""How probable the values of one attribute are, and sets of them that can be weighed.

A distribution turns a condition into a *part* of its values; parts can be cut with each other and
weighed. `Atoms` has values one by one, a part is a bit for each; `Stretch` has all numbers between
two bounds, a part is an extent. Both know how often the attribute is missing.
"""

import bisect
import functools
import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol

from tamis.language import ast
from tamis.language.ast import Node
from tamis.predicates.regions import AFTER, BEFORE, Region, complement, intersection, tester
from tamis.relations.extents import Extent, extent
from tamis.schema import Attribute
from tamis.types import DOUBLE

Part = Any  # what a distribution makes of conditions: compared and hashed, never looked into


class Distribution(Protocol):
    """The values of one attribute. `Atoms` and `Stretch` are such."""

    def part(self, node: Node) -> Part | None:
        """The values of which a condition is true, None if that cannot be said."""
        ...

    def common(self, a: Part, b: Part) -> Part:
        """The values of both; it is false when there is none."""
        ...

    def without(self, a: Part, b: Part) -> Part:
        """The values of the first only."""
        ...

    def weight(self, part: Part) -> Fraction:
        """The probability of a part; 1 for all values with the missing one."""
        ...

    @property
    def everything(self) -> Part:
        """All values, and the missing one."""
        ...

    def draw(self, chance: random.Random) -> Any:
        """A value, None for a missing one."""
        ...


class Atoms:
    """Values one by one, each with its weight; the last bit of a part is the missing one.

    Weights are whole numbers, so that sums are exact.
    """

    def __init__(self, values: Sequence[Any], weights: Sequence[int], missing: int = 0) -> None:
        self.values = (*values, None)
        self.weights = (*weights, missing)
        self.total = sum(self.weights)
        self.everything: int = (1 << len(self.values)) - 1
        self._sums: list[int] = []
        self.weight = functools.lru_cache(maxsize=50_000)(self._weight)
        self.part = functools.lru_cache(maxsize=50_000)(self._part)

    def _part(self, node: Node) -> int:
        if isinstance(node, ast.Literal):
            return self.everything if node.value is True else 0
        holds = tester(node)
        return sum(1 << n for n, value in enumerate(self.values) if holds(value))

    def common(self, a: int, b: int) -> int:
        return a & b

    def without(self, a: int, b: int) -> int:
        return a & ~b

    def _weight(self, part: int) -> Fraction:
        if not self.total:
            return Fraction(0)
        return Fraction(sum(w for n, w in enumerate(self.weights) if part >> n & 1), self.total)

    def draw(self, chance: random.Random) -> Any:
        if not self._sums:
            for weight in self.weights:
                self._sums.append(weight + (self._sums[-1] if self._sums else 0))
        return self.values[bisect.bisect_right(self._sums, chance.randrange(self.total))]


class Stretch:
    """Every number between two bounds, both included, as probable as another.

    `filling` is what a missing value is taken for; None leaves it missing.
    """

    def __init__(
        self, attribute: Attribute, low: Any, high: Any, presence: Fraction, filling: Any = None
    ) -> None:
        self.attribute = Attribute(attribute.path, attribute.type)
        self.low, self.high, self.presence, self.filling = low, high, presence, filling
        self.is_dense = attribute.type == DOUBLE
        self.everything = Extent(complement(()), missing=True)
        self.bounds: Region = (
            (((1, low, BEFORE), (1, high, AFTER)),)
            if self.is_dense
            else (((1, low, BEFORE), (1, high + 1, BEFORE)),)
        )
        self.size = Fraction(high) - Fraction(low) if self.is_dense else high + 1 - low
        self.weight = functools.lru_cache(maxsize=50_000)(self._weight)

    def part(self, node: Node) -> Extent | None:
        if isinstance(node, ast.Literal):
            return self.everything if node.value is True else Extent(())
        return extent(node, self.attribute)

    def common(self, a: Extent, b: Extent) -> Extent:
        return a.common(b)

    def without(self, a: Extent, b: Extent) -> Extent:
        values = intersection(a.values, complement(b.values))
        return Extent(values, a.missing and not b.missing)

    def _weight(self, part: Extent) -> Fraction:
        inside = intersection(part.values, self.bounds)
        length = sum((Fraction(high[1]) - Fraction(low[1]) for low, high in inside), Fraction(0))
        weight = self.presence * length / self.size
        return weight + (1 - self.presence) * self._has_missing(part)

    def _has_missing(self, part: Extent) -> bool:
        if self.filling is None:
            return part.missing
        cut = (1, self.filling, BEFORE)
        return any(low <= cut < high for low, high in part.values)

    def draw(self, chance: random.Random) -> Any:
        if chance.random() >= self.presence:
            return self.filling
        if self.is_dense:
            return chance.uniform(self.low, self.high)
        return chance.randint(self.low, self.high)
