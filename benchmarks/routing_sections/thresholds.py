"""Figs. 14 and 15: what larger thresholds of imperfect merging save, and what they let through.

A *false publication* matches the merged table, but no subscription. A *false entry* of a
publication is a merger that it matches although it matches none of the merged subscriptions. In a
table of many subscriptions almost every publication matches some of them, and only the entries show
the difference.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from routing_sections import paper_figures
from routing_sections.matching import build
from routing_sections.reductions import Reduced, merged
from routing_sections.subscription_set import SubscriptionSet, Table
from routing_sections.tables import aligned, shown
from tamis.engines.base import Engine
from tamis.events.event_reader import Row
from tamis.language.expression import Expression, parse_with
from tamis.profiles import Profile
from tamis.relations.merging.measures import Measure, Profiled, Uniform
from tamis.relations.merging.mergers import MergeOptions
from tamis.schema import IntRange, Schema

ADVERTISED = 5  # attributes of which only the lower half is published
PROFILED = 20_000  # publications
COLUMNS = (
    "mergers by", "IMT", "entries", "paper", "of covering", "mergers", "s", "publications",
    "wanted", "let through", "false publications", "paper", "false entries",
)  # fmt: skip

Array = np.ndarray[Any, Any]


class Series(NamedTuple):
    """One way of merging, with several thresholds."""

    name: str
    about: str
    rules: str
    measure: Measure
    publications: pa.Table
    density: float
    advertisements: tuple[Expression, ...] = ()

    def plan(self, threshold: float) -> MergeOptions:
        return MergeOptions(
            self.rules, imperfect=threshold, measure=self.measure,
            advertisements=self.advertisements,
        )  # fmt: skip


def all_series(
    some: SubscriptionSet, density: float, events: int
) -> dict[str, Callable[[], Series]]:
    """The ways of merging, each made on demand."""
    schema = some.source.schema
    uniform = Uniform(schema, presence=density)

    def plain(name: str, rules: str, about: str) -> Series:
        return Series(name, about, rules, uniform, some.events(events, density), density)

    def sparse() -> Series:
        presence = density / 2
        return Series(
            "sparse", "as paper, and publications with half as many attributes", "paper",
            Uniform(schema, presence=presence), some.events(events, presence), presence,
        )  # fmt: skip

    def advertised() -> Series:
        offer = offered(schema)
        table = some.events(8 * events, density)
        holds = some.semantics.condition(offer)
        kept = [n for n, row in enumerate(some.rows(table)) if holds(row)]
        return Series(
            "advertised", f"as paper, of {ADVERTISED} attributes only the lower half is advertised",
            "paper", uniform, table.take(kept[:events]), density, (offer,),
        )  # fmt: skip

    def skewed(name: str, about: str, measure: Measure) -> Series:
        table = lowered(some.events(PROFILED + events, density), schema)
        return Series(name, about, "paper", measure, table.slice(PROFILED), density)

    def profiled() -> Series:
        table = lowered(some.events(PROFILED, density), schema)
        measure = Profiled(Profile.of(table, schema))
        return skewed("profile", "as paper, by a profile; small values are frequent", measure)

    return {
        "paper": lambda: plain("paper", "paper", "rules of the paper, uniform values"),
        "full": lambda: plain("full", "full", "all our rules, uniform values"),
        "sparse": sparse,
        "advertised": advertised,
        "unaware": lambda: skewed(
            "unaware", "as profile, but merged as if values were uniform", uniform
        ),
        "profile": profiled,
    }  # fmt: skip


def offered(schema: Schema) -> Expression:
    """An advertisement: some attributes have values in their lower half, or are missing."""
    parts = []
    for attribute in schema.attributes[:ADVERTISED]:
        if not isinstance(attribute.domain, IntRange):
            raise TypeError(f"{attribute.name} has no range of numbers to be halved")
        middle = (attribute.domain.low + attribute.domain.high) // 2
        parts.append(f"({attribute.name} <= {middle} OR {attribute.name} IS NULL)")
    return parse_with(" AND ".join(parts), schema)


def lowered(events: pa.Table, schema: Schema) -> pa.Table:
    """Publications whose values are mostly small: uniform ones, squared."""
    columns = {}
    for attribute in schema.attributes:
        if not isinstance(attribute.domain, IntRange):
            raise TypeError(f"{attribute.name} has no range of numbers to be skewed")
        low, high = attribute.domain.low, attribute.domain.high
        above = pc.subtract(events[attribute.name].cast(pa.int64()), low)
        squared = pc.divide(pc.multiply(above, above), max(1, high - low))
        columns[attribute.name] = pc.add(squared, low)
    return pa.table(columns)


def measured(
    some: SubscriptionSet, wanted: Mapping[str, Sequence[float]], density: float, events: int
) -> Iterator[dict[str, Any]]:
    """Sizes and false positives of each way of merging, for each of its thresholds."""
    table = some.covered()
    covering = [table.expression(key) for key in table.roots]
    originals = build("auto", some.semantics, covering)
    made = all_series(some, density, events)
    known: dict[tuple[Any, ...], Reduced] = {}  # some series differ in their publications only
    for name, thresholds in wanted.items():
        series = made[name]()
        rows = some.rows(series.publications)
        roots = [np.array(originals.match(row), np.int64) for row in rows]
        for threshold in thresholds:
            key = series.rules, series.measure, series.advertisements, threshold
            if key not in known:
                known[key] = merged(table, some.semantics, series.plan(threshold))
            found = known[key]
            yield {
                "set": some.name, "size": some.size, "series": name, "about": series.about,
                "density": series.density, "threshold": threshold, "covering": len(covering),
                "entries": found.size, "mergers": found.mergers, "seconds": found.seconds,
                **false_positives(some, table, found, rows, roots),
            }  # fmt: skip


def false_positives(
    some: SubscriptionSet,
    table: Table,
    found: Reduced,
    rows: Sequence[Row],
    wanted: Sequence[Array],
) -> dict[str, int]:
    """How many publications a merged table lets through, and how many of them are false.

    `wanted` has, for each publication, the places of the roots that it matches.
    """
    engine = build("auto", some.semantics, [expression for _, expression in found.entries])
    parts = _Parts(table, found)
    counts = dict.fromkeys(
        ("publications", "wanted", "through", "false", "entry_matches", "false_entries"), 0
    )
    for event, (row, roots) in enumerate(zip(rows, wanted, strict=True)):
        entries = _matches(engine, row)
        if len(roots) and not len(entries):
            raise AssertionError(f"publication {event} matches a subscription, and no entry")
        counts["publications"] += 1
        counts["wanted"] += len(roots) > 0
        counts["through"] += len(entries) > 0
        counts["false"] += len(entries) > 0 and not len(roots)
        counts["entry_matches"] += len(entries)
        counts["false_entries"] += parts.false(entries, roots)
    return {name: int(count) for name, count in counts.items()}


def _matches(engine: Engine, row: Row) -> Array:
    return np.array(engine.match(row), np.int64)


class _Parts:
    """The roots that each entry of a merged table stands for."""

    def __init__(self, table: Table, found: Reduced) -> None:
        places = {key: place for place, key in enumerate(table.roots)}
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


# --- tables


def printed(lines: Sequence[dict[str, Any]]) -> str:
    """All results of a set."""
    first = lines[0]
    abouts = {line["series"]: f"{line['about']} ({line['density']:.0%} of the attributes)"
              for line in lines}  # fmt: skip
    said = (
        f"**{first['set']}, {first['size']:,} subscriptions: entries and false positives by IMT** "
        f"(Figs. 14 and 15); covering leaves {first['covering']:,}\n\n"
        + "\n".join(f"- *{name}*: {about}" for name, about in abouts.items())
    )
    return said + "\n\n" + aligned(COLUMNS, map(_cells, lines))


def _cells(line: dict[str, Any]) -> list[str]:
    threshold, events = line["threshold"], line["publications"]
    of_paper = line["series"] == "paper"
    is_full = line["size"] == paper_figures.MERGED_SIZE and not threshold and of_paper
    is_low = of_paper and 0 < threshold < 0.1 + 1e-9
    return [
        line["series"], f"{threshold:g}", f"{line['entries']:,}",
        shown(paper_figures.MERGED if is_full else None),
        f"{line['entries'] / line['covering']:.1%}", f"{line['mergers']:,}",
        f"{line['seconds']:.0f}", f"{events:,}",
        f"{line['wanted'] / events:.1%}", f"{line['through'] / events:.1%}",
        f"{line['false'] / max(1, line['through']):.2%}",
        f"< {paper_figures.FALSE_POSITIVES:.1%}" if is_low else shown(None),
        f"{line['false_entries'] / max(1, line['entry_matches']):.2%}",
    ]  # fmt: skip
