"""Draw what `pipeline.py growth --json` has recorded: seconds as events and subscriptions grow.

    python benchmarks/growth_plot.py RESULTS [--out docs/pipeline.svg]

Two panels, both scales logarithmic: more events with the same subscriptions, and more subscriptions
with the same events. A dotted line is what would be proportional to the largest. Of results for the
same numbers the last one counts. The picture follows the reader's light or dark mode.
"""

import argparse
import json
import math
import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from plot import COLOURS, DOT, GAP, MARGIN, ROOT, short

PANEL, HEIGHT = 420, 260  # pixels
LEFT, BOTTOM, TITLE, TOP = 52, 40, 26, 84
SERIES = {"match": ("tamis", "matching, all pairs"), "compile": ("rivals", "compiling")}

Point = tuple[float, float]


@dataclass(frozen=True)
class Panel:
    """Seconds by a number that grows."""

    title: str
    axis: str
    series: dict[str, list[Point]]  # by name, ascending

    def values(self, place: int) -> list[float]:
        return [point[place] for points in self.series.values() for point in points]


@dataclass(frozen=True)
class Scale:
    """Numbers to pixels, from one power of ten to another."""

    low: int
    high: int
    start: float
    end: float

    def place(self, value: float) -> float:
        part = (math.log10(value) - self.low) / (self.high - self.low)
        return self.start + (self.end - self.start) * part


def scale_of(values: Iterable[float], start: float, end: float) -> Scale:
    powers = [math.log10(value) for value in values]
    low, high = math.floor(min(powers)), math.ceil(max(powers))
    return Scale(low, max(high, low + 1), start, end)


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
    seconds = scale_of((value for panel in found for value in panel.values(1)),
                       TITLE + HEIGHT, TITLE)  # fmt: skip
    parts = []
    for number, panel in enumerate(found):
        x = MARGIN + number * (PANEL + GAP)
        parts.append(f'<g transform="translate({x},{TOP})">{drawn(panel, seconds)}</g>')
    width = 2 * MARGIN + len(found) * PANEL + (len(found) - 1) * GAP
    height = TOP + TITLE + HEIGHT + BOTTOM + MARGIN
    name = "Seconds of compiling and matching as events and subscriptions grow"
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" aria-labelledby="title">'
    )
    ground = f'<rect class="surface" width="{width}" height="{height}"/>'
    head = [opening, f'<title id="title">{name}</title>', f"<style>{style()}</style>", ground]
    return "\n".join([*head, legend(about[-1] if about else ""), *parts, "</svg>", ""])


def panels(lines: Iterable[dict[str, Any]]) -> list[Panel]:
    """More events with the subscriptions that most results have, and the other way round."""
    found = {(line["events"], line["size"]): line for line in lines}
    if not found:
        raise SystemExit("no result of growth to draw")
    events, size = (statistics.mode(key[place] for key in found) for place in (0, 1))
    some = sorted(key for key in found if key[1] == size)
    others = sorted(key for key in found if key[0] == events)
    return [
        Panel(f"more events, {size:,} subscriptions", "events",
              {"match": [(key[0], _match(found[key])) for key in some]}),
        Panel(f"more subscriptions, {events:,} events", "subscriptions",
              {"match": [(key[1], _match(found[key])) for key in others],
               "compile": [(key[1], found[key]["compile"]) for key in others]}),
    ]  # fmt: skip


def _match(line: dict[str, Any]) -> float:
    return float(statistics.median(line["match"]))


