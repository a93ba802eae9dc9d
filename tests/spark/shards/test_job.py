"""Subscriptions in shards: whatever is asked, the answer is that of one file with all of them."""

import logging

import numpy as np
import pytest

from cases import each
from tamis.errors import OptionError, SubscriptionError
from tamis.spark import MatchJob
from tamis.spark.shards import job as sharding
from tamis.spark.shards.budget import as_bytes
from tamis.spark.tables.event_table import EventTable

pytestmark = pytest.mark.spark

SCHEMA = {"s": "string", "i": "int", "x": "double", "side": "enum('buy', 'sell')"}
BAD = [(900, "prise < 3"), (901, "s ="), (None, "i > 1"), (902, None), (3, "i >")]
ODD_EVENTS = [
    (None, "S0", 1, 1.0, "buy", "no id"), (9_001, "S0", 1, 1.0, "hold", "no such side"),
    (9_002, None, 3, 1.0, "buy", "no symbol"), (9_002, "S3", 3, 1.0, "sell", "id again"),
    (9_003, "unknown", None, float("nan"), None, None), (9_004, None, None, None, None, None),
]  # fmt: skip


def filters(chance, size):
    """Half of them ask for S0, a few for no symbol, some for several."""
    for n in range(size):
        symbol = "S0" if chance.random() < 0.5 else f"S{chance.integers(30)}"
        low = int(chance.integers(-5, 5))
        made = [
            f"s = '{symbol}' AND i > {low}", f"s = '{symbol}' AND x <= {low} AND side = 'buy'",
            f"s IN ('{symbol}', 'S{low + 6}', 'S7') AND i <> {low}", f"s = '{symbol}'",
            f"NOT (s <> '{symbol}' OR i < {low})", f"s = '{symbol}' AND (i = {low} OR x IS NULL)",
        ]  # fmt: skip
        yield n, "s IS NULL OR i = 4" if n % 50 == 0 else made[chance.integers(len(made))]


@pytest.fixture(scope="module")
def tables(spark):
    chance = np.random.default_rng(3)
    rows = [
        (
            n, "S0" if chance.random() < 0.5 else f"S{chance.integers(35)}",
            int(chance.integers(-6, 6)), float(chance.integers(-6, 6)),
            ["buy", "sell", None][chance.integers(3)], f"note {n}",
        )
        for n in range(400)
    ]  # fmt: skip
    events = spark.createDataFrame(
        rows + ODD_EVENTS, "id long, s string, i long, x double, side string, note string"
    )
    # Later rows of an id count, but for bad ones.
    subscriptions = [*filters(chance, 300), *filters(chance, 20), *BAD]
    frame = spark.createDataFrame(subscriptions, "id long, filter string").coalesce(1)
    return events.repartition(3).cache(), frame.cache()


def rows_of(frame):
    return sorted(repr(tuple(row)) for row in frame.collect())  # nan is like nan, as text


@pytest.fixture(scope="module")
def whole(tables):
    """The job without shards. What is compiled serves all outputs."""
    return MatchJob(*tables, schema=SCHEMA, keep=["note", "x"], mode="whole")


@pytest.fixture(scope="module")
def sharded(tables):
    job = MatchJob(*tables, schema=SCHEMA, keep=["note", "x"], shards=6)
    yield job
    job.release()


def matches(job, output):
    """The matches of a job in another output: `job.matches` is one frame, made once."""
    job.output = output
    return job.matches_of(job._events)


@pytest.mark.parametrize("output", ["pairs", "lists", "counts"])
def test_shards_find_the_same(whole, sharded, output):
    expected, found = matches(whole, output), matches(sharded, output)
    assert found.schema == expected.schema
    assert rows_of(found) == rows_of(expected)


def test_shards_know_the_same_of_the_rows(whole, sharded):
    assert sharded.compiled.counts == whole.compiled.counts == (325, 300, 5, 20)
    assert sharded.compiled.letters == whole.compiled.letters
    assert rows_of(sharded.dead_letters) == rows_of(whole.dead_letters)


def test_what_is_said_of_shards(sharded):
    said = sharded.explain()
    assert "in shards: as the number of shards was given" in said
    # Half of all ask for S0, and those for several values ask for S7.
    assert "4 by s and 6 for 2 heavy values of it, 1 that all events meet" in said
    assert "11 shards" in said


