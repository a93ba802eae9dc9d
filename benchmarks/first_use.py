"""What a newcomer waits for: the first answer, the first job of a Spark session, a small command.

    python benchmarks/first_use.py [answers] [jobs] [commands] [--rounds N] [--scale X]

*answers*: seconds of the first batch and of the first single event in a process on one core, with
nothing compiled yet, and in the process after it. *jobs*: the same job from files to files three
times in one Spark session, in a new process for each round, with kernels compiled before: seconds
of compiling the filters, and of matching and writing. *commands*: `tamis match` of two filters and
two events, with ``--local`` and on Spark. Numbers are medians, with the least and the most.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from machine import processor
from pipeline_sections import workload_files
from pipeline_sections.tables import head, row

Numbers = dict[str, float]
SECTIONS = ("answers", "jobs", "commands")
ENGINES = ("sliced", "auto")
FILTERS, EVENTS = 3_000, 1_000  # of answers
JOB_FILTERS, JOB_EVENTS = 100_000, 400_000
JOBS = ("first job", "second job", "third job")


def main() -> None:
    made = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    made.add_argument("sections", nargs="*", metavar="SECTION", default=SECTIONS,
                      help=f"among {', '.join(SECTIONS)}; all, if none is named")  # fmt: skip
    made.add_argument("--rounds", type=int, default=3, help="of each measurement")
    made.add_argument("--scale", type=float, default=1.0, help="of all sizes, to try this out")
    made.add_argument("--inside", help="used by this script for the processes it measures")
    options = made.parse_args()
    if options.inside is not None:
        work, *given = json.loads(options.inside)
        print(json.dumps(INSIDE[work](*given)))
        return
    print(f"{processor()}; medians of {options.rounds} rounds, with the least and the most.")
    with tempfile.TemporaryDirectory(prefix="tamis-first-use-") as folder:
        for section in options.sections:
            print(f"\n**{section}**\n")
            OUTSIDE[section](Path(folder), options.rounds, options.scale)


def inside(work: str, *given: Any, cache: Path | None = None, cores: int | None = None) -> Numbers:
    """The numbers that one of `INSIDE` measures in a process of its own."""
    environment = os.environ | ({} if cache is None else only_kept_in(cache))
    command = [sys.executable, __file__, "--inside", json.dumps([work, *given])]
    if cores is not None:
        command = ["taskset", "--cpu-list", f"0-{cores - 1}", *command]
    done = subprocess.run(command, env=environment, check=True, stdout=subprocess.PIPE, text=True)  # noqa: S603 - this script
    found: Numbers = json.loads(done.stdout.splitlines()[-1])
    return found


def only_kept_in(cache: Path) -> dict[str, str]:
    """Variables with which a process finds no kernels but those of a folder.

    It would read those that other processes have left in the user's folder for caches, or among
    the temporary files.
    """
    cache.mkdir(exist_ok=True)
    return dict.fromkeys(("NUMBA_CACHE_DIR", "XDG_CACHE_HOME", "TMPDIR"), str(cache))


def table(title: str, rounds: dict[str, list[Numbers]]) -> None:
    """One row for each key, one column for each number."""
    columns = list(next(iter(rounds.values()))[0])
    print(head((title, *columns)))
    for name, found in rounds.items():
        taken = [[one[column] for one in found] for column in columns]
        print(row([name, *(f"{statistics.median(some):.2f} ({min(some):.2f} to {max(some):.2f})"
                           for some in taken)]), flush=True)  # fmt: skip


# --- answers


def answers(folder: Path, rounds: int, scale: float) -> None:
    found: dict[str, list[Numbers]] = {}
    for number in range(rounds):
        for engine in ENGINES:
            cache = folder / f"kernels-{engine}-{number}"
            for state in ("nothing compiled", "compiled before"):
                numbers = inside("answer", engine, scale, cache=cache, cores=1)
                found.setdefault(f"{engine}, {state}", []).append(numbers)
    table("engine", found)


def answer(engine: str, scale: float) -> Numbers:
    """Seconds of subscribing, of the first batch, and of one event after it."""
    from tamis import Matcher
    from tamis.workloads import workload

    source = workload("stock")
    filters = source.subscriptions(int(FILTERS * scale) or 1, seed=1)
    events = source.events(int(EVENTS * scale) or 1, seed=2)
    one = events.slice(0, 1).to_pylist()[0]
    begin = time.perf_counter()
    matcher = Matcher(source.schema, engine=engine)
    matcher.subscribe_many(filters)
    before = time.perf_counter()
    matcher.match_batch(events)
    between = time.perf_counter()
    matcher.match(one)
    end = time.perf_counter()
    return {
        "subscribing, s": before - begin, "first batch, s": between - before,
        "first event, s": end - between, "together, s": end - begin,
    }  # fmt: skip


# --- jobs


def jobs(folder: Path, rounds: int, scale: float) -> None:
    events, filters = int(JOB_EVENTS * scale), int(JOB_FILTERS * scale)
    workload_files.subscription_files(folder, "stock", filters)
    workload_files.event_files(folder, "stock", events)
    subprocess.run([sys.executable, "-m", "tamis", "warm"], check=True, stdout=subprocess.DEVNULL)
    found: dict[str, list[Numbers]] = {name: [] for name in JOBS}
    for number in range(rounds):
        measured = inside("session", str(folder), number, events, filters)
        for name in JOBS:
            parts = {part: measured[f"{name}, {part}"] for part in ("compiling", "matching")}
            found[name].append({
                "session, s": measured["session"], "compiling, s": parts["compiling"],
                "matching and writing, s": parts["matching"], "together, s": sum(parts.values()),
            })  # fmt: skip
    table(f"{events:,} events, {filters:,} filters", found)
    together = [statistics.median(one["together, s"] for one in found[name]) for name in JOBS]
    print(f"\nThe first job takes {together[0] / together[1]:.2f} times as long as the second.")


def session(folder: str, number: int, events: int, filters: int) -> Numbers:
    """Seconds of starting a session, and of the parts of three equal jobs."""
    from tamis.spark import MatchJob, spark_session

    start = time.perf_counter()
    spark = spark_session(conf={"spark.local.dir": folder})
    found = {"session": time.perf_counter() - start}
    pairs = set()
    for name in JOBS:
        source = workload_files.event_files(Path(folder), "stock", events)
        texts = workload_files.subscription_files(Path(folder), "stock", filters)
        start = time.perf_counter()
        job = MatchJob(workload_files.frame(spark, source), workload_files.frame(spark, texts))
        _ = job.compiled
        between = time.perf_counter()
        counts = job.write(str(Path(folder) / f"out-{number}-{name}"), "parquet")
        found[f"{name}, compiling"] = between - start
        found[f"{name}, matching"] = time.perf_counter() - between
        pairs.add(counts.matches)
    if len(pairs) > 1:
        raise AssertionError(f"not all jobs found the same number of pairs: {pairs}")
    return found


# --- commands


def commands(folder: Path, rounds: int, _: float) -> None:
    rules, events = folder / "rules.jsonl", folder / "events.jsonl"
    rules.write_text('{"id": 1, "filter": "price < 10"}\n{"id": 2, "filter": "price >= 10"}\n')
    events.write_text('{"id": 1, "price": 5.0}\n{"id": 2, "price": 50.0}\n')
    found: dict[str, list[Numbers]] = {}
    for number in range(rounds):
        for way in ("--local", "on Spark"):
            out = folder / f"commands-{number}-{way.strip('-')}"
            command = [sys.executable, "-m", "tamis", "match", str(rules), str(events), "--out"]
            command += [str(out), *(["--local"] if way == "--local" else [])]
            start = time.perf_counter()
            subprocess.run(command, check=True, capture_output=True)  # noqa: S603 - our own command
            found.setdefault(way, []).append({"seconds": time.perf_counter() - start})
    table("tamis match, 2 filters, 2 events", found)


INSIDE: dict[str, Callable[..., Numbers]] = {"answer": answer, "session": session}
OUTSIDE = {"answers": answers, "jobs": jobs, "commands": commands}

if __name__ == "__main__":
    main()
