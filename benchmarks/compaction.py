"""Tables in which many subscriptions share few filters: as they are, and compacted.

    python benchmarks/compaction.py [--workloads w0 stock] [--subscriptions N] [--distinct D]

Each of N subscribers takes one of D filters of a workload. Times are those of one core, in turn,
the median of some rounds; both must give the same matches.
"""

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa

from tamis import Matcher
from tamis.compaction import compact
from tamis.workloads import workload

ROUNDS = 7
EVENTS = {"w0": 2000, "mbd-a": 2000, "stock": 20_000, "bdd": 500}
ONE_BY_ONE = 200  # events that are matched by themselves


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--workloads", nargs="+", default=[*EVENTS])
    arguments.add_argument("--subscriptions", type=int, default=100_000)
    arguments.add_argument("--distinct", type=int, default=5_000)
    arguments.add_argument("--cover", action="store_true", help="also leave out covered ones")
    options = arguments.parse_args()
    for name in options.workloads:
        measure(name, options.subscriptions, options.distinct, cover=options.cover)


def measure(name: str, count: int, distinct: int, *, cover: bool) -> None:
    made = workload(name)
    table = made.subscriptions(distinct)["filter"].combine_chunks()
    chosen = np.random.default_rng(1).integers(0, distinct, count)
    subscriptions = pa.table({"id": np.arange(count), "filter": table.take(pa.array(chosen))})
    events = made.events(EVENTS.get(name, 2000))
    one = {"threads": 1}
    seconds, found = clock(lambda: compact(subscriptions, made.schema, cover=cover, merge=False))
    print(f"{name}: {found.report}\n  compacted in {seconds:.1f} s")
    original = Matcher(made.schema, options=one)
    before = clock(lambda: original.subscribe_many(subscriptions))[0]
    after, compacted = clock(lambda: found.matcher(one))
    print(f"  made ready in {before:.2f} s, compacted in {after:.2f} s")
    expected, answer = original.match_batch(events), compacted.match_batch(events)
    if not np.array_equal(pairs(expected), pairs(answer)):
        raise SystemExit(f"{name}: the matches differ")
    print(f"  {len(expected) / len(events):,.1f} matches per event")
    rows = events.slice(0, ONE_BY_ONE).to_pylist()
    for output in ("pairs", "counts"):
        ways = [partial(way.match_batch, events, output) for way in (original, compacted)]
        compare(output, len(events), *ways)
    compare(
        "one by one", len(rows), lambda: list(map(original.match, rows)),
        lambda: list(map(compacted.match, rows)),
    )  # fmt: skip


def compare(what: str, events: int, *ways: Callable[[], Any]) -> None:
    times = [[clock(way)[0] for way in ways] for _ in range(ROUNDS)]
    before, after = (
        1e6 * statistics.median(column) / events for column in zip(*times, strict=True)
    )
    print(f"  {what}: {before:.2f} µs per event, compacted {after:.2f}: {before / after:.2f} times")


def pairs(matches: pa.Table) -> np.ndarray[Any, Any]:
    ids = np.asarray(matches["subscription"].cast(pa.int64()))
    return np.sort(np.asarray(matches["event"]) * (1 << 32) + ids)


def clock(work: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    answer = work()
    return time.process_time() - start, answer


if __name__ == "__main__":
    main()
