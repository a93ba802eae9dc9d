"""Subscriptions with structure: a few templates of attributes, and constants that belong together.

The papers' random subscriptions draw every predicate independently. Those of people do not: a
subscription to journeys has an origin, a destination and a price, not any three attributes; few
origins are popular; and the price that it names is near what journeys from there cost.

A filter follows one of some *templates*, which says which attributes it tests. An attribute is a
*key*, tested for equality, whose values follow Zipf's law; or a *limit*, compared by one of some
operators. The constant of a limit is near a typical value, at most ``spread`` steps away, where
values near it are more probable than those far from it. The typical value depends on the value of
the filter's first key. Attributes are tested in the order of the schema; events have uniform
values, as those of MBD.

Keys of the config:

* ``[[attributes]]``: one or more tables, each with ``names``, ``range`` (two whole numbers) and
  either ``exponent`` (a key: that of Zipf's law) or ``operators``, ``step`` and ``spread`` (limits)
* ``[[templates]]``: one or more tables, each with ``tests`` (names of attributes) and ``weight``,
  a whole number: how often it is followed, compared with others
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.workloads.config import Config
from tamis.workloads.random_draws import Array, Chance, cumulated, draw_ranks, zipf_bounds
from tamis.workloads.token_texts import chunks
from tamis.workloads.value_generators import AttributeColumn, Whole

OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
MOST_VALUES = 1_000_000
_STRIDE = 7919  # a prime: typical values of neighbouring keys are far from each other


@dataclass(frozen=True, slots=True)
class KeyAttribute:
    """An attribute that is tested for equality."""

    name: str
    domain: Whole
    exponent: float


@dataclass(frozen=True, slots=True)
class Limit:
    """An attribute that is compared with something near its typical value."""

    name: str
    domain: Whole  # its step is that of the constants
    operators: tuple[str, ...]
    spread: int

    def constants(self, chance: Chance, keys: Array) -> Array:
        """Constants for filters whose first key has these ranks."""
        typical = keys * _STRIDE % self.domain.size
        # The sum of two uniform draws: the typical value itself is the most frequent one.
        away = chance.integers(0, self.spread, keys.size, endpoint=True)
        away -= chance.integers(0, self.spread, keys.size, endpoint=True)
        places = np.clip(typical + away, 0, self.domain.size - 1)
        return self.domain.low + self.domain.step * places


@dataclass(frozen=True)
class Templates:
    """This kind of workload; see the module."""

    attributes: tuple[KeyAttribute | Limit, ...]
    tests: tuple[tuple[int, ...], ...]  # of each template: the places of its attributes, ascending
    weights: tuple[int, ...]

    least = 0

    @classmethod
    def read(cls, config: Config) -> "Templates":
        attributes = [one for table in config.tables("attributes") for one in _attributes(table)]
        names = [one.name for one in attributes]
        tests, weights = [], []
        for table in config.tables("templates"):
            tested = table.texts("tests")
            if not set(tested) <= set(names):
                raise table.bad("tests", f"a list of attributes among {' '.join(names)}")
            tests.append(tuple(sorted(map(names.index, tested))))
            weights.append(table.whole("weight", 1, MOST_VALUES))
            table.finish()
        return cls(tuple(attributes), tuple(tests), tuple(weights))

    @cached_property
    def columns(self) -> tuple[AttributeColumn, ...]:
        return tuple(
            AttributeColumn(
                one.name, f"int({one.domain.low}, {one.domain.high})",
                Whole(one.domain.low, one.domain.high),
            )
            for one in self.attributes
        )  # fmt: skip

    @property
    def pairs(self) -> int:
        return len(self.attributes)

    def parameters(self, count: int) -> dict[str, Any]:
        return {
            "subscriptions": count,
            "attributes": len(self.attributes),
            "keys": sum(isinstance(one, KeyAttribute) for one in self.attributes),
            "templates": len(self.tests),
            "distinct_predicates": sum(
                one.domain.size * (len(one.operators) if isinstance(one, Limit) else 1)
                for one in self.attributes
            ),
        }

    def filters(self, chance: Chance, count: int) -> Iterator[pa.StringArray]:
        bounds = cumulated(np.array(self.weights, np.float64))
        for rows in chunks(count):
            followed = draw_ranks(chance, bounds, rows)
            found: list[pa.StringArray] = []
            places: list[Array] = []
            for template, tests in enumerate(self.tests):
                mine = np.nonzero(followed == template)[0]
                if mine.size:
                    found.append(self._texts(chance, tests, mine.size))
                    places.append(mine)
            order = np.argsort(np.concatenate(places), kind="stable")
            yield pa.concat_arrays(found).take(pa.array(order))

    def _texts(self, chance: Chance, tests: tuple[int, ...], rows: int) -> pa.StringArray:
        """The filters of one template."""
        ranks = {
            place: draw_ranks(chance, zipf_bounds(one.domain.size, one.exponent), rows)
            for place in tests
            if isinstance(one := self.attributes[place], KeyAttribute)
        }
        first = next(iter(ranks.values()), np.zeros(rows, np.int64))
        parts: list[pa.StringArray | str] = []
        for place in tests:
            one = self.attributes[place]
            beginnings: pa.StringArray | str
            if isinstance(one, KeyAttribute):
                beginnings, constants = f"{one.name} = ", one.domain.low + ranks[place]
            else:
                operators = pa.array([f"{one.name} {operator} " for operator in one.operators])
                beginnings = operators.take(pa.array(chance.integers(0, len(operators), rows)))
                constants = one.constants(chance, first)
            parts += [" AND "] if parts else []
            parts += [beginnings, pa.array(constants).cast(pa.string())]
        return pc.binary_join_element_wise(*parts, "")


def _attributes(table: Config) -> list[KeyAttribute | Limit]:
    names = table.texts("names")
    low, high = table.interval("range")
    if high - low >= MOST_VALUES:
        raise table.bad("range", f"an interval of at most {MOST_VALUES:,} numbers")
    found: list[KeyAttribute | Limit]
    if table.has("exponent"):
        exponent = table.number("exponent", 0, 10)
        found = [KeyAttribute(name, Whole(low, high), exponent) for name in names]
    else:
        operators = table.texts("operators")
        if not set(operators) <= set(OPERATORS):
            raise table.bad("operators", f"a list of operators among {' '.join(OPERATORS)}")
        domain = Whole(low, high, table.whole("step", 1, MOST_VALUES))
        spread = table.whole("spread", 0, MOST_VALUES)
        found = [Limit(name, domain, operators, spread) for name in names]
    table.finish()
    return found
