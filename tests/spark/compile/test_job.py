"""Subscriptions of a table, compiled in parts: what a task reports, and how parts are joined."""

import pickle
import random

import pyarrow as pa
import pytest
from pyspark import cloudpickle

from stocks import SMALL, stock_filters, stock_rows
from tamis import Matcher, Profile, Schema, SubscriptionError
from tamis.dead_letters import DeadLetter
from tamis.matcher_settings import MatcherSettings
from tamis.spark.compile import task_reports
from tamis.spark.compile.job import join_files
from tamis.spark.compile.task_reports import (
    EXAMPLES,
    RowCounts,
    read_file_reports,
    read_reports,
    write_files,
)
from tamis.spark.compile.worker import ONE_THREAD, CompileTask
from tamis.spark.dead_letters.worker import explained
from tamis.spark.tables import arrow_batches

TABLE = pa.Table.from_pylist([dict(zip(SMALL, row, strict=True)) for row in stock_rows(1, 60)])


def rows_of(pairs, kind=None):
    """A batch as `SubscriptionTable.spread` sends it."""
    ids, filters = zip(*pairs, strict=True) if pairs else ((), ())
    kind = kind or (pa.int64() if ids and isinstance(ids[0], int) else pa.string())
    return pa.record_batch(
        {
            "id": pa.array(ids, kind),
            "filter": pa.array(filters, pa.string()),
            "row": pa.array(range(len(ids)), pa.int64()),
        }
    )


def said(*parts, settings=None, duplicates="last"):
    """What tasks say of parts of a table, one task for each."""
    tables = []
    for task, pairs in enumerate(parts):
        batches = rows_of(pairs)
        batches = [batches.slice(n, 7) for n in range(0, batches.num_rows, 7)]
        found = pa.Table.from_batches(
            CompileTask(settings or MatcherSettings(SMALL), duplicates)(batches)
        )
        number = pa.array([task] * len(found), pa.int32())
        tables.append(found.set_column(0, "task", number))
    return pa.concat_tables(tables)


@pytest.mark.parametrize("at_once", [3, 50_000])
def test_every_row_is_counted_once(monkeypatch, at_once):
    monkeypatch.setattr(arrow_batches, "FILTERS_AT_ONCE", at_once)
    pairs = [("a", "i > 0"), ("b", "i >"), ("a", "i > 1"), (None, "i > 2"), ("c", None),
             ("d", "TRUE"), ("b", "i > 3"), ("a", "i > 4"), ("a", "j > 5")]  # fmt: skip
    counts, letters = read_reports(said(pairs))
    assert counts == RowCounts(rows=9, good=3, bad=4, replaced=2)
    assert [letter.row for letter in letters] == [1, 3, 4, 8]
    assert [letter.id for letter in letters] == ["b", None, "c", "a"]


def test_no_more_letters_than_somebody_reads(monkeypatch):
    monkeypatch.setattr(arrow_batches, "FILTERS_AT_ONCE", 10)
    counts, letters = read_reports(said([(n, f"bad {n}" if n else "TRUE") for n in range(100)]))
    assert counts == RowCounts(100, 1, 99, 0)
    assert [letter.row for letter in letters] == list(range(1, 1 + EXAMPLES))


@pytest.mark.parametrize("parts", [1, 2, 7])
@pytest.mark.parametrize("kind", [str, int])
def test_the_parts_are_joined_to_one_file(monkeypatch, tmp_path, parts, kind):
    monkeypatch.setattr(task_reports, "PIECE", 1000)
    texts = {kind(n): text for n, text in enumerate([*stock_filters(1, 200), "TRUE", "FALSE"])}
    pairs = list(texts.items())
    found = said(*(pairs[n::parts] for n in range(parts)))
    shuffled = list(range(len(found)))
    random.Random(3).shuffle(shuffled)  # noqa: S311 - any other order would do
    counts, letters = read_reports(found)
    assert (counts, letters) == (RowCounts(202, 202, 0, 0), [])
    reports = read_file_reports(found)
    assert sum(report.subscriptions for report in reports.values()) == 202
    paths = write_files(found.take(pa.array(shuffled)), tmp_path)
    assert len(paths) == parts
    path = join_files(paths, tmp_path, MatcherSettings(SMALL))
    assert list(tmp_path.iterdir()) == [path]
    whole = Matcher(SMALL)
    whole.subscribe_many(texts)
    loaded = Matcher.load(path)
    assert {name for report in reports.values() for name in report.attributes} == (
        loaded.attributes()
    )
    assert {name: str(loaded.get(name)) for name in loaded} == {
        name: str(whole.get(name)) for name in whole
    }
    found = loaded.match_batch(TABLE, "lists")["subscriptions"].to_pylist()
    expected = whole.match_batch(TABLE, "lists")["subscriptions"].to_pylist()
    assert list(map(sorted, found)) == list(map(sorted, expected))


@pytest.mark.parametrize("parts", [1, 3])
def test_a_profile_decides_about_the_joined_file(tmp_path, parts):
    pairs = [(n, f"s = 'T{n % 2}' AND i = {n}") for n in range(300)]
    events = pa.table({"i": list(range(300)), "s": ["other"] * 300})
    for profile, rare in ((None, "i"), (events, "s")):
        settings = MatcherSettings(SMALL, profile=profile)
        found = said(*(pairs[n::parts] for n in range(parts)), settings=settings)
        path = join_files(write_files(found, tmp_path), tmp_path, settings)
        (part,) = Matcher.load(path).explain().parts
        assert {group.how for group in part.groups} == {f"found by the value of {rare}"}


