"""The experiments of BDD, section 8: nodes before and after restriction, and seconds.

    python benchmarks/restriction.py [--sizes 25000 50000 75000 100000] [--events E]

BDD is short for Campailla et al., "Efficient filtering in publish-subscribe systems using binary
decision diagrams" (ICSE 2001).

First the nodes of all queries in one diagram: unrestricted, restricted by the facts of each query
at once, and by one fact after another; then the orders of variables; then the time for 1000
messages at the paper's densities, with strict semantics (MVEvalBDD) and, for total messages, with
`total` (EvalBDD). All diagrams must give the same matches.
"""

import argparse
import statistics
import time
from collections.abc import Sequence
from typing import Any

from engine_process import digest
from tamis.engines import make_engine
from tamis.engines.base import Engine
from tamis.events.columns import table_rows
from tamis.events.event_reader import Row
from tamis.language.shape_cache import ShapeCache
from tamis.semantics import Semantics
from tamis.workloads import workload

WORKLOAD = workload("bdd")
DENSITIES = (0.077, 0.154, 0.231, 0.308, 1.0)
PAPER_NODES = {25_000: (180_226, 108_889), 50_000: (351_616, 206_848), 75_000: (543_677, 299_942),
               100_000: (708_969, 376_992)}  # fmt: skip


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--sizes", type=int, nargs="+", default=[*PAPER_NODES])
    arguments.add_argument("--events", type=int, default=200)
    options = arguments.parse_args()
    parse = ShapeCache(WORKLOAD.schema).parse
    filters = WORKLOAD.subscriptions(max(options.sizes))["filter"].to_pylist()
    expressions = [parse(text) for text in filters]
    nodes(expressions, options.sizes)
    orders(expressions[:25_000])
    densities(expressions, options.sizes, options.events)


def build(expressions: Sequence[Any], semantics: Semantics, **options: Any) -> tuple[Engine, float]:
    engine = make_engine("bdd", semantics, options)
    start = time.perf_counter()
    for handle, expression in enumerate(expressions):
        engine.add(handle, engine.prepare(expression))
    return engine, time.perf_counter() - start


def rows(events: int, density: float) -> list[Row]:
    table = WORKLOAD.events(events, seed=2, density=density)
    return list(table_rows(table, WORKLOAD.schema, refuse_unknown=True))


def compare(engines: Sequence[Engine]) -> None:
    """Before a figure is printed: the same matches from all."""
    some = rows(20, 1.0)
    if len({digest([engine.match(row) for row in some]) for engine in engines}) > 1:
        raise AssertionError("the diagrams disagree")


def nodes(expressions: Sequence[Any], sizes: Sequence[int]) -> None:
    print("Nodes in total semantics, as in the paper, and in sql semantics\n")
    print("| queries | unrestricted | by query | one by one | factor | paper | sql: factor |")
    print("|---|---|---|---|---|---|---|")
    total, sql = Semantics("total", WORKLOAD.schema), Semantics("sql", WORKLOAD.schema)
    for size in sizes:
        some = expressions[:size]
        engines = [build(some, total, restriction=r)[0] for r in ("none", "query", "iterative")]
        others = [build(some, sql, restriction=r)[0] for r in ("none", "query")]
        compare(engines + others)
        none, query, one = (engine.statistics()["nodes"] for engine in engines)
        plain, restricted = (engine.statistics()["nodes"] for engine in others)
        before, after = PAPER_NODES.get(size, (0, 1))
        print(f"| {size:,} | {none:,} | {query:,} | {one:,} | {none / query:.2f} "
              f"| {before:,} / {after:,} = {before / after:.2f} | {plain / restricted:.2f} |",
              flush=True)  # fmt: skip


def orders(expressions: Sequence[Any]) -> None:
    print(f"\nOrders of variables, {len(expressions):,} queries\n")
    print("| order | unrestricted | restricted | build, s |")
    print("|---|---|---|---|")
    total = Semantics("total", WORKLOAD.schema)
    for order in ("attribute", "frequency", "random"):
        plain, _ = build(expressions, total, order=order, restriction="none")
        restricted, seconds = build(expressions, total, order=order)
        compare([plain, restricted])
        print(f"| {order} | {plain.statistics()['nodes']:,} | {restricted.statistics()['nodes']:,} "
              f"| {seconds:.1f} |", flush=True)  # fmt: skip


def densities(expressions: Sequence[Any], sizes: Sequence[int], events: int) -> None:
    print("\nSeconds for 1000 messages, by density; strict semantics, and total at the end\n")
    print("| queries | " + " | ".join(f"{d:.1%}" for d in DENSITIES) + " | total |")
    print("|---|" + "---|" * (len(DENSITIES) + 1))
    for size in sizes:
        strict, _ = build(expressions[:size], Semantics("strict", WORKLOAD.schema))
        total, _ = build(expressions[:size], Semantics("total", WORKLOAD.schema))
        compare([strict, total])
        cells = [seconds(strict, rows(events, density)) for density in DENSITIES]
        cells.append(seconds(total, rows(events, 1.0)))
        print(f"| {size:,} | " + " | ".join(f"{cell:.2f}" for cell in cells) + " |", flush=True)


def seconds(engine: Engine, some: Sequence[Row]) -> float:
    """The median time of a message, times 1000."""
    times = []
    for row in some:
        start = time.perf_counter()
        engine.match(row)
        times.append(time.perf_counter() - start)
    return statistics.median(times) * 1000


if __name__ == "__main__":
    main()
