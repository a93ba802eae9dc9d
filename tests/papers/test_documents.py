"""docs/papers-results.md is what `tamis papers` writes from the measurements beside it."""

import json
from pathlib import Path

from tamis.papers.experiment import experiment_names
from tamis.papers.markdown import results_markdown
from tamis.papers.verdicts import judge

DOCS = Path(__file__).parents[2] / "docs"


def records():
    lines = (DOCS / "papers-results.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def test_the_page_is_written_from_its_measurements():
    """After a change: tamis papers --from docs/papers-results.jsonl --markdown docs/..."""
    page = (DOCS / "papers-results.md").read_text(encoding="utf-8")
    assert page == results_markdown(records())


def test_verdicts_follow_from_the_measurements():
    found = records()
    assert [judge(record) for record in found] == found


def test_every_experiment_of_the_page_exists():
    assert {record["name"] for record in records()} <= set(experiment_names())
