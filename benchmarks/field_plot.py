"""Draw what `field.py --json` has recorded: events per second of every contestant.

    python benchmarks/field_plot.py RESULTS [--out docs/performance.svg]

One panel per workload and size, all with the same logarithmic scale. A full dot is counting, a ring
is writing all pairs; a dash is a contestant that failed; a contestant without a mark did not take
part. Of several results for the same workload, size and contestant the last one is drawn. The
picture follows the reader's light or dark mode.
"""

import argparse
import json
import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

from rivals import CONTESTANTS, PAPERS, RIVALS

ROOT = Path(__file__).parent.parent

COLUMNS = 3
PANEL, GAP, MARGIN = 300, 24, 20  # pixels
NAMES = 88  # for the names of contestants
TITLE, ROW, AXIS, TOP = 26, 15, 24, 84
DOT = 4
UNITS = ("", "k", "M", "G")

# Roles and their colours, light and dark; not every viewer supports CSS variables.
COLOURS = {
    "surface": ("#ffffff", "#0d1117"), "ink": ("#1f2328", "#e6edf3"),
    "soft": ("#59636e", "#9198a1"), "grid": ("#d8dee4", "#30363d"),
    "tamis": ("#0b62d6", "#58a6ff"), "papers": ("#6e7781", "#9aa4ae"),
    "rivals": ("#bc4c00", "#f0883e"),
}  # fmt: skip
FAMILIES = {"tamis": "auto, sliced", "papers": "engines of the papers", "rivals": "by hand"}


def style() -> str:
    rules = [
        'text { font: 11px system-ui, -apple-system, "Segoe UI", sans-serif; }',
        ".title { font-size: 16px; font-weight: 600; }",
        ".panel { font-weight: 600; }",
        ".dot, .ring, .link { stroke-width: 1.5; }",
        *_colours(0),
        "@media (prefers-color-scheme: dark) {",
        *_colours(1),
        "}",
    ]
    return "\n".join(rules)


def _colours(mode: int) -> list[str]:
    colour = {role: both[mode] for role, both in COLOURS.items()}
    rules = [
        f".surface, .ring {{ fill: {colour['surface']}; }}",
        f"text {{ fill: {colour['ink']}; }} text.soft {{ fill: {colour['soft']}; }}",
        f".grid {{ stroke: {colour['grid']}; }}",
    ]
    marks = {"key": colour["ink"]} | {family: colour[family] for family in FAMILIES}
    for family, mark in marks.items():
        rules.append(f".{family} .dot, .{family} .name {{ fill: {mark}; }}")
        rules.append(f".{family} circle, .{family} .link {{ stroke: {mark}; }}")
    return rules


@dataclass(frozen=True)
class Scale:
    """Events per second to pixels, from one power of ten to another."""

    low: int
    high: int

    def place(self, value: float) -> float:
        width = PANEL - NAMES
        return NAMES + width * (math.log10(value) - self.low) / (self.high - self.low)


Panel = tuple[str, int]  # workload, with its density, and size
Rates = dict[str, tuple[float | None, float | None]]  # contestant: counted, with pairs


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("results", type=Path)
    arguments.add_argument("--out", type=Path, default=ROOT / "docs" / "performance.svg")
    options = arguments.parse_args()
    lines = [json.loads(line) for line in options.results.read_text(encoding="utf-8").splitlines()]
    options.out.write_text(drawing(lines), encoding="utf-8")


def drawing(lines: Iterable[dict[str, Any]]) -> str:
    """The whole picture."""
    found, about = panels(lines)
    values = [rate for rates in found.values() for pair in rates.values() for rate in pair if rate]
    if not values:
        raise SystemExit("no result to draw")
    scale = Scale(math.floor(math.log10(min(values))), math.floor(math.log10(max(values))) + 1)
    names = [
        who for who in (*CONTESTANTS, "naive") if any(who in rates for rates in found.values())
    ]
    height = TITLE + ROW * len(names) + AXIS
    parts = []
    for number, ((workload, size), rates) in enumerate(found.items()):
        x = MARGIN + number % COLUMNS * (PANEL + GAP)
        y = TOP + number // COLUMNS * (height + GAP)
        title = f"{workload}, {size:,} subscriptions"
        parts.append(f'<g transform="translate({x},{y})">{panel(title, names, rates, scale)}</g>')
    rows = -(-len(found) // COLUMNS)
    width = 2 * MARGIN + COLUMNS * PANEL + (COLUMNS - 1) * GAP
    whole = TOP + rows * (height + GAP)
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {whole}" '
        f'width="{width}" height="{whole}" role="img" aria-labelledby="title">'
    )
    name = '<title id="title">Events per second of every contestant, by workload</title>'
    ground = f'<rect class="surface" width="{width}" height="{whole}"/>'
    head = [opening, name, f"<style>{style()}</style>", ground, legend(about)]
    return "\n".join([*head, *parts, "</svg>", ""])


