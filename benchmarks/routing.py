"""What the strategies of routing cost in simulated trees of brokers.

    python benchmarks/routing.py [--quick] [--thresholds IMT ...] [--out FILE]

Tables, messages and publications on links of flooding, simple routing, covering, merging and
advertisements, on the same trees, subscriptions and publications; all must deliver the same events.
These are counts: they do not depend on the machine. What covering and merging do to the table of
one broker is measured by `tamis papers --only mbd`.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from routing_sections import networks

SEEDS: tuple[int, ...] = (1, 2, 3)
EXTENT = networks.Extent(15, 300, 300)
THRESHOLDS: tuple[float, ...] = (0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3)
QUICK_SEEDS, QUICK_EXTENT, QUICK_THRESHOLDS = (1,), networks.Extent(5, 30, 30), (0, 0.3)


def main(words: Sequence[str] | None = None) -> None:
    options = arguments().parse_args(words)
    seeds, extent, thresholds = SEEDS, EXTENT, THRESHOLDS
    if options.quick:
        seeds, extent, thresholds = QUICK_SEEDS, QUICK_EXTENT, QUICK_THRESHOLDS
    if options.thresholds:
        thresholds = tuple(sorted(options.thresholds))
    lines = []
    for line in networks.measured(seeds, thresholds, extent):
        lines.append(line)
        print(f"{len(lines)} results", file=sys.stderr, flush=True)
        if options.out is not None:  # at once, so that an interrupted run keeps what it has
            with options.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")
    print(networks.printed(lines))


def arguments() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    made.add_argument("--quick", action="store_true", help="a second instead of a minute")
    made.add_argument("--thresholds", type=float, nargs="+", metavar="IMT",
                      help="of imperfect merging")  # fmt: skip
    made.add_argument("--out", type=Path, metavar="FILE", help="append results, line by line")
    return made


if __name__ == "__main__":
    main()
