"""The workloads of COUNT and MBD: conjunctions of comparisons of attributes with constants.

COUNT is short for Ashayer, Leung and Jacobsen, "Predicate matching and subscription matching in
publish/subscribe systems" (DEBS 2002), MBD for Li, Hou and Jacobsen, "A unified approach to
routing, covering and merging in publish/subscribe systems based on modified binary decision
diagrams" (ICDCS 2005).

A filter compares some attributes, each at most once. Their number is uniform between the two ends
of ``predicates``; attributes, operators and constants are uniform, too. An event has ``pairs`` of
the attributes (all, if the config does not say), with values uniform in their domains.

Keys of the config:

* ``attributes``: how many there are; their names are a0, a1, ...
* ``domains``: one or more intervals of whole numbers, which the attributes take in turn
* ``operators``: some of = <> < <= > >=
* ``predicates``: the fewest and the most that a filter has
* ``pairs``: how many attributes an event has, if not all
* ``step``: only every step-th number of a domain occurs, from its low end on; 1 by default
* ``order``: of the attributes in a filter, ``random`` (the default) or that of the ``schema``
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.types import INT64_MAX
from tamis.workloads.config import Config
from tamis.workloads.random_draws import Array, Chance, draw_subsets
from tamis.workloads.token_texts import chunks, firsts, join_tokens
from tamis.workloads.value_generators import AttributeColumn, Whole

OPERATORS = ("=", "<>", "<", "<=", ">", ">=")
MOST_ATTRIBUTES = 10_000
ORDERS = ("random", "schema")


@dataclass(frozen=True)
class Comparisons:
    """This kind of workload; see the module."""

    attributes: int
    domains: tuple[Whole, ...]
    operators: tuple[str, ...]
    predicates: tuple[int, int]
    pairs: int
    order: str = "random"

    least = 0

    @classmethod
    def read(cls, config: Config) -> "Comparisons":
        attributes = config.whole("attributes", 1, MOST_ATTRIBUTES)
        step = config.whole("step", 1, INT64_MAX) if config.has("step") else 1
        operators = config.texts("operators")
        if not set(operators) <= set(OPERATORS):
            raise config.bad("operators", f"a list of operators among {' '.join(OPERATORS)}")
        domains = tuple(Whole(low, high, step) for low, high in config.intervals("domains"))
        if any(domain.high - domain.low >= INT64_MAX for domain in domains):
            raise config.bad("domains", "intervals of less than 2**63 numbers")
        return cls(
            attributes, domains, operators,
            predicates=config.interval("predicates", 1, attributes),
            pairs=config.whole("pairs", 0, attributes) if config.has("pairs") else attributes,
            order=config.choice("order", ORDERS) if config.has("order") else "random",
        )  # fmt: skip

    @cached_property
    def columns(self) -> tuple[AttributeColumn, ...]:
        return tuple(
            AttributeColumn(f"a{i}", f"int({domain.low}, {domain.high})", domain)
            for i in range(self.attributes)
            for domain in [self._domain(i)]
        )

    def parameters(self, count: int) -> dict[str, Any]:
        return {
            "subscriptions": count,
            "attributes": self.attributes,
            "domains": [[domain.low, domain.high] for domain in self.domains],
            "operators": list(self.operators),
            "predicates": list(self.predicates),
            "pairs": self.pairs,
            "distinct_predicates": len(self.operators)
            * sum(self._domain(i).size for i in range(self.attributes)),
        }

    def filters(self, chance: Chance, count: int) -> Iterator[pa.StringArray]:
        ascending = self.order == "schema"
        for rows in chunks(count):
            lengths = chance.integers(*self.predicates, rows, endpoint=True)
            attributes = draw_subsets(chance, lengths, self.attributes, ascending=ascending)
            operators = chance.integers(0, len(self.operators), attributes.size)
            constants = pa.array(self._constants(chance, attributes)).cast(pa.string())
            codes = np.empty((attributes.size, 2), np.int64)
            codes[:, 0] = attributes * len(self.operators) + operators
            codes[firsts(lengths), 0] += len(self._beginnings) // 2
            codes[:, 1] = np.arange(attributes.size) + len(self._beginnings)
            dictionary = pa.concat_arrays([self._beginnings, constants])
            yield join_tokens(dictionary, codes.ravel(), 2 * lengths)

    def _constants(self, chance: Chance, attributes: Array) -> Array:
        which = attributes % len(self.domains)
        low, size, step = np.array([(d.low, d.size, d.step) for d in self.domains]).T
        constants: Array = low[which] + step[which] * chance.integers(0, size[which])
        return constants

    @cached_property
    def _beginnings(self) -> pa.StringArray:
        """All texts such as ``a0 <= `` after an AND, then the same without AND."""
        plain = [f"a{i} {operator} " for i in range(self.attributes) for operator in self.operators]
        return pa.array([f" AND {text}" for text in plain] + plain)

    def _domain(self, attribute: int) -> Whole:
        return self.domains[attribute % len(self.domains)]
