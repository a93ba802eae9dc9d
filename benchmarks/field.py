"""The field: tamis, the engines of the papers, and what one writes by hand, on one core.

    python benchmarks/field.py [--suite small|full] [--json FILE]
                               [--workloads w4 bdd:0.15 ...] [--sizes 10000 ...]
                               [--contestants sliced duckdb ...] [--events 16384] [--patience 60]

Contestants run one after another, each in its own process, all on the same core and the same data,
and must give the same matches: counts are compared for all events that two have counted, pairs for
the first 8. A workload with a number after it has events with that density.

*counted* and *with pairs* are events per second from an Arrow table of events to counts or to a
table of pairs, the medians of at least 3 rounds; *spread* is (max - min) / median, the larger of
both. *build* is from an Arrow table of ids and texts, through `Matcher.subscribe_many`, to the
first answer; rivals begin with columns, which cost nothing. *bytes* are those of the structure that
answers, per subscription, as it reports itself; *resident* is what the process grew by, for tamis
with ids, texts and trees. *one event* is `Matcher.match` of a dict, for rivals a table of one row:
median and 99th percentile; *engine* is the engine alone, from a row to handles. *read* is what an
engine reports to have read while counting, *written* is the size of the table of pairs; both per
second, as shares of what one core reads or writes when it does nothing else.

The number of events of a round depends on how many a contestant can match within the patience. A
contestant that needs a third of the patience for a few events, or too long to build, is left out
with a dash; the reason is below the table.
"""

import argparse
import json
import statistics
import sys
import time
from dataclasses import asdict
from pathlib import Path
from typing import Any

from field_process import Outcome, Task, compare, machine, run
from machine import most_memory, use_one_core
from rivals import CONTESTANTS
from tamis.workloads import NAMES, workload

SUITES: dict[str, tuple[tuple[str, tuple[int, ...]], ...]] = {
    "small": (
        ("w4", (10_000,)), ("bdd:0.15", (10_000,)), ("bdd", (10_000,)), ("tree", (10_000,)),
        ("mbd-a", (10_000,)), ("mbd-b", (10_000,)), ("stock", (10_000,)), ("constants", (10_000,)),
        ("shapes", (10_000,)),
    ),
    "full": (
        ("w4", (10_000, 100_000, 1_000_000)), ("bdd:0.15", (10_000, 100_000)),
        ("bdd", (10_000, 100_000)), ("tree", (10_000, 100_000)), ("mbd-a", (10_000, 100_000)),
        ("mbd-b", (10_000, 100_000)), ("stock", (100_000, 1_000_000, 5_000_000)),
        ("constants", (1_000_000,)), ("shapes", (10_000, 100_000)),
        ("shapes-constants", (100_000,)), ("shapes-texts", (100_000,)), ("shapes-wide", (20_000,)),
    ),
}  # fmt: skip
COLUMNS = (
    "contestant", "counted/s", "with pairs/s", "spread", "pairs/s", "ns per pair", "build, s",
    "bytes", "resident", "one event, us", "99 %", "engine, us", "99 %", "read", "written",
)  # fmt: skip
DASH = "–"


def main() -> None:
    options = arguments().parse_args()
    chosen = contests(options)
    cpu = use_one_core(options.cpu)
    about = machine()
    record(options.json, {"kind": "machine", **about})
    print(f"One core ({cpu}) of {about['cpu']}, Python {about['python']}, "
          + ", ".join(f"{name} {number}" for name, number in about["libraries"].items())
          + f". It reads {about['read'] / 1e9:.1f} and writes {about['written'] / 1e9:.1f} GB/s.",
          flush=True)  # fmt: skip
    for spec, size in chosen:
        contest(spec, size, options, about)


def arguments() -> argparse.ArgumentParser:
    made = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    made.add_argument("--suite", choices=tuple(SUITES), default="small")
    made.add_argument("--workloads", nargs="+", metavar="NAME[:DENSITY]", type=specification)
    made.add_argument("--sizes", type=int, nargs="+", metavar="N", help="subscriptions")
    made.add_argument("--contestants", nargs="+", default=CONTESTANTS,
                      choices=[*CONTESTANTS, "naive"], metavar="NAME",
                      help=f"among {', '.join(CONTESTANTS)}, naive")  # fmt: skip
    made.add_argument("--events", type=int, default=16_384, help="at most")
    made.add_argument("--patience", type=float, default=60, help="seconds for questions")
    made.add_argument("--building", type=float, default=900, help="seconds for building, at most")
    made.add_argument("--memory", type=float, default=most_memory(), help="GB of a process")
    made.add_argument("--cpu", type=int, help="the core to use; the last one, if not said")
    made.add_argument("--json", type=Path, metavar="FILE", help="append results, line by line")
    return made


