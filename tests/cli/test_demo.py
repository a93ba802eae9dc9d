import json
import re
from types import SimpleNamespace
from xml.etree import ElementTree as ET

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cases import each
from tamis.cli import demo, main
from tamis.spark.demo import demonstration
from tamis.spark.demo.agreement import MicroBatch, PairSums, differences
from tamis.spark.demo.demonstration import (
    BatchRun,
    Demonstration,
    HotSubscription,
    Sizes,
    StreamRun,
    make_changes,
)
from tamis.spark.stream.metrics import BatchMetrics

SIZES = Sizes(2000, 2000)


@pytest.fixture(scope="module")
def small(spark, tmp_path_factory):
    """One small demo; what was checked is checked once more after a match was taken away."""
    assert spark is not None
    out = tmp_path_factory.mktemp("demo") / "out"
    seen = SimpleNamespace(out=out, tampered=None, folder=None)
    check, changed_sums = demonstration.disagreements, demonstration.changed_sums
    known = []

    def changed_sums_once(*arguments):
        if not known:
            known.append(changed_sums(*arguments))
        return known[0]

    def check_twice(stage, changes, batch, stream):
        found = check(stage, changes, batch, stream)
        seen.folder = stage.changelog.parent
        last = stream.batches[-1].batch
        file = next((seen.folder / "stream/matches" / f"batch={last}").glob("*.parquet"))
        pq.write_table(pq.read_table(file).slice(1), file)
        pairs = stage.spark.read.parquet(f"{stage.out}/matches")
        read_again = demonstration.sums(pairs, pairs["batch"])
        seen.tampered = check(stage, changes, batch, stream._replace(by_batch=read_again))
        return found

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(demonstration, "disagreements", check_twice)
        patch.setattr(demonstration, "changed_sums", changed_sums_once)
        code = main(
            ["demo", "--events", "2000", "--subscriptions", "2000", "--out", str(out), "--json"]
        )
    assert code == 0
    seen.summary = json.loads((out / "summary.json").read_text(encoding="utf-8"))
    return seen


@pytest.mark.spark
def test_batch_and_stream_agree_in_three_versions(small):
    summary = small.summary
    assert (summary["events"], summary["subscriptions"]) == (2000, 2000)
    assert summary["agree"] is True
    assert summary["disagreements"] == []
    batches = summary["stream"]["micro_batches"]
    assert [one["events"] for one in batches] == [200] * 10
    versions = [one["version"] for one in batches]
    assert versions == sorted(versions)
    assert set(versions) == {1, 2, 3}
    assert summary["stream"]["versions"] == 3
    assert summary["stream"]["changes"] == sum(len(c.filters) for c in make_changes(SIZES))
    assert sum(one["matches"] for one in batches) == summary["stream"]["matches"] > 0
    assert summary["batch"]["matches"] > 0


@pytest.mark.spark
def test_a_match_that_is_missing_is_noticed(small):
    (sentence,) = small.tampered
    assert re.match(r"micro-batch 9, version 3: the stream has \d+ matches", sentence)


@pytest.mark.spark
def test_the_folder_has_a_report_and_a_summary_and_the_data_is_gone(small):
    assert {path.name for path in small.out.iterdir()} == {"report.html", "summary.json"}
    text = (small.out / "report.html").read_text(encoding="utf-8")
    page = ET.fromstring(text.partition("\n")[2])  # noqa: S314 - ours
    headings = ["".join(h.itertext()) for h in page.iter() if h.tag in {"h2", "h3"}]
    for title in (
        "Matches per event",
        "Subscriptions with the most matches",
        "Plan",
        "Micro-batches",
    ):
        assert title in headings
    assert "version 3" in text
    assert "symbol = " in text
    assert not small.folder.exists()


# --- without Spark


def found(*disagreements):
    batches = (
        BatchMetrics(0, 1, 50, 60, 100, 0, 0, 2.0, 30.0, 50.0, None, None),
        BatchMetrics(1, 2, 55, 40, 80, 0, 0, 1.0, 40.0, 80.0, None, None),
    )
    files = {1: frozenset({"0001.parquet"}), 2: frozenset({"0001.parquet", "0002.parquet"})}
    batch = BatchRun(
        170,
        0.5,
        2.0,
        {0: 10, 1: 40, 2: 30, 7: 10},
        (HotSubscription(3, 9, "price < <5>"),),
        "a plan",
        {},
    )
    stream = StreamRun(4.0, batches, files, {})
    return Demonstration(Sizes(100, 50), batch, stream, 12, disagreements)


@pytest.fixture
def performed(monkeypatch):
    """What the demo finds, without Spark."""

    def give(*disagreements):
        monkeypatch.setattr(demo, "perform", lambda *_: found(*disagreements))

    give()
    return give


def test_the_table(performed, tmp_path, capsys):
    assert performed is not None
    assert main(["demo", "--out", str(tmp_path / "out")]) == 0
    output = capsys.readouterr()
    assert output.err == ""
    lines = output.out.splitlines()
    words = {line[:18].strip(): line[18:].split() for line in lines[:10]}
    assert words[""] == ["batch", "stream"]
    assert words["events"] == ["100", "100"]
    assert words["versions of them"] == ["1", "2"]
    assert words["changes"] == ["-", "12"]
    assert words["matches"] == ["170", "180"]
    assert words["events/s"] == ["50", "25"]
    assert words["matches/s"] == ["85", "45"]
    assert "batch and stream agree in all 2 micro-batches" in lines
    assert lines[-1] == f"report: {tmp_path / 'out' / 'report.html'}"


