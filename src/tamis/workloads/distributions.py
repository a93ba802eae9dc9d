"""How the values of an attribute are spread over the events."""

from dataclasses import dataclass
from typing import Protocol

import pyarrow as pa

from tamis.workloads.random_draws import Chance, draw_ranks, zipf_bounds


class Distribution(Protocol):
    """Draws the values of one attribute. `Whole`, `Real`, `Cents` and `Words` are such."""

    def draw(self, chance: Chance, count: int) -> pa.Array:
        """`count` values, without nulls."""
        ...


@dataclass(frozen=True, slots=True)
class Column:
    """One attribute of a workload: its name, its type as a schema writes it, its values."""

    name: str
    type: str
    values: Distribution


@dataclass(frozen=True, slots=True)
class Whole:
    """Every `step`-th whole number from `low` to `high`, each as probable as another."""

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
    """Any number from `low` to `high`."""

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
    """One of some texts, Zipf over their order; an exponent of 0 makes all as probable."""

    texts: tuple[str, ...]
    exponent: float = 0.0

    def draw(self, chance: Chance, count: int) -> pa.Array:
        ranks = draw_ranks(chance, zipf_bounds(len(self.texts), self.exponent), count)
        return pa.array(self.texts, pa.string()).take(pa.array(ranks))
