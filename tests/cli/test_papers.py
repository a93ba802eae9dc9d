"""``tamis papers``: what it writes, what it prints, what it refuses."""

import json

import pytest

from cases import each
from tamis.cli import main
from tamis.papers import run as runs
from tamis.papers.experiment import experiment, experiment_names
from tamis.papers.measurements import Point

QUICK = ["papers", "--quick", "--only", "tree-figure-3", "--out"]


@pytest.fixture
def measured(monkeypatch):
    """A procedure that measures nothing, and in which implied edges are better."""
    noted = []

    def measure(case, seed, _):
        noted.append((case, seed))
        for line, value in (("with implied edges", 1.0), ("without implied edges", 2.0)):
            for name in ("match", "visited", "space"):
                yield Point(line, name, case, value * case)
        yield Point("auto", "match", case, 0.5 * case)

    monkeypatch.setattr(runs, "procedure", lambda _: measure)
    return noted


def test_the_folder_has_results_a_page_and_markdown(measured, tmp_path, capsys):
    out = tmp_path / "out"
    assert main([*QUICK, str(out), "--json"]) == 0
    assert measured
    printed = json.loads(capsys.readouterr().out)
    (line,) = (out / "results.jsonl").read_text(encoding="utf-8").splitlines()
    record = json.loads(line)
    for key in ("paper", "figure", "claim", "verdict", "why"):
        assert record[key]
        assert printed["results"][0][key] == record[key]
    assert (record["paper"], record["figure"], record["verdict"]) == ("TREE", "Fig. 3", "confirmed")
    assert printed["page"] == str(out / "index.html")
    assert "<svg" in (out / "index.html").read_text(encoding="utf-8")
    markdown = (out / "papers.md").read_text(encoding="utf-8")
    assert "## TREE, Fig. 3" in markdown
    assert "**Confirmed.**" in markdown


def test_people_get_a_line_for_each_figure(measured, tmp_path, capsys):
    assert main([*QUICK, str(tmp_path / "out")]) == 0
    assert measured
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split("  ")[0] == "TREE, Fig. 3"
    assert lines[0].endswith("confirmed")


def test_results_can_be_judged_and_written_again(measured, tmp_path, capsys):
    first, second = tmp_path / "first", tmp_path / "second"
    assert main([*QUICK, str(first)]) == 0
    results = first / "results.jsonl"
    record = json.loads(results.read_text(encoding="utf-8"))
    for row in record["measurements"]:
        if row["line"] == "with implied edges":
            row["values"] = [9 * value for value in row["values"]]
    results.write_text(json.dumps(record) + "\n", encoding="utf-8")
    measured.clear()
    page = tmp_path / "page.md"
    arguments = ["--from", str(results), "--out", str(second), "--markdown", str(page)]
    assert main(["papers", *arguments]) == 0
    assert not measured
    again = json.loads((second / "results.jsonl").read_text(encoding="utf-8"))
    assert (record["verdict"], again["verdict"]) == ("confirmed", "refuted")
    assert "**Refuted.**" in page.read_text(encoding="utf-8")
    assert page.read_text(encoding="utf-8") == (second / "papers.md").read_text(encoding="utf-8")
    assert page.with_suffix(".jsonl").read_text(encoding="utf-8") == (
        second / "results.jsonl"
    ).read_text(encoding="utf-8")
    capsys.readouterr()


def test_a_run_can_be_resumed(measured, tmp_path, capsys):
    out = str(tmp_path / "out")
    assert main([*QUICK, out]) == 0
    measured.clear()
    assert main([*QUICK, out, "--resume"]) == 0
    assert not measured
    assert main([*QUICK, out]) == 0
    assert measured
    capsys.readouterr()


def test_experiments_are_listed(capsys):
    assert main(["papers", "--list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == experiment_names()
    assert main(["papers", "--list", "--only", "count-table-1", "--only", "TREE"]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()]
    trees = [name for name in experiment_names() if name.startswith("tree-")]
    assert names == [*trees, "count-table-1"]
    assert experiment("count-table-1").title


@each(
    "arguments, message",
    [
        (["--only", "count-tabel-1"], "did you mean 'count-table-1'"),
        (["--only", "sql"], "no such experiment"),
        (["--from", "x.jsonl", "--quick"], "--from runs nothing"),
        (["--from", "nowhere.jsonl"], "nowhere.jsonl cannot be read"),
    ],
)
def test_misuse_is_explained(arguments, message, tmp_path, capsys):
    assert main(["papers", "--out", str(tmp_path / "out"), *arguments]) == 1
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_a_file_without_results_is_refused(tmp_path, capsys):
    empty, other = tmp_path / "empty.jsonl", tmp_path / "other.jsonl"
    empty.write_text("\n", encoding="utf-8")
    other.write_text('{"name": "count-table-1"}\n', encoding="utf-8")
    for path in (empty, other):
        assert main(["papers", "--from", str(path), "--out", str(tmp_path / "out")]) == 1
        assert "has no results of tamis papers" in capsys.readouterr().err


def test_files_of_others_are_left_alone(measured, tmp_path, capsys):
    (tmp_path / "results.jsonl").write_text("mine\n", encoding="utf-8")
    assert main([*QUICK, str(tmp_path)]) == 1
    assert "files that tamis papers did not write" in capsys.readouterr().err
    assert (tmp_path / "results.jsonl").read_text(encoding="utf-8") == "mine\n"
    assert not measured
