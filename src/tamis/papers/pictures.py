"""Pictures of a record: curves of what was measured here, and of what the paper published.

Keys of a picture: ``title``, ``measure``, ``kind``, ``lines`` (all by default), ``published``
(false leaves the paper's numbers out) and, for some kinds:

* ``values``: as measured;
* ``ratios``: divided by the line ``to``, both here and in the paper;
* ``growth``: divided by the first value of the same line that both have, here and in the paper, so
  that only slopes are compared;
* ``bars``: the medians of all lines at one ``x``, side by side.
"""

import statistics
from typing import Any, NamedTuple

from tamis.errors import OptionError, choose
from tamis.papers.measurements import Series, X
from tamis.papers.rules import Evidence
from tamis.papers.verdicts import Record, evidence_of

KINDS = ("values", "ratios", "growth", "bars")
KEYS = ("title", "measure", "kind", "lines", "published", "to", "x", "linear")


class PictureCurve(NamedTuple):
    """The points of one line; low and high are the smallest and the largest value of all seeds."""

    name: str
    line: int  # the number of the line, which decides its colour
    is_published: bool
    points: list[tuple[X, float, float, float]]  # x, median, low, high


def check_picture(picture: dict[str, Any]) -> None:
    """Refuse a picture that cannot be drawn."""
    for key in picture:
        choose("key of a picture", key, KEYS)
    choose("kind of a picture", picture.get("kind", ""), KINDS)
    for kind, key in (("ratios", "to"), ("bars", "x")):
        if (picture["kind"] == kind) != (key in picture):
            raise OptionError(
                f"the key {key} belongs to pictures of the kind {kind}, and only there"
            )


def unit(record: Record, picture: dict[str, Any]) -> str:
    """What the vertical axis shows."""
    plain: str = record["measures"][picture["measure"]]
    return {
        "ratios": f"{plain}, divided by that of {picture.get('to')}",
        "growth": f"{plain}, divided by the first one",
    }.get(picture["kind"], plain)


def curves(record: Record, picture: dict[str, Any]) -> list[PictureCurve]:
    """The curves of a picture, ours first."""
    evidence = evidence_of(record)
    measure = picture["measure"]
    names = record["published"].get(measure, {}).get("names", {})
    found = []
    for number, line in enumerate(picture.get("lines") or evidence.measurements.lines(measure)):
        base, published_base = _bases(picture, evidence, line)
        ours = _ours(evidence.series(line, measure), base)
        said = evidence.said(line, measure) if picture.get("published", True) else {}
        theirs = _theirs(said, published_base)
        if ours:
            found.append(PictureCurve(line, number, is_published=False, points=ours))
        if theirs:
            name = f"{names[line]}, published"
            found.append(PictureCurve(name, number, is_published=True, points=theirs))
    return sorted(found, key=lambda curve: curve.is_published)


def _bases(
    picture: dict[str, Any], evidence: Evidence, line: str
) -> tuple[Series | float | None, dict[X, float] | float | None]:
    """By what our values and the published ones are divided; None for nothing."""
    measure = picture["measure"]
    if picture["kind"] == "ratios":
        return evidence.series(picture["to"], measure), evidence.said(picture["to"], measure)
    if picture["kind"] == "growth":
        series, said = evidence.series(line, measure), evidence.said(line, measure)
        common = [x for x in series.xs if x in said] or series.xs
        if common:
            first = said.get(common[0], next(iter(said.values()), None))
            return series.median(common[0]), first
    return None, None


def _ours(series: Series, base: Series | float | None) -> list[tuple[X, float, float, float]]:
    points = []
    for x in series.xs:
        values = series.ratios(base, x) if isinstance(base, Series) else series.at(x)
        if isinstance(base, float | int) and base:
            values = [value / base for value in values]
        if values:
            points.append((x, statistics.median(values), min(values), max(values)))
    return points


def _theirs(
    said: dict[X, float], base: dict[X, float] | float | None
) -> list[tuple[X, float, float, float]]:
    points = []
    for x, value in said.items():
        by = base.get(x) if isinstance(base, dict) else base
        if isinstance(base, dict) and not by:
            continue
        shown = value / by if by else value
        points.append((x, shown, shown, shown))
    return points
