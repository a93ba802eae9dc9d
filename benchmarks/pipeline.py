"""The pipeline on Spark: against what users write, against the bare engine, as it grows.

    python benchmarks/pipeline.py [users] [overhead] [growth] [memory] [files]
                                  [--quick | --long] [--json FILE] [--workloads stock w4]
                                  [--sizes 1000 ...] [--contestants tamis join ...]
                                  [--seconds 1.5] [--patience 20]

*users*: all pairs of events and subscriptions, by tamis and by what a Spark user would write
(`pipeline_sections/users.py` says how), on two local cores. Events are in Spark's cache; pairs go
into a sink that keeps nothing. There are enough events that a round takes about `--seconds` longer
than one of 64 events. Events per second are those beyond the 64, so that the time to plan a query,
which does not depend on the number of events, is not counted. Numbers are medians of at most 3
rounds. *first answer* is the time from subscriptions to the pairs of 64 events, with compiling and
planning. All contestants must find the same pairs for these. A contestant that is not done within
`--patience` has the rounds that it finished; one that has none, or fails, is left out with the
reason, and does not take part with more subscriptions.

*overhead*: the bare engine and the job on the same one or two cores, and where the time goes
(`pipeline_sections/overhead.py` says how). *growth*: seconds of compiling and matching for ten and
a hundred times as many events and subscriptions; `growth_plot.py` draws it. *memory*: what the
workers need. *files*: all pairs from Parquet to Parquet, written by Spark, by the workers and by
one process without Spark, and micro-batches of one event (`pipeline_sections/files.py` says how).

The time to start a JVM is in none of the numbers except the one that says so.
"""

import argparse
import json
import signal
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from field_process import machine
from pipeline_sections import files, growth, memory, overhead, users
from pipeline_sections.spark_process import Failed, Place, SparkProcess
from pipeline_sections.tables import (
    MEMORY_COLUMNS,
    PART_COLUMNS,
    USER_COLUMNS,
    best_of_others,
    grown_cells,
    head,
    memory_cells,
    part_cells,
    row,
    started_lines,
    user_cells,
)
from rivals.base import LeftOut

SECTIONS = ("users", "overhead", "growth", "memory", "files")
CORES = 2
LIMIT = 600.0  # seconds for calls that should not fail

Record = Callable[[dict[str, Any]], None]


class Extent(NamedTuple):
    """How much is measured."""

    workloads: tuple[str, ...]  # of users
    sizes: tuple[int, ...]
    seconds: float  # of a round
    patience: float  # seconds for a contestant
    cases: tuple[tuple[str, int, str], ...]  # workload, subscriptions, output
    cores: tuple[int, ...]  # of overhead
    events: tuple[int, ...]  # of growth, with the subscriptions of `steady`
    grown: tuple[int, ...]  # subscriptions of growth, with the events of `steady`
    steady: int
    held: int  # subscriptions in memory
    read: int  # events of files, with the subscriptions of `steady`
    turns: int  # of each writer of files, and a fifth of the micro-batches of one event
    most: int = 4_000_000  # events of a round


DEFAULT = Extent(
    workloads=("stock", "w4"), sizes=(1000, 10_000, 100_000), seconds=1.5, patience=20,
    cases=(
        ("stock", 100_000, "counts"), ("stock", 100_000, "pairs"), ("w4", 100_000, "counts"),
        ("w4", 100_000, "lists"), ("bdd:0.15", 100_000, "counts"),
    ),
    cores=(1, 2), events=(10_000, 100_000, 1_000_000), grown=(1000, 10_000, 100_000, 1_000_000),
    steady=100_000, held=1_000_000, read=400_000, turns=4,
)  # fmt: skip
QUICK = DEFAULT._replace(
    workloads=("stock",), sizes=(1000, 100_000), seconds=0.5, patience=10,
    cases=(("stock", 100_000, "counts"), ("stock", 100_000, "pairs")), cores=(2,),
    events=(10_000, 100_000), grown=(1000, 10_000, 100_000), held=100_000,
    read=100_000, turns=2,
)  # fmt: skip
LONG = DEFAULT._replace(events=(*DEFAULT.events, 10_000_000), seconds=3.0, patience=90)


def main() -> None:
    options = arguments().parse_args()
    extent = extent_of(options)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("ended"))  # and the processes with it
    about = machine()
    print(f"{about['cpu']}, Python {about['python']}, "
          + ", ".join(f"{name} {number}" for name, number in about["libraries"].items())
          + f", Spark on {CORES} cores of this machine.", flush=True)  # fmt: skip

    def record(line: dict[str, Any]) -> None:
        if options.json is not None:  # at once, so that an interrupted run keeps what it has
            with options.json.open("a", encoding="utf-8") as file:
                file.write(json.dumps(line) + "\n")

    record({"kind": "machine", **about})
    sections = {
        "users": lambda folder: contests(extent, options.contestants, folder, record),
        "overhead": lambda folder: overheads(extent, folder, record),
        "growth": lambda folder: growths(extent, folder, record),
        "memory": lambda folder: memories(extent, folder, record),
        "files": lambda folder: files_to_files(extent, folder, record),
    }
    with tempfile.TemporaryDirectory(prefix="tamis-pipeline-", ignore_cleanup_errors=True) as made:
        for section in options.sections or SECTIONS:
            start = time.perf_counter()
            sections[section](Path(made))
            progress(f"{section}: done in {time.perf_counter() - start:.0f} s")