def test_a_small_budget_makes_shards_which_are_kept(tables, whole, monkeypatch):
    """Here without what newer versions of Spark can do: slots share partitions."""
    monkeypatch.setattr(
        sharding, "partitioned_by", lambda frame, n, name: frame.repartition(n // 2, name)
    )
    events, subscriptions = tables
    job = MatchJob(
        events, subscriptions, schema=SCHEMA, output="lists", keep=["note", "x"], budget=10_000
    )
    assert "more than the budget of 10,000" in job.explain()
    assert len(job.compiled.shards) > 4
    expected = matches(whole, "lists")
    assert rows_of(job.matches) == rows_of(expected)
    kept = job.compiled.frame
    some = EventTable(events.where("id < 50"), "id", job._events.schema, ["note", "x"])
    assert rows_of(job.matches_of(some)) == rows_of(expected.where("event_id < 50"))
    none = EventTable(events.where("id < 0"), "id", job._events.schema, ["note", "x"])
    assert rows_of(job.matches_of(none)) == []
    assert job.compiled.frame is kept
    assert kept.storageLevel.useDisk
    job.release()
    assert not kept.storageLevel.useDisk
    assert "not more than the budget" in MatchJob(events, subscriptions, schema=SCHEMA).explain()


def test_without_keys_every_event_meets_every_shard(spark):
    events = spark.createDataFrame([("a", 1, True), ("b", 5, None)], "k string, i int, b boolean")
    rows = [(f"n{n}", f"i > {n}") for n in range(10)]
    subscriptions = spark.createDataFrame(rows, "id string, filter string")
    settings = {"event_id": "k", "output": "lists", "semantics": "default"}
    defaults = {"k": "", "i": 0, "b": False}
    job = MatchJob(events, subscriptions, **settings, defaults=defaults, shards=3)
    assert rows_of(job.matches) == [
        "('a', ['n0'])", "('b', ['n0', 'n1', 'n2', 'n3', 'n4'])",
    ]  # fmt: skip
    assert "3 shards: 3 by size" in job.explain()
    job.release()


def test_events_of_a_hot_value_are_shared_by_several_tasks(spark, monkeypatch):
    monkeypatch.setattr(sharding, "EVENTS_PER_TASK", 10)
    monkeypatch.setattr(sharding.ShardedRules, "_cores", 8)
    hot = spark.range(1000).selectExpr("id", "'S7' AS s", "id % 5 AS i", "1D AS x")
    rows = [(n, f"s = 'S{n % 40}' AND i > {n % 3}") for n in range(400)]
    subscriptions = spark.createDataFrame(rows, "id long, filter string")
    job = MatchJob(hot, subscriptions, shards=8, output="counts")
    copies = job.compiled._copies(job._events, job._attributes)
    assert sorted(copies) == [0, *[1] * 7, 24]
    assert job.matches.agg({"count": "sum"}).collect()[0][0] == sum(
        n % 40 == 7 and event % 5 > n % 3 for n in range(400) for event in range(1000)
    )
    job.release()


def test_what_fails_without_shards_fails_with_them(tables, caplog):
    events, subscriptions = tables
    caplog.set_level(logging.CRITICAL, logger="tamis")
    for settings, said in (
        ({"duplicates": "error"}, "ids of subscriptions come again in 21 rows"),
        ({"on_bad": "fail"}, "subscriptions: 5 rows cannot be used"),
    ):
        for mode in ("whole", "sharded"):
            job = MatchJob(events, subscriptions, schema=SCHEMA, mode=mode, **settings)
            with pytest.raises(Exception, match=said):
                job.matches  # noqa: B018 - compiles
    for some, said in (("id < 0", "has no rows"), ("id = 900", "no subscription can be used")):
        job = MatchJob(events, subscriptions.where(some), schema=SCHEMA, mode="sharded")
        with pytest.raises(SubscriptionError, match=said):
            job.matches  # noqa: B018 - compiles
    good = subscriptions.where("id < 300 AND filter <> 'i >'")
    for mode in ("whole", "sharded"):
        job = MatchJob(events, good, schema=SCHEMA, mode=mode, on_bad="fail")
        with pytest.raises(Exception, match=r"the event has no id|event 9001: .*'hold'"):
            job.matches.count()
        job.release()


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"mode": "shard"}, "unknown mode 'shard'; did you mean 'sharded'"),
        ({"shards": 0}, "shards is a number of at least 1, not 0"),
        ({"shards": 2.5}, "shards is a number of at least 1, not 2.5"),
        ({"shards": 2, "mode": "whole"}, "leave one of them out"),
        ({"budget": "512x"}, "budget is a number of bytes"),
    ],
)
def test_settings_that_cannot_be(tables, settings, said):
    with pytest.raises(OptionError, match=said):
        MatchJob(*tables, schema=SCHEMA, **settings)


@each(
    ("text", "size"),
    [
        (1000, 1000), ("1000", 1000), ("512m", 512 << 20), ("2 GB", 2 << 30), ("3kb", 3 << 10),
        ("7b", 7), ("1t", 1 << 40),
    ],
)  # fmt: skip
def test_sizes(text, size):
    assert as_bytes(text) == size


@each("text", ["", "m", "-1", 0, -5, 1.5, True, "1.5g", "2 g g", "1kbb", "mb"])
def test_no_sizes(text):
    with pytest.raises(OptionError, match="budget is a number of bytes"):
        as_bytes(text)
