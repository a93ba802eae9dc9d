"""How fast filters are read: the ordinary parser against the shape cache.

    python benchmarks/parsing.py [--filters N] [--rounds R]

Both read the same filters in one process; the cache is empty at the start of every round, as in one
`subscribe_many`. The table gives medians; the spread is (max - min) / median. The trees of both are
compared before anything is timed.
"""

import argparse
import gc
import statistics
import time
from collections.abc import Callable, Sequence

from tamis.language.expression import Expression, parse_with
from tamis.language.shape_cache import ATOM, ShapeCache
from tamis.workloads import Workload, workload

NAMES = (
    "w0", "w2", "w4", "tree", "bdd", "stock", "shapes", "shapes-constants",
    "shapes-texts", "shapes-wide",
)  # fmt: skip

COLD_SHARE = 20  # the ordinary parser reads one filter in this many; its rate does not depend on it


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--filters", type=int, default=1_000_000)
    arguments.add_argument("--rounds", type=int, default=3)
    options = arguments.parse_args()
    print(f"{options.filters:,} filters, {options.rounds} rounds, filters per second\n")
    print("| workload | atoms | distinct atoms | structures | parser | cache | spread | ratio |")
    print("|---|---|---|---|---|---|---|---|")
    for name in NAMES:
        print(row(workload(name), options.filters, options.rounds), flush=True)


def row(source: Workload, count: int, rounds: int) -> str:
    filters = source.subscriptions(count)["filter"].to_pylist()
    sample = filters[:: max(1, count // 2000)]
    cache = ShapeCache(source.schema)
    for text in sample:
        if cache.parse(text) != parse_with(text, source.schema):
            raise AssertionError(text)
    cold_filters = filters[::COLD_SHARE]
    cold = rates(
        lambda: [parse_with(t, source.schema) for t in cold_filters], len(cold_filters), rounds
    )
    warm = rates(lambda: read_all(filters, source), count, rounds)
    ratio = statistics.median(warm) / statistics.median(cold)
    spread = (max(warm) - min(warm)) / statistics.median(warm)
    atoms, distinct, structures = sizes(filters)
    return (
        f"| {source.name} | {atoms:.1f} | {distinct:,} | {structures:,} "
        f"| {statistics.median(cold):,.0f} | {statistics.median(warm):,.0f} | {spread:.0%} "
        f"| {ratio:.1f} |"
    )


def read_all(filters: Sequence[str], source: Workload) -> list[Expression]:
    parse = ShapeCache(source.schema).parse
    return [parse(text) for text in filters]


def sizes(filters: Sequence[str]) -> tuple[float, int, int]:
    """Atoms per filter, distinct atoms and distinct structures of the first 100,000 filters."""
    cut = [ATOM.split(text) for text in filters[:100_000]]
    atoms = [atom for parts in cut for atom in parts[1::2]]
    return len(atoms) / len(cut), len(set(atoms)), len({tuple(parts[::2]) for parts in cut})


def rates(work: Callable[[], object], count: int, rounds: int) -> list[float]:
    """Filters per second of each round; the garbage collector is off, as in `subscribe_many`."""
    found = []
    for _ in range(rounds):
        gc.collect()
        gc.disable()
        start = time.perf_counter()
        kept = work()
        found.append(count / (time.perf_counter() - start))
        gc.enable()
        del kept
    return found


if __name__ == "__main__":
    main()
