"""`format("tamis")`: the same rows however they are asked for, and no row twice."""

import ast
import json
import pickle
import re
from pathlib import Path

import pyarrow as pa
import pytest

import tamis
from cases import each
from tamis.spark.source.generated_table import (
    PARTITIONS,
    ROWS_PER_PARTITION,
    GeneratedTable,
    read_options,
)
from tamis.workloads import BLOCK, NAMES, workload

pytestmark = pytest.mark.spark

PAGE = Path(__file__).parents[3] / "docs" / "sources.md"
BLOCKS = re.compile(r"^```python\n(.*?)^```", re.MULTILINE | re.DOTALL)
CONFIG = """
about = "everyone has these"
kind = "grammar"
grammar = "small.bnf"

[[attributes]]
names = ["level"]
type = "int"
range = [1, 3]

[[attributes]]
names = ["NAME"]
type = "string"
values = ["a", "b"]
"""


def table(generation, start, end):
    return pa.Table.from_batches(generation.batches(start, end))


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "small.toml"
    path.write_text(CONFIG.replace("NAME", "name"))
    (tmp_path / "small.bnf").write_text('query = "level = 2" ;')
    return path


# --- rows, without Spark


@each("name", NAMES)
def test_events_are_the_blocks_of_the_workload_after_their_number(name):
    made = workload(name)
    rows = table(read_options({"workload": name, "seed": "3", "density": "0.5"}), 0, BLOCK + 5)
    assert rows.column_names == ["id", *made.schema]
    assert rows["id"].to_pylist() == list(range(BLOCK + 5))
    blocks = [made.event_block(k, seed=3, density=0.5) for k in range(2)]
    assert rows.drop_columns("id") == pa.concat_tables([blocks[0], blocks[1].slice(0, 5)])


def test_a_range_of_rows_is_the_same_wherever_it_begins_and_ends():
    events = read_options({"workload": "stock"})
    rules = read_options({"workload": "tree", "table": "subscriptions", "rows": str(2 * BLOCK)})
    for generation in (events, rules):
        whole = table(generation, 0, 2 * BLOCK)
        for start, end in ((0, 1), (BLOCK - 3, BLOCK + 3), (BLOCK, 2 * BLOCK), (7, 2 * BLOCK - 7)):
            assert table(generation, start, end) == whole.slice(start, end - start)
    assert list(events.batches(5, 5)) == []


def test_events_do_not_depend_on_rows_and_subscriptions_do():
    few, many = ({"workload": "tree", "rows": rows} for rows in ("20000", "200000"))
    assert table(read_options(few), 0, 9) == table(read_options(many), 0, 9)
    few["table"] = many["table"] = "subscriptions"
    assert table(read_options(few), 0, 9) != table(read_options(many), 0, 9)


def test_subscriptions_have_the_matches_that_the_workload_promises():
    rules = read_options({"workload": "tree", "table": "subscriptions", "rows": "40000"})
    matcher = tamis.Matcher(rules.workload.schema)
    matcher.subscribe_many(table(rules, 0, 40_000))
    events = table(read_options({"workload": "tree"}), 0, 500).drop_columns("id")
    counts = matcher.match_batch(events, output="counts")["count"].to_pylist()
    assert sum(counts) / 500 == pytest.approx(100, rel=0.1)


def test_ranges_are_even_and_leave_nothing_out():
    generation = GeneratedTable(workload("w4"), partitions=3)
    assert generation.ranges(10, 20) == [(10, 13), (13, 16), (16, 20)]
    assert generation.ranges(4, 6) == [(4, 5), (5, 6)]
    assert generation.ranges(4, 4) == []
    unsaid = GeneratedTable(workload("w4"))
    assert len(unsaid.ranges(0, 1)) == 1
    assert len(unsaid.ranges(7, 7 + 3 * ROWS_PER_PARTITION)) == 3
    assert len(unsaid.ranges(0, 10**12)) == PARTITIONS


def test_the_defaults():
    generation = read_options({"WORKLOAD": "stock", "maxrowsperbatch": "10"})
    assert generation == GeneratedTable(workload("stock"), rows_per_batch=10)
    assert (generation.table, generation.rows, generation.seed) == ("events", None, 1)
    assert (generation.density, generation.partitions, generation.rate) == (1.0, None, None)


