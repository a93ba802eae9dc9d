"""Every engine on the papers' workloads: speed, building, memory, changes.

    python benchmarks/matching.py [--workloads w4 tree ...] [--sizes 1000 10000 100000]
                                  [--engines counting-list ...] [--events E]

Contestants of one workload and size run one after another, each in its own process, on the same
subscriptions and events; they must give the same matches. Single events, one core; medians after
warming up. *build* is from parsed filters to an engine that has answered its first event.
*subscribe* and *unsubscribe* are one more change with N subscriptions present, including what it
costs the next event. *bytes* is the growth of the process by the engine, per subscription.
"""

import argparse

from engine_process import Result, Task, run
from tamis.engines import ENGINES
from tamis.workloads import NAMES, workload

# Beyond these sizes a contestant takes longer than its result is worth.
LARGEST = {
    "naive": 10_000, "sql-scan": 100_000, "sql-grouped": 1_000_000, "numpy scan": 1_000_000,
    "counting-bits": 1_000_000, "counting-bytes": 100_000,
}  # fmt: skip
# Their filters are not conjunctions, or not of comparisons with numbers.
NO_SCAN = {"bdd", "stock", "shapes", "shapes-constants", "shapes-texts", "shapes-wide"}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--workloads", nargs="+", default=["w4", "tree", "mbd-a"], choices=NAMES)
    arguments.add_argument("--sizes", type=int, nargs="+", default=[1_000, 10_000, 100_000])
    arguments.add_argument("--engines", nargs="+", default=["numpy scan", *ENGINES])
    arguments.add_argument("--events", type=int, default=100)
    arguments.add_argument("--density", type=float, default=1.0)
    arguments.add_argument("--semantics", default="sql")
    options = arguments.parse_args()
    for name in options.workloads:
        print(f"\n{name}: {workload(name).about}\n")
        print("| subscriptions | contestant | events/s | ms per event | spread | build, s | bytes "
              "| subscribe, us | unsubscribe, us | matches |")  # fmt: skip
        print("|---|---|---|---|---|---|---|---|---|---|")
        for size in options.sizes:
            contest(name, size, options)


def contest(name: str, size: int, options: argparse.Namespace) -> None:
    first: Result | None = None
    for engine in options.engines:
        if size > LARGEST.get(engine, size) or (engine == "numpy scan" and name in NO_SCAN):
            continue
        result = run(Task(name, size, engine, options.events, options.density, options.semantics))
        first = first or result
        if result.digest != first.digest:
            raise AssertionError(f"{engine} gives different matches")
        print(
            f"| {size:,} | {engine} | {1 / result.event:,.0f} | {result.event * 1e3:.3f} "
            f"| {result.spread:.0%} | {result.build:.2f} | {result.bytes:,.0f} "
            f"| {result.subscribe * 1e6:,.0f} | {result.unsubscribe * 1e6:,.0f} "
            f"| {result.matches:,.0f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
