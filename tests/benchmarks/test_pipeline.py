"""The benchmark of the pipeline: all who take part find the same, and what is measured is there."""

import json
import os
from xml.etree import ElementTree as ET

import pyarrow as pa
import pytest

import growth_plot
import pipeline
import tamis
from cases import each
from pipeline_sections import files, growth, memory, overhead, tables, users, workload_files
from pipeline_sections.spark_process import Failed, Place, Session, SparkProcess
from pipeline_sections.timing import fitting, rate, rounds
from rivals.base import LeftOut
from tamis.workloads import workload

SUBSCRIPTIONS, EVENTS = 12, 30


@pytest.fixture
def session(spark, tmp_path):
    found = Session(Place(2, tmp_path))
    found.spark = spark
    return found


# --- users


@pytest.mark.spark
@pytest.mark.parametrize("name", ["stock", "w4"])
def test_all_users_find_what_tamis_finds(spark, name):
    source = workload(name)
    subscriptions = source.subscriptions(SUBSCRIPTIONS)
    if name == "stock":  # most symbols are rare, and so would be matches
        texts = [f"symbol = 'S{n % 3 + 1}' AND price BETWEEN {n}.00 AND {90 * n + 900}.50 "
                 f"AND volume >= {1000 * n}" for n in range(SUBSCRIPTIONS)]  # fmt: skip
        subscriptions = pa.table({"id": range(SUBSCRIPTIONS), "filter": texts})
    table = workload_files.events(name, EVENTS)
    matcher = tamis.Matcher(source.schema, engine="naive")
    matcher.subscribe_many(subscriptions)
    pairs = matcher.match_batch(table.drop_columns("id"))
    assert pairs.num_rows >= SUBSCRIPTIONS
    wanted = users.digest(spark.createDataFrame(pairs.rename_columns(["event_id", "subscription"])))
    assert wanted[0] == pairs.num_rows
    for who, make in users.USERS.items():
        user = make(spark, source, subscriptions)
        found = user.matches(spark.createDataFrame(user.events(table)))
        assert users.digest(found) == wanted, who
    spark.catalog.clearCache()


@pytest.mark.spark
def test_a_contest(session):
    session.report = (known := []).append
    found = users.contest(session, "w4", SUBSCRIPTIONS, "join", EVENTS, 1e-9)
    assert found["events"] == found["few"] == EVENTS
    assert found["found"][0] > 0
    assert known[0]["times"] == [known[0]["fixed"]]
    assert all(line["found"] == found["found"] for line in known)


def test_formulas_are_not_lists_of_comparisons():
    source = workload("bdd")
    with pytest.raises(LeftOut, match="formulas"):
        users.parsed(source, source.subscriptions(10))


def test_events_are_those_of_a_longer_table():
    assert (
        workload_files.events("stock", 20_000).slice(0, 7).equals(workload_files.events("stock", 7))
    )


def test_others_must_find_the_same():
    known = {"tamis": {"few": 2, "found": (3, "17")}}
    pipeline.compare("udf", {"few": 2, "found": (3, "17")}, known)
    with pytest.raises(AssertionError, match="udf finds"):
        pipeline.compare("udf", {"few": 2, "found": (3, "18")}, known)


# --- how many events


def asked(seconds, most=1_000_000, wanted=2.0):
    sizes = []

    def ask(size):
        sizes.append(size)
        return seconds(size)

    count, fixed = fitting(ask, 64, most, wanted)
    return count, fixed, sizes


def test_what_is_fast_is_asked_about_all():
    count, fixed, _ = asked(lambda n: 0.2 + 1e-7 * n)
    assert count == 1_000_000
    assert fixed == pytest.approx(0.2, abs=0.01)


def test_a_round_takes_about_what_is_wanted():
    for per_event in (1e-5, 1e-3, 3e-3):
        count, _, _ = asked(lambda n, per_event=per_event: 0.2 + per_event * n)
        assert 1.0 <= per_event * (count - 64) < 4.0


def test_planning_is_no_reason_for_few_events():
    count, fixed, _ = asked(lambda n: 3.0 + 1e-3 * n)
    assert 1.0 <= 1e-3 * count < 4.0
    assert rate(count, 3.0 + 1e-3 * count, 64, fixed) == pytest.approx(1000)


def test_what_is_slow_is_asked_about_few():
    count, fixed, _ = asked(lambda n: 0.5 * n, wanted=20)
    assert count == 128
    assert rate(count, 64.0, 64, fixed) == 2


def test_rounds_are_fewer_for_the_slow():
    assert len(rounds(lambda: 1.0, 10)) == 3
    assert len(rounds(lambda: 20.0, 10)) == 1


# --- the other process


def test_a_process_answers_and_fails_and_starts_again(tmp_path):
    with SparkProcess(Place(1, tmp_path)) as spark_process:
        assert "Session" in spark_process.call(repr, 600)
        with pytest.raises(Failed, match="TypeError"):
            spark_process.call(len, 600)
        assert "Session" in spark_process.call(repr, 600)
        assert spark_process.call(reported, 600) == "so far"


def reported(session):
    session.report("so far")
    os._exit(3)


# --- overhead, growth, memory


