"""Routing tables: what covering and merging leave of them, and what that costs and saves.

    python benchmarks/routing.py [sizes] [insertion] [routing] [imt] [network] [--quick]
                                 [--sets mbd-a mbd-b] [--size N] [--most N] [--out FILE]

The experiments of MBD, section 6, with its figures beside ours: 200,000 subscriptions of its sets A
and B, which are the workloads mbd-a and mbd-b. MBD is short for Li, Hou and Jacobsen, "A unified
approach to routing, covering and merging in publish/subscribe systems based on modified binary
decision diagrams" (ICDCS 2005).

*sizes* (Fig. 12): entries of a table without covering, with it, and merged; orders of attributes
and numbers of MBDs. *insertion* (Fig. 13): the time per subscription as the table grows, by
candidates and by evaluating all MBDs in one pass and in two, with and without the cache of
dependencies. *routing* (Table 2): the time per publication in each table. *imt* (Figs. 14 and 15):
entries and false positives by the threshold of imperfect merging, for several measures of
publications. *network*: what the strategies of brokers cost in a simulated tree of brokers.

The paper says that publications, too, are made by selecting attributes, but not how many;
`--density` is the share that they have, and that measures expect. All contestants must find the
same. Everything runs in one process, on one core; kernels are compiled before timing starts.
`routing_plot.py` draws what `--out` has recorded.
"""

import argparse
import gc
import json
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from field_process import machine
from machine import use_one_core
from routing_sections import insertion, matching, networks, sizes, thresholds
from routing_sections.subscription_set import SubscriptionSet

SECTIONS = ("sizes", "insertion", "routing", "imt", "network")
SERIES = ("paper", "full", "sparse", "advertised", "unaware", "profile")

Record = Callable[[dict[str, Any]], None]


class Extent(NamedTuple):
    """How much is measured."""

    size: int = 200_000  # subscriptions of sizes, insertion and routing
    merged: int = 100_000  # subscriptions of imt
    checkpoints: tuple[float, ...] = (0.25, 0.5, 1)  # parts of the size, of sizes
    points: tuple[float, ...] = (0.005, 0.01, 0.025, 0.05, 0.1, 0.2, 0.4, 0.6, 0.8, 1)  # the same
    window: int = 300  # subscriptions before each point
    seeds: int = 3  # random orders of attributes, and networks
    events: int = 1_000  # publications
    patience: float = 4.0  # seconds for the publications of one engine
    thresholds: tuple[float, ...] = (0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3)
    few: tuple[float, ...] = (0, 0.05, 0.1, 0.2)  # of all series of imt but the first two
    network: networks.Extent = networks.Extent(15, 300, 300)
    network_thresholds: tuple[float, ...] = (0, 0.01, 0.02, 0.05, 0.1, 0.15, 0.2, 0.3)


QUICK = Extent(
    size=1_500, merged=1_500, checkpoints=(0.5, 1), points=(0.3, 1), window=200, seeds=1, events=40,
    patience=0.5, thresholds=(0, 0.1), few=(0, 0.1), network=networks.Extent(5, 30, 30),
    network_thresholds=(0, 0.3),
)  # fmt: skip


def main(words: Sequence[str] | None = None) -> None:
    options = arguments().parse_args(words)
    extent = extent_of(options)
    core = use_one_core(options.cpu)
    about = machine() | {"load": os.getloadavg()[0]}
    print(f"One core ({core}) of {about['cpu']}, Python {about['python']}, "
          + ", ".join(f"{name} {number}" for name, number in about["libraries"].items())
          + f"; load {about['load']:.1f} at the start.", flush=True)  # fmt: skip

    def record(line: dict[str, Any]) -> None:
        if options.out is not None:  # at once, so that an interrupted run keeps what it has
            with options.out.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")

    record({"kind": "machine", **about})
    for section in options.sections or SECTIONS:
        start = time.perf_counter()
        run(section, extent, options, record)
        progress(f"{section}: done in {time.perf_counter() - start:.0f} s")


