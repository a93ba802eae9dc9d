"""The experiments of TREE, sections 4, 5 and 7, with the matching tree.

    python benchmarks/tree.py [--sizes 1000 ... 1000000] [--events E]

TREE is short for Aguilera, Strom, Sturman, Astley and Chandra, "Matching events in a content-based
subscription system" (PODC 1999).

First how visited nodes and time grow with the number of subscriptions on the paper's workload
(V = 3, K = 30, 100 matches per event), with the exponent fitted by least squares on logarithms and
the bound of Theorem 1; then what each optimization gains; then the general tree. Every tree must
give the same matches as counting-list.
"""

import argparse
import statistics
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from engine_process import digest
from tamis.engines import make_engine
from tamis.engines.base import Engine
from tamis.engines.tree import theorem_bound
from tamis.events.columns import table_rows
from tamis.events.event_reader import Row
from tamis.language.shape_cache import ShapeCache
from tamis.semantics import Semantics
from tamis.workloads import Workload, workload

BARE = {"collapse": False, "successors": "none"}
SWITCHES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("nothing", BARE),
    ("collapsed chains", {"successors": "none"}),
    ("and successors", {"successors": "plain"}),
    ("refined successors (default)", {}),
    ("and 3 index attributes", {"index_attributes": 3}),
    ("3 index attributes, no successors", {"index_attributes": 3, "successors": "none"}),
)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    sizes = [1_000, 3_000, 10_000, 30_000, 100_000, 300_000, 1_000_000]
    arguments.add_argument("--sizes", type=int, nargs="+", default=sizes)
    arguments.add_argument("--events", type=int, default=300)
    arguments.add_argument("--switches-at", type=int, default=25_000)
    options = arguments.parse_args()
    growth(options.sizes, options.events)
    switches("tree", options.switches_at, options.events)
    switches("tree-65", options.switches_at, options.events)
    general(min(options.switches_at, 10_000), options.events)


def read(source: Workload, size: int, events: int) -> tuple[list[Any], list[Row], Semantics]:
    parse = ShapeCache(source.schema).parse
    expressions = [parse(text) for text in source.subscriptions(size)["filter"].to_pylist()]
    table = source.events(events, seed=2)
    rows = list(table_rows(table, source.schema, refuse_unknown=True))
    return expressions, rows, Semantics("sql", source.schema)


def build(
    name: str, expressions: Sequence[Any], semantics: Semantics, options: dict[str, Any]
) -> tuple[Any, float]:
    engine: Engine = make_engine(name, semantics, options)
    start = time.perf_counter()
    for handle, expression in enumerate(expressions):
        engine.add(handle, engine.prepare(expression))
    return engine, time.perf_counter() - start


def ask(engine: Any, rows: Sequence[Row]) -> tuple[float, float, int]:
    """The median time of an event, the mean of nodes visited, the digest of the matches."""
    for row in rows[:3]:
        engine.match(row)
    if hasattr(engine, "reset_visited"):
        engine.reset_visited()
    times, found = [], []
    for row in rows:
        start = time.perf_counter()
        handles = engine.match(row)
        times.append(time.perf_counter() - start)
        found.append(handles)
    visited = getattr(engine, "visited", 0) / len(rows)
    return statistics.median(times), visited, digest(found)


def growth(sizes: Sequence[int], events: int) -> None:
    source = workload("tree")
    print("| subscriptions | build, s | nodes | ms per event | visited | bare: visited | bound |")
    print("|---|---|---|---|---|---|---|")
    points = []
    for size in sizes:
        expressions, rows, semantics = read(source, size, events)
        engine, seconds = build("tree", expressions, semantics, {"index_attributes": 3})
        median, visited, found = ask(engine, rows)
        nodes = engine.statistics()["nodes"]
        del engine
        bare, _ = build("tree", expressions, semantics, BARE)
        _, bare_visited, bare_found = ask(bare, rows)
        del bare
        if found != bare_found:
            raise AssertionError("the trees disagree")
        points.append((size, visited, bare_visited, median))
        print(f"| {size:,} | {seconds:.1f} | {nodes:,} | {median * 1e3:.3f} | {visited:,.0f} "
              f"| {bare_visited:,.0f} | {theorem_bound(size, 30, 3):,.0f} |",
              flush=True)  # fmt: skip
    if len(points) > 1:
        logs = np.log(np.array(points))
        slopes = [np.polyfit(logs[:, 0], logs[:, column], 1)[0] for column in (1, 2, 3)]
        theorem = np.log(31) / (np.log(3) + np.log(31))
        print(f"\nexponents: visited {slopes[0]:.2f}, bare tree {slopes[1]:.2f}, "
              f"time {slopes[2]:.2f}; Theorem 1: {theorem:.2f}\n")  # fmt: skip


def switches(name: str, size: int, events: int) -> None:
    expressions, rows, semantics = read(workload(name), size, events)
    counting, _ = build("counting-list", expressions, semantics, {})
    median, _, expected = ask(counting, rows)
    print(
        f"\n{name}, {size:,} subscriptions; counting-list takes {median * 1e3:.3f} ms per event\n"
    )
    print("| with | nodes | visited | ms per event | build, s |")
    print("|---|---|---|---|---|")
    for about, options in SWITCHES:
        engine, seconds = build("tree", expressions, semantics, options)
        median, visited, found = ask(engine, rows)
        if found != expected:
            raise AssertionError(f"other matches with {about}")
        print(f"| {about} | {engine.statistics()['nodes']:,} | {visited:,.0f} "
              f"| {median * 1e3:.3f} | {seconds:.1f} |", flush=True)  # fmt: skip


def general(size: int, events: int) -> None:
    expressions, rows, semantics = read(workload("w4"), size, events)
    counting, _ = build("counting-list", expressions, semantics, {})
    median, _, expected = ask(counting, rows)
    print(f"\nw4, {size:,} subscriptions; counting-list takes {median * 1e3:.3f} ms per event\n")
    print("| general tree | nodes | visited | ms per event | build, s |")
    print("|---|---|---|---|---|")
    for implied in (False, True):
        engine, seconds = build("tree", expressions, semantics, {"implied_edges": implied})
        median, visited, found = ask(engine, rows)
        if found != expected:
            raise AssertionError("other matches")
        print(f"| {'with' if implied else 'without'} implied edges "
              f"| {engine.statistics()['nodes']:,} | {visited:,.0f} | {median * 1e3:.3f} "
              f"| {seconds:.1f} |", flush=True)  # fmt: skip


if __name__ == "__main__":
    main()
