"""Streams of files with subscriptions that change, against the naive engine."""

import json
import os
import shutil
import sys
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path

import pytest

from tamis import FileError, Matcher, OptionError, TamisError
from tamis.spark import StreamMetrics, match_stream
from tamis.spark.session.failures import spark_errors
from tamis.spark.stream import new_changes

pytestmark = pytest.mark.spark

TYPES = "id bigint, kind string, value double, at timestamp"
SCHEMA = {"id": "int", "kind": "string", "value": "double", "at": "timestamp"}
FIRST = SCHEMA  # tests may have more attributes in SCHEMA
this = sys.modules[__name__]


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

    def version(self, number):
        path = self.root / f"checkpoint/tamis/versions/{number:08}.json"
        return json.loads(path.read_text())

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


def test_arrays_and_maps(place, monkeypatch):
    monkeypatch.setattr(this, "TYPES", "id bigint, tags array<string>, props map<string, bigint>")
    types = {"id": "int", "tags": "array<string>", "props": "map<string, int>"}
    monkeypatch.setattr(this, "SCHEMA", types)
    place.changes([("red", "array_contains(tags, 'red')"), ("big", "props['size'] > 5")])
    place.events({"id": 1, "tags": ["red", "x"]}, {"id": 2, "tags": [], "props": {"size": 9}})
    place.events({"id": 3, "tags": [None, "red"], "props": {"size": 6}}, {"id": 4})
    place.run()
    assert place.found() == place.wanted
    assert len(place.wanted) == 4


@pytest.mark.parametrize("settings", [{}, {"mode": "sharded"}], ids=["whole", "shards"])
def test_a_batch_that_is_done_again_has_the_moment_that_it_had(place, monkeypatch, settings):
    """Each micro-batch has its own, and its replay the same, though the clock has gone on."""
    pinned = "tamis.spark.stream.pinned_versions.present_moment"
    place.changes([("fresh", "at > now() - INTERVAL 1 DAY"), ("old", "to_date(at) < current_date")])
    times = [{"id": n, "at": f"2024-01-0{n}T12:00:00Z"} for n in (1, 2, 3)]
    wanted = Counter()
    for batch, day in enumerate((2, 3)):
        noon = datetime(2024, 1, day, 12, tzinfo=UTC)
        monkeypatch.setattr(pinned, lambda noon=noon: int(noon.timestamp() * 1_000_000))
        place.events(*times)
        place.run(**settings)
        wanted.update((batch, n, "fresh") for n in (1, 2, 3) if n >= day)
        wanted.update((batch, n, "old") for n in (1, 2, 3) if n < day)
    assert place.found() == wanted
    place.forget(1)
    monkeypatch.undo()
    place.events({"id": 4, "at": "2024-01-03T12:00:00Z"})
    place.run(**settings)
    assert place.found() == wanted + Counter([(2, 4, "old")])


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
    monkeypatch.setattr(new_changes, "FEW", 3)
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
    with pytest.raises(TamisError, match="was made with semantics='sql', and this stream has 'st"):
        place.run(semantics="strict")


def test_a_stream_begins_before_its_first_subscription(place, caplog):
    place.events({"id": 1, "kind": "x"})
    place.run()
    assert "there are no subscriptions, so nothing matches: none has come yet" in caplog.text
    assert list((place.root / "out/matches/batch=0").iterdir()) == []  # no file: no type of ids yet
    place.changes([("4", "valve > 3")], effective=False)
    place.events({"id": 2, "kind": "x"}, {"id": None, "kind": "x"})
    place.run()
    assert "1 row cannot be used" in caplog.text
    assert "unknown attribute 'valve'" in caplog.text
    numbers = [(c["subscriptions"], c["events"], c["bad"]) for c in map(place.commit, (0, 1))]
    assert numbers == [(0, 1, 0), (0, 2, 1)]
    assert {letter.source for letter in place.letters()} == {"subscriptions", "events"}
    place.changes([("7", "id > 0"), ("8", "id > 3")], effective=False)
    place.events({"id": 3})
    place.wanted.update([(2, 3, 7)])  # integers, though text came first
    place.run()
    assert place.found() == place.wanted
    place.changes([("7", None), ("9", None)], effective=False)
    place.changes([("8", None)], effective=False)
    place.events({"id": 5})
    place.run()
    assert [place.commit(n)["subscriptions"] for n in range(4)] == [0, 0, 2, 0]
    assert place.found() == place.wanted


