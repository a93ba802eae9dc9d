"""How probable the values of one attribute are, and subsets of them that can be weighed.

A distribution turns a condition into a *subset* of its values; subsets can be intersected and
weighed. `WeightedValues` lists its values, and a subset has one bit for each; `UniformRange` has
all numbers between two bounds, and a subset is a `ValueSet`. Both know how often the attribute is
missing.
"""

import bisect
import random
from collections.abc import Sequence
from fractions import Fraction
from typing import Any, Protocol

from tamis.bounded_caches import remembered
from tamis.language import ast
from tamis.language.ast import Node
from tamis.predicates.value_orders import Cut, value_order
from tamis.predicates.value_sets import ValueSet, all_values, holds_of, value_set, with_missing
from tamis.schema import Attribute
from tamis.types import DOUBLE

Subset = Any  # what a distribution makes of conditions: compared and hashed, never looked into


class Distribution(Protocol):
    """The values of one attribute, such as `WeightedValues` and `UniformRange`."""

    def subset(self, node: Node) -> Subset | None:
        """The values of which a condition is true, None if they cannot be listed."""
        ...

    def common(self, a: Subset, b: Subset) -> Subset:
        """The values of both; it is false when there are none."""
        ...

    def without(self, a: Subset, b: Subset) -> Subset:
        """The values of the first only."""
        ...

    def weight(self, subset: Subset) -> Fraction:
        """The probability of a subset; 1 for all values with the missing one."""
        ...

    @property
    def everything(self) -> Subset:
        """All values, and the missing one."""
        ...

    def draw(self, chance: random.Random) -> Any:
        """A random value, None for a missing one."""
        ...


class WeightedValues:
    """Listed values, each with its weight; the last bit of a subset is the missing value.

    Weights are whole numbers, so that sums are exact.
    """

    def __init__(self, values: Sequence[Any], weights: Sequence[int], missing: int = 0) -> None:
        self.values = (*values, None)
        self.weights = (*weights, missing)
        self.total = sum(self.weights)
        self.everything: int = (1 << len(self.values)) - 1
        self._sums: list[int] = []
        self.weight = remembered()(self._weight)
        self.subset = remembered()(self._subset)

    def _subset(self, node: Node) -> int:
        if isinstance(node, ast.Literal):
            return self.everything if node.value is True else 0
        holds = holds_of(node)
        return sum(1 << n for n, value in enumerate(self.values) if holds(value))

    def common(self, a: int, b: int) -> int:
        return a & b

    def without(self, a: int, b: int) -> int:
        return a & ~b

    def _weight(self, subset: int) -> Fraction:
        if not self.total:
            return Fraction(0)
        return Fraction(sum(w for n, w in enumerate(self.weights) if subset >> n & 1), self.total)

    def draw(self, chance: random.Random) -> Any:
        if not self._sums:
            for weight in self.weights:
                self._sums.append(weight + (self._sums[-1] if self._sums else 0))
        return self.values[bisect.bisect_right(self._sums, chance.randrange(self.total))]


class UniformRange:
    """Every number between two bounds, both included, is as probable as another.

    `filling` is what a missing value is taken for; None leaves it missing.
    """

    def __init__(
        self, attribute: Attribute, low: Any, high: Any, presence: Fraction, filling: Any = None
    ) -> None:
        self.order = value_order(attribute.type)
        self.low, self.high, self.presence, self.filling = low, high, presence, filling
        self.is_dense = attribute.type == DOUBLE
        self.everything = with_missing(all_values(self.order))
        self.start, self.end = self.order.around(low)[0], self.order.around(high)[1]
        self.size = Fraction(high) - Fraction(low) if self.is_dense else self.end - self.start
        self.weight = remembered()(self._weight)

    def subset(self, node: Node) -> ValueSet | None:
        return value_set(node, self.order)

    def common(self, a: ValueSet, b: ValueSet) -> ValueSet:
        return a.intersection(b)

    def without(self, a: ValueSet, b: ValueSet) -> ValueSet:
        return a.difference(b)

    def _weight(self, subset: ValueSet) -> Fraction:
        inside = subset.intersection(ValueSet(((self.start, self.end),)))
        length = sum((self._place(b) - self._place(a) for a, b in inside.intervals), Fraction(0))
        weight = self.presence * length / self.size
        return weight + (1 - self.presence) * subset.contains(self.filling, self.order)

    def _place(self, cut: Cut) -> Fraction:
        """Where a cut lies on the line of numbers; single doubles have no length."""
        if not self.is_dense:
            return Fraction(cut)
        if cut == self.start:
            return Fraction(self.low)
        return Fraction(self.high if cut == self.end else self.order.bound(cut)[0])

    def draw(self, chance: random.Random) -> Any:
        if chance.random() >= self.presence:
            return self.filling
        if self.is_dense:
            return chance.uniform(self.low, self.high)
        return self.order.value(chance.randrange(self.start, self.end))