def specification(text: str) -> str:
    """Check ``name`` or ``name:density``."""
    name, density = parts(text)
    if name not in NAMES or not 0 <= density <= 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not one of {', '.join(NAMES)}[:density]")
    return text


def parts(spec: str) -> tuple[str, float]:
    name, _, density = spec.partition(":")
    return name, float(density or 1)


def contests(options: argparse.Namespace) -> list[tuple[str, int]]:
    """Workloads and sizes: those of the options, or of the suite."""
    suite = dict(SUITES[options.suite])
    chosen = []
    for spec in options.workloads or suite:
        least = workload(parts(spec)[0]).least
        for size in options.sizes or suite.get(spec, (10_000,)):
            if size < least:
                raise SystemExit(f"{spec} has at least {least} subscriptions, not {size}")
            chosen.append((spec, size))
    return chosen


def contest(spec: str, size: int, options: argparse.Namespace, about: dict[str, Any]) -> None:
    name, density = parts(spec)
    print(f"\n**{spec}, {size:,} subscriptions**: {workload(name).about}\n")
    print("| " + " | ".join(COLUMNS) + " |")
    print("|---" * len(COLUMNS) + "|", flush=True)
    others: dict[str, Outcome] = {}
    for who in options.contestants:
        task = Task(name, density, size, who, options.events, options.patience, options.building,
                    options.memory)  # fmt: skip
        started = time.perf_counter()

        def progress(stage: str, who: str = who, started: float = started) -> None:
            seconds = time.perf_counter() - started
            print(f"{spec} {size:,} {who}: {stage} ({seconds:.0f} s)", file=sys.stderr, flush=True)

        outcome = run(task, progress)
        compare(who, outcome, others)
        others[who] = outcome
        print("| " + " | ".join(cells(who, outcome, size, about)) + " |", flush=True)
        record(options.json, {"kind": "outcome", **asdict(task), **plain(outcome)})
    print("\n" + notes(others), flush=True)


def plain(outcome: Outcome) -> dict[str, Any]:
    """An outcome for JSON: the mean of the counts for the counts."""
    found = asdict(outcome)
    counts = found.pop("counts")
    return {**found, "matches": None if counts is None else float(counts.mean())}


def record(path: Path | None, line: dict[str, Any]) -> None:
    """Append at once, so that an interrupted run keeps its results."""
    if path is not None:
        with path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")


def cells(who: str, found: Outcome, size: int, about: dict[str, Any]) -> list[str]:
    counted = statistics.median(found.counted) if found.counted else None
    paired = statistics.median(found.paired) if found.paired else None
    spreads = [(max(times) - min(times)) / statistics.median(times)
               for times in (found.counted, found.paired) if times]  # fmt: skip
    name = who if found.engine in {None, who} else f"{who} ({found.engine})"
    single, engine = found.single or (None, None), found.engine_single or (None, None)
    return [
        name,
        shown(ratio(found.events, counted)),
        shown(ratio(found.pair_events, paired)),
        shown(max(spreads, default=None), "{:.0%}"),
        shown(ratio(found.pairs, paired)),
        shown(ratio(paired, found.pairs), "{:.2f}", 1e9),
        shown(found.build, "{:.2f}"),
        shown(ratio(found.bytes, size)),
        shown(ratio(found.resident, size)),
        *(shown(seconds, "{:,.1f}", 1e6) for seconds in (*single, *engine)),
        shown(ratio(ratio(found.touched, counted), about["read"]), "{:.0%}"),
        shown(ratio(ratio(found.pair_bytes or None, paired), about["written"]), "{:.0%}"),
    ]


def ratio(one: float | None, other: float | None) -> float | None:
    return None if one is None or not other else one / other


def shown(value: float | None, form: str = "{:,.0f}", factor: float = 1) -> str:
    return DASH if value is None else form.format(value * factor)


def notes(outcomes: dict[str, Outcome]) -> str:
    """Matches per event, and why something is missing."""
    longest = max((o.counts for o in outcomes.values() if o.counts is not None), key=len,
                  default=None)  # fmt: skip
    lines = [] if longest is None else [f"{longest.mean():,.1f} matches per event."]
    lines += [f"- {who}: {found.reason}" for who, found in outcomes.items() if found.reason]
    return "\n".join(lines)


if __name__ == "__main__":
    main()