def test_a_disagreement_ends_with_1_and_is_in_the_report(performed, tmp_path, capsys):
    performed("micro-batch 1 is odd")
    out = tmp_path / "out"
    assert main(["demo", "--out", str(out), "--json"]) == 1
    output = capsys.readouterr()
    assert output.err == "tamis demo: batch and stream disagree:\n  micro-batch 1 is odd\n"
    summary, error = map(json.loads, output.out.splitlines())
    assert summary["agree"] is False
    assert error["error"]["message"].startswith("batch and stream disagree")
    assert "micro-batch 1 is odd" in (out / "report.html").read_text(encoding="utf-8")
    assert main(["demo", "--out", str(out)]) == 1
    assert "BATCH AND STREAM DISAGREE" in capsys.readouterr().out


def test_a_demo_replaces_one_before_and_nothing_else(performed, tmp_path, capsys):
    out = tmp_path / "out"
    out.mkdir()
    assert main(["demo", "--out", str(out)]) == 0
    performed("odd")
    assert main(["demo", "--out", str(out)]) == 1
    assert json.loads((out / "summary.json").read_text(encoding="utf-8"))["agree"] is False
    capsys.readouterr()
    (out / "thesis.tex").write_text("years of work", encoding="utf-8")
    assert main(["demo", "--out", str(out)]) == 1
    assert "files that tamis demo did not write (thesis.tex)" in capsys.readouterr().err


@pytest.mark.parametrize("content", ["{}", "[]", "no JSON", '{"command": "tamis match"}'])
def test_a_summary_that_no_demo_wrote_is_refused(performed, tmp_path, capsys, content):
    assert performed is not None
    (tmp_path / "summary.json").write_text(content, encoding="utf-8")
    assert main(["demo", "--out", str(tmp_path)]) == 1
    assert "did not write (summary.json)" in capsys.readouterr().err
    assert (tmp_path / "summary.json").read_text(encoding="utf-8") == content


def test_a_file_in_the_place_of_the_folder_is_refused(performed, tmp_path, capsys):
    assert performed is not None
    (tmp_path / "out").write_text("mine", encoding="utf-8")
    assert main(["demo", "--out", str(tmp_path / "out")]) == 1
    assert "exists and is not a folder" in capsys.readouterr().err
    assert main(["demo", "--out", str(tmp_path / "out" / "in")]) == 1
    assert "cannot be written" in capsys.readouterr().err


def test_an_interruption_leaves_no_folder(monkeypatch, tmp_path, capsys):
    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(demo, "perform", interrupt)
    assert main(["demo", "--out", str(tmp_path / "out")]) == 130
    assert capsys.readouterr().err == "interrupted\n"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "arguments",
    [["--subscriptions", "0"], ["--events", "many"], ["--seed", "-1"], ["--conf", "spark.x"]],
)
def test_misuse(arguments, capsys):
    with pytest.raises(SystemExit) as caught:
        main(["demo", *arguments])
    assert caught.value.code == 2
    assert "expected" in capsys.readouterr().err


# --- changes


@each("subscriptions", [1, 9, 10, 2000, 100_000])
def test_every_change_adds_and_those_of_many_replace_and_remove(subscriptions):
    changes = make_changes(Sizes(10, subscriptions))
    live = set(range(subscriptions))
    some = min(300, subscriptions // 10)
    for change in changes:
        upserts = {one for one, text in change.filters.items() if text is not None}
        removed = change.filters.keys() - upserts
        assert len(removed) == some
        assert removed <= live
        assert len(upserts & live) == some
        assert len(upserts - live) == max(some, 1)
        live = (live - removed) | upserts
    assert make_changes(Sizes(10, subscriptions)) == changes


def test_some_that_went_come_back():
    first, second = make_changes(SIZES)
    gone = {one for one, text in first.filters.items() if text is None}
    assert any(second.filters.get(one) is not None for one in gone)


def test_a_change_is_moved_to_the_changelog(tmp_path):
    change = demonstration.ChangeFile("0002.parquet", {1: "price < 5", 2: None})
    demonstration.put(tmp_path, change)
    (path,) = tmp_path.iterdir()
    assert path.name == "0002.parquet"
    assert pq.read_table(path) == pa.table(
        {"id": [1, 2], "filter": ["price < 5", None], "op": ["upsert", "delete"]}
    )


def test_differences_are_reported_per_micro_batch():
    batches = [MicroBatch(0, 1, 0, 5), MicroBatch(1, 2, 5, 9)]
    same = {0: PairSums(3, 255), 1: PairSums(4, 7)}
    assert differences(batches, same, dict(same)) == []
    assert differences(batches, {0: PairSums(3, 255)}, {0: PairSums(3, 255)}) == []
    (other,) = differences(batches, same | {0: PairSums(3, 16)}, same)
    assert other == (
        "micro-batch 0, version 1: the stream has 3 matches (checksum 10), "
        "a batch job 3 matches (checksum ff)"
    )
    (missing,) = differences(batches, {0: PairSums(3, 255)}, same)
    assert missing.startswith("micro-batch 1, version 2: the stream has 0 matches (checksum 0)")
    assert len(differences(batches, same | {2: PairSums(1, 1)}, same)) == 1
