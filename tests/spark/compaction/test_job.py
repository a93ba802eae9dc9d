"""Tables of subscriptions, compacted on Spark: the library and the originals are the oracles."""

import pytest

from stocks import SMALL, stock_filters, stock_rows
from tamis import Matcher, OptionError, SubscriptionError
from tamis import compaction as library
from tamis.matcher_settings import MatcherSettings
from tamis.spark import compact, match
from tamis.spark.compaction import job as compaction_job
from tamis.spark.compaction import restoration
from tamis.spark.compaction.filter_forms import most_pinned
from tamis.spark.compaction.worker import MergerIds

pytestmark = pytest.mark.spark

KINDS = "id bigint, i bigint, x double, s string, b boolean, side string"
TEXTS = [*stock_filters(4, 60), *stock_filters(4, 20), "TRUE AND s = 'T1'", "i > 3 AND i < 3"]


@pytest.fixture(scope="module")
def events(spark):
    rows = [(n, *row) for n, row in enumerate(stock_rows(3, 80))]
    return spark.createDataFrame(rows, KINDS).repartition(2)


@pytest.fixture(scope="module")
def table(spark):
    def make(pairs, kind="string"):
        return spark.createDataFrame(list(pairs), f"id {kind}, filter string").coalesce(1)

    return make


def pairs_of(frame):
    return sorted(tuple(row) for row in frame.collect())


def expected_pairs(pairs):
    matcher = Matcher(SMALL)
    matcher.subscribe_many(pairs)
    events = [dict(zip(SMALL, row, strict=True)) for row in stock_rows(3, 80)]
    found = matcher.match_batch(events)
    columns = found["event"].to_pylist(), found["subscription"].to_pylist()
    return sorted(zip(*columns, strict=True))


def test_matches_with_the_compacted_table_lead_back_to_the_originals(table, events):
    pairs = [(f"s{n}", text) for n, text in enumerate(TEXTS)]
    job = compact(table(pairs), SMALL)
    local = library.compact(pairs, SMALL)
    report = job.report
    assert report.duplicates == local.report.duplicates >= 20
    assert report.never == local.report.never == 1
    assert report.originals == 82
    assert report.left < 60
    left = dict(pairs_of(job.subscriptions))
    mapping = pairs_of(job.mapping)
    assert len(left) == report.left
    assert {one for one, _, _, _ in mapping} == set(left)
    texts = dict(pairs)
    assert all((text is None) == exact for _, _, exact, text in mapping)
    forms = {text: found for _, found, _, text in mapping if text is not None}
    assert set(forms) <= set(texts.values())
    ((never, text, reason),) = pairs_of(job.never)
    assert (never, text) == ("s81", "i > 3 AND i < 3")
    assert reason.startswith("no event can match it: no value of i")
    assert pairs_of(job.restore(match(events, job.subscriptions), events)) == expected_pairs(pairs)
    job.release()


def test_each_distinct_filter_is_asked_once(table, events):
    pairs = [(f"s{n}", text) for n, text in enumerate(TEXTS)]
    job = compact(table(pairs), SMALL, cover=False)
    assert pairs_of(job.match(events)) == expected_pairs(pairs)
    assert (job.report.covered, job.report.merged, job.report.never) == (0, 0, 1)
    job.release()


def test_numbers_as_ids_events_for_a_schema_and_a_mapping_from_elsewhere(table, events, spark):
    pairs = [(n, text) for n, text in enumerate(TEXTS) if "side" not in text]
    job = compact(table(pairs, "int"), events.drop("id", "side"))
    mapping = spark.createDataFrame(job.mapping.collect(), job.mapping.schema)
    found = match(events, job.subscriptions)
    assert pairs_of(restoration.restore(found, events, mapping)) == expected_pairs(pairs)
    ids = [row.id for row in job.subscriptions.collect()]
    assert len(set(ids)) == len(ids)
    job.release()


def test_bad_rows_are_left_out_and_told_and_the_last_row_of_an_id_counts(table, events, caplog):
    pairs = [
        ("a", "i > 1"), ("b", "ii > 1"), (None, "i > 1"), ("c", None), ("d", "i>1"), ("a", "i > 0"),
    ]  # fmt: skip
    job = compact(table(pairs), events)
    assert pairs_of(job.subscriptions) == [("a", "i > 0")]
    assert pairs_of(job.mapping) == [("a", "a", True, None), ("a", "d", False, "i>1")]
    assert "3 rows cannot be used" in caplog.text
    letters = {
        (letter.id, letter.reason.partition(" ")[0]) for letter in job.dead_letters.collect()
    }
    assert letters == {("b", "unknown"), (None, "the"), ("c", "the")}
    assert (job.counts.bad, job.counts.replaced, job.report.originals) == (3, 1, 2)
    with pytest.raises(OptionError, match="subscriptions: 3 rows cannot be used"):
        _ = compact(table(pairs), events, on_bad="fail").report
    with pytest.raises(SubscriptionError, match="make ids unique"):
        _ = compact(table(pairs), events, duplicates="error").report


def test_parts_of_wide_filters_and_few_that_are_sent(table, events, monkeypatch):
    """However the work is divided, the answer is right."""
    monkeypatch.setattr(compaction_job, "WIDE", 20)
    monkeypatch.setattr(compaction_job, "COMPARED", 10)
    monkeypatch.setattr(compaction_job, "SENT", 3)
    monkeypatch.setattr(restoration, "BROADCAST", 10)
    pairs = [(f"merged-{n}", text) for n, text in enumerate(TEXTS)]
    job = compact(table(pairs), SMALL)
    ids = [row.id for row in job.subscriptions.collect()]
    assert len(set(ids)) == len(ids)
    assert any(one.startswith("merged--") for one in ids)
    restored = job.restore(match(events, job.subscriptions), events)
    assert pairs_of(restored) == expected_pairs(pairs)
    job.release()


def test_what_cannot_be_compacted(table, events, spark):
    with pytest.raises(OptionError, match="must be a Spark DataFrame, not list"):
        compact([("a", "i > 1")], SMALL)
    with pytest.raises(OptionError, match="exactly one column 'filter'"):
        compact(events, SMALL)
    with pytest.raises(OptionError, match="needs defaults"):
        compact(table([("a", "i > 1")]), SMALL, semantics="default")
    stream = spark.readStream.format("rate").load()
    with pytest.raises(OptionError, match="a stream; compact takes a table"):
        compact(stream, SMALL)
    job = compact(table([("a", "i > 1")]), SMALL)
    with pytest.raises(OptionError, match="with the columns event_id and subscription"):
        job.restore(events, events)
    full = compact(table([(2**63 - 1, "i > 1"), (-(2**63), "i <= 1")], "bigint"), SMALL)
    with pytest.raises(OptionError, match="mergers need ids above the largest"):
        _ = full.report


def test_ids_of_mergers():
    assert MergerIds("merged-").id(2, 0) == "merged-2-1"
    assert MergerIds(None, 10).id(0, 5) == 15
    assert MergerIds(None, 10, -1).id(0, 5) == 5


def test_the_attribute_that_most_filters_ask_for_one_value_of():
    meaning = MatcherSettings(SMALL)
    texts = ["s = 'a' AND i > 1", "s = 'b'", "i = 3 AND s = 'c'", "no filter", "x > 1"]
    assert most_pinned(texts, meaning) == 2
    assert most_pinned(["x > 1", "i < 3"], meaning) is None
