"""Streams of files with subscriptions that change, against the naive engine."""

import json
import os
import shutil
from collections import Counter
from pathlib import Path

import pytest

from tamis import FileError, Matcher, OptionError, TamisError
from tamis.spark import StreamMetrics, match_stream
from tamis.spark.session.failures import spark_errors
from tamis.spark.stream import pinned_versions

pytestmark = pytest.mark.spark

TYPES = "id bigint, kind string, value double, at timestamp"
SCHEMA = {"id": "int", "kind": "string", "value": "double", "at": "timestamp"}


class Place:
    """Folders of a stream, what is put into them, and what comes out."""

    def __init__(self, spark, root: Path):
        self.spark = spark
        self.root = root
        self.files = 0
        self.sets = 0
        self.held: dict[str, str] = {}
        self.wanted: Counter = Counter()
        for name in ("events", "changes"):
            (root / name).mkdir()

    def events(self, *rows):
        """Another file, one micro-batch; what it has to match is noted."""
        path = self.root / f"events/{self.files:04}.json"
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
        os.utime(path, (1e9 + self.files, 1e9 + self.files))
        matcher = Matcher(SCHEMA, engine="naive")
        matcher.subscribe_many(self.held)
        for row in rows:
            if row["id"] is not None:
                self.wanted.update((self.files, row["id"], one) for one in matcher.match(row))
        self.files += 1

    def changes(self, rows, suffix="jsonl", *, effective=True):
        """Another file of changes, as (id, filter) and (id, None)."""
        path = self.root / f"changes/{self.sets:04}.{suffix}"
        self.sets += 1
        path.write_text(
            "".join(json.dumps(dict(zip(("id", "filter"), r, strict=False))) + "\n" for r in rows)
        )
        if effective:
            for name, text in rows:
                self.held.pop(name, None)
                if text is not None:
                    self.held[name] = text

    def stream(self, **settings):
        frame = (
            self.spark.readStream.schema(TYPES)
            .option("maxFilesPerTrigger", 1)
            .json(str(self.root / "events"))
        )
        given = {"checkpoint": self.root / "checkpoint", "trigger": "available now"} | settings
        changes = given.pop("changes", self.root / "changes")
        return match_stream(frame, changes, given.pop("out", self.root / "out"), **given)

    def run(self, **settings):
        with spark_errors():
            self.stream(**settings).awaitTermination()

    def found(self):
        frame = self.spark.read.parquet(str(self.root / "out/matches"))
        return Counter((r.batch, r.event_id, r.subscription) for r in frame.collect())

    def letters(self):
        return self.spark.read.json(str(self.root / "out/dead_letters")).collect()

    def commit(self, batch):
        return json.loads((self.root / f"checkpoint/tamis/commits/{batch:08}.json").read_text())

    def forget(self, batch):
        """As if the query had died before Spark and tamis noted that a batch was done."""
        for name in (f"commits/{batch}", f"commits/.{batch}.crc", f"tamis/commits/{batch:08}.json"):
            (self.root / "checkpoint" / name).unlink(missing_ok=True)
        shutil.rmtree(self.root / f"out/matches/batch={batch}")


@pytest.fixture
def place(spark, tmp_path):
    return Place(spark, tmp_path)


def test_changes_are_effective_from_the_next_batch(place):
    place.changes([("a", "kind = 'x'"), ("b", "value < 5"), ("c", "kind IS NULL")])
    place.events({"id": 1, "kind": "x", "value": 3}, {"id": 2, "value": 9})
    place.run()
    place.changes([("a", None), ("b", "value > 5"), ("d", "value > 0"), ("b", "value >")][:3])
    place.events({"id": 3, "kind": "x", "value": 9}, {"id": 4})
    place.run()
    place.events({"id": 5, "kind": "x", "value": 9, "at": "2024-05-01T12:00:00Z"})
    metrics = StreamMetrics(place.root / "checkpoint")
    place.spark.streams.addListener(metrics)
    query = place.stream(event_time="at", name="third")
    query.awaitTermination()
    metrics.catch_up(query)
    place.spark.streams.removeListener(metrics)
    assert place.found() == place.wanted
    assert len(place.wanted) == 8
    assert [place.commit(n)["version"] for n in range(3)] == [1, 2, 2]
    assert place.commit(0)["events"] == 2
    assert place.commit(0)["matches"] == 3
    (last,) = metrics.batches
    assert (last.batch, last.version, last.events, last.matches) == (2, 2, 1, 2)
    assert last.lag is not None
    assert last.lag > 0