def test_lists_and_counts_without_subscriptions_have_a_row_for_each_event(place):
    for output, found in (("lists", []), ("counts", 0)):
        place.events({"id": 1})
        out = place.root / output
        place.run(output=output, out=out, checkpoint=place.root / f"{output}-checkpoint")
        first = place.spark.read.parquet(f"{out}/matches").where("event_id = 1").collect()[0]
        assert first[1] == found
    place.changes([("7", "id > 1")], effective=False)
    place.events({"id": 2})
    out = place.root / "lists"
    place.run(output="lists", out=out, checkpoint=place.root / "lists-checkpoint")
    rows = place.spark.read.parquet(f"{out}/matches").where("event_id = 2").collect()
    assert [tuple(row)[:2] for row in rows] == [(2, ["7"])]  # lists had a type before ids had one


def test_a_change_file_that_is_rewritten_is_said(place, caplog):
    place.changes([("a", "kind = 'x'")])
    place.events({"id": 1, "kind": "x"})
    place.run()
    path = place.root / "changes/0000.jsonl"
    path.write_text(path.read_text() + json.dumps({"id": "b", "filter": "id > 0"}) + "\n")
    place.events({"id": 2, "kind": "x"})
    place.run()
    place.events({"id": 3, "kind": "x"})
    place.run()
    assert place.found() == place.wanted
    (letter,) = place.letters()  # once
    assert letter.batch == 1
    assert letter.reason.startswith("the file 0000.jsonl was changed after it was read: 36 bytes")
    assert letter.reason in caplog.text
    assert [place.commit(n)["bad_subscriptions"] for n in range(3)] == [0, 1, 0]


def test_the_schema_belongs_to_the_checkpoint(place, monkeypatch, caplog):
    place.changes([("a", "kind = 'x'"), ("b", "value > 1")])
    place.events({"id": 1, "kind": "x", "value": 2})
    place.run()

    # A new column is ignored, and said; a filter that names it makes it an attribute.
    monkeypatch.setattr(this, "TYPES", TYPES + ", size int, place struct<city: string>")
    monkeypatch.setattr(this, "SCHEMA", SCHEMA | {"size": "int", "place.city": "string"})
    place.events({"id": 2, "kind": "x", "value": 2, "size": 3})
    place.run()
    assert "columns that are not attributes: size (int), place.city (string); each" in caplog.text
    assert place.commit(1)["version"] == 1
    place.changes([("c", "size = 3 AND value > 1"), ("a", None)])
    place.changes([("d", "size = 3 AND place = 4")], effective=False)
    place.events({"id": 3, "kind": "x", "value": 2, "size": 3})
    place.run()
    assert place.version(2)["schema"] == FIRST | {"size": "int"}
    assert "new attributes, since filters name them: size (int)" in caplog.text
    before = place.found()

    # The batch that is done again has the schema that it had.
    place.forget(2)
    place.run()
    assert place.found() == before == place.wanted

    # The setting asks for columns as well; what was an attribute stays one without its column.
    caplog.clear()
    monkeypatch.setattr(this, "TYPES", "id bigint, size int, place struct<city: string>")
    place.changes([("e", "place.city = 'Bonn'"), ("f", "value IS NULL")])
    place.events({"id": 4, "size": 3, "place": {"city": "Bonn"}})
    place.run(schema={"place.city": "string"})
    assert place.found() == place.wanted
    assert len(place.wanted) == 8
    assert "no column for the attributes kind (string), value (double), at (time" in caplog.text
    assert "new attributes: place.city (string)" in caplog.text
    with pytest.raises(OptionError, match="the attribute size is int in the checkpoint, and doub"):
        place.stream(schema={"size": "double"})


def test_many_changes_ask_for_columns_as_well(place, monkeypatch):
    monkeypatch.setattr(new_changes, "FEW", 3)
    place.changes([(f"s{n}", f"value > {n}") for n in range(9)])
    place.events({"id": 1, "value": 7.5})
    place.run()
    monkeypatch.setattr(this, "TYPES", TYPES + ", size int, colour string")
    monkeypatch.setattr(this, "SCHEMA", SCHEMA | {"size": "int", "colour": "string"})
    place.changes([(f"t{n}", f"size > {n} OR kind = 'colour'") for n in range(9)])
    place.events({"id": 2, "value": 7.5, "size": 4})
    place.run()
    assert place.found() == place.wanted
    assert place.version(2)["schema"] == FIRST | {"size": "int"}
    assert place.version(2)["subscriptions"] == 18


