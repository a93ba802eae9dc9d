"""``tamis profile`` with the session of the suite."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tamis import Profile
from tamis.cli import main

pytestmark = pytest.mark.spark


@pytest.fixture
def run(spark, capsys):
    """What a command prints; or, if it has to fail, what it complains about."""
    assert spark is not None

    def call(*arguments, code=0):
        assert main(["profile", *map(str, arguments)]) == code
        output = capsys.readouterr()
        told, silent = (output.err, output.out) if code else (output.out, output.err)
        assert silent == ""
        return told

    return call


@pytest.fixture
def events(tmp_path):
    path = tmp_path / "events.jsonl"
    lines = ['{"company": "IBM", "price": 5}', "no JSON", '{"company": "IBM"}', '{"price": 7.5}']
    path.write_text("\n".join(lines), encoding="utf-8")
    return path


def test_the_report_and_the_file(run, events, tmp_path):
    out = tmp_path / "events.profile"
    report = run(events, "--out", out)
    assert report.startswith("3 events, 1 refused; 2 attributes\n")
    assert "'IBM' 66.7 %" in report
    loaded = Profile.load(out)
    assert loaded.report() == report.removesuffix("\n")
    assert list(loaded.schema) == ["company", "price"]

    before = out.read_bytes()
    assert run(events, "--out", out, code=1) == (
        f"tamis profile: {out} exists; pass --overwrite to replace it\n"
    )
    assert out.read_bytes() == before
    table = tmp_path / "events.parquet"
    pq.write_table(pa.table({"price": [1, 2, 2, 2]}), table)
    found = json.loads(run(table, "--out", out, "--overwrite", "--json", "--sample", "2"))
    assert (found["events"], found["refused"], found["sampled"]) == (4, 0, 2)
    assert Profile.load(out).to_dict() == found


def test_a_schema_decides_how_text_is_read(run, tmp_path):
    path = tmp_path / "events.csv"
    path.write_text("zip,level\n01234,1\n01234,9\n00000,x\n", encoding="utf-8")
    found = json.loads(run(path, "--schema", "zip:string,level:int(1, 5)", "--json"))
    assert found["attributes"]["zip"]["frequent"][0]["value"] == "01234"
    assert (found["events"], found["refused"]) == (1, 2)


def test_what_cannot_be_used(run, events, tmp_path):
    file = tmp_path / "file"
    file.write_text("mine", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    cases = [
        (["nowhere.csv"], "nowhere.csv does not exist"),
        ([tmp_path / "empty"], "empty: it has no files"),
        ([events, "--schema", "price"], "expected NAME:TYPE, got 'price'"),
        ([events, "--out", tmp_path / "no/such"], "no is not a folder"),
        ([events, "--out", file / "such"], "file is not a folder"),
        ([events, "--out", tmp_path, "--overwrite"], "cannot be written: it is a folder"),
    ]
    before = sorted(tmp_path.rglob("*"))
    for arguments, message in cases:
        assert message in run(*arguments, code=1)
    assert sorted(tmp_path.rglob("*")) == before
