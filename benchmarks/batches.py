"""Whole tables of events: the sliced engine against those that take one event at a time.

    python benchmarks/batches.py [--workloads w4 bdd stock ...] [--sizes 100000] [--events 4096]

Events per second from an Arrow table to an Arrow table, counted and with all pairs; nanoseconds a
pair; build from filters that are read already; bytes a subscription; one event alone. Contestants
run in processes of their own, on one core, on the same data, and must count the same matches.
"""

import argparse
import gc
import multiprocessing
import statistics
import time
from typing import Any, NamedTuple

import numpy as np

from contest import Task, new_engine, resident, time_events, warm_up
from tamis.columns import table_rows
from tamis.engines.base import BatchEngine
from tamis.language.shapes import ShapeCache
from tamis.predicates.batches import batch_of_table
from tamis.semantics import Semantics
from tamis.workloads import NAMES, workload

ROUNDS = 3
FEW = 100  # events for engines that take one at a time


class Result(NamedTuple):
    build: float
    bytes: float
    counted: float  # events per second
    paired: float
    pairs: float  # nanoseconds a pair
    single: float  # median seconds of one event
    worst: float  # 99th percentile
    total: int  # matches of the first events


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--workloads", nargs="+", default=["w4", "bdd", "stock"], choices=NAMES)
    arguments.add_argument("--sizes", type=int, nargs="+", default=[100_000])
    arguments.add_argument("--engines", nargs="+", default=["sliced", "counting-list", "bdd"])
    arguments.add_argument("--events", type=int, default=4096)
    arguments.add_argument("--density", type=float, default=1.0)
    options = arguments.parse_args()
    print("| workload | subscriptions | contestant | counted/s | with pairs/s | ns a pair "
          "| build, s | bytes | one event, us | 99 % |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name in options.workloads:
        for size in options.sizes:
            totals = set()
            for engine in options.engines:
                task = Task(name, size, engine, options.events, options.density)
                with multiprocessing.get_context("spawn").Pool(1) as pool:
                    found: Result = pool.apply(measure, (task,))
                totals.add(found.total)
                if len(totals) > 1:
                    raise AssertionError(f"{engine} gives other matches")
                print(f"| {name} | {size:,} | {engine} | {found.counted:,.0f} "
                      f"| {found.paired:,.0f} | {found.pairs:.2f} | {found.build:.1f} "
                      f"| {found.bytes:,.0f} | {found.single * 1e6:,.0f} "
                      f"| {found.worst * 1e6:,.0f} |", flush=True)  # fmt: skip


def measure(task: Task) -> Result:
    source = workload(task.workload)
    filters = source.subscriptions(task.size, seed=1)["filter"].to_pylist()
    table = source.events(task.events, seed=2, density=task.density)
    semantics = Semantics(task.semantics, source.schema)
    rows = list(table_rows(table, source.schema, refuse_unknown=True))
    gc.disable()
    parse = ShapeCache(source.schema).parse
    expressions = [parse(text) for text in filters]
    for expression in expressions:
        _ = expression.tree
    warm_up(task, semantics, expressions[:200], rows)
    before = resident()
    engine: Any = new_engine(task, semantics)
    start = time.perf_counter()
    for handle, expression in enumerate(expressions):
        engine.add(handle, engine.prepare(expression))
    engine.match(rows[0])
    build = time.perf_counter() - start
    size = (resident() - before) / task.size
    times, first = time_events(engine, rows[:500])
    if isinstance(engine, BatchEngine):
        batch = batch_of_table(table.slice(0, 600), semantics, refuse_unknown=True)
        list(engine.match_batch(batch))
        engine.count_batch(batch)

        def count() -> int:
            whole = batch_of_table(table, semantics, refuse_unknown=True)
            return int(engine.count_batch(whole).sum())

        def pair() -> int:
            whole = batch_of_table(table, semantics, refuse_unknown=True)
            return sum(len(found) for _, found in engine.match_batch(whole))

        counted, total = clock(count)
        paired, again = clock(pair)
        if total != again:
            raise AssertionError("counts and pairs differ")
        events = task.events
    else:
        events = min(FEW, task.events)
        paired, total = clock(lambda: sum(map(len, engine.match_many(rows[:events]))))
        counted = paired
    return Result(
        build, size, events / counted, events / paired, paired / max(total, 1) * 1e9,
        statistics.median(times), float(np.quantile(times, 0.99)),
        sum(len(one) for one in first[:10]),
    )  # fmt: skip


def clock(work: Any) -> tuple[float, int]:
    """The median time, and the answer."""
    times = []
    answer = 0
    for _ in range(ROUNDS):
        start = time.perf_counter()
        answer = work()
        times.append(time.perf_counter() - start)
    return statistics.median(times), answer


if __name__ == "__main__":
    main()
