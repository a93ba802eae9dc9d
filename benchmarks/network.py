"""Networks of brokers: what they carry, what their tables hold, and how they change under load.

    python benchmarks/network.py [strategies] [changes] [merging] [establishment] [--quick]
                                 [--shapes line star tree] [--sets mbd-a mbd-b stock]
                                 [--rounds N] [--out FILE]
    python benchmarks/network.py --read FILE [--write docs/performance-network.md]

*strategies*: seven broker processes in a line, a star and a tree; subscriptions of MBD's sets A and
B and stock alerts spread over the edges; for each strategy, and for one broker alone in the centre,
events per second until the last delivery, processor time of all brokers, entries of tables, events
and bytes on the links, and the latency of a hop. *changes*: the topology changes under load, and
nothing is lost. *merging*: mergers by real traffic and by uniform values. *establishment*:
100,000 subscriptions through three hops, and a broker that recovers them. Every run ends with a
comparison of what each client got with what naive matching finds, and fails if they differ.

All brokers and clients share this machine. Where it has fewer cores than there are brokers, rates
are bounded by the cores; *cpu s for 1,000* (seconds of processor time of all brokers for 1,000
events) does not depend on that much. The model of a network of 1,000 brokers is
`network_sections/model.py`.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from machine import processor
from network_sections import changes, establishment, merging, strategies
from network_sections.interests import SETS, expected
from network_sections.model import placed
from network_sections.shapes import SHAPES
from routing_sections.tables import aligned

Row = dict[str, Any]


def main() -> None:
    options = arguments().parse_args()
    if options.read is not None:
        show(options.read, options.write)
        return
    print(f"{len(os.sched_getaffinity(0))} cores of {processor()}; load {os.getloadavg()[0]:.1f}.")
    subprocess.run([sys.executable, "-m", "tamis", "warm"], check=True, capture_output=True)
    for section in options.sections or SECTIONS:
        SECTIONS[section](options)


def run_strategies(options: argparse.Namespace) -> None:
    """Seven brokers, with each strategy."""
    extent = strategies.QUICK if options.quick else strategies.Extent()
    extent = extent._replace(
        shapes=tuple(options.shapes), sets=tuple(options.sets),
        rounds=options.rounds or extent.rounds,
    )  # fmt: skip
    for name in options.sets:  # before anything is measured
        expected(SETS[name], extent.filters, extent.warm + extent.events)
    wait_for(options.when)
    rows = kept("strategies", strategies.measured(extent), options.out)
    print("\n" + strategies.printed(rows), flush=True)


def run_changes(options: argparse.Namespace) -> None:
    """Three brokers, of which one goes."""
    extent = changes.QUICK if options.quick else changes.Extent()
    extent = extent._replace(rounds=options.rounds or extent.rounds)
    rows = kept("changes", changes.measured(extent), options.out)
    print("\n" + changes.printed(rows), flush=True)


def run_merging(options: argparse.Namespace) -> None:
    """Mergers by what is published, and by uniform values."""
    sizes = (200, 2_000) if options.quick else (2_000, 20_000)
    rows = kept("merging", (row._asdict() for row in merging.run(*sizes)), options.out)
    columns = tuple(rows[0])
    print("\n" + aligned(columns, [[str(row[name]) for name in columns] for row in rows]))


def run_establishment(options: argparse.Namespace) -> None:
    """Subscriptions through three hops; it prints its rows itself."""
    kept("establishment", establishment.run([1_000 if options.quick else 100_000]), options.out)


SECTIONS = {
    "strategies": run_strategies, "changes": run_changes, "merging": run_merging,
    "establishment": run_establishment,
}  # fmt: skip


def arguments() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    made.add_argument("sections", nargs="*", choices=[*SECTIONS, []], metavar="SECTION",
                      help=f"among {', '.join(SECTIONS)}; all, if none is named")  # fmt: skip
    made.add_argument("--quick", action="store_true", help="only to see that everything works")
    made.add_argument("--shapes", nargs="+", choices=list(SHAPES), default=list(SHAPES))
    made.add_argument("--sets", nargs="+", choices=list(SETS), default=list(SETS))
    made.add_argument("--rounds", type=int, metavar="N")
    made.add_argument("--when", type=Path, metavar="FILE",
                      help="begin to measure when this file is there")  # fmt: skip
    made.add_argument("--read", type=Path, metavar="FILE", help="show results of --out again")
    made.add_argument("--write", type=Path, metavar="PAGE", help="and put them into a page")
    made.add_argument("--out", type=Path, metavar="FILE", help="append results, line by line")
    return made


def show(path: Path, page: Path | None) -> None:
    """Print the tables of results that were recorded, and put them into a page."""
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    text = "" if page is None else page.read_text(encoding="utf-8")
    for section, printed in (("strategies", strategies.printed), ("changes", changes.printed)):
        rows = [line for line in lines if line["section"] == section]
        if rows:
            table = printed(rows)
            print("\n" + table)
            if page is not None:
                text = placed(text, f"network {section}", table)
    if page is not None:
        page.write_text(text, encoding="utf-8")


def wait_for(path: Path | None) -> None:
    """Wait for a file, if there is one to wait for."""
    while path is not None and not path.exists():
        time.sleep(0.2)


def kept(section: str, rows: Iterable[Row], path: Path | None) -> list[Row]:
    """Results, each recorded when it is there, so that an interrupted run keeps what it has."""
    found = []
    begun = time.perf_counter()
    for row in rows:
        found.append(row)
        if path is not None:
            with path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"section": section, **row}) + "\n")
        passed = time.perf_counter() - begun
        print(f"{section}: {len(found)} results ({passed:.0f} s)", file=sys.stderr, flush=True)
    return found


if __name__ == "__main__":
    main()
