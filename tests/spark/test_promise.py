"""The promise of the language: Spark's own `filter` is the oracle.

Filters and events come from Hypothesis; they are gathered first and then asked in a few Spark jobs,
a hundred filters each. Every filter is compared on every event, and not only whether a row is kept
but also whether the condition is false or null: `NOT` would turn that difference into rows.
"""

import unicodedata

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from plain_cases import drawn
from spark_answers import differences, settings_of_filters
from strategies import SCHEMA
from tamis import Matcher, Schema, SchemaError

pytestmark = pytest.mark.spark

FILTERS = 1000
EVENTS = 40


@pytest.fixture(scope="module")
def cases(spark):
    texts, events = drawn(FILTERS, EVENTS, 20261115)
    with settings_of_filters(spark):
        frame = spark.createDataFrame(events.table).coalesce(1).cache()
        yield texts, events, frame
        frame.unpersist()


def test_conditions_have_the_truth_that_spark_gives_them(cases):
    texts, events, frame = cases
    assert len(texts) >= FILTERS // 3  # the generator has not run dry
    assert list(differences(frame, events, texts)) == []


def test_match_batch_keeps_the_rows_that_filter_keeps(cases):
    """The whole way: a table into the matcher, against `DataFrame.filter`, in one job.

    A few filters: of all of them, the truth is compared above, and a union of many takes long.
    """
    from functools import reduce

    from pyspark.sql import functions as f

    texts, events, frame = cases
    chosen = texts[:: len(texts) // 16][:16]
    matcher = Matcher(SCHEMA)
    matcher.subscribe_many(enumerate(chosen))
    pairs = matcher.match_batch(events.table).to_pydict()
    ours = set(zip(pairs["event"], pairs["subscription"], strict=True))
    kept = [
        frame.filter(text).select("n", f.lit(k).alias("subscription"))
        for k, text in enumerate(chosen)
    ]
    rows_of_spark = reduce(lambda a, b: a.unionAll(b), kept).collect()
    assert ours == {(row["n"], row["subscription"]) for row in rows_of_spark}
    assert ours


FIXED = [
    # Each of these was, or could have been, wrong once.
    "x IN (0.0D, 1D, 2D, 3D, 4D, 5D, 6D, 7D, 8D, 9D, 10D, 11D)",
    "x IN (-0.0D)",
    "x = -0.0D",
    "i BETWEEN 9007199254740992 AND 9007199254740993e0",
    "i < 9007199254740993e0",
    "i = 9007199254740993.0",
    "length(s) + 2147483647 < 0",
    "i + 9223372036854775807 < 0",
    "-(i) = i",
    "abs(i) < 0",
    "i / 0 IS NULL AND i % 0 IS NULL AND i DIV 0 IS NULL",
    "i % -3 = -1 OR i DIV -2 = 0",
    "x % 0.3 > 0.1",
    "i * 0.1 = 0.3",
    "1.0 / 3 = 0.333333",
    "i * 1.5 / 7 > 0.1",
    "9223372036854775807 * 9223372036854775807.5 * i > 0",
    "lower(upper(s)) = s",
    "upper(lower(s)) = s",
    "upper(s) = 'SS'",
    "s LIKE '%\\\\%%'",
    "s LIKE '_%_'",
    "s RLIKE 'a$'",
    "s RLIKE '^.$'",
    "s RLIKE '\\\\s'",
    "s IN ('a', NULL)",
    "NOT s IN ('b', NULL)",
    "(x > 1) IS UNKNOWN",
    "(x > 1) <=> NULL",
    "(x > 1) < (y > 1)",
    "(x > 1) IN (b, NULL)",
    "b = c = TRUE",
    "at > '2024-01-01'",
    "at BETWEEN '2024-01-01' AND '2024-01-31 23:59:59.999999'",
    "at >= DATE '2024-01-01'",
    "at = TIMESTAMP '2024-01-01 01:00:00+01:00'",
    "r.k IS NULL OR r.name = ''",
    "`odd ``name``.` > 0",
    "NULL",
    "NULL IS NULL",
    "x <=> NULL",
    "x IS DISTINCT FROM 1 AND s IS DISTINCT FROM NULL",
    "s IS NOT DISTINCT FROM 'a' OR NOT x IS DISTINCT FROM y + 1",
    "NOT (NULL AND x > 1)",
    "! b == c",
    "s = 'it''s' OR s = \"it's\" OR s = 'it\\'s'",
    "s = r'a\\b'",
    "s = 'a\\u000ab'",
]


def test_delicate_filters_agree_with_spark(cases):
    _, events, frame = cases
    assert list(differences(frame, events, FIXED)) == []


def test_case_mappings_differ_only_where_python_knows_no_such_letter(spark, tmp_path):
    """All code points; the letters that differ are newer than Python's tables (language.md)."""
    letters = [chr(code) for code in range(0x110000) if not 0xD800 <= code <= 0xDFFF]
    pq.write_table(pa.table({"s": letters}), tmp_path / "letters.parquet")
    frame = spark.read.parquet(str(tmp_path / "letters.parquet"))
    frame = frame.selectExpr("s", "lower(s) AS lower", "upper(s) AS upper")
    changed = frame.filter("lower <> s OR upper <> s").toArrow().to_pylist()
    sparks = {row["s"]: (row["lower"], row["upper"]) for row in changed}
    assert len(sparks) > 2000
    for letter in letters:
        ours, theirs = (letter.lower(), letter.upper()), sparks.get(letter, (letter, letter))
        if ours != theirs:
            assert any(unicodedata.category(c) == "Cn" for c in letter + "".join(theirs)), letter


def test_a_schema_is_taken_from_a_spark_frame(cases):
    _, _, frame = cases
    assert Schema.from_spark(frame.drop("n").schema) == SCHEMA
    assert Matcher(frame.drop("n").schema).schema == SCHEMA


def test_spark_columns_that_no_filter_can_use_are_refused_or_skipped(spark):
    frame = spark.sql(
        "SELECT 1Y AS a, 1.5F AS b, 1.5 AS c, DATE '2024-01-01' AS d, array(X'1') AS e"
    )
    with pytest.raises(SchemaError, match="column e has the type array<binary>"):
        Schema.from_spark(frame.schema)
    schema = Schema.from_spark(frame.schema, unsupported="skip")
    assert [str(schema[name]) for name in schema] == ["int", "double", "decimal(2, 1)", "timestamp"]