def test_a_batch_that_is_done_again_has_the_subscriptions_that_it_had(place):
    place.changes([("a", "kind = 'x'")])
    place.events({"id": 1, "kind": "x"})
    place.run()
    place.changes([("b", "kind = 'x'")])
    place.events({"id": 2, "kind": "x"})
    place.run()
    before = place.found()
    place.forget(1)
    place.changes([("a", None), ("b", None), ("c", "id > 0")])
    place.events({"id": 3, "kind": "x"})
    place.run()
    assert place.found() == place.wanted
    assert {match for match in place.found() if match[0] < 2} == set(before)
    assert [place.commit(n)["version"] for n in range(3)] == [1, 2, 3]


def test_a_batch_that_was_written_is_not_written_again(place):
    """It died after all was in its place: what is there is the same, so it stays."""
    place.changes([("a", "kind = 'x'")])
    place.events({"id": 1, "kind": "x"})
    place.run()
    written = sorted(path.name for path in (place.root / "out/matches/batch=0").iterdir())
    (place.root / "checkpoint/commits/0").unlink()
    (place.root / "checkpoint/commits/.0.crc").unlink(missing_ok=True)
    place.run()
    assert sorted(path.name for path in (place.root / "out/matches/batch=0").iterdir()) == written
    assert place.found() == place.wanted


def test_what_an_attempt_has_left_is_replaced(place):
    left = place.root / "out/_aside/matches-0.0123"
    place.changes([("a", "kind = 'x'")])
    place.events({"id": 1, "kind": "x"})
    place.run()
    place.forget(0)
    left.mkdir()
    (left / "part-0.parquet").write_text("half")
    place.run()
    assert place.found() == place.wanted
    assert list((place.root / "out/_aside").iterdir()) == []


def test_many_changes_are_compiled(place, monkeypatch):
    monkeypatch.setattr(pinned_versions, "FEW", 3)
    place.changes([(f"s{n}", f"value > {n}") for n in range(20)])
    place.events({"id": 1, "value": 7.5})
    place.run()
    place.changes([("s1", None), ("t", "value < 100")])  # a few: workers make them
    place.events({"id": 2, "value": 7.5})
    place.run()
    rows = [("s2", None), ("t", "value < 0"), ("u", "id = 3"), ("s2", "value = 1"), ("s3", None)]
    place.changes([*rows, ("s3", None), ("s4", "kind = 'x'")])
    place.changes([("broken", "valve > 3")], effective=False)
    place.events({"id": 3, "value": 7.5, "kind": "x"}, {"id": 4, "value": 1})
    place.run()
    place.changes([("s5", None)])
    place.events({"id": 5, "value": 50, "kind": "x"})
    place.run()
    assert place.found() == place.wanted
    versions = [
        json.loads(path.read_text())
        for path in sorted((place.root / "checkpoint/tamis/versions").iterdir())
    ]
    assert [version["is_base"] for version in versions] == [True, False, True, False]
    assert [letter.id for letter in place.letters()] == ["broken"]
    assert place.commit(2)["bad_subscriptions"] == 1


