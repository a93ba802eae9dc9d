"""Fig. 12: how many entries a routing table has without covering, with it, and merged."""

import statistics
from collections.abc import Iterator, Sequence
from typing import Any

from routing_sections import paper_figures
from routing_sections.reductions import merged
from routing_sections.subscription_set import SubscriptionSet, Table, never
from routing_sections.tables import aligned, shown
from tamis.engines.mbd import MbdEngine, MbdOptions
from tamis.relations.merging.measures import Uniform
from tamis.relations.merging.mergers import MergeOptions

RULES = ("paper", "full")

COLUMNS = (
    "subscriptions", "covering", "covered", "paper", "never match", "perfect, rules of the paper",
    "all our rules", "imperfect, rules of the paper", "all our rules", "s",
)  # fmt: skip
ORDER_COLUMNS = (
    "subscriptions", "perfect, any attribute", "one order: as given", "by statistics", "random",
    "random - given", "paper", "MBDs as given", "by statistics", "random",
)  # fmt: skip


def measured(
    some: SubscriptionSet, sizes: Sequence[int], threshold: float, density: float, seeds: int
) -> Iterator[dict[str, Any]]:
    """What is left of the first subscriptions, for each number of them."""
    measure = Uniform(some.source.schema, presence=density)
    for size in sizes:
        table = some.covered(size)
        roots = len(table.roots)
        found: dict[str, Any] = {
            "set": some.name, "size": size, "never": never(table, range(size)), "roots": roots,
            "threshold": threshold, "density": density, "perfect": {}, "imperfect": {},
        }  # fmt: skip
        seconds = 0.0
        for rules in RULES:
            perfect = merged(table, some.semantics, MergeOptions(rules))
            plan = MergeOptions(rules, imperfect=threshold, measure=measure)
            imperfect = merged(table, some.semantics, plan)
            found["perfect"][rules], found["imperfect"][rules] = perfect.size, imperfect.size
            seconds += perfect.seconds + imperfect.seconds
        found["seconds"] = seconds
        if size == max(sizes):
            found["orders"] = orders(some, table, seeds)
        yield found


def orders(some: SubscriptionSet, table: Table, seeds: int) -> dict[str, dict[str, list[int]]]:
    """Perfect merging of what differs on top of an MBD only, and how many of these there are.

    The attributes from the top of a diagram to its bottom are as given, by statistics of the
    subscriptions, or in several random orders.
    """
    names = [attribute.name for attribute in some.source.schema.attributes]
    found: dict[str, dict[str, list[int]]] = {}
    for kind in ("schema", "statistics", "random"):
        found[kind] = {"entries": [], "mbds": []}
        for seed in range(1, 1 + (seeds if kind == "random" else 1)):
            engine = MbdEngine(some.semantics, MbdOptions(order=kind, seed=seed))
            for handle, key in enumerate(table.roots):
                engine.add(handle, engine.prepare(table.expression(key)))
            order = sorted(names, key=lambda name: engine.rank[names.index(name)])
            plan = MergeOptions("paper", candidates="mbd", order=tuple(order))
            found[kind]["mbds"].append(engine.statistics()["groups"])
            found[kind]["entries"].append(merged(table, some.semantics, plan).size)
    return found


# --- tables


def printed(lines: Sequence[dict[str, Any]]) -> str:
    """All results of a set."""
    first = lines[0]
    said = (
        f"**{first['set']}: entries of the routing table** (Fig. 12); imperfect mergers have an "
        f"IMT of at most {first['threshold']:g}, for publications with {first['density']:.0%} of "
        "the attributes"
    )
    order = (
        "**Orders of attributes**: mergers of what differs in one attribute, any or the one on top "
        "of an MBD, rules of the paper"
    )
    return "\n\n".join([
        said, aligned(COLUMNS, map(_cells, lines)),
        order, aligned(ORDER_COLUMNS, [_order_cells(line) for line in lines if "orders" in line]),
    ])  # fmt: skip


def _cells(line: dict[str, Any]) -> list[str]:
    size = line["size"]
    covered = size - line["roots"] - line["never"]
    published = paper_figures.COVERED.get(line["set"]) if size == paper_figures.SIZE else None
    sizes = [line[kind][rules] for kind in ("perfect", "imperfect") for rules in RULES]
    return [
        f"{size:,}", f"{line['roots']:,}", f"{covered / size:.1%}", shown(published, "{:.0%}"),
        f"{line['never'] / size:.1%}",
        *(f"{entries:,}" for entries in sizes), f"{line['seconds']:.0f}",
    ]  # fmt: skip


def _order_cells(line: dict[str, Any]) -> list[str]:
    found = line["orders"]
    given, best, at_random = (
        {what: statistics.mean(values) for what, values in found[kind].items()}
        for kind in ("schema", "statistics", "random")
    )
    is_full = line["size"] == paper_figures.SIZE
    return [
        f"{line['size']:,}", f"{line['perfect']['paper']:,}",
        *(f"{order['entries']:,.0f}" for order in (given, best, at_random)),
        f"{at_random['entries'] - given['entries']:+,.0f}",
        shown(paper_figures.RANDOM_ORDER if is_full else None, "{:+,}"),
        *(f"{order['mbds']:,.0f}" for order in (given, best, at_random)),
    ]  # fmt: skip
