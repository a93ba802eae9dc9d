"""The page of a run: for each table and figure the claim, the verdict, pictures and numbers."""

from collections.abc import Sequence
from typing import Any

from tamis import __version__
from tamis.errors import counted
from tamis.papers.pictures import curves, unit
from tamis.papers.rules import VERDICTS
from tamis.papers.verdicts import Record, tally, told
from tamis.report import Curve, CurvePoint, Page

_LEAD = (
    "Every table and figure of the four papers behind tamis, measured again with engines that "
    "follow the papers, beside what the papers published. Verdicts are computed from the "
    "measurements by the rule that is named with each claim."
)
_SPREAD = "Dots are medians, bars reach from the smallest to the largest value of all seeds."


def results_page(records: Sequence[Record]) -> Page:
    """The whole page."""
    first: dict[str, Any] = records[0]["environment"] if records else {}
    libraries = ", ".join(f"{name} {v}" for name, v in first.get("libraries", {}).items())
    cores = counted(first.get("cores", 0), "core")
    footer = (
        f"tamis {__version__}; {first.get('processor', '')}, {cores}, "
        f"Python {first.get('python', '')}, {libraries}"
    )
    page = Page("The papers, run again", _LEAD, footer=footer)
    counts = [(verdict, sum(r["verdict"] == verdict for r in records)) for verdict in VERDICTS]
    page.facts([
        ("tables and figures", len(records)), *counts,
        ("scale", " and ".join(dict.fromkeys(r["scale"] for r in records))),
        ("minutes of measuring", round(sum(r["seconds"] for r in records) / 60, 1)),
    ])  # fmt: skip
    page.table(
        "Verdicts", ("paper", "table or figure", "claim", "verdict", "single claims"),
        [(r["paper"], r["figure"], r["claim"], r["verdict"], tally(r)) for r in records],
    )  # fmt: skip
    for record in records:
        _add(page, record)
    return page


def _add(page: Page, record: Record) -> None:
    page.part(f"{record['paper']}, {record['figure']}: {record['title']}", record["claim"])
    page.table(
        f"Verdict: {record['verdict']}", ("claim", "rule", "verdict", "why"),
        [(one["claim"], one["rule"], one["verdict"], one["why"]) for one in record["claims"]],
    )  # fmt: skip
    for picture in record["pictures"]:
        _draw(page, record, picture)
    page.paragraph(told(record))
    seeds = ", ".join(map(str, record["seeds"]))
    page.paragraph(f"{record['setup']} Seeds {seeds}; {record['seconds']:g} s.", note=True)


def _draw(page: Page, record: Record, picture: dict[str, Any]) -> None:
    found = curves(record, picture)
    notes = [_SPREAD] if len(record["seeds"]) > 1 else []
    if any(curve.is_published for curve in found):
        notes.append(f"Published: {record['published'][picture['measure']]['where']}.")
    if picture["kind"] == "bars":
        _draw_bars(page, record, picture)
        return
    drawn = [
        Curve(one.name, [CurvePoint(*p) for p in one.points], one.line, one.is_published)
        for one in found
    ]
    page.curves(
        picture["title"], drawn, axes=(record["x"], unit(record, picture)),
        log=not picture.get("linear", False), note=" ".join(notes),
    )  # fmt: skip


def _draw_bars(page: Page, record: Record, picture: dict[str, Any]) -> None:
    """The medians at one x; the published value is a remark beside the bar."""
    labels, values, remarks = [], [], []
    published = {c.line: c.points for c in curves(record, picture) if c.is_published}
    for curve in curves(record, picture):
        places = {x: (y, low, high) for x, y, low, high in curve.points}
        at = picture["x"] if picture["x"] in places else [*places][-1]
        if curve.is_published:
            continue
        median, low, high = places[at]
        labels.append(curve.name)
        values.append(median)
        said = [y for x, y, _, _ in published.get(curve.line, []) if x == at]
        remark = f"{low:.4g} to {high:.4g}" + (f"; published {said[0]:.4g}" if said else "")
        remarks.append(remark)
    page.bars(
        picture["title"], labels, values, remarks=remarks,
        headings=("", unit(record, picture), "spread"),
    )  # fmt: skip
