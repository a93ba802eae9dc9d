"""The promise of the language: Spark's own `filter` is the oracle.

Filters and events come from Hypothesis; they are gathered first and then asked in a few Spark jobs,
a hundred filters each. Every filter is compared on every event, and not only whether a row is kept
but also whether the condition is false or null: `NOT` would turn that difference into rows.
"""

import unicodedata

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import Phase, given, seed, settings

from strategies import SCHEMA, delicate_rows, filters, rows
from tamis import Matcher, Schema, SchemaError, TypeMismatch, parse
from tamis.language.evaluation import compile_tree

pytestmark = pytest.mark.spark

FILTERS = 1000
EVENTS = 40
FILTERS_PER_JOB = 100


def gathered() -> tuple[list[str], list[tuple[object, ...]]]:
    """Filters that tamis accepts, and events."""
    texts: dict[str, None] = {}
    events: list[tuple[object, ...]] = []

    @seed(20261115)
    @settings(max_examples=FILTERS, phases=[Phase.generate], database=None)
    @given(filters(), rows())
    def gather(text: str, row: tuple[object, ...]) -> None:
        texts[text] = None
        events.append(row)

    gather()
    accepted = [text for text in texts if is_accepted(text)]
    return accepted, events[:: max(1, len(events) // EVENTS)][:EVENTS] + delicate_rows()


def is_accepted(text: str) -> bool:
    """Whether tamis takes the filter; the generator makes few decimals that are too long."""
    try:
        parse(text, SCHEMA)
    except TypeMismatch:
        return False
    return True


def event_table(events: list[tuple[object, ...]]) -> pa.Table:
    columns = dict(zip(SCHEMA, zip(*events, strict=True), strict=True))
    moment = pa.timestamp("us", "UTC")

    def array(name: str, kind: pa.DataType) -> pa.Array:
        return pa.array(columns[name], kind, from_pandas=False)

    record = pa.StructArray.from_arrays(
        [array("r.k", pa.int64()), array("r.name", pa.string())], ["k", "name"]
    )
    return pa.table(
        {
            "n": pa.array(range(len(events)), pa.int64()),
            "i": array("i", pa.int64()),
            "j": array("j", pa.int64()),
            "x": array("x", pa.float64()),
            "y": array("y", pa.float64()),
            "s": array("s", pa.string()),
            "t": array("t", pa.string()),
            "b": array("b", pa.bool_()),
            "c": array("c", pa.bool_()),
            "at": array("at", pa.int64()).cast(moment),
            "until": array("until", pa.int64()).cast(moment),
            "r": record,
            "odd `name`.": array("`odd ``name``.`", pa.float64()),
            "d": array("d", pa.decimal128(9, 2)),
            "e": array("e", pa.decimal128(38, 10)),
        }
    )


@pytest.fixture(scope="module")
def cases(spark):
    spark.conf.set("spark.sql.ansi.enabled", "false")
    # A hundred filters of one job have parts in common, which a filter alone has not.
    spark.conf.set("spark.sql.subexpressionElimination.enabled", "false")
    texts, events = gathered()
    table = event_table(events)
    frame = spark.createDataFrame(table).coalesce(1).cache()
    yield texts, events, table, frame
    frame.unpersist()
    spark.conf.unset("spark.sql.subexpressionElimination.enabled")
    spark.conf.unset("spark.sql.ansi.enabled")


def test_conditions_have_the_truth_that_spark_gives_them(cases):
    texts, events, _, frame = cases
    wrong = []
    for start in range(0, len(texts), FILTERS_PER_JOB):
        chunk = texts[start : start + FILTERS_PER_JOB]
        columns = [f"({text}) AS c{k}" for k, text in enumerate(chunk)]
        answers = frame.selectExpr("n", *columns).toArrow().sort_by("n")
        for k, text in enumerate(chunk):
            condition = compile_tree(parse(text, SCHEMA).tree, SCHEMA)
            expected = answers[f"c{k}"].to_pylist()
            wrong += [
                (text, event, ours, sparks)
                for event, sparks in zip(events, expected, strict=True)
                if (ours := condition(event)) is not sparks
            ]
    assert len(texts) >= FILTERS // 3  # the generator has not run dry
    assert wrong == []


def test_match_batch_keeps_the_rows_that_filter_keeps(cases):
    """The whole way: a table into the matcher, against `DataFrame.filter`, in one job."""
    from functools import reduce

    from pyspark.sql import functions as f

    texts, _, table, frame = cases
    chosen = texts[:: len(texts) // 80][:80]
    matcher = Matcher(SCHEMA)
    matcher.subscribe_many(enumerate(chosen))
    pairs = matcher.match_batch(table).to_pydict()
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
    "NOT (NULL AND x > 1)",
    "! b == c",
    "s = 'it''s' OR s = \"it's\" OR s = 'it\\'s'",
    "s = r'a\\b'",
    "s = 'a\\u000ab'",
]


def test_delicate_filters_agree_with_spark(cases):
    _, events, _, frame = cases
    columns = [f"({text}) AS c{k}" for k, text in enumerate(FIXED)]
    answers = frame.selectExpr("n", *columns).toArrow().sort_by("n")
    wrong = []
    for k, text in enumerate(FIXED):
        condition = compile_tree(parse(text, SCHEMA).tree, SCHEMA)
        wrong += [
            (text, event, ours, sparks)
            for event, sparks in zip(events, answers[f"c{k}"].to_pylist(), strict=True)
            if (ours := condition(event)) is not sparks
        ]
    assert wrong == []


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
    _, _, _, frame = cases
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