def test_a_task_without_a_usable_row_has_no_part(tmp_path):
    found = said([("a", "i > 0")], [("b", "bad")], [], [("c", "b")])
    counts, letters = read_reports(found)
    assert counts == RowCounts(3, 2, 1, 0)
    assert len(letters) == 1
    path = join_files(write_files(found, tmp_path), tmp_path, MatcherSettings(SMALL))
    assert sorted(Matcher.load(path)) == ["a", "c"]


def test_nothing_to_compile_is_an_error():
    with pytest.raises(SubscriptionError, match="the table of subscriptions has no rows"):
        read_reports(said([], []))
    with pytest.raises(SubscriptionError, match="no subscription can be used: 7 rows") as caught:
        read_reports(said([("a", "ii > 0")] * 3, [("b", None)] * 4))
    assert "id a: unknown attribute 'ii'" in str(caught.value)
    assert "... and 2 more" in str(caught.value)


def test_repeated_ids_are_an_error_if_they_shall_be(monkeypatch):
    monkeypatch.setattr(arrow_batches, "FILTERS_AT_ONCE", 2)
    parts = [("a", "i > 0"), ("b", "i > 0"), ("a", "i > 1"), (None, "b"), (None, "b"), ("a", "no")]
    with pytest.raises(SubscriptionError, match="subscriptions come again in 2 rows") as seen:
        read_reports(said(parts, [("c", "b"), ("d", "bad")], duplicates="error"))
    assert "such as 'a', 'a'; make ids unique" in str(seen.value)
    counts, _ = read_reports(said([("a", "b"), (None, "b"), (None, "b")], duplicates="error"))
    assert counts == RowCounts(3, 1, 2, 0)


def test_texts_that_are_not_utf8():
    raw = [(b"a", b"i > 0"), (b"b\xff", b"i > 0"), (b"c", b"i > \xff")]
    ids, filters = (pa.array(column, pa.binary()).view(pa.string())
                    for column in zip(*raw, strict=True))  # fmt: skip
    batch = pa.record_batch({"id": ids, "filter": filters, "row": pa.array([0, 1, 2], pa.int64())})
    counts, letters = read_reports(
        pa.Table.from_batches(CompileTask(MatcherSettings(SMALL), "last")([batch]))
    )
    assert counts == RowCounts(3, 1, 2, 0)
    assert [letter.id for letter in letters] == ["b?", "c"]
    assert all("not valid Unicode text" in letter.reason for letter in letters)


def test_columns_that_no_filter_can_use_are_explained():
    settings = MatcherSettings(
        SMALL, skipped={"tags": "array<int>", "r.`odd.`": "binary", "m": "map<..>"}
    )
    pairs = [(0, "tags = 1"), (1, "r.`odd.` = 'a'"), (2, "i > 0 AND m.key = 1"), (3, "tag = 1"),
             (4, "mm = 1"), (5, "i > 0"), (6, "s = tags")]  # fmt: skip
    _, letters = read_reports(said(pairs, settings=settings))
    reasons = [letter.reason.splitlines()[0] for letter in letters]
    word = "which no filter can use"
    assert reasons[:3] == [
        f"column tags has the type array<int>, {word} (line 1, column 1)",
        f"column r.`odd.` has the type binary, {word} (line 1, column 1)",
        f"column m has the type map<..>, {word} (line 1, column 11)",
    ]
    assert reasons[3].startswith("unknown attribute 'tag'")
    assert reasons[4].startswith("unknown attribute 'mm'")
    assert reasons[5] == f"column tags has the type array<int>, {word} (line 1, column 5)"
    quoted = DeadLetter("subscriptions", 0, "a", 'unknown attribute "it\'s" (line 1, column 1)')
    assert explained(quoted, settings.skipped) == quoted


def test_all_settings_reach_the_tasks():
    pairs = [("a", "NOT i = 7"), ("b", "s IS NULL")]
    for semantics, defaults, expected in (
        ("sql", None, ["b"]),
        ("strict", None, []),
        ("default", {"i": 7, "x": None, "s": None, "b": None, "side": "buy"}, ["b"]),
        ("default", {"i": 8, "x": None, "s": "q", "b": None, "side": "buy"}, ["a"]),
    ):
        settings = MatcherSettings(SMALL, semantics, defaults)
        sent = cloudpickle.dumps(CompileTask(settings, "last"))
        assert b"_make_function" not in sent
        assert pickle.loads(sent) == CompileTask(settings, "last")
        matcher = settings.matcher(ONE_THREAD)
        matcher.subscribe_many(pairs)
        assert matcher.match({}) == expected
        assert matcher._held.engine._options.threads == 1


def test_a_profile_is_read_by_the_driver_and_sent_to_the_workers(tmp_path):
    path = tmp_path / "events.profile"
    Profile.of(pa.table({"x": [1, 2, 2]})).save(path)
    settings = MatcherSettings(Schema({"x": "int"}), profile=str(path))
    path.unlink()
    elsewhere = cloudpickle.loads(cloudpickle.dumps(settings))
    matcher = elsewhere.matcher()
    matcher.subscribe("a", "x = 2")
    assert elsewhere.profile.events == 3
    assert matcher.match({"x": 2}) == ["a"]
