"""Results as tables whose columns stand below each other, which Markdown reads, too."""

import statistics
from collections.abc import Iterable, Sequence

DASH = "–"


def aligned(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; the first column is of words, all others are of numbers."""
    cells = [list(columns), *map(list, rows)]
    widths = [max(len(row[n]) for row in cells) for n in range(len(columns))]
    lines = [
        "| " + " | ".join(_padded(cell, widths[n], n) for n, cell in enumerate(row)) + " |"
        for row in cells
    ]
    rule = "|" + "|".join(("-" * (w + 1) + (":" if n else "-")) for n, w in enumerate(widths)) + "|"
    return "\n".join([lines[0], rule, *lines[1:]])


def _padded(cell: str, width: int, column: int) -> str:
    return cell.rjust(width) if column else cell.ljust(width)


def shown(value: float | None, form: str = "{:,.0f}") -> str:
    return DASH if value is None else form.format(value)


def with_spread(values: Sequence[float], form: str = "{:,.2f}") -> str:
    """The median, and how far apart the ends of the middle half are."""
    if not values:
        return DASH
    middle = statistics.median(values)
    if len(values) < 3 or not middle:
        return form.format(middle)
    quarters = statistics.quantiles(values, n=4)
    return f"{form.format(middle)} ±{(quarters[2] - quarters[0]) / 2 / abs(middle):.0%}"
