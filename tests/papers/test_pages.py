"""The page and the Markdown: every number in them comes from the records."""

from xml.etree import ElementTree as ET

from paper_records import record
from tamis.papers.markdown import results_markdown
from tamis.papers.page import results_page
from tamis.papers.verdicts import judge, tally

CLAIMS = [
    {"claim": "b | c", "rule": "ratio", "of": "b", "to": "a", "measure": "time", "above": 1},
    {"claim": "Twice", "rule": "ratio", "of": "b", "to": "a", "measure": "time", "above": 4},
]
SAID = {"time": {"where": "Table 7", "unit": "ms", "names": {"a": "A"}, "lines": {"a": [[1, 9.5]]}}}
PICTURES = [
    {"title": "Curves", "measure": "time", "kind": "values"},
    {"title": "Bars", "measure": "time", "kind": "bars", "x": 1},
]
MADE = judge(
    record(
        {("a", 1): [1.0, 1.001], ("b", 1): [2.0, 3.0], ("b", 5): [1234.5, 1234.5]},
        CLAIMS, published=SAID, pictures=PICTURES, today="b takes {times} times as long.",
        facts={"times": {"of": "b", "to": "a", "measure": "time"}},
    )
)  # fmt: skip


def test_the_page_has_verdicts_pictures_and_published_points():
    page = str(results_page([MADE]))
    ET.fromstring(page.partition("\n")[2])  # noqa: S314 - our own
    assert "Verdict: refuted" in page
    assert "A, published" in page
    assert "published 9.5" in page
    assert "Published: Table 7." in page
    assert "b takes 2.5 times as long." in page


def test_the_markdown_has_medians_spreads_and_published_values():
    lines = results_markdown([MADE]).splitlines()
    assert "| 1 | 1 [9.5] | 2.5 (2–3) |" in lines
    assert "| 5 | – | 1,230 |" in lines
    assert "*one is faster* **Refuted.**" in lines
    assert any(line.startswith("| b \\| c | ratio | confirmed |") for line in lines)
    assert "| COUNT | Table 1 | one is faster | refuted | 1 confirmed, 1 refuted |" in lines
    assert tally(MADE) == "1 confirmed, 1 refuted"


def test_without_results_the_pages_are_empty_but_whole():
    ET.fromstring(str(results_page([])).partition("\n")[2])  # noqa: S314 - our own
    assert results_markdown([]).startswith("# The papers, run again")
