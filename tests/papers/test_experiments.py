"""Every experiment can be read, runs at its smallest scale, and is drawn from its record."""

import gc
import json
from xml.etree import ElementTree as ET

import pytest

from cases import each
from tamis.errors import FileError, OptionError
from tamis.papers.experiment import FOLDER, experiment, experiment_names, read_experiment
from tamis.papers.markdown import results_markdown
from tamis.papers.page import results_page
from tamis.papers.pictures import curves
from tamis.papers.run import CELLS, CellFile, run_experiment
from tamis.papers.verdicts import judge, told

NAMES = experiment_names()


@pytest.fixture(scope="module")
def records(tmp_path_factory):
    """All experiments at the smallest scale; what several of them need is measured once."""
    gc.collect()
    gc.freeze()  # each run of a procedure collects garbage first
    cells = CellFile(tmp_path_factory.mktemp("papers") / CELLS, resume=False)
    found = {}

    def of(name):
        if name not in found:
            found[name] = run_experiment(experiment(name), "quick", cells, lambda _: None)
        return found[name]

    return of


def in_one_process(name):
    """Experiments with the same procedure may share what they measure, if one process runs them."""
    group = pytest.mark.xdist_group(f"experiments on {experiment(name).procedure}")
    return pytest.param(name, marks=group)


@pytest.mark.long
@pytest.mark.parametrize("name", [in_one_process(name) for name in NAMES])
def test_an_experiment_runs_and_decides(name, records):
    record = records(name)
    asked = experiment(name)
    assert judge(json.loads(json.dumps(record))) == record  # found again from its line alone
    assert [claim["claim"] for claim in record["claims"]] == [c["claim"] for c in asked.claims]
    measured = {row["line"] for row in record["measurements"]}
    for claim in record["claims"]:
        assert claim["why"]
        for key in ("of", "to"):
            assert claim.get(key, next(iter(measured))) in measured, claim
        assert set(claim.get("lines", ())) <= measured, claim
    assert {row["measure"] for row in record["measurements"]} == set(asked.measures)
    assert "{" not in told(record)
    assert "(not measured)" not in told(record)
    for measure in asked.published:
        assert set(asked.published[measure].lines) <= measured
    for picture in record["pictures"]:
        assert curves(record, picture), picture["title"]
    ET.fromstring(str(results_page([record])).partition("\n")[2])  # noqa: S314 - our own
    assert asked.figure in results_markdown([record])


@each("name", NAMES)
def test_an_experiment_shows_what_the_paper_published(name):
    """Where the paper has numbers, one picture has them."""
    asked = experiment(name)
    assert asked.pictures
    shown = {p["measure"] for p in asked.pictures if p.get("published", True)}
    assert set(asked.published) <= shown


TEXT = (FOLDER / "count-table-1.toml").read_text(encoding="utf-8")


@each(
    "old, new, message",
    [
        ('paper = "COUNT"', 'paper = "COUNTS"', "unknown paper 'COUNTS'"),
        ('rule = "ratio"', 'rule = "rate"', "unknown rule 'rate'"),
        ('x = "subscriptions"', "", "x must be a text"),
        ('x = "subscriptions"', 'x = "subscriptions"\ny = "ms"', "unknown key y"),
        ("[measures]\nmatch =", "[measures]\nmatches =", "'match'"),
        ('table = "table-1"', 'table = "table-9"', "'table-9'"),
        ('"bit-wise"', '"bitwise"', "'bitwise'"),
        ('kind = "ratios"', 'kind = "pie"', "'pie'"),
        ('kind = "ratios"', 'kind = "values"', "the key to belongs to"),
        ("[scales.quick]\ncases = [200, 1_000]", "[scales.quick]", "must have cases and seeds"),
        ("seeds = [1, 2]", "seeds = [1, 1]", "a case or a seed twice"),
        ("few_seeds = [1_000_000", "few_seeds = [400_000", "not among its cases"),
    ],
)
def test_mistakes_in_a_file_are_named(old, new, message, tmp_path):
    assert old in TEXT
    path = tmp_path / "count-table-1.toml"
    path.write_text(TEXT.replace(old, new), encoding="utf-8")
    with pytest.raises(OptionError) as caught:
        read_experiment(path)
    assert message in str(caught.value)
    assert str(path) in str(caught.value)


def test_a_file_that_is_not_toml_is_named(tmp_path):
    path = tmp_path / "count-table-1.toml"
    path.write_text("paper = ", encoding="utf-8")
    with pytest.raises(FileError, match="is not valid TOML"):
        read_experiment(path)
