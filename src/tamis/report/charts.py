"""Charts as SVG: lines over a number, and counts in bins."""

import math
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import NamedTuple

from tamis.report.scales import Scale, decades, labels, limits, rounded, ticks
from tamis.report.text import CELL, LABEL, cut, element, markup, shown

WIDTH, HEIGHT = 880, 280
TOP, RIGHT, BOTTOM = 34, 14, 46  # margins; the left one is as wide as its labels
LETTER = 7.5  # the width of a digit in a wide font
COLOURS = 4  # classes c0 to c3; the lines after these are dashed
DOTS = 100  # a line with more points has no dots

Points = Sequence[tuple[float, float]]


class Caption(NamedTuple):
    """The texts around a chart; each chart of a page has its own `name`."""

    name: str
    title: str
    across: str
    up: str


def line_chart(
    caption: Caption,
    series: Mapping[str, Points],
    *,
    marks: Mapping[float, str],
    from_zero: bool = True,
) -> str:
    """Lines with a dot at each point; a point that is not finite is a gap.

    `marks` are moments: a vertical line at x, with a text.
    """
    xs = [x for points in series.values() for x, _ in points if math.isfinite(x)]
    ys = [y for points in series.values() for _, y in points]
    low, high = rounded(*limits(ys, from_zero=from_zero))
    levels = ticks(low, high)
    left = left_margin(levels)
    y = Scale(low, high, HEIGHT - BOTTOM, TOP)
    start, end = limits(xs, from_zero=False)
    x = Scale(start, end, left + 8, WIDTH - RIGHT - 8)
    parts = [horizontal_levels(levels, y, left), _moments(marks, x)]
    places = ticks(start, end, whole=all(value == round(value) for value in xs))
    for place, label in zip(places, labels(places), strict=True):
        parts.append(under_axis(x.place(place), label))
    for number, (name, points) in enumerate(series.items()):
        words = f"{name}, {caption.across}".strip(", ")
        drawn = "\n".join(_line(points, x, y, words))
        parts.append(element("g", drawn, class_=f"line {colour(number)}"))
    said = "; ".join(_said(name, points) for name, points in series.items())
    base = y.place(min(max(0.0, low), high))
    return drawing(caption, f"{said}.", (left, base), parts)


def histogram(caption: Caption, names: Sequence[str], counts: Sequence[float], *, log: bool) -> str:
    """Bars of the same width side by side; with `log` the heights are logarithmic."""
    drawable = [value for value in counts if math.isfinite(value) and (value > 0 or not log)]
    if log and drawable:
        # From below the smallest count, which would have no height otherwise.
        base = 10.0 ** math.floor(math.log10(min(drawable))) / 2
        high = max(20 * base, 10.0 ** math.ceil(math.log10(max(drawable))))
        y, levels = Scale(base, high, HEIGHT - BOTTOM, TOP, log=True), decades(base, high)
    else:
        low, high = rounded(*limits(drawable))
        y, levels, base = Scale(low, high, HEIGHT - BOTTOM, TOP), ticks(low, high), 0.0
    left = left_margin(levels)
    width = (WIDTH - RIGHT - left) / len(counts)
    free = 0.0  # where there is space for the next name
    parts = [horizontal_levels(levels, y, left)]
    for number, (name, value) in enumerate(zip(names, counts, strict=True)):
        start = left + number * width
        half = LETTER * len(name) / 2
        middle = max(half, min(start + width / 2, WIDTH - half))
        if free <= middle - half:
            parts.append(under_axis(middle, name))
            free = middle + half + 8
        if math.isfinite(value) and (value > 0 or not log):
            top, bottom = sorted((y.place(value), y.place(base)))
            top = min(top, bottom - 1) if value else top  # so that a small count is visible
            tip = element("title", markup(f"{name}: {shown(whole(value))}"))
            gap = min(2.0, 0.1 * width)
            box = {"x": start + gap / 2, "y": top, "width": width - gap, "height": bottom - top}
            parts.append(element("rect", tip, class_="c0", **box))
    said = f"{len(counts):,} bins from {names[0]} to {names[-1]}."
    if drawable:
        most = max(drawable)
        said += f" The highest, {shown(whole(most))}, at {names[list(counts).index(most)]}."
    said += " The heights are logarithmic." if log else ""
    return drawing(caption, said, (left, y.place(base)), parts)


