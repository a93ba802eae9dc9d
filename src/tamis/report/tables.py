"""Tables of a report: values in columns, and bars beside numbers."""

import math
from collections.abc import Collection, Sequence
from typing import Any

from tamis.report.scales import limits, measured
from tamis.report.text import CELL, LABEL, cut, element, is_number, markup, shown, tooltip

WORD = 18  # letters of a text that is never broken into lines
ROWS = 1_000  # rows that are shown, because a page is for reading; a note gives the number of all


def table(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], *, code: Collection[str] = ()
) -> str:
    """A table; columns of numbers are aligned to the right, those of `code` are set as code."""
    listed = rows[:ROWS]
    right = [
        any(is_number(row[n]) for row in listed)
        and all(row[n] is None or is_number(row[n]) for row in listed)
        for n in range(len(columns))
    ]
    short = [all(_is_short(row[n]) for row in listed) for n in range(len(columns))]
    kinds = [
        "number" if numeric else "short" if is_short else None
        for numeric, is_short in zip(right, short, strict=True)
    ]
    head = "".join(
        element("th", markup(cut(name, CELL)), scope="col", class_=kind)
        for name, kind in zip(columns, kinds, strict=True)
    )
    body = []
    for row in listed:
        cells = [
            cell("td", value, kind=kind, code=name in code)
            for value, kind, name in zip(row, kinds, columns, strict=True)
        ]
        body.append(element("tr", "".join(cells)))
    return _framed(head, body) + _rest(len(rows))


def _is_short(value: Any) -> bool:
    """Whether a value is a word or two, which are kept in one line."""
    return isinstance(value, str) and len(value) <= WORD


def bars(
    labels: Sequence[Any],
    values: Sequence[Any],
    remarks: Sequence[Any],
    headings: tuple[str, str, str],
) -> str:
    """One row per label: its remark, a bar, the number. Being a table, it can be read aloud."""
    drawn = [measured(value) for value in values]
    low, high = limits(drawn)
    label, number, remark = (markup(cut(heading, CELL)) for heading in headings)
    head = element("th", label, scope="col")
    head += element("th", remark, scope="col") if remarks else ""
    head += element("td", class_="bar") + element("th", number, scope="col", class_="number")
    body = []
    for place in range(min(len(labels), ROWS)):
        cells = [cell("th", labels[place], limit=LABEL)]
        if remarks:
            cells.append(cell("td", remarks[place], code=True))
        cells.append(element("td", _bar(drawn[place], low, high), class_="bar"))
        cells.append(cell("td", values[place], kind="number"))
        body.append(element("tr", "".join(cells)))
    return _framed(head if any(headings) else "", body) + _rest(len(labels))


def cell(
    name: str, value: Any, *, kind: str | None = None, code: bool = False, limit: int = CELL
) -> str:
    text = shown(value)
    inside = markup(cut(text, limit))
    return element(
        name,
        element("code", inside) if code else inside,
        scope="row" if name == "th" else None,
        class_=kind,
        title=tooltip(text, limit),
    )


def _bar(value: float, low: float, high: float) -> str:
    """A bar from zero to the value, in a column as wide as all values need."""
    if math.isnan(value):
        return ""
    start, end = sorted(100 * (place - low) / (high - low) for place in (0.0, value))
    box = element("rect", class_="c0", x=start, y=0, width=end - start, height=10)
    return element("svg", box, viewBox="0 0 100 10", preserveAspectRatio="none", aria_hidden="true")


def _framed(head: str, body: Sequence[str]) -> str:
    top = element("thead", element("tr", head)) + "\n" if head else ""
    rows = element("tbody", "\n".join(body))
    return element("div", element("table", top + rows), class_="wide")


def _rest(rows: int) -> str:
    if rows <= ROWS:
        return ""
    return element("p", f"The first {ROWS:,} of {rows:,} rows.", class_="note")
