"""Events without ids are numbered in the order of the files, however Spark reads them."""

import pytest

from tamis.errors import OptionError
from tamis.spark.files.readers import read_events
from tamis.spark.files.row_numbers import with_row_numbers

pytestmark = pytest.mark.spark


def test_numbers_follow_the_files_and_have_no_gaps(spark, tmp_path):
    """Spark begins with the largest file, and cuts files into blocks."""
    value = 0
    for name, size in (("a", 300), ("b", 2000), ("c d", 50)):
        lines = (f'{{"a": {value + n}}}\n' for n in range(size))
        (tmp_path / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
        value += size
    before = spark.conf.get("spark.sql.files.maxPartitionBytes")
    spark.conf.set("spark.sql.files.maxPartitionBytes", "4096")
    try:
        frame, name = with_row_numbers(read_events(spark, tmp_path))
        assert frame.rdd.getNumPartitions() > 4
        rows = frame.select("a", name).collect()
    finally:
        spark.conf.set("spark.sql.files.maxPartitionBytes", before)
    assert sorted(row[1] for row in rows) == list(range(value))
    assert all(row[0] == row[1] for row in rows)


def test_rows_without_a_place_are_refused(spark):
    with pytest.raises(OptionError, match=r"name the column that identifies them \(--event-id\)"):
        with_row_numbers(spark.range(3).withColumnRenamed("id", "a"))
