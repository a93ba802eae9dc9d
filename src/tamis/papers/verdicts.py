"""Verdicts: what the rules say of a record, and nothing but the record.

A record is one line of ``results.jsonl``. It has the measurements, the published numbers and the
rules with their parameters, so a verdict can be found again from the file alone.
"""

import re
import statistics
from typing import Any

from tamis.papers.measurements import Measurements, X, quotients
from tamis.papers.published import PublishedNumbers
from tamis.papers.rules import (
    CONFIRMED,
    NOT_COMPARABLE,
    REFUTED,
    RULES,
    VERDICTS,
    Evidence,
    Finding,
    rule_parameters,
)
from tamis.report.text import shown

Record = dict[str, Any]


def judge(record: Record) -> Record:
    """The record with the verdict on each of its claims, and on the whole figure.

    A figure is refuted if one of its claims is. It is confirmed if no claim is refuted and at least
    one is confirmed.
    """
    evidence = evidence_of(record)
    claims = []
    for claim in record["claims"]:
        stated = {key: value for key, value in claim.items() if key not in {"verdict", "why"}}
        found: Finding = RULES[claim["rule"]](evidence, **rule_parameters(stated))
        claims.append(stated | found._asdict())
    verdicts = [claim["verdict"] for claim in claims]
    verdict = next((one for one in (REFUTED, CONFIRMED) if one in verdicts), NOT_COMPARABLE)
    deciding = [claim for claim in claims if claim["verdict"] == verdict]
    why = "; ".join(f"{claim['claim'].rstrip('.')}: {claim['why']}" for claim in deciding)
    if len(deciding) < len(claims):
        why = f"{len(deciding)} of {len(claims)} claims: {why}"
    return record | {"claims": claims, "verdict": verdict, "why": why}


def tally(record: Record) -> str:
    """How many claims of a figure have which verdict.

    >>> tally({"claims": [{"verdict": "confirmed"}, {"verdict": "confirmed"}]})
    '2 confirmed'
    """
    verdicts = [claim["verdict"] for claim in record["claims"]]
    return ", ".join(f"{verdicts.count(one)} {one}" for one in VERDICTS if one in verdicts)


def evidence_of(record: Record) -> Evidence:
    """What rules look at, from a record."""
    published = {
        measure: PublishedNumbers.from_json(found) for measure, found in record["published"].items()
    }
    return Evidence(Measurements(record["measurements"]), published)


def told(record: Record) -> str:
    """The text of ``today``, with the numbers of its facts."""

    def number(found: re.Match[str]) -> str:
        fact = record["facts"].get(found[1])
        return _fact(record, fact) if fact else found[0]

    return re.sub(r"\{([\w-]+)\}", number, record["today"])


def _fact(record: Record, fact: dict[str, Any]) -> str:
    """A median, or that of a ratio: to another line, or to its own at the x `over`."""
    measurements = Measurements(record["measurements"])
    series = measurements.series(fact["of"], fact["measure"])
    other = measurements.series(fact["to"], fact["measure"]) if "to" in fact else None
    xs = [x for x in series.xs if other is None or other.at(x)]

    def places(at: X) -> list[X]:
        return {"largest": xs[-1:], "smallest": xs[:1]}.get(str(at), [x for x in xs if x == at])

    here, over = places(fact.get("at", "largest")), places(fact.get("over", "largest"))
    if not here or not over:
        return "(not measured)"
    if other is not None:
        values = series.ratios(other, here[0])
    elif "over" in fact:
        values = quotients(series.by_seed(here[0]), series.by_seed(over[0]))
    else:
        values = series.at(here[0])
    return shown(_rounded(statistics.median(values))) if values else "(not measured)"


def _rounded(value: float) -> float:
    short = float(f"{value:.3g}")
    return int(short) if short == round(short) else short
