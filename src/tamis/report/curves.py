"""Charts of curves with a spread, on logarithmic or even axes; each curve has its own x."""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tamis.report.charts import (
    BOTTOM,
    HEIGHT,
    LETTER,
    RIGHT,
    TOP,
    WIDTH,
    Caption,
    colour,
    drawing,
    horizontal_levels,
    left_margin,
    under_axis,
    whole,
)
from tamis.report.scales import Scale, decades, labels, limits, rounded, ticks
from tamis.report.text import element, markup, shown


class CurvePoint(NamedTuple):
    """A value with its spread."""

    x: float | str  # the name of a place if the axis has names
    y: float
    low: float
    high: float


class Curve(NamedTuple):
    """A line with a dot, and a bar from low to high, at each point; of a `line` with a colour.

    Curves of the same line have one colour; that of another source is dashed.
    """

    name: str
    points: Sequence[CurvePoint]
    line: int = 0
    is_dashed: bool = False

    @property
    def style(self) -> str:
        """The CSS classes."""
        return f"{colour(self.line)} other" if self.is_dashed else colour(self.line)


def curve_chart(caption: Caption, curves: Sequence[Curve], *, log: bool) -> str:
    """The curves; with `log` both axes are logarithmic (only the vertical one if x has names)."""
    points = [point for curve in curves for point in curve.points]
    names = list(dict.fromkeys(str(p.x) for p in points)) if _has_names(points) else []
    if log:
        points = [point for point in points if point.low > 0]
    y, levels = _vertical([v for p in points for v in (p.low, p.high)], log=log)
    left = left_margin(levels)
    x, places = _horizontal(points, names, left, log=log)
    parts = [horizontal_levels(levels, y, left)]
    # Long names take turns in two rows.
    room = (WIDTH - RIGHT - left) / max(1, len(names))
    is_crowded = any(LETTER * len(name) > room for name in names)
    for number, (place, label) in enumerate(places):
        parts.append(under_axis(place, label, row=number % 2 if is_crowded else 0))
    for curve in curves:
        kept = [p for p in curve.points if not log or p.low > 0]
        located = [(x.place(_number(p, names)), p) for p in kept]
        parts.append(
            element("g", "\n".join(_drawn(curve.name, located, y)), class_=f"line {curve.style}")
        )
    said = "; ".join(_said(curve) for curve in curves)
    said += ". Both axes are logarithmic." if log and not names else "."
    return drawing(caption, said, (left, y.start), parts)


def _vertical(values: Sequence[float], *, log: bool) -> tuple[Scale, list[float]]:
    if log and values:
        low = 10.0 ** math.floor(math.log10(min(values)) + 1e-9)
        high = max(10.0 ** math.ceil(math.log10(max(values)) - 1e-9), 10 * low)
        return Scale(low, high, HEIGHT - BOTTOM, TOP, log=True), decades(low, high)
    low, high = rounded(*limits(values))
    return Scale(low, high, HEIGHT - BOTTOM, TOP), ticks(low, high)


def _horizontal(
    points: Sequence[CurvePoint], names: Sequence[str], left: float, *, log: bool
) -> tuple[Scale, list[tuple[float, str]]]:
    """The scale of x, and what is written under the axis where."""
    start, end = left + 12, WIDTH - RIGHT - 12
    if names:
        scale = Scale(-0.5, len(names) - 0.5, start, end)
        return scale, [(scale.place(n), name) for n, name in enumerate(names)]
    xs = [float(point.x) for point in points]
    if log and xs and min(xs) > 0 and max(xs) >= 3 * min(xs):
        scale = Scale(min(xs), max(xs), start, end, log=True)
        low = 10.0 ** math.floor(math.log10(min(xs)))
        at = [step * low * 10.0**n for n in range(12) for step in (1, 2, 5)]
        inside = [place for place in at if min(xs) <= place <= max(xs)]
        if len(inside) > 8:
            inside = [place for place in inside if math.log10(place) % 1 < 1e-6]
    else:
        low, high = limits(xs, from_zero=False)
        scale, inside = Scale(low, high, start, end), ticks(low, high)
    return scale, [
        (scale.place(place), label)
        for place, label in zip(inside, (labels([one])[0] for one in inside), strict=True)
    ]


def _drawn(name: str, located: Sequence[tuple[float, CurvePoint]], y: Scale) -> Iterator[str]:
    if len(located) > 1:
        steps = (f"{px:.1f} {y.place(point.y):.1f}" for px, point in located)
        yield element("path", d="M" + "L".join(steps))
    for px, point in located:
        low, high = y.place(point.low), y.place(point.high)
        if low - high > 1:
            yield element("line", class_="spread", x1=px, x2=px, y1=low, y2=high)
        tip = f"{name}, {_label(point.x)}: {shown(whole(point.y))}"
        if point.low < point.high:
            tip += f" ({shown(whole(point.low))} to {shown(whole(point.high))})"
        yield element("circle", element("title", markup(tip)), cx=px, cy=y.place(point.y), r=3)


def _has_names(points: Sequence[CurvePoint]) -> bool:
    return any(isinstance(point.x, str) for point in points)


def _number(point: CurvePoint, names: Sequence[str]) -> float:
    return names.index(str(point.x)) if names else float(point.x)


def _label(x: float | str) -> str:
    return x if isinstance(x, str) else shown(whole(x))


def _said(curve: Curve) -> str:
    if not curve.points:
        return f"{curve.name}: no values"
    first, last = curve.points[0], curve.points[-1]
    return (
        f"{curve.name}: {shown(whole(first.y))} at {_label(first.x)}, "
        f"{shown(whole(last.y))} at {_label(last.x)}"
    )
