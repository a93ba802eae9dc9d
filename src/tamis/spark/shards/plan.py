"""How many shards there are, and by which attributes they are divided.

A filter like ``symbol = 'A' AND price < 3`` is true only of events with a certain value of an
attribute: it requires that value. Such filters are in the shards of their values, one *group* of
shards for each attribute that is worth it; all others are in general shards, which every event
meets. `placement` says which shards, and why that finds every match once.
"""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tamis.errors import counted
from tamis.schema import Schema
from tamis.spark.shards.hashes import ValueHashes

MOST_VALUES = 8  # that divide filters; one that allows more values would be copied too often
HEAVY = 0.5  # share of a shard from which a value gets its own: together they would be too large
WORTH = 0.2  # share of all filters that a group must spare an event


class ShardGroup(NamedTuple):
    """The shards of the filters that require values of one attribute."""

    attribute: int
    first: int
    shared: int  # shards that values share
    heavy: dict[int, range]  # by the hash of a frequent value: its own shards


class ShardLoad(NamedTuple):
    """The work of a shard, if events have the values that filters require, and as often."""

    share: float  # of all events that meet the shard
    depth: float  # of all filters that such an event is compared with, since they have its value


class ShardPlan(NamedTuple):
    """All shards: first the general ones, then those of each group."""

    general: int
    groups: tuple[ShardGroup, ...]
    loads: tuple[ShardLoad, ...]
    met: float  # the share of all filters that an event meets

    @property
    def total(self) -> int:
        """How many shards there are."""
        return len(self.loads)

    def to_json(self) -> dict[str, Any]:
        """The plan for a file."""
        groups = [
            [g.attribute, g.first, g.shared, [[v, r.start, r.stop] for v, r in g.heavy.items()]]
            for g in self.groups
        ]
        return {"general": self.general, "groups": groups, "loads": self.loads, "met": self.met}

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> "ShardPlan":
        """The plan of a file."""
        groups = tuple(
            ShardGroup(a, first, shared, {v: range(start, stop) for v, start, stop in heavy})
            for a, first, shared, heavy in found["groups"]
        )
        loads = tuple(ShardLoad(*load) for load in found["loads"])
        return cls(found["general"], groups, loads, found["met"])

    def described(self, schema: Schema, alive: Sequence[bool]) -> str:
        """The shards that have a filter, for a message."""
        parts = []
        for group in self.groups:
            shared = sum(alive[group.first : group.first + group.shared])
            parts.append(f"{shared} by {schema.attributes[group.attribute].name}")
            own = sum(alive[shard] for shards in group.heavy.values() for shard in shards)
            if own:
                parts[-1] += f" and {own} for {counted(len(group.heavy), 'heavy value')} of it"
        if self.groups:
            return ", ".join([*parts, f"{sum(alive[: self.general])} that all events meet"])
        return f"{sum(alive)} by size, since no attribute divides the filters"


def plan_shards(
    sample: Sequence[Mapping[int, tuple[Any, ...]]], schema: Schema, shards: int
) -> ShardPlan:
    """A plan of about this many shards, made from the required values of a sample of filters.

    The attribute that spares an event the most filters gets the first group. Of the filters that
    require no value of it, the attribute that spares the most gets the second group, and so on.
    """
    hashes = ValueHashes(schema)
    left = [
        {a: {hashes.value(a, value) for value in values} for a, values in required.items()}
        for required in sample
    ]
    capacity = max(len(sample), 1) / shards  # filters of the sample per shard
    drafts: list[_Draft] = []
    while True:
        attributes = sorted({attribute for keys in left for attribute in keys})
        made = [_draft(attribute, left, capacity) for attribute in attributes]
        best = max(made, key=lambda draft: draft.saved, default=None)
        if best is None or best.saved < WORTH * len(sample):
            break
        drafts.append(best)
        left = [keys for keys in left if best.attribute not in keys]
    general = max(1, _ceil(len(left) / capacity))
    total = max(len(sample), 1)
    groups, loads = [], [ShardLoad(1.0, len(left) / general / total)] * general
    for draft in drafts:
        groups.append(draft.group(len(loads)))
        loads += [ShardLoad(share, depth / total) for share, depth in draft.loads]
    saved = sum(draft.saved for draft in drafts)
    return ShardPlan(general, tuple(groups), tuple(loads), 1 - saved / total)


class _Draft(NamedTuple):
    """The group that an attribute would get."""

    attribute: int
    shared: int
    heavy: dict[int, int]  # how many shards a value gets
    loads: list[ShardLoad]  # their depths in filters
    saved: float  # filters that an event does not meet

    def group(self, first: int) -> ShardGroup:
        ranges, start = {}, first + self.shared
        for value, size in self.heavy.items():
            ranges[value] = range(start, start + size)
            start += size
        return ShardGroup(self.attribute, first, self.shared, ranges)


def _draft(attribute: int, left: list[dict[int, set[int]]], capacity: float) -> _Draft:
    """A draft for an attribute, as if events had the values that filters require, and as often."""
    counts = Counter(value for keys in left for value in keys.get(attribute, ()))
    filters = sum(attribute in keys for keys in left)
    copies = counts.total()
    heavy = {value: _ceil(n / capacity) for value, n in counts.items() if n > HEAVY * capacity}
    light = {value: n for value, n in counts.items() if value not in heavy}
    shared = max(1, _ceil(sum(light.values()) / capacity))
    sizes, squares = [0] * shared, [0] * shared
    for value, n in light.items():
        sizes[value % shared] += n
        squares[value % shared] += n * n
    loads = [
        ShardLoad(size / copies, square / max(size, 1))
        for size, square in zip(sizes, squares, strict=True)
    ]
    for value, size in heavy.items():
        loads += [ShardLoad(counts[value] / copies, counts[value] / size)] * size
    met = sum(size * size for size in sizes) + sum(counts[value] ** 2 for value in heavy)
    return _Draft(attribute, shared, heavy, loads, filters - met / copies)


def _ceil(value: float) -> int:
    return math.ceil(value - 1e-9)