def drawn(panel: Panel, seconds: Scale) -> str:
    across = scale_of(panel.values(0), LEFT, PANEL - 12)
    parts = [f'<text class="panel" x="{LEFT}" y="14">{escape(panel.title)}</text>']
    for power in range(across.low, across.high + 1):
        x = f"{across.place(10.0**power):.1f}"
        ends = f'y1="{seconds.end}" y2="{seconds.start}"'
        parts.append(f'<line class="grid" x1="{x}" x2="{x}" {ends}/>'
                     f'<text class="soft" x="{x}" y="{seconds.start + 16}" text-anchor="middle">'
                     f"{short(power)}</text>")  # fmt: skip
    for power in range(seconds.low, seconds.high + 1):
        y = f"{seconds.place(10.0**power):.1f}"
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{PANEL - 12}" y1="{y}" y2="{y}"/>'
                     f'<text class="soft" x="{LEFT - 8}" y="{y}" dy="4" text-anchor="end">'
                     f"{10.0**power:g} s</text>")  # fmt: skip
    parts.append(f'<text class="soft" x="{(LEFT + PANEL) / 2}" y="{seconds.start + 32}" '
                 f'text-anchor="middle">{panel.axis}</text>')  # fmt: skip
    for name, points in panel.series.items():
        parts.append(f'<g class="{SERIES[name][0]}">{line(name, points, across, seconds)}</g>')
    return "\n".join(parts)


def line(name: str, points: Sequence[Point], across: Scale, seconds: Scale) -> str:
    """A series, and below it what would be proportional to its last point."""
    places = [(across.place(x), seconds.place(y)) for x, y in points]
    joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
    parts = [f'<polyline class="link" points="{joined}"/>']
    last, most = points[-1]
    # As far down as the panel goes.
    first = max(points[0][0], last * 10.0**seconds.low / most)
    if first < last:
        ends = [(across.place(x), seconds.place(most * x / last)) for x in (first, last)]
        (x1, y1), (x2, y2) = ends
        parts.append(f'<line class="even" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" '
                     f'y2="{y2:.1f}"/>')  # fmt: skip
    for (x, y), (number, value) in zip(places, points, strict=True):
        said = f"{SERIES[name][1]}: {value:.2f} s for {number:,.0f}"
        parts.append(f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="{DOT - 1}">'
                     f"<title>{said}</title></circle>")  # fmt: skip
    return "".join(parts)


def legend(about: str) -> str:
    said = escape(f"{about}; logarithmic; less is better")
    parts = [
        f'<text class="title" x="{MARGIN}" y="28">Seconds on Spark, two cores, stock</text>',
        f'<text class="soft" x="{MARGIN}" y="46">{said}</text>',
    ]
    x = float(MARGIN)
    for family, text in SERIES.values():
        circle = f'<circle class="dot" cx="{x + DOT}" cy="64" r="{DOT - 1}"/>'
        parts.append(f'<g class="{family}">{circle}<text x="{x + 14}" y="68">{text}</text></g>')
        x += 30 + 6.2 * len(text)
    parts.append(f'<g class="papers"><line class="even" x1="{x}" x2="{x + 20}" y1="64" y2="64"/>'
                 f'<text x="{x + 26}" y="68">proportional</text></g>')  # fmt: skip
    return "\n".join(parts)


def style() -> str:
    rules = [
        'text { font: 11px system-ui, -apple-system, "Segoe UI", sans-serif; }',
        ".title { font-size: 16px; font-weight: 600; } .panel { font-weight: 600; }",
        ".link { stroke-width: 1.5; fill: none; }",
        ".even { stroke-width: 1; stroke-dasharray: 2 3; }",
        *_colours(0),
        "@media (prefers-color-scheme: dark) {",
        *_colours(1),
        "}",
    ]
    return "\n".join(rules)


def _colours(mode: int) -> list[str]:
    colour = {role: both[mode] for role, both in COLOURS.items()}
    rules = [
        f".surface {{ fill: {colour['surface']}; }} .grid {{ stroke: {colour['grid']}; }}",
        f"text {{ fill: {colour['ink']}; }} text.soft {{ fill: {colour['soft']}; }}",
    ]
    for family in ("tamis", "rivals", "papers"):
        rules.append(f".{family} .dot {{ fill: {colour[family]}; }}")
        rules.append(f".{family} .link, .{family} .even {{ stroke: {colour[family]}; }}")
    return rules


if __name__ == "__main__":
    main()
