"""Draw what `pipeline.py growth --json` has recorded: seconds as events and subscriptions grow.

    python benchmarks/growth_plot.py RESULTS [--out docs/pipeline.svg]

Two panels, both scales logarithmic: more events with the same subscriptions, and more subscriptions
with the same events. A dotted line is proportional to the largest result. Of several results for
the same numbers the last one is drawn. The picture follows the reader's light or dark mode.
"""

import argparse
import json
import statistics
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from charts import HEIGHT, LEFT, PANEL, RIGHT, TITLE, Line, Panel, Point, picture, powers_of
from field_plot import ROOT

SERIES = {"match": ("tamis", "matching, all pairs"), "compile": ("rivals", "compiling")}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("results", type=Path)
    arguments.add_argument("--out", type=Path, default=ROOT / "docs" / "pipeline.svg")
    options = arguments.parse_args()
    lines = [json.loads(line) for line in options.results.read_text(encoding="utf-8").splitlines()]
    options.out.write_text(drawing(lines), encoding="utf-8")


def drawing(lines: Sequence[dict[str, Any]]) -> str:
    """The whole picture."""
    found = panels(line for line in lines if line["kind"] == "growth")
    about = [line["cpu"] for line in lines if line["kind"] == "machine"]
    return picture(
        "Seconds of compiling and matching as events and subscriptions grow",
        "Seconds on Spark, two cores, stock",
        f"{about[-1] if about else ''}; logarithmic; less is better",
        found,
    )


def panels(lines: Iterable[dict[str, Any]]) -> list[Panel]:
    """More events with the subscriptions that most results have, and the other way round."""
    found = {(line["events"], line["size"]): line for line in lines}
    if not found:
        raise SystemExit("no result of growth to draw")
    events, size = (statistics.mode(key[place] for key in found) for place in (0, 1))
    some = sorted(key for key in found if key[1] == size)
    others = sorted(key for key in found if key[0] == events)
    drawn: list[tuple[str, str, list[Line]]] = [
        (f"more events, {size:,} subscriptions", "events",
         [line("match", [(key[0], _match(found[key])) for key in some])]),
        (f"more subscriptions, {events:,} events", "subscriptions",
         [line("match", [(key[1], _match(found[key])) for key in others]),
          line("compile", [(key[1], found[key]["compile"]) for key in others])]),
    ]  # fmt: skip
    seconds = powers_of(
        (y for _, _, all_lines in drawn for each in all_lines for _, y in each.points),
        TITLE + HEIGHT, TITLE, "s",
    )  # fmt: skip
    return [
        Panel(title, axis, all_lines,
              powers_of((x for each in all_lines for x, _ in each.points), LEFT, PANEL - RIGHT),
              seconds)
        for title, axis, all_lines in drawn
    ]  # fmt: skip


def line(name: str, points: Sequence[Point]) -> Line:
    family, said = SERIES[name]
    tips = [f"{said}: {seconds:.2f} s for {number:,.0f}" for number, seconds in points]
    return Line(family, said, points, tips, even=True)


def _match(line: dict[str, Any]) -> float:
    return float(statistics.median(line["match"]))


if __name__ == "__main__":
    main()
