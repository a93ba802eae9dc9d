"""Results as the rows of tables."""

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from pipeline_sections import timing
from pipeline_sections.timing import spread

USER_COLUMNS = (
    "contestant", "events/s", "tamis is faster", "spread", "rounds", "events", "a round, s",
    "64 events, s", "first answer, s",
)  # fmt: skip
PARTS = ("read", "to Python", "engine", "finishing", "back", "rest", "whole")
PART_COLUMNS = (
    "workload", "output", "cores", "events", "matches", "bare/s", "Spark/s", "of bare",
    "without one event", "spread",
    *(f"{part}, s" for part in PARTS), "one event, s", "compile, s",
)  # fmt: skip
MEMORY_COLUMNS = ("worker", "stage", "RSS, MB", "PSS, MB", "shared, MB", "of the file, MB")
DASH = "–"

Result = dict[str, Any]


def head(columns: Sequence[str]) -> str:
    return row(columns) + "\n" + "|---" * len(columns) + "|"


def row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def shown(value: float | None, form: str = "{:,.0f}") -> str:
    return DASH if value is None else form.format(value)


def rate(found: Result | None) -> float | None:
    """Events per second, of the median of the rounds."""
    if found is None:
        return None
    seconds = statistics.median(found["times"])
    return timing.rate(found["events"], seconds, found["few"], found["fixed"])


# --- users


def user_cells(name: str, found: Result | None, ours: Result | None) -> list[str]:
    if found is None:
        return [name, *[DASH] * (len(USER_COLUMNS) - 1)]
    own, best = rate(found), rate(ours)
    times = None if name == "tamis" or own is None or best is None else best / own
    return [
        name, shown(own, "{:,.0f}" if own and own >= 100 else "{:,.2f}"),
        shown(times, "{:,.1f} times"), shown(spread(found["times"]), "{:.0%}"),
        str(len(found["times"])), f"{found['events']:,}",
        f"{statistics.median(found['times']):.2f}", f"{found['fixed']:.2f}",
        f"{found['first']:.1f}",
    ]  # fmt: skip


def best_of_others(results: dict[str, Result]) -> str:
    """How many matches there are, and how much faster tamis is than the best of the others."""
    ours = results.get("tamis")
    others = {name: rate(found) or 0.0 for name, found in results.items() if name != "tamis"}
    some = next(iter(results.values()), None)
    said = [] if some is None else [f"{some['found'][0] / some['few']:,.1f} matches per event"]
    own = rate(ours)
    by_hand = {name: value for name, value in others.items() if name != "join-tuned"}
    for some_of, said_of in ((others, "of all others"), (by_hand, "of those not tuned")):
        if own is not None and some_of:
            best = max(some_of, key=lambda name: some_of[name])
            times = own / some_of[best]
            said.append(f"tamis is {times:,.1f} times faster than {best}, the best {said_of}")
    return "; ".join(said) + "."


# --- overhead


def started_lines(cores: int, found: Result) -> str:
    """What the first jobs of a session take longer than later ones."""
    names = {
        "read": "first job: JVM classes and code",
        "worker": "first Python worker: process, pyarrow",
        "compile": "first compilation: tamis, numba, kernels",
        "match": "first matching: kernels, opening the file",
    }
    size = f"{found['events']:,} events and {found['size']:,} subscriptions"
    lines = [
        f"**Starting, {cores} cores**: session (JVM) {found['session']:.1f} s; then, for {size},",
        "", head(("what starts", "first, s", "later, s", "start-up, s")),
    ]  # fmt: skip
    for name, said in names.items():
        first, *others = found[name]
        later = statistics.median(others)
        lines.append(row([said, f"{first:.2f}", f"{later:.2f}", f"{first - later:.2f}"]))
    return "\n".join(lines)


def part_cells(spec: str, output: str, cores: int, found: Result) -> list[str]:
    parts, events = found["parts"], found["events"]
    whole, engine = parts["whole"], parts["engine"]
    longer = whole - parts["one"]
    return [
        spec, output, str(cores), f"{events:,}", f"{found['matches']:,.1f}",
        shown(events / engine), shown(events / whole), f"{engine / whole:.0%}",
        shown(engine / longer if longer > 0 else None, "{:.0%}"),
        shown(found["spread"], "{:.0%}"),
        *(f"{parts[part]:.2f}" for part in PARTS), f"{parts['one']:.2f}",
        f"{found['compile'][-1]:.2f}",
    ]  # fmt: skip


# --- growth and memory


def grown_cells(found: Result) -> list[str]:
    match = statistics.median(found["match"])
    return [
        f"{found['events']:,}", f"{found['size']:,}", f"{found['compile']:.2f}", f"{match:.2f}",
        shown(spread(found["match"]), "{:.0%}"), shown(found["events"] / match),
        shown(found["matches"] * found["events"] / match), f"{found['bytes'] / 1e6:.1f}",
    ]  # fmt: skip


def memory_cells(rows: Sequence[Result]) -> list[list[str]]:
    """Each worker at each stage, and what they take together."""
    stages = list(dict.fromkeys(line["stage"] for line in rows))
    cells = []
    for stage in stages:
        found = sorted((line for line in rows if line["stage"] == stage), key=lambda r: r["task"])
        for line in found:
            sizes = (line[key] for key in ("rss", "pss", "shared", "file"))
            cells.append([str(line["task"]), stage, *(f"{size / 1e6:.0f}" for size in sizes)])
        whole = sum(line["pss"] for line in found)
        cells.append(["all", stage, DASH, f"{whole / 1e6:.0f}", DASH, DASH])
    return cells
