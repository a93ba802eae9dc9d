"""Panels of line charts as SVG, which follows the reader's light or dark mode."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol
from xml.sax.saxutils import escape

from field_plot import COLOURS, DOT, GAP, MARGIN, short

PANEL, HEIGHT = 420, 260  # pixels
LEFT, RIGHT, BOTTOM, TITLE, TOP = 52, 12, 40, 26, 84
LETTER = 6.2  # pixels, about

# Families of lines and their colours, light and dark.
FAMILIES = {
    **{name: COLOURS[name] for name in ("tamis", "rivals", "papers")},
    "green": ("#1a7f37", "#3fb950"), "violet": ("#8250df", "#a371f7"),
    "red": ("#cf222e", "#ff7b72"),
}  # fmt: skip

Point = tuple[float, float]


class Scale(Protocol):
    """A map of numbers to pixels: `Powers` or `Steps`."""

    def place(self, value: float) -> float: ...

    def ticks(self) -> list[tuple[float, str]]:
        """Where lines of the grid are, and what is written there."""
        ...


@dataclass(frozen=True)
class Powers:
    """From one power of ten to another, logarithmic."""

    low: int
    high: int
    start: float
    end: float
    unit: str = ""  # written after plain numbers; without one, numbers are short

    def place(self, value: float) -> float:
        part = (math.log10(value) - self.low) / (self.high - self.low)
        return self.start + (self.end - self.start) * part

    def ticks(self) -> list[tuple[float, str]]:
        powers = range(self.low, self.high + 1)
        return [(10.0**n, f"{10.0**n:g} {self.unit}" if self.unit else short(n)) for n in powers]


@dataclass(frozen=True)
class Steps:
    """From 0 up in even steps."""

    step: float
    count: int
    start: float
    end: float
    form: str = "{:,g}"

    def place(self, value: float) -> float:
        return self.start + (self.end - self.start) * value / (self.step * self.count)

    def ticks(self) -> list[tuple[float, str]]:
        values = [n * self.step for n in range(self.count + 1)]
        return [(value, self.form.format(value)) for value in values]


def powers_of(values: Iterable[float], start: float, end: float, unit: str = "") -> Powers:
    """The powers of ten that some values are between."""
    logarithms = [math.log10(value) for value in values]
    low, high = math.floor(min(logarithms)), math.ceil(max(logarithms))
    return Powers(low, max(high, low + 1), start, end, unit)


def steps_of(values: Iterable[float], start: float, end: float, form: str = "{:,g}") -> Steps:
    """From 0 to the largest of some values, in 2 to 5 round steps."""
    most = max([*values, 1e-9])
    power = 10.0 ** math.floor(math.log10(most))
    step = next(part * power for part in (0.2, 0.5, 1, 2) if most <= 5.0001 * part * power)
    return Steps(step, max(1, math.ceil(most / step - 1e-9)), start, end, form)


@dataclass(frozen=True)
class Line:
    """Points in ascending order, each with its tooltip."""

    family: str
    said: str
    points: Sequence[Point]
    tips: Sequence[str]
    even: bool = False  # with a dotted line proportional to the last point


@dataclass(frozen=True)
class Panel:
    """Lines over one axis."""

    title: str
    axis: str
    lines: Sequence[Line]
    across: Scale
    up: Scale
    key: str = ""  # where lines are named inside the panel, left or right; else above all panels

    def drawn(self) -> str:
        parts = [f'<text class="panel" x="{LEFT}" y="14">{escape(self.title)}</text>']
        low, high = TITLE + HEIGHT, TITLE
        for value, text in self.across.ticks():
            x = f"{self.across.place(value):.1f}"
            parts.append(f'<line class="grid" x1="{x}" x2="{x}" y1="{high}" y2="{low}"/>'
                         f'<text class="soft" x="{x}" y="{low + 16}" text-anchor="middle">'
                         f"{text}</text>")  # fmt: skip
        for value, text in self.up.ticks():
            y = f"{self.up.place(value):.1f}"
            ends = f'x1="{LEFT}" x2="{PANEL - RIGHT}"'
            parts.append(f'<line class="grid" {ends} y1="{y}" y2="{y}"/>'
                         f'<text class="soft" x="{LEFT - 8}" y="{y}" dy="4" text-anchor="end">'
                         f"{text}</text>")  # fmt: skip
        parts.append(f'<text class="soft" x="{(LEFT + PANEL) / 2}" y="{low + 32}" '
                     f'text-anchor="middle">{escape(self.axis)}</text>')  # fmt: skip
        parts += [f'<g class="{line.family}">{self._drawn_line(line)}</g>' for line in self.lines]
        if self.key:
            longest = max(len(line.said) for line in self.lines)
            right = PANEL - RIGHT - 24 - LETTER * longest
            begin = LEFT + 8.0 if self.key == "left" else right
            parts += [_named(line.family, line.said, begin, TITLE + 12 + 15 * n)
                      for n, line in enumerate(self.lines)]  # fmt: skip
        return "\n".join(parts)

    def _drawn_line(self, line: Line) -> str:
        """A line, and below it the line that is proportional to its last point."""
        places = [(self.across.place(x), self.up.place(y)) for x, y in line.points]
        joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts = [f'<polyline class="link" points="{joined}"/>']
        if line.even and isinstance(self.up, Powers):
            last, most = line.points[-1]
            # As far down as the panel goes.
            first = max(line.points[0][0], last * 10.0**self.up.low / most)
            if first < last:
                ends = [(self.across.place(x), self.up.place(most * x / last))
                        for x in (first, last)]  # fmt: skip
                (x1, y1), (x2, y2) = ends
                parts.append(f'<line class="even" x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" '
                             f'y2="{y2:.1f}"/>')  # fmt: skip
        for (x, y), tip in zip(places, line.tips, strict=True):
            parts.append(f'<circle class="dot" cx="{x:.1f}" cy="{y:.1f}" r="{DOT - 1}">'
                         f"<title>{escape(tip)}</title></circle>")  # fmt: skip
        return "".join(parts)


def picture(
    name: str, title: str, about: str, panels: Sequence[Panel], columns: int = 2
) -> str:  # fmt: skip
    """All panels below a title and a legend of all lines in them."""
    parts = []
    tall = TITLE + HEIGHT + BOTTOM
    for number, panel in enumerate(panels):
        x = MARGIN + number % columns * (PANEL + GAP)
        y = TOP + number // columns * (tall + GAP)
        parts.append(f'<g transform="translate({x},{y})">{panel.drawn()}</g>')
    across, rows = min(columns, len(panels)), -(-len(panels) // columns)
    width = 2 * MARGIN + across * PANEL + (across - 1) * GAP
    height = TOP + rows * tall + (rows - 1) * GAP + MARGIN
    opening = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
        f'width="{width}" height="{height}" role="img" aria-labelledby="title">'
    )
    ground = f'<rect class="surface" width="{width}" height="{height}"/>'
    families = {line.family for panel in panels for line in panel.lines}
    styles = f"<style>{_style(families)}</style>"
    head = [opening, f'<title id="title">{escape(name)}</title>', styles, ground]
    lines = [line for panel in panels for line in panel.lines if not panel.key]
    return "\n".join([*head, _legend(title, about, lines), *parts, "</svg>", ""])


def _legend(title: str, about: str, lines: Sequence[Line]) -> str:
    parts = [
        f'<text class="title" x="{MARGIN}" y="28">{escape(title)}</text>',
        f'<text class="soft" x="{MARGIN}" y="46">{escape(about)}</text>',
    ]
    x = float(MARGIN)
    for family, text in dict.fromkeys((line.family, line.said) for line in lines):
        parts.append(_named(family, text, x, 64))
        x += 30 + LETTER * len(text)
    if any(line.even for line in lines):
        parts.append(f'<g class="papers"><line class="even" x1="{x}" x2="{x + 20}" y1="64" '
                     f'y2="64"/><text x="{x + 26}" y="68">proportional</text></g>')  # fmt: skip
    return "\n".join(parts)


def _named(family: str, text: str, x: float, y: int) -> str:
    circle = f'<circle class="dot" cx="{x + DOT}" cy="{y}" r="{DOT - 1}"/>'
    return f'<g class="{family}">{circle}<text x="{x + 14}" y="{y + 4}">{escape(text)}</text></g>'


def _style(families: set[str]) -> str:
    rules = [
        'text { font: 11px system-ui, -apple-system, "Segoe UI", sans-serif; }',
        ".title { font-size: 16px; font-weight: 600; } .panel { font-weight: 600; }",
        ".link { stroke-width: 1.5; fill: none; }",
        ".even { stroke-width: 1; stroke-dasharray: 2 3; }",
        *_colours(0, families),
        "@media (prefers-color-scheme: dark) {",
        *_colours(1, families),
        "}",
    ]
    return "\n".join(rules)


def _colours(mode: int, families: set[str]) -> list[str]:
    colour = {role: both[mode] for role, both in COLOURS.items()}
    rules = [
        f".surface {{ fill: {colour['surface']}; }} .grid {{ stroke: {colour['grid']}; }}",
        f"text {{ fill: {colour['ink']}; }} text.soft {{ fill: {colour['soft']}; }}",
    ]
    for family, both in FAMILIES.items():
        if family not in families | {"papers"}:  # of dotted lines
            continue
        rules.append(f".{family} .dot {{ fill: {both[mode]}; }}")
        rules.append(f".{family} .link, .{family} .even {{ stroke: {both[mode]}; }}")
    return rules
