"""The workload of TREE: conjunctions of equalities, with some attributes more popular than others.

TREE is short for Aguilera, Strom, Sturman, Astley and Chandra, "Matching events in a content-based
subscription system" (PODC 1999).

A filter tests attribute i of 1..K with probability ``popularity * degradation**(i - 1)``, whatever
else it tests; the tested value is one of V, by Zipf's law. A filter that tests nothing is TRUE.
Events are total and uniform, so a filter matches an event with probability

    product over i of (1 - p_i * (1 - 1 / V)),    p_i = popularity * degradation**(i - 1)

whatever values it tests. The paper chose p_1 and D so that an event has 100 matches, however many
filters there are. A config may give ``matches`` instead of ``degradation``; then the degradation is
computed from it for each number of filters.

Keys of the config:

* ``attributes``: K; their names are a0, a1, ...
* ``values``: V; the domain of each is 1..V
* ``popularity``: p_1
* ``degradation``: D; or ``matches``: how many filters match an event on average
* ``exponent``: of Zipf's law; value v is tested with a probability proportional to v**-exponent
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.errors import OptionError
from tamis.workloads.config import Config
from tamis.workloads.random_draws import Array, Chance, draw_ranks, zipf_bounds
from tamis.workloads.token_texts import chunks, firsts, join_tokens
from tamis.workloads.value_generators import AttributeColumn, Whole

MOST_ATTRIBUTES = 1_000
MOST_VALUES = 10_000
DIGITS = 12  # of a computed degradation: beyond them, platforms may round differently


@dataclass(frozen=True)
class Equalities:
    """This kind of workload; exactly one of `degradation` and `matches` is not None."""

    attributes: int
    values: int
    popularity: float
    exponent: float
    degradation: float | None = None
    matches: float | None = None

    @classmethod
    def read(cls, config: Config) -> "Equalities":
        if config.has("degradation") == config.has("matches"):
            raise OptionError(
                f"{config.path}: give exactly one of the keys degradation and matches"
            )
        return cls(
            attributes=config.whole("attributes", 1, MOST_ATTRIBUTES),
            values=config.whole("values", 1, MOST_VALUES),
            popularity=config.number("popularity", 0, 1),
            exponent=config.number("exponent", 0, 10),
            degradation=config.number("degradation", 0, 1) if config.has("degradation") else None,
            matches=config.number("matches", 0, 1e12) if config.has("matches") else None,
        )

    @cached_property
    def columns(self) -> tuple[AttributeColumn, ...]:
        return tuple(
            AttributeColumn(f"a{i}", f"int(1, {self.values})", Whole(1, self.values))
            for i in range(self.attributes)
        )

    @property
    def pairs(self) -> int:
        return self.attributes

    @property
    def least(self) -> int:
        return 0 if self.matches is None else math.ceil(self.matches / self._chance_of_match(0.0))

    def parameters(self, count: int) -> dict[str, Any]:
        degradation = self._degradation(count)
        return {
            "subscriptions": count,
            "attributes": self.attributes,
            "values": self.values,
            "popularity": self.popularity,
            "degradation": degradation,
            "exponent": self.exponent,
            "tests": float(self._popularities(degradation).sum()),
            "matches": count * self._chance_of_match(degradation),
        }

    def filters(self, chance: Chance, count: int) -> Iterator[pa.StringArray]:
        popularities = self._popularities(self._degradation(count))
        bounds = zipf_bounds(self.values, self.exponent)
        for rows in chunks(count):
            tested = np.empty((rows, self.attributes + 1), bool)
            tested[:, :-1] = chance.random((rows, self.attributes)) < popularities
            tested[:, -1] = ~tested[:, :-1].any(axis=1)  # the filter TRUE
            attributes = np.nonzero(tested)[1]
            codes = attributes * self.values + draw_ranks(chance, bounds, attributes.size)
            lengths = tested.sum(axis=1)
            codes[firsts(lengths)] += len(self._tests) // 2
            yield join_tokens(self._tests, codes, lengths)

    @cached_property
    def _tests(self) -> pa.StringArray:
        """All tests after an AND, and TRUE for each value; then the same without AND."""
        tests = [f"a{i} = {v + 1}" for i in range(self.attributes) for v in range(self.values)]
        tests += ["TRUE"] * self.values
        return pa.array([f" AND {test}" for test in tests] + tests)

    def _popularities(self, degradation: float) -> Array:
        steps = np.full(self.attributes, degradation)
        steps[0] = self.popularity
        return np.cumprod(steps)

    def _chance_of_match(self, degradation: float) -> float:
        misses = self._popularities(degradation) * (1.0 - 1.0 / self.values)
        return float(np.prod(1.0 - misses))

    def _degradation(self, count: int) -> float:
        """The degradation of the config, or the one that gives the wanted number of matches."""
        if self.degradation is not None:
            return self.degradation
        wanted = self.matches or 0.0
        if count < self.least:
            raise OptionError(
                f"{wanted:g} matches per event need at least {self.least:,} subscriptions where "
                f"the first attribute is tested with probability {self.popularity:g}, "
                f"and there are {count:,}"
            )
        if count * self._chance_of_match(1.0) > wanted:
            raise OptionError(
                f"{count:,} subscriptions have more than {wanted:g} matches per event, even if "
                f"all attributes are tested with probability {self.popularity:g}"
            )
        low, high = 0.0, 1.0  # the number of matches falls from low to high
        while high - low > 0.1**DIGITS:
            middle = (low + high) / 2
            if count * self._chance_of_match(middle) > wanted:
                low = middle
            else:
                high = middle
        return round(low, DIGITS)