def test_subscriptions_in_shards(place, monkeypatch):
    """Every way from one base to the next: file or shards, few changes or many, a new attribute."""
    monkeypatch.setattr(new_changes, "FEW", 4)
    kinds = ["kind = 'x' AND value > {}", "kind IN ('x', 'y') AND value < {}", "value = {}"]
    place.changes([(f"s{n}", kinds[n % 3].format(n)) for n in range(30)])
    place.events({"id": 1, "kind": "x", "value": 7}, {"id": 2, "value": 8}, {"id": None})
    place.run(shards=3, event_time="at")  # the first base
    assert place.commit(0)["bad"] == 1
    place.changes([("s0", None), ("s1", "kind = 'z'"), ("t", "kind = 'never seen' OR value = 7")])
    place.events({"id": 3, "kind": "x", "value": 7}, {"id": 4, "kind": "z", "value": 1})
    place.run(shards=3)  # changes that the workers make
    rows = [("s1", None), ("t", None), ("t", "value = 8"), ("u", "kind = 'y'"), ("s2", "value = 1")]
    place.changes([*rows, ("none", None)])
    place.changes([("s3", "valve > 3")], effective=False)
    place.events({"id": 5, "kind": "y", "value": 8}, {"id": 6, "kind": "x", "value": 1})
    place.run(shards=3)  # another base, of all that
    assert [place.version(n)["is_sharded"] for n in (1, 2, 3)] == [True, False, True]
    assert [place.version(n)["is_base"] for n in (1, 2, 3)] == [True, False, True]
    assert place.commit(2)["bad_subscriptions"] == 1
    place.forget(2)
    place.changes([(f"w{n}", f"kind = 'x' AND id > {n}") for n in range(6)])
    place.events({"id": 7, "kind": "x", "value": 9})
    place.run()  # a file again, since they are few
    assert not place.version(4)["is_sharded"]
    monkeypatch.setattr(this, "TYPES", TYPES + ", size int")
    monkeypatch.setattr(this, "SCHEMA", SCHEMA | {"size": "int"})
    place.changes([("big", "size > 3")])
    place.events({"id": 8, "kind": "x", "size": 4}, {"id": 9, "kind": "z", "value": 30})
    place.run(budget=1000, output="pairs")
    assert place.version(5)["is_sharded"]
    assert place.found() == place.wanted
    counts = [place.commit(n)["subscriptions"] for n in range(5)]
    assert counts == [30, 30, 30, 36, 37] == [*counts[:4], len(place.held)]


def test_columns_that_were_left_out_stay_out(place):
    place.changes([("a", "id > 0")])
    place.events({"id": 1, "kind": "x"})
    place.run(schema={"id": "int"})
    place.changes([("b", "kind = 'x'")], effective=False)
    place.events({"id": 2, "kind": "x"})
    place.run()
    assert place.found() == place.wanted
    (letter,) = place.letters()
    assert "unknown attribute 'kind'" in letter.reason


def test_an_event_that_must_not_be_bad_stops_the_stream(place):
    place.changes([("a", "kind = 'x'")])
    place.events({"id": 1, "kind": "x"}, {"id": None, "kind": "x"})
    with pytest.raises(TamisError, match="the event has no id"):
        place.run(on_bad="fail")
    assert not (place.root / "out/matches").exists()


def test_too_many_bad_events_stop_the_stream_until_the_limit_allows_them(place):
    place.changes([("a", "kind = 'x'")])
    place.events({"id": 1, "kind": "x"}, {"id": None, "kind": "x"})
    message = "micro-batch 0, events: 1 of 2 rows cannot be used, and at most 10% may be bad"
    with pytest.raises(TamisError, match=message) as caught:
        place.run(max_bad="10%")
    assert "the event has no id" in str(caught.value)
    assert not (place.root / "out/matches").exists()
    assert list((place.root / "out/_aside").iterdir()) == []
    with pytest.raises(TamisError, match="at most 0 may be bad"):
        place.run(max_bad=0, checkpoint=place.root / "other", out=lambda frame, _: frame.collect())
    place.run(max_bad="50%")
    assert place.found() == place.wanted
    assert [letter.batch for letter in place.letters()] == [0]
