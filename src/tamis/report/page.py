"""The page: its sections, in the order in which they were added."""

import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from tamis.errors import FileError, OptionError
from tamis.report.charts import Caption, colour, histogram, line_chart
from tamis.report.curves import Curve, curve_chart
from tamis.report.scales import bin_names, measured
from tamis.report.style import STYLE
from tamis.report.tables import bars, table
from tamis.report.text import CELL, LABEL, cut, element, markup, shown, tooltip

# What a browser may load for the page: nothing.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_NOTHING = element("p", "Nothing to show.", class_="note")


class Page:
    """A report; markup in the texts that it is given is shown as text."""

    def __init__(self, title: str, lead: str = "", *, footer: str = "") -> None:
        self._title = title
        self._lead = lead
        self._footer = footer
        self._parts: list[str] = []
        self._heading = "h2"
        self._charts = 0

    def part(self, title: str, text: str = "") -> None:
        """Add a headline for what is added after it."""
        self._heading = "h3"
        self._parts.append(element("h2", markup(cut(title, CELL))) + _paragraph(text))

    def facts(self, facts: Iterable[tuple[str, Any]]) -> None:
        """Add a few large numbers, each with its name."""
        entries = []
        for label, value in facts:
            text = shown(value)
            entries.append(
                element("dt", markup(cut(label, LABEL)), title=tooltip(label, LABEL))
                + element("dd", markup(cut(text, LABEL)), title=tooltip(text, LABEL))
            )
        if entries:
            groups = "\n".join(element("div", entry) for entry in entries)
            self._parts.append(element("dl", groups, class_="facts"))

    def table(
        self,
        title: str,
        columns: Sequence[str],
        rows: Iterable[Sequence[Any]],
        *,
        code: Collection[str] = (),
        note: str = "",
    ) -> None:
        """Add rows of values; `code` names the columns of filters and other code."""
        listed = list(rows)
        for number, row in enumerate(listed):
            _same_length(f"table {title!r}, row {number}", columns=columns, values=row)
        self._add(title, table(columns, listed, code=code) if listed else _NOTHING, note)

    def bars(
        self,
        title: str,
        labels: Sequence[Any],
        values: Sequence[Any],
        *,
        remarks: Sequence[Any] = (),
        headings: tuple[str, str, str] = ("", "", ""),
        note: str = "",
    ) -> None:
        """Add one bar per label; a remark is a second text, such as a filter.

        `headings` are those of the labels, the values and the remarks.
        """
        _same_length(f"bars {title!r}", labels=labels, values=values)
        if remarks:
            _same_length(f"bars {title!r}", labels=labels, remarks=remarks)
        self._add(title, bars(labels, values, remarks, headings) if labels else _NOTHING, note)

    def histogram(
        self,
        title: str,
        edges: Sequence[Any],
        counts: Sequence[Any],
        *,
        axes: tuple[str, str] = ("value", "count"),
        log: bool = False,
        note: str = "",
    ) -> None:
        """Add a histogram: how many values there are from each edge to the next, in equal bars.

        There is one more edge than counts, or as many; then the last bin has no end. `axes` names
        the values and the counts. `log` makes the axis of the counts logarithmic.
        """
        if len(edges) - len(counts) not in {0, 1}:
            raise OptionError(
                f"histogram {title!r}: {len(counts)} counts and {len(edges)} edges; "
                "give one more edge than counts, or as many if the last bin has no end"
            )
        if not counts:
            self._add(title, _NOTHING, note)
            return
        names = bin_names(edges, len(counts))
        heights = [measured(value) for value in counts]
        drawn = histogram(self._caption(title, axes), names, heights, log=log)
        rows = list(zip(names, counts, strict=True))
        self._chart(title, ("", drawn, table(axes, rows)), note)

    def lines(
        self,
        title: str,
        x: Sequence[Any],
        series: Mapping[str, Sequence[Any]],
        *,
        axes: tuple[str, str] = ("x", ""),
        marks: Mapping[float, str] | None = None,
        from_zero: bool = True,
        note: str = "",
    ) -> None:
        """Add a chart of values over `x`, with one line per series.

        `axes` names the horizontal and the vertical axis. `marks` are texts at some x, such as
        "version 2". Values that are None or not finite are gaps. The vertical axis begins at zero
        unless `from_zero` is False.
        """
        for name, values in series.items():
            _same_length(f"lines {title!r}, series {name!r}", x=x, values=values)
        if not x or not series:
            self._add(title, _NOTHING, note)
            return
        across = [measured(value) for value in x]
        points = {
            name: list(zip(across, map(measured, values), strict=True))
            for name, values in series.items()
        }
        caption = self._caption(title, axes)
        drawn = line_chart(caption, points, marks=marks or {}, from_zero=from_zero)
        rows = list(zip(x, *series.values(), strict=True))
        numbers = table((axes[0], *series), rows)
        styles = {name: colour(number) for number, name in enumerate(series)}
        self._chart(title, (_legend(styles), drawn, numbers), note)

    def curves(
        self,
        title: str,
        curves: Sequence[Curve],
        *,
        axes: tuple[str, str] = ("x", ""),
        log: bool = False,
        note: str = "",
    ) -> None:
        """Add a chart of curves, each with its own x and with a spread; see `Curve`.

        With `log` the axes are logarithmic, and values that are not above zero are left out.
        """
        if not any(curve.points for curve in curves):
            self._add(title, _NOTHING, note)
            return
        drawn = curve_chart(self._caption(title, axes), curves, log=log)
        legend = _legend({curve.name: curve.style for curve in curves})
        rows = [
            (curve.name, point.x, point.y, point.low, point.high)
            for curve in curves
            for point in curve.points
        ]
        numbers = table(("", axes[0], axes[1] or "value", "lowest", "highest"), rows)
        self._chart(title, (legend, drawn, numbers), note)

    def paragraph(self, text: str, *, note: bool = False) -> None:
        """Add a paragraph."""
        self._parts.append(_paragraph(text, class_="note") if note else _paragraph(text))

    def text(self, title: str, text: str, *, note: str = "") -> None:
        """Add a text that keeps its lines and spaces, such as a plan."""
        # It may be wider than the page: with a tab index, the keyboard can scroll it.
        self._add(title, element("pre", markup(text.strip("\n")), tabindex=0), note)

    def __str__(self) -> str:
        head = [
            element("meta", charset="utf-8"),
            element("meta", name="viewport", content="width=device-width, initial-scale=1"),
            element("meta", name="color-scheme", content="light dark"),
            element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
            element("title", markup(cut(self._title, CELL))),
            element("style", STYLE),
        ]
        body = [
            element("h1", markup(cut(self._title, CELL))),
            _paragraph(self._lead, class_="lead"),
            *self._parts,
        ]
        if self._footer:
            body.append(element("footer", markup(self._footer)))
        inside = [
            element("head", "\n".join(head)),
            element("body", element("main", "\n".join(body))),
        ]
        return "<!DOCTYPE html>\n" + element("html", "\n".join(inside), lang="en") + "\n"

    def write(self, path: str | Path) -> None:
        """Write a new file beside `path` and move it there, so that nobody sees half a page."""
        try:
            target = Path(path).resolve()  # a link stays, and its target is replaced
            with tempfile.TemporaryDirectory(prefix=".tamis-", dir=target.parent) as folder:
                new = Path(folder) / target.name
                new.write_text(str(self), encoding="utf-8", newline="\n")
                new.replace(target)
        except (OSError, RuntimeError, ValueError) as error:  # a loop of links; a NUL in the path
            reason = getattr(error, "strerror", None) or error
            raise FileError(f"{path} cannot be written: {reason}") from None

    def _caption(self, title: str, axes: tuple[str, str]) -> Caption:
        self._charts += 1
        return Caption(f"chart-{self._charts}", cut(title, CELL), *axes)

    def _chart(self, title: str, parts: tuple[str, str, str], note: str) -> None:
        """Add a chart; its parts are the legend, the drawing and the table of its numbers."""
        legend, drawn, numbers = parts
        summary = element("summary", "Numbers")
        figure = element("figure", legend + element("div", drawn, class_="wide"))
        self._add(title, figure, note, element("details", summary + numbers))

    def _add(self, title: str, content: str, note: str, after: str = "") -> None:
        heading = element(self._heading, markup(cut(title, CELL)), title=tooltip(title, CELL))
        parts = [heading, content, _paragraph(note, class_="note"), after]
        self._parts.append(element("section", "\n".join(part for part in parts if part)))


def _paragraph(text: str, **attributes: str) -> str:
    return element("p", markup(text), **attributes) if text else ""


def _legend(styles: Mapping[str, str]) -> str:
    """The names of several lines with their styles; for a single line the title is enough."""
    entries = []
    for name, style in styles.items():
        text = element("span") + markup(cut(name, LABEL))
        entries.append(element("li", text, class_=style, title=tooltip(name, LABEL)))
    return element("ul", "".join(entries), class_="legend") if len(entries) > 1 else ""


def _same_length(where: str, **sequences: Sequence[Any]) -> None:
    lengths = {name: len(values) for name, values in sequences.items()}
    if len(set(lengths.values())) > 1:
        found = " and ".join(f"{length} {name}" for name, length in lengths.items())
        raise OptionError(f"{where}: {found}; give the same number of each")