@each(
    ("options", "problem"),
    [
        ({}, r"needs exactly one of the options workload \(w0, .*, constants, .*\) and config"),
        ({"workload": "w4", "config": "x"}, "needs exactly one of the options"),
        ({"workload": "stocks"}, "unknown workload 'stocks'; did you mean 'stock'"),
        ({"config": "nowhere.toml"}, "nowhere.toml cannot be read"),
        ({"workload": "w4", "row": "1"}, "unknown option .*'row'; did you mean 'rows'.*seed"),
        ({"workload": "w4", "path": "x"}, "unknown option .*'path'; .*choices: workload, config"),
        ({"workload": "w4", "table": "event"}, "unknown table .*choices: events, subscriptions"),
        ({"workload": "w4", "rows": "many"}, "rows must be a whole number from 0 on.*'many'"),
        ({"workload": "w4", "rows": "-1"}, "rows must be a whole number from 0 on"),
        ({"workload": "w4", "rows": "1e6"}, "rows must be a whole number from 0 on"),
        ({"workload": "w4", "rows": str(2**63)}, "rows must be a whole number from 0 on"),
        ({"workload": "w4", "seed": "-1"}, "seed must be a whole number from 0 on"),
        ({"workload": "w4", "partitions": "0"}, "partitions must be a whole number from 1 to 100"),
        ({"workload": "w4", "density": "1.5"}, "density must be a number from 0 to 1"),
        ({"workload": "w4", "rate": "-5"}, "rate must be rows per second, above 0.*'-5'"),
        ({"workload": "w4", "rate": "0"}, "rate must be rows per second"),
        ({"workload": "w4", "rate": "nan"}, "rate must be rows per second"),
        ({"workload": "w4", "rate": "inf"}, "rate must be rows per second"),
        ({"workload": "w4", "maxRowsPerBatch": "0"}, "maxRowsPerBatch must be a whole number fr"),
        ({"workload": "w4", "table": "subscriptions"}, "the table subscriptions needs the option"),
        (
            {"workload": "tree", "table": "subscriptions", "rows": "5"},
            "100 matches per event need at least .* subscriptions",
        ),
    ],
)
def test_misuse_is_told(options, problem):
    with pytest.raises(tamis.TamisError, match=problem):
        read_options(options)


def test_an_attribute_cannot_take_the_place_of_the_row_number(config):
    config.write_text(CONFIG.replace("NAME", "Id"))
    with pytest.raises(tamis.OptionError, match="workload small has an attribute 'Id', which is"):
        read_options({"config": str(config)})
    read_options({"config": str(config), "table": "subscriptions", "rows": "1"})


# --- the readers, without a session


class Clock:
    """Seconds that pass when the test says so."""

    now = 1000.0

    def __call__(self):
        return self.now


class Stream:
    """A reader and what Spark does with it: ask where to, and go there."""

    def __init__(self, row=0, **options):
        from tamis.spark.source.data_source import StreamReader

        self.clock = Clock()
        self.reader = StreamReader(read_options({"workload": "stock"} | options), self.clock)
        self.row = row

    def batch(self, limit=None):
        """How many rows the next batch has."""
        limit = limit or self.reader.getDefaultReadLimit()
        end = self.reader.latestOffset({"row": self.row}, limit)
        assert json.loads(json.dumps(end)) == end
        rows, self.row = end["row"] - self.row, end["row"]
        return rows


def test_rows_come_due_by_the_clock():
    stream = Stream(rate="10")
    assert stream.reader.initialOffset() == {"row": 0}
    batches = []
    for seconds in (0, 0.25, 0.04, 1, 100, 0):
        stream.clock.now += seconds
        batches.append(stream.batch())
    assert batches == [0, 2, 0, 10, 1000, 0]
    assert stream.reader.reportLatestOffset() == {"row": 1012}


def test_the_clock_starts_with_the_query_and_not_with_the_checkpoint():
    stream = Stream(row=5000, rate="0.5")
    stream.clock.now += 10**6  # between making the reader and the first batch nothing comes due
    assert stream.batch() == 0
    stream.clock.now += 4
    assert stream.batch() == 2
    assert stream.row == 5002


def test_catching_up_is_bounded():
    stream = Stream(rate="100", maxRowsPerBatch="250")
    stream.batch()
    stream.clock.now += 6
    assert [stream.batch() for _ in range(4)] == [250, 250, 100, 0]


def test_a_stream_ends_after_its_rows():
    stream = Stream(rate="100", rows="150")
    stream.batch()
    stream.clock.now += 1
    assert stream.batch() == 100
    stream.clock.now += 10
    assert [stream.batch(), stream.batch()] == [50, 0]
    assert Stream(row=200, rows="150").batch() == 0  # more than that in an earlier run


def test_without_a_rate_every_batch_is_full():
    stream = Stream(maxRowsPerBatch="70", rows="200")
    assert [stream.batch() for _ in range(4)] == [70, 70, 60, 0]
    assert Stream(maxRowsPerBatch="70").batch() == 70
    assert Stream(maxRowsPerBatch="70").reader.reportLatestOffset() is None


def test_a_limit_of_the_trigger_is_respected():
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

    stream = Stream(maxRowsPerBatch="70", rows="200")
    assert stream.batch(ReadMaxRows(3)) == 3
    assert stream.batch(ReadAllAvailable()) == 197
    assert Stream(maxRowsPerBatch="70").batch(ReadAllAvailable()) == 70


def test_available_now_is_all_rows_at_any_rate():
    stream = Stream(rate="1", rows="100", maxRowsPerBatch="60")
    stream.reader.prepareForTriggerAvailableNow()
    assert [stream.batch() for _ in range(3)] == [60, 40, 0]
    with pytest.raises(tamis.OptionError, match="availableNow needs the option rows"):
        Stream(rate="1").reader.prepareForTriggerAvailableNow()