def arguments() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    made.add_argument("sections", nargs="*", choices=[*SECTIONS, []], metavar="SECTION",
                      help=f"among {', '.join(SECTIONS)}; all, if none is named")  # fmt: skip
    extents = made.add_mutually_exclusive_group()
    extents.add_argument("--quick", action="store_true", help="about 3 minutes instead of 12")
    extents.add_argument("--long", action="store_true", help="longer rounds, 10 million events")
    made.add_argument("--workloads", nargs="+", choices=("stock", "w4"), help="of users")
    made.add_argument("--sizes", type=int, nargs="+", metavar="N", help="subscriptions, of users")
    names = list(users.USERS)
    made.add_argument("--contestants", nargs="+", choices=names, metavar="NAME", default=names,
                      help=f"among {', '.join(names)}")  # fmt: skip
    made.add_argument("--seconds", type=float, help="of a round, about")
    made.add_argument("--patience", type=float, help="seconds for a contestant")
    made.add_argument("--scale", type=float, default=1.0, help="of all sizes, to try this out")
    made.add_argument("--json", type=Path, metavar="FILE", help="append results, line by line")
    return made


def extent_of(options: argparse.Namespace) -> Extent:
    """The preset of the options, with the numbers that they replace, and all sizes scaled."""
    extent = QUICK if options.quick else LONG if options.long else DEFAULT
    given = {name: getattr(options, name) for name in ("workloads", "sizes", "seconds", "patience")}
    extent = extent._replace(**{name: value for name, value in given.items() if value is not None})

    def scaled(number: int) -> int:
        return max(10, int(number * options.scale))

    return extent._replace(
        sizes=tuple(map(scaled, extent.sizes)), most=scaled(extent.most),
        cases=tuple((spec, scaled(size), output) for spec, size, output in extent.cases),
        events=tuple(map(scaled, extent.events)), grown=tuple(map(scaled, extent.grown)),
        steady=scaled(extent.steady), held=scaled(extent.held), read=scaled(extent.read),
    )  # fmt: skip


