"""What covering and merging leave of a routing table, and what that saves (MBD, section 6).

Fig. 12, Table 2 and the orders of section 3.2 are measured together, because most of the time goes
into reducing the tables. Sets A and B are the workloads ``mbd-a`` and ``mbd-b``.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from tamis.engines import make_engine
from tamis.engines.mbd import MbdEngine, MbdOptions
from tamis.events.event_reader import Row
from tamis.language.expression import Expression
from tamis.papers.contest import Answers, Data, Disagreement, fill, time_batch, time_each
from tamis.papers.linear_scans import LinearScan, VectorScan
from tamis.papers.measurements import Point
from tamis.papers.routing_tables import SubscriptionSet, attribute_names
from tamis.relations.merging.measures import Uniform
from tamis.relations.merging.mergers import MergeOptions
from tamis.workloads import workload

SETS = {"A": "mbd-a", "B": "mbd-b", "journeys": "journeys"}
ORDERS = {"given order": "schema", "order by statistics": "statistics", "random order": "random"}
WITHIN = {"as they came": "arrival", "at random": "random"}
AUTO_BATCH = "auto, batches"


def reduce_tables(case: str, seed: int, parameters: Mapping[str, Any]) -> Iterator[Point]:
    """Measure a set at each of its ``sizes``; the last one is merged and routed, too.

    * ``entries`` of the table, by subscriptions: without covering, with it, merged perfectly and up
      to the IMT ``threshold``, and merged perfectly where only the top attribute of an MBD may
      differ, in several orders of attributes;
    * ``covered``: the share of the subscriptions that others cover, by subscriptions;
    * ``mbds``, by subscriptions: how many there are, by the order of attributes and of the
      predicates on one attribute; ``nodes``: of all of them;
    * ``routing``, by the kind of table: milliseconds to route one of ``events`` publications, which
      have a ``density`` of the attributes.
    """
    sizes = parameters["sizes"][case]
    some = SubscriptionSet(workload(SETS[case]), sizes[-1], seed)
    for size in sizes:
        some.cover(size)
        covered = size - len(some.table.roots) - some.never()
        yield Point(case, "covered", size, covered / size)
        yield Point(f"{case}, no covering", "entries", size, size)
        yield Point(f"{case}, covering", "entries", size, len(some.table.roots))
    measure = Uniform(some.source.schema, presence=parameters["density"])
    perfect = some.merged(MergeOptions("paper"))
    imperfect = some.merged(
        MergeOptions("paper", imperfect=parameters["threshold"], measure=measure)
    )
    yield Point(f"{case}, perfect merging", "entries", size, perfect.size)
    yield Point(f"{case}, imperfect merging", "entries", size, imperfect.size)
    yield from _ordered(case, some, seed)
    yield from _routed(case, some, parameters, {
        "no covering": some.expressions, "covering": some.covering().expressions,
        "perfect merging": perfect.expressions, "imperfect merging": imperfect.expressions,
    })  # fmt: skip


def cover_subscriptions(case: str, seed: int, parameters: Mapping[str, Any]) -> Iterator[Point]:
    """Measure how many subscriptions of a set are ``covered``, at each of its ``sizes``: the share
    of all, and of those that can match at all; and where there are ``merged`` subscriptions, the
    ``entries`` that covering and perfect merging leave.
    """
    sizes = parameters["sizes"][case]
    some = SubscriptionSet(workload(SETS[case]), sizes[-1], seed)
    for size in sizes:
        some.cover(size)
        never = some.never()
        covered = size - len(some.table.roots) - never
        yield Point(case, "covered", size, covered / size)
        yield Point(f"{case}, of those that can match", "covered", size, covered / (size - never))
        if size == parameters["merged"][case]:
            yield Point(case, "entries", size, some.merged(MergeOptions("paper")).size)


# --- orders


def _ordered(case: str, some: SubscriptionSet, seed: int) -> Iterator[Point]:
    size = len(some.table)
    roots = some.covering().expressions
    for name, order in ORDERS.items():
        engine = _mbds(some, roots, MbdOptions(order=order, seed=seed))
        names = attribute_names(engine.rank, some.source)
        plan = MergeOptions("paper", candidates="mbd", order=names)
        yield Point(f"{case}, {name}", "entries", size, some.merged(plan).size)
        yield Point(f"{case}, {name}", "mbds", size, engine.statistics()["groups"])
    for name, within in WITHIN.items():
        engine = _mbds(some, roots, MbdOptions(order="schema", within=within, seed=seed))
        found = engine.statistics()
        yield Point(f"{case}, predicates {name}", "mbds", size, found["groups"])
        yield Point(f"{case}, predicates {name}", "nodes", size, found["nodes"])


def _mbds(some: SubscriptionSet, entries: Sequence[Expression], options: MbdOptions) -> MbdEngine:
    engine = MbdEngine(some.semantics, options)
    for handle, expression in enumerate(entries):
        engine.add(handle, engine.prepare(expression))
    return engine


# --- routing


def _routed(
    case: str,
    some: SubscriptionSet,
    parameters: Mapping[str, Any],
    tables: Mapping[str, Sequence[Expression]],
) -> Iterator[Point]:
    rows = some.rows(some.events(parameters["events"], parameters["density"]))
    wanted: list[bool] = []  # whether each publication matches a subscription
    for table, entries in tables.items():
        answers = Answers()
        data = Data(entries, rows, some.semantics)
        for name, make in CONTESTANTS.items():
            engine = make(some.semantics)
            fill(engine, entries)
            seconds, found = time_each(engine.match, rows)
            answers.compare(f"{name}, {table}", found)
            yield Point(f"{case}, {name}", "routing", table, 1e3 * seconds)
            if name == "auto":
                seconds, found = time_batch(engine, data)
                answers.compare(f"{AUTO_BATCH}, {table}", found)
                yield Point(f"{case}, {AUTO_BATCH}", "routing", table, 1e3 * seconds)
        matched = [np.asarray(handles).size > 0 for handles in found]
        wanted = wanted or matched
        compare_tables(table, matched, wanted, rows)


CONTESTANTS: dict[str, Any] = {
    "mbd": lambda semantics: make_engine("mbd", semantics),
    "compiled scan": LinearScan,
    "vectorised scan": VectorScan,
    "auto": lambda semantics: make_engine("auto", semantics),
}


def compare_tables(
    table: str, found: Sequence[bool], wanted: Sequence[bool], rows: Sequence[Row]
) -> None:
    """Check that a publication matches the table if, or for a perfect table exactly if, it must."""
    for one, other, row in zip(found, wanted, rows, strict=True):
        if other and not one:
            raise Disagreement(f"{row} matches a subscription, and no entry after {table}")
        if one and not other and table != "imperfect merging":
            raise Disagreement(f"{row} matches no subscription, but an entry after {table}")
