"""Table 2: the time per publication, for tables that were reduced in several ways."""

import statistics
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from routing_sections import paper_figures
from routing_sections.reductions import covering, merged
from routing_sections.subscription_set import SubscriptionSet
from routing_sections.tables import DASH, aligned, shown
from tamis.engines import make_engine
from tamis.engines.base import Engine
from tamis.events.event_reader import Row
from tamis.language.expression import Expression
from tamis.relations.merging.measures import Uniform
from tamis.relations.merging.mergers import MergeOptions
from tamis.semantics import Semantics

ENGINES = ("mbd", "naive", "auto")
COMPARED = 10  # publications at least
WARM = 2_000  # subscriptions, enough for `auto` to compile them
COLUMNS = (
    "table", "entries", "matches", "mbd, ms", "paper", "naive, ms", "paper", "naive/mbd", "paper",
    "auto, ms", "spread", "publications", "naive asked", "build mbd, s", "auto, s",
)  # fmt: skip

Entries = list[Expression]
Matches = list[Any]  # for each publication the numbers of the entries that it matches


def tables_of(
    some: SubscriptionSet, threshold: float, density: float
) -> Iterator[tuple[str, Entries]]:
    """The entries that each technique leaves."""
    yield "none", some.expressions
    table = some.covered()
    yield "covering", [expression for _, expression in covering(table).entries]
    measure = Uniform(some.source.schema, presence=density)
    plans = {"perfect": MergeOptions("paper"),
             "imperfect": MergeOptions("paper", imperfect=threshold, measure=measure)}  # fmt: skip
    for name, plan in plans.items():
        yield name, [expression for _, expression in merged(table, some.semantics, plan).entries]


def measured(
    some: SubscriptionSet, threshold: float, density: float, events: int, patience: float,
    engines: Sequence[str] = ENGINES,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Seconds per publication of each engine on each table."""
    rows = some.rows(some.events(events, density))
    for name in engines:
        timed_matches(build(name, some.semantics, some.expressions[:WARM]), rows[:COMPARED], 1e9)
    wanted: Matches = []
    for table, entries in tables_of(some, threshold, density):
        found: dict[str, Any] = {
            "set": some.name, "size": some.size, "table": table, "entries": len(entries),
            "events": len(rows), "density": density, "engines": {},
        }  # fmt: skip
        answers: dict[str, Matches] = {}
        for name in engines:
            start = time.perf_counter()
            engine = build(name, some.semantics, entries)
            built = time.perf_counter() - start
            times, answers[name] = timed_matches(engine, rows, patience)
            found["engines"][name] = {"build": built, "times": times}
        compare(answers)
        longest = max(answers.values(), key=len)
        wanted = wanted or longest
        compare_tables(table, longest, wanted)
        found["matches"] = float(np.mean([len(numbers) for numbers in longest]))
        yield found


def build(name: str, semantics: Semantics, entries: Sequence[Expression]) -> Engine:
    """An engine that holds the entries under their numbers, and has answered nothing yet."""
    engine = make_engine(name, semantics)
    for handle, expression in enumerate(entries):
        engine.add(handle, engine.prepare(expression))
    return engine


def timed_matches(
    engine: Engine, rows: Sequence[Row], patience: float
) -> tuple[list[float], Matches]:  # fmt: skip
    """Seconds and matches of each publication, of fewer if they take long."""
    engine.match(rows[0])
    times: list[float] = []
    found: Matches = []
    for row in rows:
        start = time.perf_counter()
        handles = engine.match(row)
        times.append(time.perf_counter() - start)
        found.append(np.array(handles, np.int64))
        if sum(times) > patience and len(times) >= COMPARED:
            break
    return times, found


def compare(answers: Mapping[str, Matches]) -> None:
    """Check that all give the same matches for the publications that all have matched."""
    (first, wanted), *others = answers.items()
    for name, found in others:
        for event, (one, other) in enumerate(zip(wanted, found, strict=False)):
            if not np.array_equal(one, other):
                raise AssertionError(
                    f"publication {event}: {first} finds {len(one)} matches, {name} {len(other)}"
                )


def compare_tables(table: str, found: Matches, wanted: Matches) -> None:
    """Check that a publication matches the table if, or for a perfect table exactly if, it must."""
    for event, (one, other) in enumerate(zip(found, wanted, strict=False)):
        if len(other) and not len(one):
            raise AssertionError(f"publication {event} is lost by the table {table!r}")
        if len(one) and not len(other) and table != "imperfect":
            raise AssertionError(
                f"publication {event} matches no subscription, but the table {table!r}"
            )


# --- tables


def printed(lines: Sequence[dict[str, Any]]) -> str:
    """All results of a set."""
    first = lines[0]
    said = (
        f"**{first['set']}, {first['size']:,} subscriptions: ms per publication** (Table 2), means "
        f"as in the paper; publications have {first['density']:.0%} of the attributes; *spread* of "
        "auto is (90th - 10th percentile) / median"
    )
    return said + "\n\n" + aligned(COLUMNS, map(_cells, lines))


def _cells(line: dict[str, Any]) -> list[str]:
    engines = line["engines"]
    means = {name: 1e3 * statistics.mean(engines[name]["times"]) for name in engines}
    is_full = line["size"] == paper_figures.SIZE
    published = paper_figures.ROUTING.get((line["set"], line["table"]), {}) if is_full else {}
    theirs = published["naive"] / published["mbd"] if published else None
    ours = means["naive"] / means["mbd"] if {"naive", "mbd"} <= means.keys() else None
    return [
        line["table"], f"{line['entries']:,}", f"{line['matches']:,.1f}",
        shown(means.get("mbd"), "{:.3f}"), shown(published.get("mbd"), "{:.2f}"),
        shown(means.get("naive"), "{:.2f}"), shown(published.get("naive"), "{:.2f}"),
        shown(ours, "{:,.1f}"), shown(theirs, "{:,.1f}"), shown(means.get("auto"), "{:.3f}"),
        _spread(engines.get("auto")), f"{line['events']:,}",
        shown(len(engines["naive"]["times"]) if "naive" in engines else None),
        *(shown(engines[name]["build"] if name in engines else None, "{:.1f}")
          for name in ("mbd", "auto")),
    ]  # fmt: skip


def _spread(found: Mapping[str, list[float]] | None) -> str:
    if found is None or len(found["times"]) < COMPARED:
        return DASH
    deciles = statistics.quantiles(found["times"], n=10)
    return f"{(deciles[-1] - deciles[0]) / statistics.median(found['times']):.0%}"