def panels(lines: Iterable[dict[str, Any]]) -> tuple[dict[Panel, Rates], str]:
    """Rates by panel, in the order of the run, and the name of the processor."""
    found: dict[Panel, Rates] = {}
    about = ""
    for line in lines:
        if line["kind"] == "machine":
            about = line["cpu"]
            continue
        density = "" if line["density"] == 1 else f":{line['density']:g}"
        rates = found.setdefault((line["workload"] + density, line["size"]), {})
        rates[line["contestant"]] = (
            _rate(line["events"], line["counted"]), _rate(line["pair_events"], line["paired"])
        )  # fmt: skip
    return found, about


def _rate(events: int, seconds: list[float]) -> float | None:
    return events / statistics.median(seconds) if seconds else None


def legend(about: str) -> str:
    about = escape(f"{about}; logarithmic; more is better")
    parts = [
        f'<text class="title" x="{MARGIN}" y="28">Events per second, one core</text>',
        f'<text class="soft" x="{MARGIN}" y="46">{about}</text>',
    ]
    entries = [(family, "dot", text) for family, text in FAMILIES.items()]
    entries += [("key", "dot", "counted"), ("key", "ring", "with all pairs")]
    x = float(MARGIN)
    for family, mark, text in entries:
        circle = f'<circle class="{mark}" cx="{x + DOT}" cy="64" r="{DOT}"/>'
        parts.append(f'<g class="{family}">{circle}<text x="{x + 14}" y="68">{text}</text></g>')
        x += 30 + 6.2 * len(text)
    return "\n".join(parts)


def panel(title: str, names: list[str], rates: Rates, scale: Scale) -> str:
    bottom = TITLE + ROW * len(names)
    parts = [f'<text class="panel" x="{NAMES}" y="14">{escape(title)}</text>']
    for power in range(scale.low, scale.high + 1):
        x = f"{scale.place(10.0**power):.1f}"
        parts.append(f'<line class="grid" x1="{x}" x2="{x}" y1="{TITLE - 4}" y2="{bottom}"/>')
        parts.append(f'<text class="soft" x="{x}" y="{bottom + 14}" text-anchor="middle">'
                     f"{short(power)}</text>")  # fmt: skip
    for number, name in enumerate(names):
        y = TITLE + ROW * number + ROW // 2
        parts.append(f'<g class="{family_of(name)}">{row(name, y, rates.get(name), scale)}</g>')
    return "\n".join(parts)


def row(name: str, y: int, rates: tuple[float | None, float | None] | None, scale: Scale) -> str:
    parts = [f'<text class="name" x="{NAMES - 8}" y="{y + 4}" text-anchor="end">{name}</text>']
    counted, paired = rates or (None, None)
    if rates == (None, None):
        parts.append(f'<text class="soft" x="{NAMES + 4}" y="{y + 4}">–</text>')
    if counted and paired:
        a, b = scale.place(counted), scale.place(paired)
        parts.append(f'<line class="link" x1="{a:.1f}" x2="{b:.1f}" y1="{y}" y2="{y}"/>')
    for mark, value, what in (("ring", paired, "with all pairs"), ("dot", counted, "counted")):
        if value:
            radius = DOT if mark == "ring" else DOT - 1
            parts.append(f'<circle class="{mark}" cx="{scale.place(value):.1f}" cy="{y}" '
                         f'r="{radius}"><title>{name}, {what}: {value:,.0f} events/s</title>'
                         "</circle>")  # fmt: skip
    return "".join(parts)


def family_of(name: str) -> str:
    if name in RIVALS:
        return "rivals"
    return "papers" if name in {*PAPERS, "naive"} else "tamis"


def short(power: int) -> str:
    """A power of ten: 1, 100, 10k, 1M."""
    if power < 0:
        return f"{10.0**power:g}"
    return f"{10 ** (power % 3)}{UNITS[power // 3]}"


if __name__ == "__main__":
    main()
