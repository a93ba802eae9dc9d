"""What larger thresholds of imperfect merging save, and what they let through (MBD, Figs. 14, 15).

A *false publication* matches the merged table, but no subscription. A *false entry* of a
publication is a merger that it matches although it matches none of the merged subscriptions. In a
table of many subscriptions almost every publication matches some of them, and only the entries show
the difference.

MBD does not say how many attributes its publications have, and the IMT of a merger depends on it: a
merger matches an event only if all attributes that it tests are present.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.engines import make_engine
from tamis.events.event_reader import Row
from tamis.language.expression import Expression, parse_with
from tamis.papers.contest import Disagreement, fill
from tamis.papers.measurements import Point
from tamis.papers.procedures.table_reductions import SETS
from tamis.papers.routing_tables import Reduced, SubscriptionSet
from tamis.relations.merging.measures import Uniform
from tamis.relations.merging.mergers import MergeOptions
from tamis.schema import IntRange, Schema
from tamis.workloads import workload

OFFERED = 5  # attributes of which only the lower half is advertised

Array = np.ndarray[Any, Any]


def merge_up_to(density: float, seed: int, parameters: Mapping[str, Any]) -> Iterator[Point]:
    """Merge ``size`` subscriptions of a ``set`` up to each of some ``thresholds`` of the IMT, for
    publications that have a `density` of the attributes.

    * ``entries``: of the table, divided by those that covering leaves, by IMT;
    * ``reached``: the share of what an IMT of 1 removes beyond perfect merging;
    * ``false publications``: of ``events``, the share that is let through for nobody;
    * ``false entries``: of the entries that publications match, the share that is false;
    * ``wanted``: the share of the publications that match a subscription.

    The line with advertisements merges, at the thresholds ``advertised``, for publications of which
    some attributes are published in their lower half only.
    """
    some = SubscriptionSet(workload(SETS[parameters["set"]]), parameters["size"], seed)
    some.cover(some.size)
    measure = Uniform(some.source.schema, presence=density)
    events: int = parameters["events"]
    offer = lower_half(some.source.schema)
    plain = some.events(events, density)
    for line, thresholds, publications, offers in (
        (f"density {density:g}", parameters["thresholds"], plain, ()),
        (f"density {density:g}, advertised", parameters["advertised"],
         as_offered(some, offer, events, density), (offer,)),
    ):  # fmt: skip
        rows = some.rows(publications)
        roots = some.covering()
        wanted = matched_roots(some, roots, rows)
        share = sum(len(one) > 0 for one in wanted) / len(rows)
        sizes = {}
        for threshold in thresholds:
            plan = MergeOptions(
                "paper", imperfect=threshold, measure=measure, advertisements=offers
            )
            found = some.merged(plan)
            counts = false_positives(some, found, rows, wanted)
            sizes[threshold] = found.size
            yield Point(line, "entries", threshold, found.size / roots.size)
            for name, value in counts.items():
                yield Point(line, name, threshold, value)
            yield Point(line, "wanted", threshold, share)
        if removed := sizes.get(0, 0) - sizes.get(1, 0):
            for threshold, size in sizes.items():
                yield Point(line, "reached", threshold, (sizes[0] - size) / removed)


def lower_half(schema: Schema) -> Expression:
    """An advertisement: some attributes have values in their lower half, or are missing."""
    parts = []
    for attribute in schema.attributes[:OFFERED]:
        if not isinstance(attribute.domain, IntRange):
            raise TypeError(f"{attribute.name} has no range of numbers to be halved")
        middle = (attribute.domain.low + attribute.domain.high) // 2
        parts.append(f"({attribute.name} <= {middle} OR {attribute.name} IS NULL)")
    return parse_with(" AND ".join(parts), schema)


def as_offered(some: SubscriptionSet, offer: Expression, events: int, density: float) -> pa.Table:
    """Publications that keep to an advertisement."""
    table = some.events(40 * events, density)  # a total one keeps to it once in 32 times
    holds = some.semantics.condition(offer)
    kept = [n for n, row in enumerate(some.rows(table)) if holds(row)]
    return table.take(kept[:events])


def matched_roots(some: SubscriptionSet, roots: Reduced, rows: Sequence[Row]) -> list[Array]:
    """For each publication, the places of the roots that it matches."""
    return _matches(some, roots.expressions, rows)


def false_positives(
    some: SubscriptionSet, found: Reduced, rows: Sequence[Row], wanted: Sequence[Array]
) -> dict[str, float]:
    """The shares of publications and of entries that a merged table matches falsely.

    `wanted` has, for each publication, the places of the roots that it matches.
    """
    parts = _Parts(some, found)
    false = matches = false_matches = 0
    matched = _matches(some, found.expressions, rows)
    for event, (entries, roots) in enumerate(zip(matched, wanted, strict=True)):
        if len(roots) and not len(entries):
            raise Disagreement(f"publication {event} matches a subscription, and no entry")
        false += len(entries) > 0 and not len(roots)
        matches += len(entries)
        false_matches += parts.false(entries, roots)
    return {
        "false publications": false / len(rows),
        "false entries": false_matches / max(1, matches),
    }


def _matches(
    some: SubscriptionSet, entries: Sequence[Expression], rows: Sequence[Row]
) -> list[Array]:
    engine = make_engine("auto", some.semantics)
    fill(engine, entries)
    return [np.asarray(handles, np.int64) for handles in engine.match_many(rows)]


class _Parts:
    """The roots that each entry of a merged table stands for."""

    def __init__(self, some: SubscriptionSet, found: Reduced) -> None:
        places = {key: place for place, key in enumerate(some.table.roots)}
        hidden = iter(found.hidden)
        of_entries = [
            [places[key]] if key in places else [places[root] for root in next(hidden)]
            for key, _ in found.entries
        ]
        sizes = [len(roots) for roots in of_entries]
        self._starts: Array = np.cumsum([0, *sizes[:-1]])
        self._roots: Array = np.array([root for roots in of_entries for root in roots], np.int64)
        self._truth: Array = np.zeros(len(places), bool)

    def false(self, entries: Array, roots: Array) -> int:
        """How many of some entries stand for none of some roots."""
        if not len(entries):
            return 0
        self._truth[roots] = True
        stands: Array = np.logical_or.reduceat(self._truth[self._roots], self._starts)
        self._truth[roots] = False
        return int((~stands[entries]).sum())
