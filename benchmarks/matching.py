"""How fast engines match single events: COUNT's workload W4, growing.

    python benchmarks/matching.py [--sizes 1000 10000 100000] [--events E]

Contestants run in one process on the same subscriptions and events: the engines, and a scan with
numpy that compares every predicate of every subscription, vectorised over subscriptions, as one
would write it by hand for this workload. All of them must give the same matches. Times are medians
over events after one event to warm up; the spread is (90th - 10th percentile) / median.
"""

import argparse
import gc
import random
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from filters import COMPARISONS, conjunctions
from tamis import Matcher, Schema
from tamis.kernels.handles import Handles

ATTRIBUTES = 10
SCHEMA = Schema({f"a{i}": "int(1, 10)" for i in range(ATTRIBUTES)})
ENGINES = (
    "counting-list", "counting-bits", "counting-bytes", "sql-grouped", "sql-scan", "naive",
)  # fmt: skip
SLOW = {"sql-grouped", "sql-scan", "naive"}  # asked about fewer events
SLOWEST = {"naive": 10_000}  # sizes beyond which a contestant is left out
Match = Callable[[tuple[int, ...]], Handles]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    arguments.add_argument("--events", type=int, default=100)
    options = arguments.parse_args()
    print("| subscriptions | contestant | build, s | ms an event | spread | numpy scan / this |")
    print("|---|---|---|---|---|---|")
    for size in options.sizes:
        run(size, options.events)


def run(size: int, events: int) -> None:
    chance = random.Random(1)
    make = conjunctions(ATTRIBUTES, 5, 1, 10)
    filters = [make(chance) for _ in range(size)]
    rows = [tuple(chance.randint(1, 10) for _ in range(ATTRIBUTES)) for _ in range(events)]
    scan = time_events(*build_scan(filters), rows)
    print_row(size, "numpy scan", *scan[:3], 1.0)
    for name in ENGINES:
        if size <= SLOWEST.get(name, size):
            some = rows[:20] if name in SLOW else rows
            build, median, spread, matches = time_events(*build_engine(name, filters), some)
            if matches != scan[3][: len(some)]:
                raise AssertionError(f"{name} gives other matches")
            print_row(size, name, build, median, spread, scan[1] / median)


def print_row(
    size: int, name: str, build: float, median: float, spread: float, ratio: float
) -> None:
    print(f"| {size:,} | {name} | {build:.2f} | {median * 1e3:.3f} | {spread:.0%} | {ratio:.1f} |",
          flush=True)  # fmt: skip


def build_engine(name: str, filters: list[str]) -> tuple[float, Match]:
    matcher = Matcher(SCHEMA, engine=name)
    start = time.perf_counter()
    matcher.subscribe_many(enumerate(filters))
    return time.perf_counter() - start, matcher._engine.match  # noqa: SLF001 - without reading events


def build_scan(filters: list[str]) -> tuple[float, Match]:
    """Predicates in arrays [subscription, place]; a lacking one is always true."""
    start = time.perf_counter()
    attribute = np.zeros((len(filters), 5), np.int64)
    constant = np.zeros((len(filters), 5), np.int64)
    operator = np.full((len(filters), 5), len(COMPARISONS), np.int64)
    for row, text in enumerate(filters):
        for place, atom in enumerate(text.split(" AND ")):
            name, op, value = atom.split()
            attribute[row, place], constant[row, place] = int(name[1:]), int(value)
            operator[row, place] = COMPARISONS.index(op)
    # truth[operator, sign of (value - constant) + 1]
    truth = np.array(
        [[0, 1, 0], [1, 0, 1], [1, 0, 0], [1, 1, 0], [0, 0, 1], [0, 1, 1], [1, 1, 1]], bool
    )

    def scan(row: tuple[int, ...]) -> Handles:
        difference = np.sign(np.array(row)[attribute] - constant) + 1
        return np.flatnonzero(truth[operator, difference].all(axis=1))

    return time.perf_counter() - start, scan


def time_events(
    build: float, match: Match, rows: list[tuple[int, ...]]
) -> tuple[float, float, float, Any]:
    match(rows[0])
    gc.collect()
    times, matches = [], []
    for row in rows:
        start = time.perf_counter()
        found = match(row)
        times.append(time.perf_counter() - start)
        matches.append(found.tolist())
    deciles = statistics.quantiles(times, n=10)
    median = statistics.median(times)
    return build, median, (deciles[-1] - deciles[0]) / median, matches


if __name__ == "__main__":
    main()
