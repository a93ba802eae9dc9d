"""The rules state the papers' claims: the papers' own numbers confirm them."""

import pytest

from paper_records import record
from tamis.papers.experiment import experiment, experiment_names
from tamis.papers.rules import CONFIRMED, REFUTED
from tamis.papers.verdicts import judge

# Claims that the published numbers cannot confirm, and why.
EXCEPTIONS = {
    "An IMT of 0.1 keeps false publications under 2.5 % (density 0.5)": "it is a bound",
    "An IMT of 0.05 keeps false publications under 2.5 % (density 0.5)": "so is this",
    "Under 4 ms for each event": "and this",
    "Index attributes save time at the cost of space: less time": "one number is not a comparison",
}


def claims_of(asked):
    """The claims about lines of which the paper has numbers, with the measure's numbers."""
    for claim in asked.claims:
        published = asked.published.get(claim["measure"])
        lines = {claim[key] for key in ("of", "to") if key in claim} | set(claim.get("lines", ()))
        if published and all(published.line(line) for line in lines):
            yield claim, published


CLAIMS = [
    pytest.param(claim, published, id=f"{name}: {claim['claim']}")
    for name in experiment_names()
    for claim, published in claims_of(experiment(name))
    if claim["claim"] not in EXCEPTIONS
]


def judged(claim, published, change=lambda _line, value: value):
    """The verdict on one claim if the published numbers, or changed ones, had been measured."""
    values = {
        (line, x): [change(line, value)]
        for line in published.lines
        for x, value in published.line(line).items()
    }
    found = record(
        values, [claim], measures={claim["measure"]: published.unit},
        published={claim["measure"]: published.as_json()},
    )  # fmt: skip
    for row in found["measurements"]:
        row["measure"] = claim["measure"]
    return judge(found)["verdict"]


@pytest.mark.parametrize(("claim", "published"), CLAIMS)
def test_a_paper_confirms_its_own_claim(claim, published):
    assert judged(claim, published) == CONFIRMED


RATIOS = [one for one in CLAIMS if one.values[0]["rule"] == "ratio"]


@pytest.mark.parametrize(("claim", "published"), RATIOS)
def test_other_numbers_refute_it(claim, published):
    """A contestant that gets ten thousand times slower, or faster, changes the verdict."""
    factor = 1e-4 if "above" in claim else 1e4
    worse = judged(claim, published, lambda line, v: v * factor if line == claim["of"] else v)
    assert worse == REFUTED