def test_rows_that_cannot_be_used_are_kept_with_their_batch(place):
    place.changes([("a", "kind = 'x'")])
    rows = ["id,filter,op", "b,\"kind IN ('x', 'y')\",", "c,valve < 3,", "d,,upsrt"]
    rows += [",kind = 1,", "none,,delete"]
    (place.root / "changes/0001.csv").write_text("\n".join(rows) + "\n")
    place.held["b"] = "kind IN ('x', 'y')"
    place.events({"id": 1, "kind": "x"}, {"id": None, "kind": "x"})
    place.run()
    place.events({"id": 2, "kind": "y"})
    place.run()
    assert place.found() == place.wanted
    letters = place.letters()
    assert {(letter.batch, letter.source, letter.id) for letter in letters} == {
        (0, "subscriptions", "c"), (0, "subscriptions", "d"), (0, "subscriptions", None),
        (0, "events", None),
    }  # fmt: skip
    assert place.commit(0)["bad"] == 1


def test_a_table_of_changes(place):
    spark = place.spark
    first = [("a", "kind = 'x'", 1), ("b", "value > 1", 2)]
    columns = "id string, filter string, version int"
    spark.sql("DROP TABLE IF EXISTS tamis_changes")
    folder = str(place.root / "table")
    spark.createDataFrame(first, columns).write.parquet(folder)
    spark.sql(f"CREATE TABLE tamis_changes USING parquet LOCATION '{folder}'")
    try:
        place.held = {"a": "kind = 'x'", "b": "value > 1"}
        place.events({"id": 1, "kind": "x", "value": 2})
        place.run(changes="table:tamis_changes")
        more = [("a", None, 3), ("c", "id = 2", 4)]
        spark.createDataFrame(more, columns).write.mode("append").parquet(folder)
        place.held = {"b": "value > 1", "c": "id = 2"}
        place.events({"id": 2, "kind": "x", "value": 2})
        place.run(changes="table:tamis_changes")
        assert place.found() == place.wanted
    finally:
        spark.sql("DROP TABLE tamis_changes")


def test_subscriptions_that_stay_and_a_sink_of_ones_own(place):
    fixed = place.spark.createDataFrame(
        [(7, "value > 1"), (8, "kind = 'x'")], "id int, filter string"
    )
    place.events({"id": 1, "kind": "x", "value": 2})
    place.events({"id": 2, "value": 0})
    seen = []
    place.run(
        changes=fixed,
        out=lambda frame, batch: seen.append((batch, [tuple(r) for r in frame.collect()])),
        output="lists",
        keep=["kind"],
    )
    assert seen == [(0, [(1, [7, 8], "x")]), (1, [(2, [], None)])]


def test_what_does_not_fit_is_refused(place, tmp_path):
    place.changes([("a", "kind = 'x'")])
    place.events({"id": 1, "kind": "x"})
    place.run()
    with pytest.raises(FileError, match="has the matches of another checkpoint"):
        place.stream(checkpoint=tmp_path / "other")
    (tmp_path / "full").mkdir()
    (tmp_path / "full/file").write_text("")
    with pytest.raises(FileError, match="exists and is not empty"):
        place.stream(out=tmp_path / "full")
    with pytest.raises(OptionError, match="must be a streaming DataFrame"):
        match_stream(place.spark.range(3), "c", "o", checkpoint=tmp_path / "c")
    with pytest.raises(OptionError, match="event_time: the events have no column 'time'"):
        place.stream(event_time="time")
    place.events({"id": 2, "kind": "x"})
    with pytest.raises(TamisError, match="another schema or semantics; start with a new one"):
        place.run(semantics="strict")


def test_there_must_be_subscriptions_to_begin_with(place):
    place.events({"id": 1})
    with pytest.raises(TamisError, match="there are no subscriptions yet"):
        place.run()
    place.changes([("a", "valve > 3")])
    with pytest.raises(
        TamisError, match=r"(?s)no subscription can be used.*unknown attribute 'valve'"
    ):
        place.run()
    place.changes([("b", "id > 0")])
    place.wanted.update([(0, 1, "b")])
    place.run()
    assert place.found() == place.wanted


def test_an_event_that_must_not_be_bad_stops_the_stream(place):
    place.changes([("a", "kind = 'x'")])
    place.events({"id": 1, "kind": "x"}, {"id": None, "kind": "x"})
    with pytest.raises(TamisError, match="the event has no id"):
        place.run(on_bad="fail")
    assert not (place.root / "out/matches").exists()
