"""The results as Markdown, for ``docs/``; every number in it comes from the records."""

import statistics
from collections.abc import Iterator, Sequence

from tamis.errors import counted
from tamis.papers.measurements import X
from tamis.papers.rules import VERDICTS, Evidence
from tamis.papers.verdicts import Record, evidence_of, tally, told
from tamis.report.text import shown

_HEAD = """\
# The papers, run again

Written by `tamis papers`; do not edit. [The papers](papers.md) says what each engine is. `make
papers` measures all of this again, and draws it, with the published curves, on a page of its own.
Values are medians of all seeds, with the spread (smallest to largest) where it is more than 5 %;
published values are in brackets. Times are processor times of one process.
"""


def results_markdown(records: Sequence[Record]) -> str:
    """The whole page."""
    lines = [_HEAD, *_summary(records)]
    for record in records:
        lines += _section(record)
    return "\n".join(lines).rstrip() + "\n"


def _summary(records: Sequence[Record]) -> Iterator[str]:
    counts = ", ".join(f"{sum(r['verdict'] == v for r in records)} {v}" for v in VERDICTS)
    scales = " and ".join(dict.fromkeys(f"`{r['scale']}`" for r in records))
    minutes = sum(r["seconds"] for r in records) / 60
    yield f"{len(records)} tables and figures: {counts}; scale {scales}, {minutes:.1f} minutes of"
    yield "measuring. " + _environment(records)
    yield ""
    yield "| paper | table or figure | claim | verdict | single claims |"
    yield "|---|---|---|---|---|"
    for record in records:
        keys = ("paper", "figure", "claim", "verdict")
        cells = [*(_cell(record[key]) for key in keys), tally(record)]
        yield "| " + " | ".join(cells) + " |"
    yield ""


def _environment(records: Sequence[Record]) -> str:
    if not records:
        return ""
    found = records[0]["environment"]
    libraries = ", ".join(f"{name} {version}" for name, version in found["libraries"].items())
    cores = counted(found["cores"], "core")
    return (
        f"{found['processor']}, {cores}, Python {found['python']}, {libraries}; "
        f"tamis {found['tamis']}."
    )


def _section(record: Record) -> Iterator[str]:
    yield f"## {record['paper']}, {record['figure']}: {record['title']}"
    yield ""
    yield f"*{record['claim']}* **{record['verdict'].capitalize()}.**"
    yield ""
    yield "| claim | rule | verdict | why |"
    yield "|---|---|---|---|"
    for claim in record["claims"]:
        yield "| " + " | ".join(_cell(claim[k]) for k in ("claim", "rule", "verdict", "why")) + " |"
    yield ""
    for measure in record["measures"]:
        yield from _table(record, measure)
    yield told(record)
    yield ""
    seeds = ", ".join(map(str, record["seeds"]))
    places = "; ".join(dict.fromkeys(one["where"] for one in record["published"].values()))
    where = f" Published numbers: {places}." if places else ""
    yield f"Setup: {record['setup']} Seeds {seeds}.{where}"
    yield ""


def _table(record: Record, measure: str) -> Iterator[str]:
    evidence = evidence_of(record)
    lines = evidence.measurements.lines(measure)
    xs = list(dict.fromkeys(x for line in lines for x in evidence.series(line, measure).xs))
    if not xs:
        return
    yield f"{record['measures'][measure]}:"
    yield ""
    yield f"| {record['x']} | " + " | ".join(map(_cell, lines)) + " |"
    yield "|---|" + "---:|" * len(lines)
    for x in xs:
        cells = [_value(evidence, line, measure, x) for line in lines]
        yield f"| {shown(x)} | " + " | ".join(cells) + " |"
    yield ""


def _value(evidence: Evidence, line: str, measure: str, x: X) -> str:
    values = evidence.series(line, measure).at(x)
    if not values:
        return "–"
    middle, low, high = statistics.median(values), min(values), max(values)
    text = shown(_rounded(middle))
    if high - low > 0.05 * abs(middle):
        text += f" ({shown(_rounded(low))}–{shown(_rounded(high))})"
    said = evidence.said(line, measure).get(x)
    return text if said is None else f"{text} [{shown(_rounded(said))}]"


def _rounded(value: float) -> float:
    return int(value) if value == round(value) else float(f"{value:.3g}")


def _cell(text: str) -> str:
    return str(text).replace("|", "\\|")
