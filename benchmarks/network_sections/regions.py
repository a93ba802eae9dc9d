"""Stock alerts with regions: brokers near each other mostly want, and publish, the same symbols.

The symbols are dealt out to the regions one by one, by their ranks. A client's symbol is one of its
region with probability `locality`, otherwise any; within either, popularity follows Zipf's law.
Price ranges, volumes and quotes are those of the workload.
"""

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from network_sections.growth import EVENT_SEED, SUBSCRIPTION_SEED, one_symbol
from network_sections.route_trees import Tree
from tamis.workloads import workload
from tamis.workloads.stock import Stock

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Regions:
    """A tree of brokers in regions, and what clients of each want and publish."""

    tree: Tree
    count: int  # of regions
    locality: float
    publishers: int  # at as many brokers
    seed: int = 1
    popularity: Array = field(init=False, repr=False)  # of each symbol

    def __post_init__(self) -> None:
        kind = workload("stock").kind
        if not isinstance(kind, Stock):
            raise TypeError("the workload stock is of another kind")
        weights = 1.0 / np.arange(1, kind.symbols + 1) ** kind.exponent
        object.__setattr__(self, "popularity", weights / weights.sum())

    @cached_property
    def region(self) -> Array:
        """The region of each broker: a part of the tree, in the order of a walk down it."""
        children: list[list[int]] = [[] for _ in range(self.tree.size)]
        for child, parent in self.tree.links():
            children[parent].append(child)
        walk, waiting = [], [0]
        while waiting:
            here = waiting.pop()
            walk.append(here)
            waiting += children[here]
        found = np.empty(self.tree.size, int)
        found[walk] = np.arange(self.tree.size) * self.count // self.tree.size
        return found

    @cached_property
    def publishing(self) -> Array:
        """How many publishers each broker has."""
        chance = np.random.default_rng([self.seed, 3])
        chosen = chance.choice(self.tree.size, self.publishers, replace=False)
        return np.bincount(chosen, minlength=self.tree.size)

    @cached_property
    def interest(self) -> Array:
        """For each region, the probability of each symbol."""
        symbols = np.arange(self.popularity.size)
        found = np.empty((self.count, symbols.size))
        for region in range(self.count):
            home = np.where(symbols % self.count == region, self.popularity, 0.0)
            found[region] = (
                self.locality * home / home.sum() + (1 - self.locality) * self.popularity
            )
        return found

    # --- drawn at random, for simulations

    def homes(self, count: int) -> Array:
        """The broker of each subscription: all have the same number, in turns."""
        return np.arange(count) % self.tree.size

    def filters(self, count: int) -> list[str]:
        """The texts of subscriptions, for their homes."""
        chance = np.random.default_rng([self.seed, 1])
        ranks = self._ranks(chance, self.region[self.homes(count)])
        texts = one_symbol().subscriptions(count, SUBSCRIPTION_SEED)["filter"].to_pylist()
        return [
            text.replace("'S1'", f"'S{rank + 1}'")
            for text, rank in zip(texts, ranks.tolist(), strict=True)
        ]

    def events(self, count: int) -> tuple[pa.Table, Array]:
        """Quotes, and the brokers that they are published to."""
        chance = np.random.default_rng([self.seed, 2])
        homes = chance.choice(np.flatnonzero(self.publishing), count)
        ranks = self._ranks(chance, self.region[homes])
        table = one_symbol().events(count, EVENT_SEED)
        names = pa.array([f"S{rank + 1}" for rank in ranks.tolist()])
        return table.set_column(table.column_names.index("symbol"), "symbol", names), homes

    def _ranks(self, chance: np.random.Generator, regions: Array) -> Array:
        bounds = np.cumsum(self.interest, axis=1)
        draws = chance.random(regions.size)
        found = np.empty(regions.size, int)
        for region in range(self.count):
            here = regions == region
            found[here] = np.searchsorted(bounds[region], draws[here], side="right")
        return np.minimum(found, self.popularity.size - 1)
