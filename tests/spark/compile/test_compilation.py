"""Subscriptions of a table, compiled in parts: what a task says, and how the parts are joined."""

import pickle
import random

import pyarrow as pa
import pytest
from pyspark import cloudpickle

from cases import each
from stocks import SMALL, stock_filters, stock_rows
from tamis import Matcher, OptionError, Profile, Schema, SubscriptionError
from tamis.spark.compile import compilation
from tamis.spark.compile.compilation import (
    EXAMPLES,
    FILTERS_PER_TASK,
    MOST_TASKS,
    Compiling,
    Counts,
    Meaning,
    Size,
    Subscriptions,
    explained,
    join,
    read_report,
    tasks_for,
    write_parts,
)
from tamis.spark.dead_letters.letters import Letter

TABLE = pa.Table.from_pylist([dict(zip(SMALL, row, strict=True)) for row in stock_rows(1, 60)])


def rows_of(pairs, kind=None):
    """A batch as `Subscriptions.spread` sends it."""
    ids, filters = zip(*pairs, strict=True) if pairs else ((), ())
    kind = kind or (pa.int64() if ids and isinstance(ids[0], int) else pa.string())
    return pa.record_batch(
        {
            "id": pa.array(ids, kind),
            "filter": pa.array(filters, pa.string()),
            "row": pa.array(range(len(ids)), pa.int64()),
        }
    )


def said(*parts, meaning=None, duplicates="last"):
    """What tasks say of parts of a table, one task for each."""
    tables = []
    for task, pairs in enumerate(parts):
        batches = rows_of(pairs)
        batches = [batches.slice(n, 7) for n in range(0, batches.num_rows, 7)]
        found = pa.Table.from_batches(Compiling(meaning or Meaning(SMALL), duplicates)(batches))
        number = pa.array([task] * len(found), pa.int32())
        tables.append(found.set_column(0, "task", number))
    return pa.concat_tables(tables)


@pytest.mark.parametrize("at_once", [3, 50_000])
def test_every_row_is_counted_once(monkeypatch, at_once):
    monkeypatch.setattr(compilation, "FILTERS_AT_ONCE", at_once)
    pairs = [("a", "i > 0"), ("b", "i >"), ("a", "i > 1"), (None, "i > 2"), ("c", None),
             ("d", "TRUE"), ("b", "i > 3"), ("a", "i > 4"), ("a", "j > 5")]  # fmt: skip
    counts, letters = read_report(said(pairs))
    assert counts == Counts(rows=9, good=3, bad=4, replaced=2)
    assert [letter.row for letter in letters] == [1, 3, 4, 8]
    assert [letter.id for letter in letters] == ["b", None, "c", "a"]


def test_no_more_letters_than_somebody_reads(monkeypatch):
    monkeypatch.setattr(compilation, "FILTERS_AT_ONCE", 10)
    counts, letters = read_report(said([(n, f"bad {n}" if n else "TRUE") for n in range(100)]))
    assert counts == Counts(100, 1, 99, 0)
    assert [letter.row for letter in letters] == list(range(1, 1 + EXAMPLES))


@pytest.mark.parametrize("parts", [1, 2, 7])
@pytest.mark.parametrize("kind", [str, int])
def test_the_parts_are_joined_to_one_file(monkeypatch, tmp_path, parts, kind):
    monkeypatch.setattr(compilation, "CHUNK", 1000)
    texts = {kind(n): text for n, text in enumerate([*stock_filters(1, 200), "TRUE", "FALSE"])}
    pairs = list(texts.items())
    found = said(*(pairs[n::parts] for n in range(parts)))
    shuffled = list(range(len(found)))
    random.Random(3).shuffle(shuffled)  # noqa: S311 - any other order would do
    counts, letters = read_report(found)
    assert (counts, letters) == (Counts(202, 202, 0, 0), [])
    paths = write_parts(found.take(pa.array(shuffled)), tmp_path)
    assert len(paths) == parts
    path = join(paths, tmp_path)
    assert list(tmp_path.iterdir()) == [path]
    whole = Matcher(SMALL)
    whole.subscribe_many(texts)
    loaded = Matcher.load(path)
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
        meaning = Meaning(SMALL, profile=profile)
        found = said(*(pairs[n::parts] for n in range(parts)), meaning=meaning)
        path = join(write_parts(found, tmp_path), tmp_path, meaning.profile)
        (part,) = Matcher.load(path).explain().parts
        assert {group.how for group in part.groups} == {f"found by the value of {rare}"}


def test_a_task_without_a_usable_row_has_no_part(tmp_path):
    found = said([("a", "i > 0")], [("b", "bad")], [], [("c", "b")])
    counts, letters = read_report(found)
    assert counts == Counts(3, 2, 1, 0)
    assert len(letters) == 1
    path = join(write_parts(found, tmp_path), tmp_path)
    assert sorted(Matcher.load(path)) == ["a", "c"]


def test_nothing_to_compile_is_an_error():
    with pytest.raises(SubscriptionError, match="the table of subscriptions has no rows"):
        read_report(said([], []))
    with pytest.raises(SubscriptionError, match="no subscription can be used: 7 rows") as caught:
        read_report(said([("a", "ii > 0")] * 3, [("b", None)] * 4))
    assert "id a: unknown attribute 'ii'" in str(caught.value)
    assert "... and 2 more" in str(caught.value)


