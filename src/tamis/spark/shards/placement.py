"""In which shards a filter is, and which shards an event meets.

Why every match is found once:

* A filter is in shards of one group, or in one general shard.
* An event has one value of an attribute, or none, so it meets the shards of one value of a group.
  If a filter requires this value, it is in exactly one of them. If it does not, it may be in one
  of them because values share shards, but then it is not true of the event.
* Values are compared by their hashes. Two values with the same hash are treated as one, so that an
  event may meet more filters than it must, and never fewer.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.engines.required_values import RequiredValues
from tamis.language.expression import Expression
from tamis.language.shape_cache import ShapeCache
from tamis.matcher_settings import MatcherSettings
from tamis.predicates.event_batches import Column, batch_of_table
from tamis.schema import Schema
from tamis.semantics import Semantics
from tamis.spark.shards.hashes import Array, ValueHashes, id_hash
from tamis.spark.shards.plan import MOST_VALUES, ShardGroup, ShardPlan


class FilterPlacement:
    """Finds the shards of filters."""

    def __init__(self, plan: ShardPlan, semantics: Semantics) -> None:
        self._plan = plan
        self._required = RequiredValues(semantics)
        self._hashes = ValueHashes(semantics.schema)

    def shards(self, subscription: str | int, expression: Expression) -> tuple[int, ...]:
        """The shards in which a subscription is."""
        own = id_hash(subscription)
        keys = self._required.of(expression, MOST_VALUES)  # refuses what cannot be compiled
        for group in self._plan.groups:
            values = keys.get(group.attribute)
            if values is not None:
                found = {self._shard(group, value, own) for value in values}
                return tuple(found) if len(found) == 1 else tuple(sorted(found))
        return (own % self._plan.general,)

    def _shard(self, group: ShardGroup, value: Any, own: int) -> int:
        number = self._hashes.value(group.attribute, value)
        heavy = group.heavy.get(number)
        return group.first + number % group.shared if heavy is None else heavy[own % len(heavy)]


class PlacedChanges(NamedTuple):
    """Changes of subscriptions, by the shards that get the new filters."""

    ids: frozenset[str | int] = frozenset()  # all that change; what they had before goes
    added: Mapping[int, Sequence[tuple[str | int, str]]] = {}


def placed_changes(
    changes: Mapping[str | int, str | None], plan: ShardPlan, settings: MatcherSettings
) -> PlacedChanges:
    """Where changes go; a filter of None removes."""
    shapes = ShapeCache(settings.schema)
    placement = FilterPlacement(plan, settings.meaning())
    added: dict[int, list[tuple[str | int, str]]] = {}
    for subscription, text in changes.items():
        if text is not None:
            for shard in placement.shards(subscription, shapes.parse(text)):
                added.setdefault(shard, []).append((subscription, text))
    return PlacedChanges(frozenset(changes), added)


class EventRouting:
    """Finds the shards that events meet, among those that have a filter (`alive`)."""

    def __init__(self, plan: ShardPlan, semantics: Semantics, alive: Sequence[bool]) -> None:
        self._plan = plan
        self._alive = np.array(alive, bool)
        self._hashes = ValueHashes(semantics.schema)
        self._views = [_view(semantics, group.attribute) for group in plan.groups]

    def pairs(self, events: pa.Table) -> tuple[Array, Array]:
        """Rows of valid events and the shards that they meet, as pairs; no pair comes twice."""
        everyone = np.arange(events.num_rows)
        met = [(everyone, np.full(len(everyone), shard)) for shard in range(self._plan.general)]
        for group, view in zip(self._plan.groups, self._views, strict=True):
            column = batch_of_table(events, view, refuse_unknown=False).columns[0]
            met += self._met(group, column)
        rows = np.concatenate([rows for rows, _ in met])
        shards = np.concatenate([shards for _, shards in met])
        alive = self._alive[shards]
        return rows[alive], shards[alive]

    def _met(self, group: ShardGroup, column: Column) -> list[tuple[Array, Array]]:
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
    """The semantics of one attribute alone: a missing value may become the default."""
    schema = Schema.of_attributes([semantics.schema.attributes[attribute]])
    if semantics.name != "default":
        return Semantics("sql", schema)
    view = Semantics("default", schema, dict.fromkeys(schema))
    view.defaults = (semantics.defaults[attribute],)
    return view