def test_partitions_of_a_batch_are_read_anywhere():
    reader = Stream(partitions="3").reader
    parts = reader.partitions({"row": 100}, {"row": 130})
    elsewhere = pickle.loads(pickle.dumps(read_options({"workload": "stock"})))
    read = [batch for part in parts for batch in reader.read(pickle.loads(pickle.dumps(part)))]
    assert len(parts) == len(read) == 3
    assert pa.Table.from_batches(read) == table(elsewhere, 100, 130)
    assert reader.partitions({"row": 130}, {"row": 130}) == []


# --- on Spark


@pytest.fixture(scope="module")
def source(spark):
    """The session that knows the format."""
    from tamis.spark.source.data_source import register

    register(spark)
    return spark


def load(source, **options):
    return source.read.format("tamis").options(**options).load()


def test_a_table_is_the_same_in_any_number_of_partitions(source):
    expected = table(read_options({"workload": "bdd", "seed": "2"}), 0, 20_000)
    for partitions in (1, 3):
        frame = load(source, workload="bdd", rows=20_000, seed=2, partitions=partitions)
        found = frame.selectExpr("*", "spark_partition_id() AS part").toArrow().sort_by("id")
        assert found["part"].unique().to_pylist() == list(range(partitions))
        assert found.drop_columns("part") == expected
    kinds = dict(frame.dtypes)
    assert (kinds["id"], kinds["i0"], kinds["d0"], kinds["s0"]) == (
        "bigint", "bigint", "double", "string",
    )  # fmt: skip


def test_subscriptions_and_a_config_of_ones_own(source, config):
    rules = load(source, workload="stock", table="subscriptions", rows=10, partitions=2)
    made = workload("stock").subscription_block(0, 10)
    assert rules.toArrow().sort_by("id") == made
    own = load(source, config=str(config), rows=5)
    assert own.toArrow() == table(read_options({"config": str(config)}), 0, 5)
    assert load(source, config=str(config), rows=0).collect() == []


def test_misuse_is_told_when_it_is_loaded(source):
    from pyspark.errors import AnalysisException

    with pytest.raises(AnalysisException, match="OptionError: unknown workload 'stocks'; did you"):
        load(source, workload="stocks", rows=1)
    with pytest.raises(AnalysisException, match="the option rate must be rows per second, above 0"):
        source.readStream.format("tamis").options(workload="w4", rate=-1).load()
    rowless = load(source, workload="w4")  # could be a stream
    with pytest.raises(
        AnalysisException, match="a table that does not stream needs the option rows"
    ):
        rowless.count()
    foreign = source.read.format("tamis").schema("id int").options(workload="w4", rows=1).load()
    with pytest.raises(AnalysisException, match=r"has its own schema.*id:bigint,a0:bigint"):
        foreign.count()


def test_a_stream_that_starts_again_goes_on_exactly_where_it_was(source, tmp_path):
    def run(**options):
        """The rows of each batch, by its number."""
        seen = {}
        frame = source.readStream.format("tamis").options(workload="stock", **options).load()
        query = (
            frame.writeStream.foreachBatch(lambda rows, batch: seen.update({batch: rows.toArrow()}))
            .option("checkpointLocation", str(tmp_path))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination()
        return seen

    before = run(rows=500, maxRowsPerBatch=300)
    for name in ("1", ".1.crc"):  # as if the query had died just before it was done
        (tmp_path / "commits" / name).unlink()
    after = run(rows=900, maxRowsPerBatch=350, partitions=2, rate=1)
    assert (list(before), list(after)) == ([0, 1], [1, 2, 3])
    assert after[1].sort_by("id") == before[1]
    rows = pa.concat_tables([*before.values(), after[2], after[3]]).sort_by("id")
    assert rows == table(read_options({"workload": "stock"}), 0, 900)


def test_the_page_about_sources_is_true(source):
    """Its blocks are run, but for those that need a broker: these are only read."""
    names = {}
    for body in BLOCKS.findall(PAGE.read_text("utf-8")):
        tree = ast.parse(body)
        if 'format("kafka")' in body:
            record = ("quotes", 0, 7, bytearray(b'{"symbol": "S1", "price": 9.5}'))
            kinds = "topic string, partition int, offset bigint, value binary"
            names["records"] = source.createDataFrame([record], kinds)
            continue
        for node in tree.body:
            code = ast.get_source_segment(body, node)
            promise = body.splitlines()[node.end_lineno - 1].partition("  # ")[2]
            if isinstance(node, ast.Expr) and promise:
                assert repr(eval(code, names)) == promise, code  # noqa: S307 - our own page
            else:
                exec(code, names)  # noqa: S102 - our own page
    assert names["events"].collect()[0].asDict() == {
        "id": "quotes-0-7", "symbol": "S1", "price": 9.5, "volume": None,
    }  # fmt: skip
