"""Which subscriptions lie together in a shard, and which shards an event meets.

A filter like ``symbol = 'A' AND price < 3`` is true only of events with a certain value of an
attribute: it has a *key*. Filters with a key lie in the shards of its values, one *group* of shards
for each attribute that is worth it; all others lie in general shards, which every event meets.

Why every match is found once:

* A filter lies in the shards of one group, or in one general shard.
* An event has one value of an attribute, or none, so it meets the shards of one value of a group.
  A filter lies in exactly one of them if the value is among those of its key, else it may lie there
  because values share shards, but then it is not true of the event.
* Whether values are equal is asked of their hashes. Two values with the same hash are treated as
  one, which makes events meet more filters than they must, and never fewer.

Hashes are of our own: the same in every process, unlike those of Python.
"""

import math
import zlib
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.engines.sliced.leaves import EQUAL, LEAF_KINDS, ONE_OF, Leaves
from tamis.engines.sliced.shape_programs import shape_program
from tamis.errors import counted
from tamis.predicates.event_batches import Column, batch_of_table
from tamis.predicates.keys import Keys
from tamis.schema import Schema
from tamis.semantics import Semantics

Array = np.ndarray[Any, Any]

MOST_VALUES = 8  # of a key; a filter with more of them would be copied too often
HEAVY = 0.5  # share of a shard from which a value gets its own: together they would be too large
WORTH = 0.2  # share of all filters that a group must spare an event
_MASK = 2**64 - 1


class Group(NamedTuple):
    """The shards of the filters that have a key of one attribute."""

    attribute: int
    first: int
    shared: int  # shards that values share
    heavy: dict[int, range]  # by the hash of a value: shards of its own, which its filters share


class Load(NamedTuple):
    """What to expect of a shard if events have the values that filters ask for, and as often."""

    share: float  # of all events: those that meet it
    depth: (
        float  # of all filters: those that such an event is compared with, as they have its value
    )


class Plan(NamedTuple):
    """All shards: first the general ones, then those of each group."""

    general: int
    groups: tuple[Group, ...]
    loads: tuple[Load, ...]
    met: float  # share of all filters that an event meets

    @property
    def total(self) -> int:
        """How many shards there are."""
        return len(self.loads)

    def described(self, schema: Schema, alive: Sequence[bool]) -> str:
        """For people: the shards in which there is a filter."""
        parts = []
        for group in self.groups:
            shared = sum(alive[group.first : group.first + group.shared])
            parts.append(f"{shared} by {schema.attributes[group.attribute].name}")
            own = sum(alive[shard] for shards in group.heavy.values() for shard in shards)
            if own:
                parts[-1] += f" and {own} for {counted(len(group.heavy), 'heavy value')} of it"
        if self.groups:
            return ", ".join([*parts, f"{sum(alive[: self.general])} that all events meet"])
        return f"{sum(alive)} by size, as no attribute tells filters apart"


# --- the plan


def keys_of(leaves: Leaves) -> dict[int, tuple[Any, ...]]:
    """Attributes of which an event must have one of some values to match, and those values."""
    found: dict[int, tuple[Any, ...]] = {}
    if not leaves.codes:
        return found
    for place in range(shape_program(leaves.shape).leads):
        attribute, kind = divmod(leaves.codes[place], LEAF_KINDS)
        if kind not in {EQUAL, ONE_OF}:
            continue
        constant = leaves.constants[place]
        values = constant if kind == ONE_OF else (constant,)
        if len(values) <= min(MOST_VALUES, len(found.get(attribute, values))):
            found[attribute] = values
    return found


def plan_shards(sample: Sequence[Leaves], schema: Schema, shards: int) -> Plan:
    """About so many shards for filters like those of a sample.

    The attribute that spares an event the most filters gets the first group, then the one that
    spares the most of those without a key of the first one, and so on.
    """
    hashes = Hashes(schema)
    left = [
        {a: {hashes.value(a, value) for value in values} for a, values in keys_of(leaves).items()}
        for leaves in sample
    ]
    capacity = max(len(sample), 1) / shards  # filters of the sample in a shard
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
    groups, loads = [], [Load(1.0, len(left) / general / total)] * general
    for draft in drafts:
        groups.append(draft.group(len(loads)))
        loads += [Load(share, depth / total) for share, depth in draft.loads]
    saved = sum(draft.saved for draft in drafts)
    return Plan(general, tuple(groups), tuple(loads), 1 - saved / total)


class _Draft(NamedTuple):
    """What becomes of an attribute if it gets a group."""

    attribute: int
    shared: int
    heavy: dict[int, int]  # how many shards a value gets
    loads: list[Load]  # their depths in filters
    saved: float  # filters that an event does not meet

    def group(self, first: int) -> Group:
        ranges, start = {}, first + self.shared
        for value, size in self.heavy.items():
            ranges[value] = range(start, start + size)
            start += size
        return Group(self.attribute, first, self.shared, ranges)


def _draft(attribute: int, left: list[dict[int, set[int]]], capacity: float) -> _Draft:
    """Events are taken to have the values that filters ask for, as often as those do."""
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
        Load(size / copies, square / max(size, 1))
        for size, square in zip(sizes, squares, strict=True)
    ]
    for value, size in heavy.items():
        loads += [Load(counts[value] / copies, counts[value] / size)] * size
    met = sum(size * size for size in sizes) + sum(counts[value] ** 2 for value in heavy)
    return _Draft(attribute, shared, heavy, loads, filters - met / copies)


def _ceil(value: float) -> int:
    return math.ceil(value - 1e-9)


# --- where filters lie


