"""Profiles of DataFrames: what `Profile.of` says of the same events."""

from datetime import UTC, datetime

import pytest

from tamis import OptionError, Profile
from tamis.spark.profiles import profile
from tamis.workloads import workload

pytestmark = pytest.mark.spark


def test_partitions_make_one_profile(spark):
    events = workload("stock").events(6000, density=0.9)
    frame = spark.createDataFrame(events).repartition(7)
    found, here = profile(frame, sample=500, top=20), Profile.of(events, sample=500, top=20)
    assert found.schema == here.schema
    assert found.events == 6000
    assert found.sample.num_rows == 500
    for name in ("symbol", "volume"):
        assert found.range(name) == here.range(name)
        assert found.summaries[found.schema.positions[(name,)]].minima.tolist() == (
            here.summaries[here.schema.positions[(name,)]].minima.tolist()
        )
    symbols = events["symbol"].to_pylist()
    for value, low, high in found.frequent("symbol", 10):
        assert low <= symbols.count(value) <= high


def test_columns_of_every_kind(spark):
    moment = datetime(2024, 1, 31, 12, tzinfo=UTC)
    frame = spark.createDataFrame(
        [
            (1, 2.5, "é", True, moment, (7, "x", [[1]]), [[1]]),
            (None, float("nan"), "", None, None, (None, "x", [[1]]), [[1]]),
            (-(2**63), None, None, False, moment, None, None),
        ],
        "i long, x double, s string, b boolean, t timestamp, "
        "r struct<n: int, `a.b`: string, skipped: array<array<int>>>, skipped array<array<int>>",
    ).coalesce(1)
    found = profile(frame.selectExpr("*", "cast(i as decimal(20, 0)) as `d.e`"))
    assert list(found.schema) == ["i", "x", "s", "b", "t", "r.n", "r.`a.b`", "`d.e`"]
    assert found.events == 3
    assert found.range("t") == (1706702400000000, 1706702400000000)
    low, high = found.range("`d.e`")  # of a long decimal, 17 digits are known
    assert (low // 100, high) == (-(2**63) // 100 + 1, 1)
    assert [found.present(name) for name in found.schema] == [2, 2, 2, 2, 2, 1, 2, 2]
    assert found.together("r.n", "r.`a.b`") == pytest.approx(1 / 3)
    assert found.sample.num_rows == 3
    assert Profile.of(found.sample, found.schema).to_dict() == found.to_dict()


def test_a_schema_of_ones_own_and_frames_without_events(spark):
    frame = spark.createDataFrame([(1, "a"), (9, "b")], "level int, `site.name` string")
    schema = {"level": "int(1, 5)", "site.name": "string", "other.thing": "double"}
    found = profile(frame, schema=schema)
    assert (found.events, found.refused) == (1, 1)
    assert found.frequent("site.name") == [("a", 1, 1)]
    assert found.missing("other.thing") == 1
    nobody = profile(frame.limit(0))
    assert (nobody.events, len(nobody.schema)) == (0, 2)
    assert profile(frame.selectExpr("array(array(level)) as l")).events == 2
    assert profile(frame.selectExpr("array(level) as l")).range("l") == (1, 1)


def test_a_stream_is_refused(spark):
    stream = spark.readStream.format("rate").load()
    with pytest.raises(OptionError, match="not a stream"):
        profile(stream)
