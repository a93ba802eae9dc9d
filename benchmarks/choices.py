"""Whether `auto` is ever slower than the best of the other engines.

    python benchmarks/choices.py [--workloads w4 stock ...] [--sizes 10 100 ...] [--engines bdd ...]
                                 [--ways "one by one" ...] [--rounds N] [--patience S]

All engines hold the same filters in one process, and take turns: single events by `match`, and a
table by `match_batch`, with counts and with pairs. Processor time of a round is compared within the
round; the ratio is the median of all rounds, and its spread (max - min) / median. All engines must
give the same matches for the first events.

An engine that took more than S seconds to read the filters is left out of larger sizes, and one
whose first events are far slower than those of `auto` is not measured any further.
"""

import argparse
import logging
import random
import statistics
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import pyarrow as pa

import arrays
import terms
from tamis import Matcher, TamisError
from tamis.engines.auto import MOST_EVALUATIONS_LOADED
from tamis.workloads import NAMES, workload

AUTO = "auto"
ENGINES = (
    "naive", "sliced", "counting-list", "counting-bits", "counting-bytes", "tree", "bdd", "mbd",
)  # fmt: skip
LARGEST = {"naive": 10_000}  # one by one, there is no need to see more
OTHERS = ("arrays", "arithmetic", "strings")
EVENTS = 2_048  # of a table
FEW = 32  # of these are matched alone
HOPELESS = 4  # times as slow as `auto`
WAYS: dict[str, Callable[[Matcher, pa.Table, list[dict[str, Any]]], Any]] = {
    "one by one": lambda matcher, _, events: [matcher.match(event) for event in events],
    "counts": lambda matcher, table, _: matcher.match_batch(table, "counts"),
    "pairs": lambda matcher, table, _: matcher.match_batch(table),
}


class Task(NamedTuple):
    """Filters, and events as a table and as dicts."""

    schema: Any
    filters: list[tuple[int, str]]
    table: pa.Table
    events: list[dict[str, Any]]


def task(name: str, size: int, events: int) -> Task:
    """The filters and events of a workload: one of tamis, or of the benchmarks beside this one."""
    schema: Any
    if name == "arrays":
        form = arrays.FORMS["array_contains(tags, c) AND price < 0.5"]
        written = [(number, form.format(number)) for number in range(size)]
        table, schema = arrays.events(size, events, 5), arrays.SCHEMA
    elif name in OTHERS:
        chance = random.Random(7)
        written = terms.rules(size, "strings" if name == "strings" else "unshared", chance)
        some, schema = terms.events(events, chance), terms.SCHEMA
        return Task(schema, written, some, some[:FEW])
    else:
        of = workload(name)
        subscriptions = of.subscriptions(size)
        written = list(zip(*(column.to_pylist() for column in subscriptions.columns), strict=True))
        table, schema = of.events(events), of.schema
    return Task(schema, written, table, table.slice(0, FEW).to_pylist())


def contestants(of: Task, engines: list[str], patience: float) -> dict[str, tuple[Matcher, bool]]:
    """The engines that can hold the filters, and whether each was patient enough for more."""
    found = {}
    for engine in engines:
        matcher, began = Matcher(of.schema, engine=engine), time.process_time()
        try:
            matcher.subscribe_many(of.filters)
            matcher.match(of.events[0])
        except TamisError as error:
            print(f"{engine} does not take part: {error}".splitlines()[0])
            continue
        found[engine] = matcher, time.process_time() - began <= patience
    return found


def check(matchers: dict[str, Matcher], of: Task) -> None:
    """All engines give the same matches for the first events, alone and in a table."""
    expected = [matchers[AUTO].match(event) for event in of.events]
    for engine, matcher in matchers.items():
        lists = matcher.match_batch(of.table[:FEW], "lists")["subscriptions"].to_pylist()
        if lists != expected or [matcher.match(event) for event in of.events] != expected:
            raise SystemExit(f"{engine} gives different matches")


def compare(matchers: dict[str, Matcher], of: Task, way: str, rounds: int) -> tuple[str, ...]:
    """The best of the other engines, and how `auto` compares with it."""
    run, table = WAYS[way], of.table[:FEW]
    # `auto` tests a few filters one by one until that has taken as long as compiling them would.
    # Then, the first time, some engines learn what they are given.
    waiting = MOST_EVALUATIONS_LOADED // (len(of.filters) * len(of.events))
    for _ in range(2 + waiting):
        run(matchers[AUTO], of.table, of.events)
    first = {engine: cost(run, matcher, table, of.events) for engine, matcher in matchers.items()}
    left = [engine for engine in matchers if first[engine] <= HOPELESS * first[AUTO]]
    for engine in left:
        run(matchers[engine], of.table, of.events)
    costs: dict[str, list[float]] = {engine: [] for engine in left}
    for number in range(rounds):
        for engine in left if number % 2 else left[::-1]:  # who comes first waits for memory
            costs[engine].append(cost(run, matchers[engine], of.table, of.events))
    events = FEW if way == "one by one" else len(of.table)
    middle = {engine: statistics.median(found) for engine, found in costs.items()}
    best = min((engine for engine in left if engine != AUTO), key=middle.__getitem__, default=AUTO)
    ratios = [mine / other for mine, other in zip(costs[AUTO], costs[best], strict=True)]
    ratio = statistics.median(ratios)
    spread = (max(ratios) - min(ratios)) / ratio
    times = [f"{middle[engine] / events * 1e6:,.2f}" for engine in (AUTO, best)]
    return way, times[0], best, times[1], f"{ratio:.2f}", f"{spread:.0%}"


def load_kernels() -> None:
    """Let `auto` load its kernels, as it does in a process that has matched many events."""
    of = task("stock", 2_000, FEW)
    contestants(of, [AUTO], 0.0)


def cost(run: Callable[..., Any], matcher: Matcher, table: Any, events: Any) -> float:
    """Seconds of the processor."""
    began = time.process_time()
    run(matcher, table, events)
    return time.process_time() - began


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("--workloads", nargs="+", default=[*NAMES, *OTHERS])
    options.add_argument("--sizes", type=int, nargs="+", default=[10, 100, 1_000, 10_000, 100_000])
    options.add_argument("--engines", nargs="+", default=list(ENGINES))
    options.add_argument("--ways", nargs="+", choices=WAYS, default=list(WAYS))
    options.add_argument("--rounds", type=int, default=5)
    options.add_argument("--patience", type=float, default=3.0)
    chosen = options.parse_args()
    logging.getLogger("tamis").setLevel(logging.ERROR)  # of filters that no event can match
    load_kernels()
    print("| workload | filters | events | auto, us | best other | us | ratio | spread |")
    print("|---|---|---|---|---|---|---|---|")
    for name in chosen.workloads:
        left = list(chosen.engines)
        for size in chosen.sizes:
            if name not in OTHERS and size < workload(name).least:
                continue
            of = task(name, size, EVENTS)
            engines = [e for e in left if size <= LARGEST.get(e, size)]
            held = contestants(of, [AUTO, *engines], chosen.patience)
            matchers = {engine: matcher for engine, (matcher, _) in held.items()}
            left = [engine for engine, (_, is_patient) in held.items() if is_patient]
            left = [engine for engine in left if engine != AUTO]
            check(matchers, of)
            for way in chosen.ways:
                row = (name, f"{size:,}", *compare(matchers, of, way, chosen.rounds))
                print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
