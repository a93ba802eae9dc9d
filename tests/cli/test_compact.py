"""`tamis compact`: files in, a folder out."""

import json

import pyarrow.parquet as pq
import pytest

from tamis.cli.main import main

pytestmark = pytest.mark.spark

SUBSCRIPTIONS = """\
id,filter
ann,price < 10
bob,"NOT price >= 10"
eve,"price < 5 AND company = 'IBM'"
dan,price >= 10
joe,price > 3 AND price < 3
typo,prise < 3
"""
SCHEMA = "company:string,price:double"


class Place:
    """A folder with a table, and what the command makes of it."""

    def __init__(self, folder, capsys):
        self.folder = folder
        self.capsys = capsys
        self.out = folder / "out"
        self.table = self.write("rules.csv", SUBSCRIPTIONS)

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text, encoding="utf-8")
        return path

    def call(self, *options):
        code = main(["compact", str(self.table), "--out", str(self.out), *options])
        return code, self.capsys.readouterr()

    def run(self, *options):
        code, output = self.call(*options)
        assert (code, output.err) == (0, "")
        assert not [path for path in self.folder.iterdir() if path.name.startswith(".")]
        return output.out

    def fail(self, *options):
        before = sorted(self.folder.rglob("*"))
        code, output = self.call(*options)
        assert (code, output.out) == (1, "")
        assert sorted(self.folder.rglob("*")) == before
        return output.err.removeprefix("tamis compact: ").removesuffix("\n")

    def rows(self, name):
        table = pq.read_table(self.out / name).to_pylist()
        return sorted(tuple(row.values()) for row in table)

    def summary(self):
        return json.loads((self.out / "summary.json").read_text(encoding="utf-8"))


@pytest.fixture
def place(spark, tmp_path, capsys):
    assert spark is not None
    return Place(tmp_path, capsys)


def test_a_table_and_the_mapping_to_the_originals(place):
    text = place.run("--schema", SCHEMA)
    (subscription,) = place.rows("subscriptions")
    assert subscription[1] == "price IS NOT NULL"
    merged = subscription[0]
    assert place.rows("mapping") == [
        (merged, "ann", False, "price < 10"),
        (merged, "bob", False, "price < 10"),
        (merged, "dan", False, "price >= 10"),
        (merged, "eve", False, "price < 5 AND company = 'IBM'"),
    ]
    ((never, _, reason),) = place.rows("never")
    assert (never, reason) == (
        "joe", "no event can match it: no value of price passes all its tests",
    )  # fmt: skip
    said, where, *_ = text.splitlines()
    assert said == (
        "5 subscriptions became 1: 1 duplicate, 1 covered, 2 merged into 1 merger, "
        "1 that can never match."
    )
    assert where == f"The table and the mapping to the originals are in {place.out}."
    assert "unknown attribute 'prise'; did you mean 'price'?" in text
    (letter,) = [
        json.loads(line)
        for file in (place.out / "dead_letters").glob("*.json")
        for line in file.read_text(encoding="utf-8").splitlines()
    ]
    assert letter["id"] == "typo"
    assert "exists and is not empty; name another folder" in place.fail("--schema", SCHEMA)


def test_attributes_of_events_no_merging_and_a_csv_that_can_be_matched(place):
    events = place.write("events.jsonl", '{"id": 1, "company": "IBM", "price": 4.0}\n')
    answer = place.run("--events", str(events), "--no-merge", "--format", "csv", "--json")
    assert json.loads(answer) == place.summary()
    expected = {
        "command": "tamis compact", "originals": 5, "never": 1, "duplicates": 1, "covered": 1,
        "merged": 0, "kept": 2, "mergers": 0, "left": 2, "bad": 1, "replaced": 0,
    }  # fmt: skip
    assert expected.items() <= place.summary().items()
    matches = place.folder / "matches"
    table = str(place.out / "subscriptions")
    assert main(["match", table, str(events), "--out", str(matches)]) == 0
    place.capsys.readouterr()
    assert pq.read_table(matches / "matches").to_pylist() == [
        {"event_id": 1, "subscription": "ann"}
    ]


def test_what_cannot_be_compacted(place):
    assert "No such file" in place.fail("--schema", "nowhere.json")
    assert "needs defaults" in place.fail("--schema", SCHEMA, "--semantics", "default")
    assert "1 row cannot be used" in place.fail("--schema", SCHEMA, "--on-bad", "fail")
    assert "exactly one column 'at'" in place.fail("--schema", SCHEMA, "--order", "at")
    place.table = place.folder / "nowhere.csv"
    assert "nowhere.csv does not exist" in place.fail("--schema", SCHEMA)


@pytest.mark.parametrize("options", [[], ["--events", "e.csv", "--schema", "a:int"]])
def test_attributes_have_one_source(options, tmp_path, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["compact", "rules.csv", "--out", str(tmp_path / "out"), *options])
    assert stopped.value.code == 2
    assert "give one of the two" in capsys.readouterr().err