def arguments() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    made.add_argument("sections", nargs="*", choices=[*SECTIONS, []], metavar="SECTION",
                      help=f"among {', '.join(SECTIONS)}; all, if none is named")  # fmt: skip
    made.add_argument("--quick", action="store_true", help="a minute instead of half an hour")
    made.add_argument("--sets", nargs="+", metavar="NAME", default=["mbd-a", "mbd-b"],
                      help="workloads, or files of some; imt takes the first")  # fmt: skip
    made.add_argument("--size", type=int, metavar="N", help="subscriptions; of imt half of them")
    made.add_argument("--most", type=int, metavar="N",
                      help="where those who evaluate all MBDs stop, of insertion")  # fmt: skip
    made.add_argument("--checkpoints", type=float, nargs="+", metavar="PART",
                      help="parts of the subscriptions, of sizes")  # fmt: skip
    made.add_argument("--window", type=int, metavar="N",
                      help="subscriptions timed before each size, of insertion")  # fmt: skip
    made.add_argument("--series", nargs="+", choices=SERIES, default=SERIES, metavar="NAME",
                      help=f"of imt, among {', '.join(SERIES)}")  # fmt: skip
    made.add_argument("--thresholds", type=float, nargs="+", metavar="IMT", help="of imt, network")
    made.add_argument("--threshold", type=float, default=0.1, help="of sizes and routing")
    made.add_argument("--density", type=float, default=0.5,
                      help="part of the attributes that a publication has")  # fmt: skip
    made.add_argument("--cpu", type=int, help="the core to use; the last one, if not said")
    made.add_argument("--out", type=Path, metavar="FILE", help="append results, line by line")
    return made


def extent_of(options: argparse.Namespace) -> Extent:
    """The preset of the options, with the numbers that they replace."""
    extent = QUICK if options.quick else Extent()
    if options.size is not None:
        extent = extent._replace(size=options.size, merged=-(-options.size // 2))
    if options.window is not None:
        extent = extent._replace(window=options.window)
    if options.checkpoints is not None:
        extent = extent._replace(checkpoints=tuple(sorted(options.checkpoints)))
    if options.thresholds is not None:
        some = tuple(sorted(options.thresholds))
        extent = extent._replace(thresholds=some, few=some, network_thresholds=some)
    return extent


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def run(section: str, extent: Extent, options: argparse.Namespace, record: Record) -> None:
    """Measure a section, for each set that it is about."""
    if section == "network":
        lines = networks.measured(
            range(1, extent.seeds + 1), extent.network_thresholds, extent.network
        )
        print("\n" + networks.printed(_kept(section, lines, record)), flush=True)
        return
    for name in options.sets if section != "imt" else options.sets[:1]:
        progress(f"{section}: {name}")
        some = SubscriptionSet(name, extent.merged if section == "imt" else extent.size)
        insertion.warm_up(some)
        gc.collect()
        gc.disable()
        try:
            said = PARTS[section](some, extent, options, record)
        finally:
            gc.enable()
        print("\n" + said, flush=True)


def _kept(section: str, lines: Iterable[dict[str, Any]], record: Record) -> list[dict[str, Any]]:
    """Results, each recorded when it is there."""
    found = []
    start = time.perf_counter()
    for line in lines:
        record({"kind": section, **line})
        found.append(line)
        progress(f"{section}: {len(found)} results ({time.perf_counter() - start:.0f} s)")
    return found


def _sizes(
    some: SubscriptionSet, extent: Extent, options: argparse.Namespace, record: Record
) -> str:
    counts = [int(part * some.size) for part in extent.checkpoints]
    lines = sizes.measured(some, counts, options.threshold, options.density, extent.seeds)
    return sizes.printed(_kept("sizes", lines, record))


def _insertion(
    some: SubscriptionSet, extent: Extent, options: argparse.Namespace, record: Record
) -> str:
    points = [int(part * some.size) for part in extent.points]
    most = some.size if options.most is None else options.most
    lines = insertion.measured(some, points, extent.window, most)
    return insertion.printed(_kept("insertion", lines, record), most)


def _routing(
    some: SubscriptionSet, extent: Extent, options: argparse.Namespace, record: Record
) -> str:
    lines = matching.measured(
        some, options.threshold, options.density, extent.events, extent.patience
    )
    return matching.printed(_kept("routing", lines, record))


def _imt(some: SubscriptionSet, extent: Extent, options: argparse.Namespace, record: Record) -> str:
    wanted = {
        name: extent.thresholds if name in SERIES[:2] else extent.few for name in options.series
    }
    lines = thresholds.measured(some, wanted, options.density, extent.events)
    return thresholds.printed(_kept("imt", lines, record))


PARTS = {"sizes": _sizes, "insertion": _insertion, "routing": _routing, "imt": _imt}

if __name__ == "__main__":
    main()
