"""docs/papers.md names every part of the papers that we implement, and only what exists."""

import importlib
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from tamis.papers.experiment import experiment_names

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "papers.md"
PAPERS = ("BDD", "MBD", "TREE", "COUNT")

# Parts that must have an entry: where it is in the paper, and a word of what it is.
REQUIRED = {
    "BDD": [
        ("Section 4", "schema"), ("Section 4", "messages"), ("Example 3", "XML"),
        ("Section 4", "atoms"), ("Section 4", "abbreviations"), ("Section 4", "SiSL"),
        ("Section 4", "StSL"), ("Section 4", "DeSL"), ("Section 4", "NULL"),
        ("Section 4", "default extension"), ("Example 5", "adequacy"), ("Section 5", "shared"),
        ("Fig. 3", "EvalBDD"), ("Section 5", "f-restriction"), ("Section 6", "out(Q)"),
        ("Section 6", "⊨"), ("Section 6", "dependency function"), ("Fig. 5", "MVEvalBDD"),
        ("Section 7", "per query"), ("Section 7", "variable order"), ("Section 1", "remove"),
        ("Section 8", "grammar"), ("Section 8", "queries and messages"),
        ("Section 8, first table", "restriction"), ("Section 8, second table", "density"),
    ],
    "MBD": [
        ("Fig. 1", "SRT"), ("Fig. 3", "predicate index"), ("Fig. 4", "insertion"),
        ("Fig. 5", "MBD"), ("Section 3.2", "order"), ("Section 3.3", "matching"),
        ("Section 4.1", "covering"), ("Section 4.1", "ACK"), ("Section 4.1", "t1"),
        ("Section 4.2", "relations"), ("Fig. 6", "two-bit"), ("Fig. 7", "one pass"),
        ("Section 4.3", "two algorithms"), ("Fig. 8", "dependencies"), ("Section 5.1", "when"),
        ("Section 5.1.1", "perfect"), ("Table 1, row 1", "is present"), ("Table 1, row 2", "<="),
        ("Table 1, row 3", ">="), ("Section 5.1.1", "dropping"), ("Fig. 9", "routing"),
        ("Section 5.1.2", "cancellation"), ("Fig. 10", "merging algorithm"),
        ("Definition 1", "imperfect degree"), ("Section 5.3", "IMT"),
        ("Definition 2", "advertisement"), ("Section 6", "sets A and B"), ("Fig. 12", "size"),
        ("Fig. 13", "insertion time"), ("Table 2", "routing time"),
        ("Figs. 14, 15", "false positives"),
    ],
    "TREE": [
        ("Section 3", "elementary"), ("Figs. 1, 2", "*-edges"), ("Fig. 3", "implied"),
        ("Fig. 4", "match"), ("Fig. 5", "level i"), ("Theorem 1", "bound"),
        ("Equation 6", "expected"), ("Lemma 1", "cost"), ("Lemma 2", "nodes"),
        ("Corollary 1", "bound"), ("Corollary 2", "bound"), ("Section 7, footnote 5", "65 %"),
        ("Section 4", "visited"), ("Section 5", "collapsing"), ("Fig. 6", "successor"),
        ("Section 5", "refined"), ("Section 5", "factoring"), ("Section 7", "range"),
        ("Section 7", "Zipf"), ("Fig. 7", "performance"), ("Appendix A", "general tree"),
        ("Appendix B", "equality"), ("Footnote 1", "one leaf"), ("Lemma 3", "proof"),
    ],
    "COUNT": [
        ("Section 2", "domains"), ("Section 2", "error"), ("Section 3", "bit vector"),
        ("Section 3", "recycled"), ("Section 3.1", "ordered lists"), ("Section 3.2", "table"),
        ("Section 3.2", "inference"), ("Section 3.3", "hit vector"), ("Section 3.3", "lists"),
        ("Section 3.3", "bit matrix"), ("Section 5.1.2", "byte matrix"),
        ("Section 4.1", "sql-scan"), ("Section 4.2", "sql-grouped"), ("Section 5.1.1", "W0"),
        ("Section 5.1.2", "W4"), ("Fig. 2 (1)", "tables"), ("Fig. 2 (2)", "lists"),
        ("Fig. 2 (3)", "compared"), ("Fig. 2 (4)", "memory"), ("Fig. 2 (5)", "memory"),
        ("Fig. 2 (6)", "compared"), ("Fig. 3", "matching"), ("Fig. 4", "memory"),
        ("Table 1", "matching"), ("Table 2", "bulk loading"),
    ],
}  # fmt: skip


