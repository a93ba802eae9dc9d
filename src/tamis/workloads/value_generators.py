"""Generators of the values of an attribute in events."""

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from tamis.workloads.random_draws import Chance, draw_ranks, zipf_bounds


class ValueGenerator(Protocol):
    """Draws the values of one attribute: `Whole`, `Real`, `Cents` or `Words`."""

    def draw(self, chance: Chance, count: int) -> pa.Array:
        """`count` values, without nulls."""
        ...


@dataclass(frozen=True, slots=True)
class AttributeColumn:
    """One attribute of a workload: its name, its type as in a schema, and its values in events."""

    name: str
    type: str
    values: ValueGenerator


@dataclass(frozen=True, slots=True)
class Whole:
    """Every `step`-th whole number from `low` to `high`, all equally probable."""

    low: int
    high: int
    step: int = 1

    @property
    def size(self) -> int:
        return (self.high - self.low) // self.step + 1

    def draw(self, chance: Chance, count: int) -> pa.Array:
        return pa.array(self.low + self.step * chance.integers(0, self.size, count))


@dataclass(frozen=True, slots=True)
class Real:
    """A number from `low` to `high`, uniform."""

    low: float
    high: float

    def draw(self, chance: Chance, count: int) -> pa.Array:
        return pa.array(self.low + (self.high - self.low) * chance.random(count))


@dataclass(frozen=True, slots=True)
class Cents:
    """Amounts of two decimals; `low` and `high` are in cents."""

    low: int
    high: int

    def draw(self, chance: Chance, count: int) -> pa.Array:
        return pa.array(chance.integers(self.low, self.high, count, endpoint=True) / 100.0)


@dataclass(frozen=True, slots=True)
class Words:
    """One of some texts, by Zipf's law in their order; with exponent 0 all are equally probable."""

    texts: tuple[str, ...]
    exponent: float = 0.0

    def draw(self, chance: Chance, count: int) -> pa.Array:
        ranks = draw_ranks(chance, zipf_bounds(len(self.texts), self.exponent), count)
        return pa.array(self.texts, pa.string()).take(pa.array(ranks))
