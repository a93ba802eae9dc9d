"""Draw what `routing.py --out` has recorded: tables by threshold, and insertion as they grow.

    python benchmarks/routing_plot.py RESULTS [--out docs/routing.svg]

Panels are of what there are results of: entries and false positives over the threshold of imperfect
merging (Figs. 14 and 15 of the MBD paper), the same in a network of brokers, and microseconds of a
subscription over the size of the table (Fig. 13). Of results for the same numbers the last one
counts. The picture follows the reader's light or dark mode.
"""

import argparse
import json
import statistics
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from charts import (
    HEIGHT,
    LEFT,
    PANEL,
    RIGHT,
    TITLE,
    Line,
    Panel,
    Point,
    picture,
    powers_of,
    steps_of,
)
from field_plot import ROOT
from routing_sections.insertion import WAYS
from routing_sections.networks import IMPERFECT

SERIES = {
    "paper": ("tamis", "rules of the paper"), "full": ("rivals", "all our rules"),
    "sparse": ("papers", "fewer attributes"), "advertised": ("green", "advertised"),
    "unaware": ("red", "skewed, uniform assumed"), "profile": ("violet", "skewed, by profile"),
}  # fmt: skip
FAMILIES = dict(zip(WAYS, ("tamis", "rivals", "violet", "papers", "red"), strict=True))
IMT = "largest IMT of a merger"

Result = dict[str, Any]
Value = Callable[[Result], float]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("results", type=Path)
    arguments.add_argument("--out", type=Path, default=ROOT / "docs" / "routing.svg")
    options = arguments.parse_args()
    lines = [json.loads(line) for line in options.results.read_text(encoding="utf-8").splitlines()]
    options.out.write_text(drawing(lines), encoding="utf-8")


def drawing(lines: Sequence[Result]) -> str:
    """The whole picture."""
    about = [line["cpu"] for line in lines if line["kind"] == "machine"]
    panels = [*_thresholds(_of(lines, "imt")), *_network(_of(lines, "network")),
              *_insertion(_of(lines, "insertion"))]  # fmt: skip
    if not panels:
        raise SystemExit("no result of imt, network or insertion to draw")
    return picture(
        "Routing tables by threshold, and insertion as they grow",
        "Routing tables: merging and insertion", about[-1] if about else "", panels,
    )  # fmt: skip


def _of(lines: Iterable[Result], kind: str) -> list[Result]:
    return [line for line in lines if line["kind"] == kind]


# --- thresholds


def _thresholds(lines: Sequence[Result]) -> list[Panel]:
    found: list[Panel] = []
    for name, size in dict.fromkeys((line["set"], line["size"]) for line in lines):
        some = [line for line in lines if (line["set"], line["size"]) == (name, size)]
        title = f"{name}, {size:,} subscriptions"
        found.append(
            _by_threshold(
                f"{title}: entries", some, lambda line: line["entries"], "{:,.0f}", "right"
            )
        )
        found.append(_by_threshold(
            f"{title}: false entries, %", some,
            lambda line: 100 * line["false_entries"] / max(1, line["entry_matches"]),
            "{:g}", "left"))  # fmt: skip
    return found


def _by_threshold(
    title: str, lines: Sequence[Result], value: Value, form: str, key: str
) -> Panel:  # fmt: skip
    drawn = []
    for series, (family, said) in SERIES.items():
        points = {line["threshold"]: value(line) for line in lines if line["series"] == series}
        if points:
            drawn.append(_line(family, said, sorted(points.items())))
    return _even_panel(title, IMT, drawn, form, key)


def _network(lines: Sequence[Result]) -> list[Panel]:
    some = [line for line in lines if line["strategy"] == IMPERFECT]
    if not some:
        return []
    parts: dict[str, Value] = {
        "tamis": lambda line: sum(line["tables"].values()) - line["local"],
        "rivals": lambda line: 100 * (1 - line["needed"] / max(1, sum(line["carried"].values()))),
    }
    title = f"{some[-1]['brokers']} brokers, imperfect merging"
    found = []
    for (family, value), (said, form, key) in zip(
        parts.items(),
        (("entries of neighbours", "{:,.0f}", "right"), ("false on links, %", "{:g}", "left")),
        strict=True,
    ):
        points: dict[float, dict[int, float]] = {}
        for line in some:
            points.setdefault(line["threshold"], {})[line["seed"]] = value(line)
        means = [(imt, statistics.mean(seeds.values())) for imt, seeds in sorted(points.items())]
        drawn = [_line(family, said, means)]
        found.append(_even_panel(f"{title}: {said}", IMT, drawn, form, key))
    return found


# --- insertion


def _insertion(lines: Sequence[Result]) -> list[Panel]:
    found = []
    for name in dict.fromkeys(line["set"] for line in lines):
        sizes = {line["size"]: line for line in lines if line["set"] == name}
        whole = [(size, 1e6 * line["table"]) for size, line in sorted(sizes.items())]
        drawn = [_line("green", "table (candidates)", whole)]
        for way, family in FAMILIES.items():
            points = [(size, 1e6 * statistics.median(line["ways"][way]["whole"]))
                      for size, line in sorted(sizes.items()) if way in line["ways"]]  # fmt: skip
            if points and way != "candidates":
                drawn.append(_line(family, way, points))
        found.append(Panel(
            f"{name}: microseconds of a subscription", "subscriptions", drawn,
            powers_of(_values(drawn, 0), LEFT, PANEL - RIGHT),
            powers_of(_values(drawn, 1), TITLE + HEIGHT, TITLE), "left",
        ))  # fmt: skip
    return found


# --- panels


def _line(family: str, said: str, points: Sequence[Point]) -> Line:
    return Line(family, said, points, [f"{said}: {y:,.4g} at {x:,.4g}" for x, y in points])


def _even_panel(title: str, axis: str, lines: Sequence[Line], form: str, key: str) -> Panel:
    return Panel(
        title, axis, lines, steps_of(_values(lines, 0), LEFT, PANEL - RIGHT, "{:g}"),
        steps_of(_values(lines, 1), TITLE + HEIGHT, TITLE, form), key,
    )  # fmt: skip


def _values(lines: Sequence[Line], place: int) -> list[float]:
    return [point[place] for line in lines for point in line.points]


if __name__ == "__main__":
    main()