@pytest.mark.spark
def test_parts_add_up_to_the_whole(session, monkeypatch):
    monkeypatch.setattr(overhead, "ROUNDS", 1)
    found = overhead.measured(session, "w4", SUBSCRIPTIONS, "lists", 200, 200, 0.0)
    parts = found["parts"]
    assert found["events"] == 200
    assert sum(parts[name] for name in tables.PARTS[:-1]) == pytest.approx(parts["whole"])
    assert len(tables.part_cells("w4", "lists", 2, found)) == len(tables.PART_COLUMNS)


@each("output", ["pairs", "lists", "counts"])
def test_as_much_is_given_back(output):
    batches = pa.table({"id": list(range(1000))}).to_batches(max_chunksize=300)
    given = list(overhead.giving_back(output, 2.5)(batches))
    assert sum(batch.num_rows for batch in given) == (2500 if output == "pairs" else 1000)


def test_answers_are_counted():
    matcher = tamis.Matcher({"a": "int"})
    matcher.subscribe_many([("x", "a > 1"), ("y", "a > 2")])
    table = pa.table({"a": [1, 2, 3]})
    assert overhead.answered(matcher, table, "pairs") == (3, 3)
    assert overhead.answered(matcher, table, "lists") == (3, 3)
    assert overhead.answered(matcher, table, "counts") == (3, 3)


@pytest.mark.spark
def test_growth_and_memory(session):
    found = growth.grown(session, "stock", 100, 50, 0.0)
    assert len(tables.grown_cells(found)) == 8
    assert memory.compiled(session, "stock", 50) == found["bytes"]
    rows = memory.held(session, "stock", 50, 100)
    assert len({line["pid"] for line in rows}) == 2
    assert [line["stage"] for line in rows] == ["started", "opened", "matched"] * 2
    assert all(line["rss"] >= line["pss"] > 0 for line in rows)
    assert all((line["file"] > 0) == (line["stage"] != "started") for line in rows)
    assert len(tables.memory_cells(rows)) == 9


@pytest.mark.spark
def test_all_writers_write_the_same(session):
    found = files.written(session, "stock", 200, 100, 1)
    assert found["pairs"] == all_pairs(200, 100)
    assert [len(times) for times in found["times"].values()] == [1, 1, 1, 1]
    assert {line[0] for line in files.lines(found["times"])} >= {"Spark's writer", "workers"}
    small = files.small_batches(session, 20, 1)
    assert [len(times) for times in small.values()] == [1, 1, 1]


def all_pairs(events, size):
    matcher = tamis.Matcher(workload("stock").schema)
    matcher.subscribe_many(workload_files.subscriptions("stock", size))
    return matcher.match_batch(workload_files.events("stock", events)).num_rows


# --- the command and what it prints


def test_what_is_asked_for():
    words = ["users", "memory", "--quick", "--sizes", "3000", "--scale", "0.01"]
    options = pipeline.arguments().parse_args(words)
    extent = pipeline.extent_of(options)
    assert options.sections == ["users", "memory"]
    assert extent.sizes == (30,)
    assert extent.held == pipeline.QUICK.held // 100
    assert extent.patience == pipeline.QUICK.patience


def test_a_row_has_a_cell_for_every_column():
    ours = {"events": 1064, "times": [1.5, 1.0, 2.0], "few": 64, "fixed": 0.5, "first": 3.0,
            "found": [128, "5"]}  # fmt: skip
    other = {**ours, "events": 74}
    assert tables.user_cells("tamis", ours, ours) == [
        "tamis", "1,000", "–", "67%", "3", "1,064", "1.50", "0.50", "3.0"
    ]  # fmt: skip
    assert tables.user_cells("udf", other, ours)[1:3] == ["10.00", "100.0 times"]
    assert tables.user_cells("udf", None, ours) == ["udf", *["–"] * 8]
    said = tables.best_of_others({"tamis": ours, "udf": other, "join-tuned": ours})
    assert "2.0 matches per event" in said
    assert "1.0 times faster than join-tuned, the best of all" in said
    assert "100.0 times faster than udf, the best of those not tuned" in said


def test_starting_says_first_and_later():
    times = {name: [3.0, 1.0, 1.0] for name in ("read", "worker", "compile", "match")}
    said = tables.started_lines(2, {"session": 4.0, "events": 5, "size": 6, **times})
    assert said.count("| 3.00 | 1.00 | 2.00 |") == 4


# --- the picture


def grown(events, size, seconds):
    return {"kind": "growth", "events": events, "size": size, "compile": 2.0, "match": [seconds]}


def test_the_picture_is_well_formed_and_shows_the_last_result():
    lines = [{"kind": "machine", "cpu": "Abacus <1>"}, grown(10, 100, 7.0), grown(10, 100, 0.5),
             grown(100, 100, 1.5), grown(100, 1000, 8.0), grown(1000, 100, 9.0),
             grown(100, 10, 0.3)]  # fmt: skip
    drawn = growth_plot.drawing(json.loads(json.dumps(lines)))
    ET.fromstring(drawn)  # noqa: S314 - our own
    assert "more events, 100 subscriptions" in drawn
    assert "more subscriptions, 100 events" in drawn
    assert "matching, all pairs: 0.50 s for 10<" in drawn
    assert "7.00 s" not in drawn
    assert "Abacus &lt;1&gt;" in drawn


def test_nothing_to_draw():
    with pytest.raises(SystemExit):
        growth_plot.drawing([{"kind": "machine", "cpu": "x"}])