class Placing:
    """Finds the shards of filters."""

    def __init__(self, plan: Plan, schema: Schema) -> None:
        self._plan = plan
        self._hashes = Hashes(schema)

    def shards(self, subscription: str | int, leaves: Leaves) -> tuple[int, ...]:
        """The shards in which a filter lies."""
        own = id_hash(subscription)
        if self._plan.groups:
            keys = keys_of(leaves)
            for group in self._plan.groups:
                values = keys.get(group.attribute)
                if values is not None:
                    found = {self._shard(group, value, own) for value in values}
                    return tuple(found) if len(found) == 1 else tuple(sorted(found))
        return (own % self._plan.general,)

    def _shard(self, group: Group, value: Any, own: int) -> int:
        number = self._hashes.value(group.attribute, value)
        heavy = group.heavy.get(number)
        return group.first + number % group.shared if heavy is None else heavy[own % len(heavy)]


# --- where events go


class Routing:
    """Finds the shards that events meet, of those in which there is a filter."""

    def __init__(self, plan: Plan, semantics: Semantics, alive: Sequence[bool]) -> None:
        self._plan = plan
        self._alive = np.array(alive, bool)
        self._hashes = Hashes(semantics.schema)
        self._views = [_view(semantics, group.attribute) for group in plan.groups]

    def pairs(self, events: pa.Table) -> tuple[Array, Array]:
        """Rows of events that can be used, and the shards that they meet; no pair twice."""
        everyone = np.arange(events.num_rows)
        met = [(everyone, np.full(len(everyone), shard)) for shard in range(self._plan.general)]
        for group, view in zip(self._plan.groups, self._views, strict=True):
            column = batch_of_table(events, view, refuse_unknown=False).columns[0]
            met += self._met(group, column)
        rows = np.concatenate([rows for rows, _ in met])
        shards = np.concatenate([shards for _, shards in met])
        alive = self._alive[shards]
        return rows[alive], shards[alive]

    def _met(self, group: Group, column: Column) -> list[tuple[Array, Array]]:
        rows = np.flatnonzero(column.present)
        hashes = self._hashes.column(group.attribute, column)[rows]
        found = []
        for value, shards in group.heavy.items():
            own = hashes == np.uint64(value)
            if own.any():
                found += [(rows[own], np.full(int(own.sum()), shard)) for shard in shards]
                rows, hashes = rows[~own], hashes[~own]
        light = group.first + (hashes % np.uint64(group.shared)).astype(np.int64)
        return [*found, (rows, light)]


def _view(semantics: Semantics, attribute: int) -> Semantics:
    """The semantics of one attribute: a missing value may become the default."""
    schema = Schema.of_attributes([semantics.schema.attributes[attribute]])
    if semantics.name != "default":
        return Semantics("sql", schema)
    view = Semantics("default", schema, dict.fromkeys(schema))
    view.defaults = (semantics.defaults[attribute],)
    return view


class Slots:
    """A slot is a shard, or a copy of one: several tasks share the events of a shard."""

    def __init__(self, copies: Sequence[int] | Array) -> None:
        self.copies = np.array(copies, np.int64)
        self.starts = np.concatenate([[0], np.cumsum(self.copies)[:-1]])
        self.total = int(self.copies.sum())

    def of(self, shards: Array, numbers: Array) -> Array:
        """The slots for events with some numbers."""
        turns = mixed(numbers.astype(np.uint64)) % self.copies[shards].astype(np.uint64)
        found: Array = (self.starts[shards] + turns.astype(np.int64)).astype(np.int32)
        return found

    def anywhere(self, numbers: Array) -> Array:
        """Slots for events that meet no shard, evenly spread."""
        found: Array = mixed(numbers.astype(np.uint64)) % np.uint64(self.total)
        return found.astype(np.int32)


def copies_for(work: Sequence[float], alive: Sequence[bool], tasks: int) -> list[int]:
    """How many copies of each shard make about so many tasks with equally much work."""
    total = sum(work) or 1
    return [
        max(1, round(tasks * some / total)) if lives else 0
        for some, lives in zip(work, alive, strict=True)
    ]


# --- hashes


class Hashes:
    """Hashes of values, from filters and from events."""

    def __init__(self, schema: Schema) -> None:
        self._keys = Keys(schema)
        self._known: dict[tuple[int, Any], int] = {}

    def value(self, attribute: int, value: Any) -> int:
        """The hash of a constant of a leaf."""
        found = self._known.get((attribute, value))
        if found is None:
            if self._keys.has(attribute):
                number = self._keys.of_one(attribute)(value)
            else:
                number = _text_number(value)
            if len(self._known) >= 1_000_000:
                self._known.clear()
            found = self._known[attribute, value] = mixed_one(number)
        return found

    def column(self, attribute: int, column: Column) -> Array:
        """The hashes of the values of events; of no meaning where one is missing."""
        if column.distinct is None or self._keys.has(attribute):
            return mixed(column.keys.astype(np.int64).view(np.uint64))
        texts = column.distinct.to_pylist()
        numbers = np.fromiter(map(_text_number, texts), np.uint64, len(texts))
        return mixed(numbers if len(numbers) else np.zeros(1, np.uint64))[column.keys]


def id_hash(subscription: str | int) -> int:
    """The hash of the id of a subscription."""
    if isinstance(subscription, str):
        return mixed_one(_text_number(subscription))
    return mixed_one(subscription)


def _text_number(text: str) -> int:
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))


def mixed(numbers: Array) -> Array:
    """Numbers whose bits all depend on all bits of the given ones (splitmix64)."""
    x = numbers + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    found: Array = x ^ (x >> np.uint64(31))
    return found


def mixed_one(number: int) -> int:
    """The same of one number."""
    x = (number + 0x9E3779B97F4A7C15) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)