def colour(number: int) -> str:
    """The CSS classes of a series."""
    return f"c{number % COLOURS}" + (" dashed" if number >= COLOURS else "")


def whole(value: float) -> float:
    """A number without a fraction as an int, so that it is shown as one."""
    return int(value) if math.isfinite(value) and value == round(value) else value


def drawing(caption: Caption, said: str, corner: tuple[float, float], parts: Sequence[str]) -> str:
    """The whole chart around its `parts`; `corner` is where the axes meet."""
    title, desc = f"{caption.name}-title", f"{caption.name}-desc"
    left, base = corner
    right = WIDTH - RIGHT
    across, up = (markup(cut(label, LABEL)) for label in (caption.across, caption.up))
    inside = [
        element("title", markup(caption.title), id=title),
        element("desc", markup(said), id=desc),
        element("text", up, x=0, y=14),
        *parts,
        element("line", class_="base", x1=left, x2=right, y1=base, y2=base),
        element("text", across, class_="end", x=right, y=HEIGHT - 6),
    ]
    return element(
        "svg",
        "\n".join(inside),
        viewBox=f"0 0 {WIDTH} {HEIGHT}",
        role="img",
        aria_labelledby=f"{title} {desc}",
    )


def left_margin(levels: Sequence[float]) -> float:
    """How wide the labels of an axis are."""
    return LETTER * max(map(len, labels(levels)), default=0) + 12


def horizontal_levels(levels: Sequence[float], y: Scale, left: float) -> str:
    """Lines across the chart, each with its value."""
    parts = []
    for level, label in zip(levels, labels(levels), strict=True):
        place = y.place(level)
        parts.append(
            element("line", class_="grid", x1=left, x2=WIDTH - RIGHT, y1=place, y2=place)
            + element("text", label, class_="end", x=left - 8, y=place + 4)
        )
    return "\n".join(parts)


def under_axis(place: float, label: str, row: int = 0) -> str:
    """A label of the horizontal axis, in one of two rows."""
    y = HEIGHT - BOTTOM + 15 + 14 * row
    return element("text", markup(label), class_="middle", x=place, y=y)


def _moments(marks: Mapping[float, str], x: Scale) -> str:
    """Vertical lines; a text that would overlap its neighbour is only a tooltip."""
    parts = []
    free = 0.0
    for moment in sorted(marks):
        if not x.low <= moment <= x.high:
            continue
        place, text = x.place(moment), cut(marks[moment], LABEL)
        tip = element("title", markup(cut(marks[moment], CELL)))
        end = place + LETTER * len(text) + 4
        named = free <= place and end <= WIDTH
        if named:
            parts.append(element("text", markup(text), x=place + 4, y=TOP - 4))
            free = end + 8
        y = {"y1": TOP - 12 if named else TOP, "y2": HEIGHT - BOTTOM}
        parts.append(element("line", tip, class_="mark", x1=place, x2=place, **y))
    return "\n".join(parts)


def _line(points: Points, x: Scale, y: Scale, words: str) -> Iterator[str]:
    for finite, run in groupby(points, lambda p: math.isfinite(p[0]) and math.isfinite(p[1])):
        if not finite:
            continue
        values = list(run)
        places = [(x.place(px), y.place(py)) for px, py in values]
        if len(values) > 1:
            yield element("path", d="M" + "L".join(f"{px:.1f} {py:.1f}" for px, py in places))
        if len(points) <= DOTS or len(values) == 1:
            for (px, py), (vx, vy) in zip(places, values, strict=True):
                tip = f"{words} {shown(whole(vx))}: {shown(whole(vy))}"
                yield element("circle", element("title", markup(tip)), cx=px, cy=py, r=3)


def _said(name: str, points: Points) -> str:
    ys = [whole(y) for _, y in points if math.isfinite(y)]
    if not ys:
        return f"{name}: no values"
    return (
        f"{name}: {len(ys):,} values, lowest {shown(min(ys))}, highest {shown(max(ys))}, "
        f"last {shown(ys[-1])}"
    )