class Entry(NamedTuple):
    """A line of a table: a part of a paper, and where it is or why it is not."""

    where: str
    what: str
    answer: str
    is_implemented: bool


@cache
def entries(paper):
    text = PAGE.read_text(encoding="utf-8")
    section = re.search(rf"^## {paper}$(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL)
    found, is_implemented = [], True
    for line in section[1].splitlines():
        if line.startswith("| in the paper"):
            is_implemented = line.endswith("| in tamis |")
        elif line.startswith("| "):
            found.append(Entry(*(cell.strip() for cell in line.strip("|").split(" | ")),
                               is_implemented))  # fmt: skip
    return found


def quoted(text):
    return re.findall(r"`([^`]+)`", text)


def exists(name):
    """Whether a path of the repository, or a dotted name of tamis, exists."""
    if "/" in name:
        return (ROOT / name).exists()
    parts = name.split(".")
    for size in range(len(parts), 0, -1):
        try:
            found = importlib.import_module(".".join(parts[:size]))
        except ModuleNotFoundError:
            continue
        for part in parts[size:]:
            if not hasattr(found, part):
                return False
            found = getattr(found, part)
        return True
    return False


@pytest.mark.parametrize("paper", PAPERS)
def test_everything_that_is_named_exists(paper):
    wrong = []
    for entry in entries(paper):
        names = [name for name in quoted(entry.answer) if "/" in name or name.startswith("tamis.")]
        wrong += [(entry.where, name) for name in names if not exists(name)]
        if entry.is_implemented and not names:
            wrong.append((entry.where, "names nothing"))
        assert entry.what
        assert entry.answer
    assert not wrong, f"docs/papers.md names what does not exist: {wrong}"


@pytest.mark.parametrize("paper", PAPERS)
def test_every_part_of_the_checklist_has_an_entry(paper):
    listed = [(entry.where, entry.what) for entry in entries(paper)]
    missing = [
        (where, word)
        for where, word in REQUIRED[paper]
        if not any(is_part(where, place) and word in what for place, what in listed)
    ]
    assert not missing, f"docs/papers.md has no entry for {missing}"


def is_part(where, place):
    """Whether a place such as "Section 5.2, Fig. 10" is or includes a part of a paper."""
    return f", {where}, " in f", {place}, "


def test_every_experiment_is_named():
    """A table or figure that is run again leads to its experiment."""
    text = PAGE.read_text(encoding="utf-8")
    missing = [name for name in experiment_names() if f"experiments/{name}.toml`" not in text]
    assert not missing, f"docs/papers.md does not name {missing}"


def test_names_that_do_not_exist_are_found_out():
    assert exists("tamis.schema.Schema")
    assert exists("docs/papers.md")
    for name in ("schema.Scheme", "nowhere", "schema.Schema.nothing"):
        assert not exists(f"tamis.{name}")
    assert not exists("docs/nowhere.md")


def test_each_paper_is_cited_in_full():
    text = PAGE.read_text(encoding="utf-8")
    for paper in PAPERS:
        (citation,) = re.findall(rf"^\| \*\*{paper}\*\* \| (.*) \|$", text, re.MULTILINE)
        authors, _, rest = citation.partition(": *")
        title, _, venue = rest.partition("*. ")
        assert len(authors.split(", ")) >= 3
        assert title
        assert re.search(r"\b(1999|2001|2002|2005)\b", venue)