def progress(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


# --- users


def contests(extent: Extent, who: list[str], folder: Path, record: Record) -> None:
    with SparkProcess(Place(CORES, folder)) as spark_process:
        for spec in extent.workloads:
            gone: dict[str, str] = {}  # contestants that did not survive, and why
            for size in extent.sizes:
                print(f"\n**{spec}, {size:,} subscriptions**\n\n{head(USER_COLUMNS)}", flush=True)
                results = _contest(spark_process, spec, size, who, gone, extent, record)
                print("\n" + best_of_others(results) + _reasons(gone), flush=True)


def _contest(
    spark_process: SparkProcess, spec: str, size: int, who: list[str], gone: dict[str, str],
    extent: Extent, record: Record,
) -> dict[str, dict[str, Any]]:  # fmt: skip
    results: dict[str, dict[str, Any]] = {}
    for name in who:
        if name not in gone:
            progress(f"users: {spec} {size:,} {name}")
            try:
                if not spark_process.is_running:
                    spark_process.call(users.warmed, LIMIT)
                found = spark_process.call(
                    users.contest, extent.patience, spec=spec, size=size, who=name,
                    most=min(extent.most, 1_000_000), wanted=extent.seconds,
                )  # fmt: skip
            except (Failed, LeftOut) as error:
                gone[name] = f"{size:,} subscriptions: {error}"
                record({"kind": "users", "workload": spec, "size": size, "contestant": name,
                        "reason": str(error)})  # fmt: skip
            else:
                compare(name, found, results)
                results[name] = found
                record({"kind": "users", "workload": spec, "size": size, "contestant": name,
                        **found})  # fmt: skip
        print(row(user_cells(name, results.get(name), results.get("tamis"))), flush=True)
    return results


def compare(name: str, found: dict[str, Any], others: dict[str, dict[str, Any]]) -> None:
    """The same pairs of the first events."""
    for other, known in others.items():
        if tuple(found["found"]) != tuple(known["found"]):
            raise AssertionError(
                f"{name} finds {found['found']} in {found['few']} events, {other} {known['found']}"
            )


def _reasons(gone: dict[str, str]) -> str:
    return "".join(f"\n- {name}: {reason}" for name, reason in gone.items())


# --- overhead


def overheads(extent: Extent, folder: Path, record: Record) -> None:
    counts: dict[tuple[str, int, str], int] = {}  # events: the same on all cores
    for cores in extent.cores:
        with SparkProcess(Place(cores, folder)) as spark_process:
            spec, size, _ = extent.cases[0]
            progress(f"overhead: starting on {cores} cores")
            found = spark_process.call(overhead.started, LIMIT, spec=spec, size=size)
            record({"kind": "started", "cores": cores, "workload": spec, **found})
            print("\n" + started_lines(cores, found))
            print("\n" + head(PART_COLUMNS), flush=True)
            for case in extent.cases:
                progress(f"overhead: {case} on {cores} cores")
                spec, size, output = case
                try:
                    found = spark_process.call(
                        overhead.measured, LIMIT, spec=spec, size=size,
                        output=output, count=counts.get(case), most=extent.most,
                        wanted=2 * extent.seconds,
                    )  # fmt: skip
                except Failed as error:
                    print(row([spec, output, str(cores), str(error)]), flush=True)
                    continue
                counts[case] = found["events"]
                record({"kind": "overhead", "cores": cores, "workload": spec, "size": size,
                        "output": output, **found})  # fmt: skip
                print(row(part_cells(spec, output, cores, found)), flush=True)


# --- growth and memory


def growths(extent: Extent, folder: Path, record: Record) -> None:
    columns = ("events", "subscriptions", "compile, s", "match, s", "spread", "events/s",
               "pairs/s", "file, MB")  # fmt: skip
    print("\n**stock, all pairs**\n\n" + head(columns), flush=True)
    points = [(events, extent.steady) for events in extent.events]
    points += [
        (extent.steady, size) for size in extent.grown if (extent.steady, size) not in points
    ]
    with SparkProcess(Place(CORES, folder)) as spark_process:
        spark_process.call(growth.grown, LIMIT, spec="stock", events=1000, size=1000, longest=0)
        for events, size in points:
            progress(f"growth: {events:,} events, {size:,} subscriptions")
            try:
                found = spark_process.call(
                    growth.grown, LIMIT, spec="stock", events=events, size=size,
                    longest=4 * extent.seconds,
                )  # fmt: skip
            except Failed as error:
                print(row([f"{events:,}", f"{size:,}", str(error)]), flush=True)
                continue
            record({"kind": "growth", "workload": "stock", "cores": CORES, **found})
            print(row(grown_cells(found)), flush=True)


def memories(extent: Extent, folder: Path, record: Record) -> None:
    size, events = extent.held, extent.steady
    with SparkProcess(Place(CORES, folder)) as spark_process:  # compiles, and makes the files
        progress(f"memory: compiling {size:,} subscriptions")
        file = spark_process.call(memory.compiled, LIMIT, spec="stock", size=size)
    with SparkProcess(
        Place(CORES, folder)
    ) as spark_process:  # whose workers have done nothing else
        progress("memory: looking")
        rows = spark_process.call(memory.held, LIMIT, spec="stock", size=size, events=events)
    record({"kind": "memory", "workload": "stock", "size": size, "events": events, "file": file,
            "workers": rows})  # fmt: skip
    print(f"\n**stock, {size:,} subscriptions in {CORES} workers**, a file of "
          f"{file / 1e6:.0f} MB; {events:,} events matched in each\n")  # fmt: skip
    print(head(MEMORY_COLUMNS))
    for line in memory_cells(rows):
        print(row(line), flush=True)


# --- files


def files_to_files(extent: Extent, folder: Path, record: Record) -> None:
    columns = ("median, s", "least", "most")
    with SparkProcess(Place(CORES, folder)) as spark_process:
        progress("files: the writers in turns")
        found = spark_process.call(
            files.written, LIMIT, spec="stock", events=extent.read, size=extent.steady,
            times=extent.turns,
        )  # fmt: skip
        record({"kind": "files", "workload": "stock", "cores": CORES, **found})
        print(f"\n**stock, {found['events']:,} events, {found['size']:,} subscriptions, "
              f"{found['pairs']:,} pairs, Parquet to Parquet**\n")  # fmt: skip
        print(head(("who writes", *columns)))
        for line in files.lines(found["times"]):
            print(row(line), flush=True)
        progress("files: micro-batches of one event")
        small = spark_process.call(
            files.small_batches, LIMIT, size=extent.steady // 50, number=5 * extent.turns
        )
        record({"kind": "small", "size": extent.steady // 50, "cores": CORES, "times": small})
        print(f"\n**micro-batches of one event, {extent.steady // 50:,} subscriptions**\n")
        print(head(("micro-batch", *columns)))
        for line in files.lines(small):
            print(row(line), flush=True)


if __name__ == "__main__":
    main()