def test_repeated_ids_are_an_error_if_they_shall_be(monkeypatch):
    monkeypatch.setattr(compilation, "FILTERS_AT_ONCE", 2)
    parts = [("a", "i > 0"), ("b", "i > 0"), ("a", "i > 1"), (None, "b"), (None, "b"), ("a", "no")]
    with pytest.raises(SubscriptionError, match="subscriptions come again in 2 rows") as seen:
        read_report(said(parts, [("c", "b"), ("d", "bad")], duplicates="error"))
    assert "such as 'a', 'a'; make ids unique" in str(seen.value)
    counts, _ = read_report(said([("a", "b"), (None, "b"), (None, "b")], duplicates="error"))
    assert counts == Counts(3, 1, 2, 0)


def test_texts_that_are_no_utf8():
    raw = [(b"a", b"i > 0"), (b"b\xff", b"i > 0"), (b"c", b"i > \xff")]
    ids, filters = (pa.array(column, pa.binary()).view(pa.string())
                    for column in zip(*raw, strict=True))  # fmt: skip
    batch = pa.record_batch({"id": ids, "filter": filters, "row": pa.array([0, 1, 2], pa.int64())})
    counts, letters = read_report(pa.Table.from_batches(Compiling(Meaning(SMALL), "last")([batch])))
    assert counts == Counts(3, 1, 2, 0)
    assert [letter.id for letter in letters] == ["b?", "c"]
    assert all("not valid Unicode text" in letter.reason for letter in letters)


@each(
    ("rows", "tasks"),
    [(0, 1), (1, 1), (FILTERS_PER_TASK, 2), (10 * FILTERS_PER_TASK, 11), (10**9, MOST_TASKS)],
)
def test_tasks_for_many_rows(rows, tasks):
    assert tasks_for(Size(rows, 0)) == tasks


def test_columns_that_no_filter_can_use_are_explained():
    meaning = Meaning(SMALL, skipped={"tags": "array<int>", "r.`odd.`": "binary", "m": "map<..>"})
    pairs = [(0, "tags = 1"), (1, "r.`odd.` = 'a'"), (2, "i > 0 AND m.key = 1"), (3, "tag = 1"),
             (4, "mm = 1"), (5, "i > 0"), (6, "s = tags")]  # fmt: skip
    _, letters = read_report(said(pairs, meaning=meaning))
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
    quoted = Letter("subscriptions", 0, "a", 'unknown attribute "it\'s" (line 1, column 1)')
    assert explained(quoted, meaning.skipped) == quoted


def test_every_meaning_reaches_the_tasks():
    pairs = [("a", "NOT i = 7"), ("b", "s IS NULL")]
    for semantics, defaults, expected in (
        ("sql", None, ["b"]),
        ("strict", None, []),
        ("default", {"i": 7, "x": None, "s": None, "b": None, "side": "buy"}, ["b"]),
        ("default", {"i": 8, "x": None, "s": "q", "b": None, "side": "buy"}, ["a"]),
    ):
        meaning = Meaning(SMALL, semantics, defaults)
        sent = cloudpickle.dumps(Compiling(meaning, "last"))
        assert b"_make_function" not in sent
        assert pickle.loads(sent) == Compiling(meaning, "last")
        matcher = meaning.matcher()
        matcher.subscribe_many(pairs)
        assert matcher.match({}) == expected
        assert matcher._engine._options.threads == 1


# --- tables of Spark


@pytest.mark.spark
@pytest.mark.parametrize(
    ("columns", "order", "said"),
    [
        ("1 id", None, "no column 'filter', or two of them; there is id"),
        ("1 id, 'a' filter, 2 id", None, "no column 'id', or two"),
        ("1 id, 'a' filter", "at", "no column 'at', or two of them; there is id, filter"),
        ("1.5D id, 'a' filter", None, "strings or integers, not double"),
        ("true id, 'a' filter", None, "strings or integers, not boolean"),
        ("1 id, 2 filter", None, "filters are strings, and the column filter is of type int"),
    ],
)
def test_tables_that_hold_no_subscriptions(spark, columns, order, said):
    with pytest.raises(OptionError, match=said):
        Subscriptions(spark.sql(f"SELECT {columns}"), order)


@pytest.mark.spark
def test_rows_are_spread_by_id_in_their_order(spark):
    frame = spark.createDataFrame(
        [(n % 5, f"i > {n}", None if n % 7 == 0 else (n * 37) % 20) for n in range(40)],
        "id tinyint, filter string, `a ``b.` int",
    ).repartition(3)
    subscriptions = Subscriptions(frame, "a `b.")
    assert subscriptions.id_type == "bigint"
    assert subscriptions.size == Size(40, sum(len(f"i > {n}") for n in range(40)))
    spread = subscriptions.spread(4)
    found = [list(part) for part in spread.rdd.glom().collect()]
    assert len(found) == 4
    assert sorted(row.filter for part in found for row in part) == sorted(
        f"i > {n}" for n in range(40)
    )
    homes = {}
    for number, part in enumerate(found):
        numbers = [int(row.filter[4:]) for row in part]
        later = [(n % 7 != 0, (n * 37) % 20 if n % 7 else 0) for n in numbers]
        assert later == sorted(later)  # nulls come first
        for row in part:
            homes.setdefault(row.id, set()).add(number)
    assert all(len(places) == 1 for places in homes.values())
    assert spread.dtypes == [("id", "bigint"), ("filter", "string"), ("row", "bigint")]


def test_a_profile_is_read_by_the_driver_and_sent_to_the_workers(tmp_path):
    path = tmp_path / "events.profile"
    Profile.of(pa.table({"x": [1, 2, 2]})).save(path)
    meaning = Meaning(Schema({"x": "int"}), profile=str(path))
    path.unlink()
    elsewhere = cloudpickle.loads(cloudpickle.dumps(meaning))
    matcher = elsewhere.matcher()
    matcher.subscribe("a", "x = 2")
    assert elsewhere.profile.events == 3
    assert matcher.match({"x": 2}) == ["a"]
