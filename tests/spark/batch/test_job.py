"""DataFrames matched with DataFrames: Spark's own `filter` and the naive engine are the oracles."""

import json
import logging
import math

import pyarrow as pa
import pytest
from hypothesis import Phase, given, seed, settings

from stocks import SMALL, stock_filters, stock_rows
from strategies import SCHEMA, delicate_rows, filters, rows
from tamis import EventError, ExpressionError, Matcher, OptionError, SubscriptionError, parse
from tamis.spark import MatchJob, match
from tamis.spark.tables import subscription_table
from tamis.spark.tables.event_table import EventTable

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module", autouse=True)
def plain_arithmetic(spark):
    """As the language has it: what overflows wraps, and is not an error."""
    spark.conf.set("spark.sql.ansi.enabled", "false")
    yield
    spark.conf.unset("spark.sql.ansi.enabled")


@pytest.fixture(scope="module")
def table(spark):
    """Subscriptions of texts, under their numbers or under given ids."""

    def make(texts, ids=None, kind="bigint"):
        pairs = list(zip(range(len(texts)) if ids is None else ids, texts, strict=True))
        return spark.createDataFrame(pairs, f"id {kind}, filter string").coalesce(1)

    return make


def pairs_of(frame):
    return {tuple(row) for row in frame.collect()}


def kept_by_spark(events, texts, event_id):
    """What `filter` keeps, for each filter; in one job."""
    conditions = [f"coalesce(({text}), false) AS c{n}" for n, text in enumerate(texts)]
    found = events.selectExpr(f"`{event_id}` AS id", *conditions).collect()
    return {(row.id, n) for row in found for n in range(len(texts)) if row[f"c{n}"]}


# --- the promise


def gathered(size):
    """Filters of the whole language that tamis takes, and events."""
    texts, events = {}, []

    @seed(20261116)
    @settings(max_examples=size, phases=[Phase.generate], database=None)
    @given(filters(), rows())
    def gather(text, row):
        texts[text] = None
        events.append(row)

    gather()
    accepted = []
    for text in texts:
        try:
            parse(text, SCHEMA)
            accepted.append(text)
        except ExpressionError:
            continue
    return accepted, [*events[:20], *delicate_rows()]


def test_match_keeps_the_rows_that_filter_keeps(spark, table):
    texts, events = gathered(40)
    columns = dict(zip(SCHEMA, map(list, zip(*events, strict=True)), strict=True))
    moment = pa.timestamp("us", "UTC")
    record = pa.StructArray.from_arrays(
        [pa.array(columns.pop("r.k"), pa.int64()), pa.array(columns.pop("r.name"))], ["k", "name"]
    )
    columns["odd `name`."] = columns.pop("`odd ``name``.`")
    arrow = pa.table(
        {name: pa.array(column, from_pandas=False) for name, column in columns.items()}
        | {name: pa.array(columns[name], pa.int64()).cast(moment) for name in ("at", "until")}
        | {"r": record, "event": list(range(len(events)))}
    )
    frame = spark.createDataFrame(arrow)
    ours = pairs_of(match(frame, table(texts), "event"))
    assert ours == kept_by_spark(frame, texts, "event")
    assert len(ours) > 150


TYPED = """
    SELECT id, CAST(id AS TINYINT) t, CAST(id * 300 AS SMALLINT) s, CAST(id AS INT) i,
        CAST(id / 4 AS FLOAT) f, CAST(id / 8 AS DECIMAL(10, 3)) d, CAST(id % 2 = 0 AS BOOLEAN) b,
        IF(id % 5 = 0, NULL, date_add(DATE '2024-01-01', CAST(id AS INT))) day,
        timestamp_micros(id * 3600000001) at, CAST(timestamp_micros(id * 3600000000) AS
        TIMESTAMP_NTZ) local, CAST(id AS CHAR(3)) c, CAST(id AS VARCHAR(3)) v, id AS `event.id`,
        id AS `Größe ``x```, id AS subscription, id AS event_id, id AS `SELECT`,
        CASE WHEN id % 3 = 0 THEN NULL WHEN id % 3 = 1 THEN named_struct('q', NULL) ELSE
        named_struct('q', named_struct('w', named_struct('e.e', id))) END AS r
    FROM range(-20, 20)
"""
TYPED_FILTERS = [
    "t > 5 AND s <= 3000", "i IN (1, 2, -3)", "f = 0.25", "f > 1.5D", "d = 1.125", "d < -0.5",
    "b", "NOT b AND t > 0", "day >= '2024-01-03'", "day = DATE '2024-01-05'", "day IS NULL",
    "at > '1970-01-01 05:00:00'", "at = TIMESTAMP '1970-01-01 03:00:00.000003'",
    "local < '1970-01-01'", "local BETWEEN '1970-01-01' AND '1970-01-01 04:00:00'",
    "v LIKE '1%'", "v = '7'", "id > 3 AND `event.id` < 6", "`Größe ``x``` = 4", "subscription = -1",
    "event_id < -18", "`SELECT` = 0", "r.q.w.`e.e` > 2", "r.q.w.`e.e` IS NULL", "id = t",
    "d > f", "length(c) > 1",
]  # fmt: skip


def test_columns_of_every_type_and_name(spark, table):
    frame = spark.sql(TYPED)
    ours = pairs_of(match(frame, table(TYPED_FILTERS), "event.id"))
    assert ours == kept_by_spark(frame, TYPED_FILTERS, "event.id")
    assert {n for _, n in ours} == set(range(len(TYPED_FILTERS)))


ZONED = [
    "at > TIMESTAMP '1970-01-01 05:00:00Z'", "at <= '1970-01-01 03:00:00+02:00'", "at IS NULL",
    "local > '1970-01-01 02:00:00'", "local <= '1970-01-01'", "day > '2024-01-02'",
    "day = DATE '2023-12-31'", "at < at", "day <= day",
]  # fmt: skip


def test_another_time_zone_changes_nothing_about_moments(spark, table):
    """A text without a zone is in UTC for tamis, wherever the session is (language.md)."""
    frame = spark.sql(TYPED)
    job = MatchJob(frame, table([*ZONED, "at = '1970-01-01 03:00:00.000003'"]), keep=["at", "day"])
    spark.conf.set("spark.sql.session.timeZone", "America/New_York")
    try:
        found = job.matches.collect()
        ours = {(row.event_id, row.subscription) for row in found}
        assert {pair for pair in ours if pair[1] < len(ZONED)} == kept_by_spark(frame, ZONED, "id")
        assert {event for event, number in ours if number == len(ZONED)} == {3}
        originals = {row.id: (row.at, row.day) for row in frame.collect()}
        assert all((row.at, row.day) == originals[row.event_id] for row in found)
    finally:
        spark.conf.set("spark.sql.session.timeZone", "UTC")


# --- meanings and outputs

DEFAULTS = {"i": 3, "x": math.nan, "s": "T1", "b": None, "side": "buy"}


@pytest.mark.parametrize(
    ("semantics", "output"),
    [("sql", "lists"), ("strict", "counts"), ("default", "pairs"), ("total", "lists")],
)
def test_every_semantics_and_output(spark, table, monkeypatch, semantics, output):
    monkeypatch.setattr(
        subscription_table, "FILTERS_PER_TASK", 20
    )  # so that there are parts to join
    texts = [*stock_filters(5, 90), "TRUE", "FALSE", "NULL", "i = i"]
    defaults = DEFAULTS if semantics == "default" else None
    data = [(f"e{n}", *row) for n, row in enumerate(stock_rows(7, 120))]
    frame = spark.createDataFrame(
        data, "id string, i bigint, x double, s string, b boolean, side string"
    ).repartition(3)
    job = MatchJob(frame, table(texts), "id", semantics, output=output, schema=SMALL,
                   defaults=defaults and DEFAULTS | {"x": 0.5})  # fmt: skip
    found = [row.asDict() for row in job.matches.collect()]
    naive = Matcher(SMALL, "naive", semantics, defaults=defaults and DEFAULTS | {"x": 0.5})
    naive.subscribe_many(dict(enumerate(texts)))
    expected = {}
    for name, *row in data:
        try:
            expected[name] = naive.match(dict(zip(SMALL, row, strict=True)))
        except EventError:
            assert semantics == "total"
    assert sum(map(len, expected.values())) > 50
    if output == "pairs":
        assert sorted((row["event_id"], row["subscription"]) for row in found) == sorted(
            (name, number) for name, numbers in expected.items() for number in numbers
        )
    else:
        assert len(found) == len(expected)
        for row in found:
            numbers = expected[row["event_id"]]
            answer = row["subscriptions"] if output == "lists" else row["count"]
            assert answer == (numbers if output == "lists" else len(numbers))
    if semantics == "total":
        letters = job.dead_letters.collect()
        assert {letter.id for letter in letters} == {name for name, *_ in data} - set(expected)
        assert all("the event lacks" in letter.reason for letter in letters)


# --- what is kept of events


def test_any_column_is_kept(spark, table):
    frame = spark.sql(
        """SELECT id, array(id, NULL) a, map('k', array(id)) m, named_struct('x', 1.5, 'y', NULL)
        r, 1.25 d, X'00FF' bin, NULL nothing, DATE '0001-01-01' day, TIMESTAMP '9999-12-31 00:00:00'
        at, TIMESTAMP_NTZ '2024-01-01 00:00:00' local, INTERVAL '1' DAY gap, 1Y tiny, 1.5F f,
        'é' `odd ``name``.`, array(named_struct('q', id)) deep, parse_json('{"a": 1}') v
        FROM range(6)"""
    )
    names = [name for name in frame.columns if name != "id"]
    job = MatchJob(frame, table(["id < 4", "id % 2 = 0"]), keep=names)
    matches = job.matches
    assert [kind for _, kind in matches.dtypes[2:]] == [
        kind for name, kind in frame.dtypes if name != "id"
    ]
    originals = {row.id: row for row in frame.collect()}
    found = matches.collect()
    assert len(found) == 7
    for row in found:
        for name in names:
            ours, theirs = row[name], originals[row.event_id][name]
            assert str(ours) == str(theirs) if name == "v" else ours == theirs, name


def test_event_ids_of_any_type(spark, table):
    frame = spark.sql(
        """SELECT id v, uuid() text, CAST(id AS SMALLINT) small, CAST(id AS DECIMAL(20, 3)) exact,
        timestamp_micros(id) at, named_struct('a', id, 'b', array(id)) record,
        CAST(CAST(id AS STRING) AS BINARY) bytes, id % 2 twice FROM range(4)"""
    ).cache()
    job = MatchJob(frame, table(["v > 0"]), "v")
    originals = {row.v: row for row in frame.collect()}
    for name in frame.columns:
        matches = job.matches_of(EventTable(frame, name, job._events.schema, ["v"]))
        assert matches.dtypes[0] == ("event_id", dict(frame.dtypes)[name])
        found = matches.collect()
        assert sorted(row.v for row in found) == [1, 2, 3], name
        assert all(row.event_id == originals[row.v][name] for row in found), name
    frame.unpersist()


# --- subscriptions


BAD = {
    "typo": ("prise < 3", "unknown attribute 'prise'; did you mean 'price'? (line 1, column 1)"),
    "grammar": ("price <\n ", "(line 2, column"),
    "type": ("price = 'a' AND\n  name > 3 AND", "(line"),
    "list": ("tags = 1", "column tags has the type array<binary>, which no filter can use"),
    "map": ("name = 'a' OR m.k = 1", "column m has the type map<string,array<int>>, which no"),
    "bytes": ("raw = 'a'", "column raw has the type binary, which no filter can use"),
    "record": ("r = 1", "r is a record"),
    "regex": ("name RLIKE '('", "(line 1, column"),
    "value": ("price", "(line 1, column 1)"),
    "long": ("price > 0 AND oops = '" + "x" * 3000 + "'", "unknown attribute 'oops'"),
    "deep": ("(" * 5000 + "price > 0" + ")" * 5000, "(line 1"),
    "empty": ("", "(line 1, column 1)"),
    "null": (None, "the filter is null"),
    None: ("price > 0", "the id is null"),
}  # fmt: skip


def test_bad_rows_are_kept_aside(spark, table, caplog, tmp_path):
    lines = [
        '{"id": "a", "price": 5, "level": 1, "name": "x"}', '{"id": "b", "price": 7, "level": 9}',
        '{"id": "c", "price": ', '{"price": 3, "level": 2}', '{"id": "d", "price": -5, "level": 3}',
    ]  # fmt: skip
    (tmp_path / "events.json").write_text("\n".join(lines), encoding="utf-8")
    frame = spark.read.json(
        str(tmp_path / "events.json"),
        schema="id string, price double, level int, name string, tags array<binary>,"
        " m map<string, array<int>>, raw binary, r struct<k: int>, _corrupt_record string",
    )
    schema = {"price": "double", "level": "int(1, 5)", "name": "string", "r.k": "int"}
    ids = [*BAD, "good", "big"]
    texts = [text for text, _ in BAD.values()]
    texts += ["price > 0", " OR ".join(f"price = {n}" for n in range(1000))]
    with caplog.at_level(logging.WARNING, "tamis"):
        job = MatchJob(frame, table(texts, ids, "string"), schema=schema)
        assert sorted(map(tuple, job.matches.collect())) == [("a", "big"), ("a", "good")]
    assert f"subscriptions: {len(BAD)} rows cannot be used:" in caplog.text
    assert job.compiled.counts == (len(BAD) + 2, 2, len(BAD), 0)
    letters = job.dead_letters.collect()
    assert job.dead_letters.columns == ["source", "row", "id", "reason", "line", "column", "value"]
    about = {letter.id: letter for letter in letters if letter.source == "subscriptions"}
    assert set(about) == set(BAD)
    for name, (text, reason) in BAD.items():
        assert reason in about[name].reason, name
        assert about[name].row == ids.index(name)
        kept = about[name].value
        assert kept == text or (len(text) > 1000 and kept == text[:1000] + "..."), name
    assert (about["map"].line, about["map"].column) == (1, 15)
    events = sorted((letter for letter in letters if letter.source == "events"),
                    key=lambda letter: letter.row)  # fmt: skip
    assert [(letter.row, letter.id) for letter in events] == [(1, "b"), (2, None), (3, None)]
    assert "9 (int) lies outside the domain int(1, 5)" in events[0].reason
    assert events[1].reason == 'the row cannot be read: {"id": "c", "price": '
    assert events[2].reason == "the event has no id"
    assert json.loads(events[0].value) == {"price": 7.0, "level": 9}
    said = job.explain()
    assert "16 rows: 2 usable, 14 bad" in said
    assert "attributes read: level, price" in said


def test_bad_rows_fail_the_job_if_they_shall(spark, table):
    frame = spark.sql("SELECT 5 id, 6 level")
    schema = {"level": "int(1, 5)"}
    with pytest.raises(OptionError, match=r"subscriptions: 1 row cannot be used:\n .*id 1: unk"):
        match(frame, table(["level = 1", "lvl = 1"]), schema=schema, on_bad="fail")
    with pytest.raises(Exception, match=r"event 5: attribute level: 6 \(int\) lies outside"):
        match(frame, table(["level = 1"]), schema=schema, on_bad="fail").collect()


def test_the_last_row_of_an_id_counts(spark):
    frame = spark.range(10)
    data = [("a", "id = 1", 3), ("a", "id = 2", 5), ("a", "id = 3", 4), ("b", "id = 4", None),
            ("b", "id = 5", 1), ("c", "id = 6", 1), ("c", "id = 7", 1)]  # fmt: skip
    subscriptions = spark.createDataFrame(data, "id string, filter string, `at ``x` int")
    last = MatchJob(frame, subscriptions.coalesce(1))
    assert pairs_of(last.matches) == {(3, "a"), (5, "b"), (7, "c")}
    assert last.compiled.counts == (7, 3, 0, 4)
    assert "replaced by later rows of the same id: 4" in last.explain()
    ordered = match(frame, subscriptions.coalesce(1), order="at `x")
    assert pairs_of(ordered) == {(2, "a"), (5, "b"), (7, "c")}
    with pytest.raises(SubscriptionError, match="subscriptions come again in 4 rows, such"):
        match(frame, subscriptions, duplicates="error")


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ([], "the table of subscriptions has no rows"),
        (["idd > 0", None], "no subscription can be used: 2 rows cannot be used:\n.*'idd'"),
    ],
)
def test_without_any_usable_subscription_there_is_nothing_to_do(spark, table, texts, said):
    with pytest.raises(SubscriptionError, match=said):
        match(spark.range(3), table(texts))


# --- events


def test_empty_frames_partitions_and_answers(spark, table):
    job = MatchJob(spark.range(3), table(["id > 5", "FALSE", "NULL"]), output="counts")
    assert pairs_of(job.matches) == {(0, 0), (1, 0), (2, 0)}
    sparse = EventTable(spark.range(2).repartition(7), "id", None, ())
    assert pairs_of(job.matches_of(sparse)) == {(0, 0), (1, 0)}
    assert job.matches_of(EventTable(spark.range(0), "id", None, ())).collect() == []
    # Filters without attributes need none of the events.
    always = MatchJob(spark.range(2), table(["TRUE", "FALSE", "NULL IS NULL"]), output="lists")
    assert {(row[0], tuple(row[1])) for row in always.matches.collect()} == {
        (0, (0, 2)), (1, (0, 2)),
    }  # fmt: skip
    assert "attributes read: none" in always.explain()
    assert always.dead_letters.collect() == []


def test_values_that_are_hard_to_hold(spark, table):
    """Text that is no UTF-8, and days beyond the calendar: letters, never a failure."""
    frame = spark.sql(
        """SELECT 1 id, 'a' s, DATE '2024-01-01' day UNION ALL
        SELECT 2, CAST(X'61FF' AS STRING), DATE '2024-01-01' UNION ALL
        SELECT 3, 'b', date_add(DATE '2024-01-01', 1000000000) UNION ALL
        SELECT 4, 'c', date_add(DATE '9999-12-31', 1000) UNION ALL
        SELECT 5, 'd', DATE '0001-01-01'"""
    )
    job = MatchJob(frame, table(["s <> 'd' AND day > '2023-01-01'"]), keep=["s"])
    assert pairs_of(job.matches) == {(1, 0, "a"), (4, 0, "c")}
    letters = {letter.id: letter for letter in job.dead_letters.collect()}
    assert set(letters) == {"2", "3"}
    assert letters["2"].reason == "column s holds invalid UTF-8: invalid start byte"
    assert json.loads(letters["2"].value)["s"] == "a�"
    assert "out of bounds" in letters["3"].reason


# --- arguments


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"output": "pair"}, "unknown output 'pair'; did you mean 'pairs'?"),
        ({"on_bad": "drop"}, "unknown treatment of bad rows 'drop'"),
        ({"duplicates": "first"}, "unknown treatment of duplicates 'first'"),
        ({"semantics": "sqk"}, "unknown semantics 'sqk'; did you mean 'sql'?"),
        ({"semantics": "default"}, "needs defaults, a value for each attribute"),
        ({"defaults": {"id": 1}}, "defaults belong to"),
        ({"event_id": "ID"}, "event_id: the events have no column 'ID'; did you mean 'id'?"),
        ({"order": "at"}, "exactly one column 'at'"),
        ({"subscriptions": [("a", "id > 0")]}, "subscriptions must be a Spark DataFrame, not list"),
        ({"events": 5}, "events must be a Spark DataFrame, not int"),
        ({"events": pa.table({})}, "events must be a Spark DataFrame, not pyarrow's Table; spark"),
    ],
)
def test_arguments_that_are_none_are_refused_before_anything_runs(spark, table, options, said):
    given_ = {"events": spark.range(1), "subscriptions": table(["id > 0"])} | options
    with pytest.raises(OptionError) as caught:
        MatchJob(**given_)
    assert said in str(caught.value)


# --- the moment at which events arrive

CLOCKS = [
    "at > now() - INTERVAL 1 DAY", "at BETWEEN now() - INTERVAL 2 HOURS AND now()",
    "NOT at < now()",
    "to_date(at) = current_date()", "datediff(current_date(), at) = 1", "k = 1 OR now() < at",
    "coalesce(at, now()) >= now()", "hour(now()) = 12 AND k > 3", "now() < TIMESTAMP '2024-01-02'",
    "k = 2 AND at + INTERVAL 3 HOURS > now()", "k IN (1, 5) AND current_date() > to_date(at)",
]  # fmt: skip


@pytest.fixture
def timed(spark):
    times = "timestamp_seconds(1704196800 + (id - 30) * 3600)"  # around noon of 2024-01-02, in UTC
    return spark.range(60).selectExpr("id", "id % 7 AS k", f"if(id = 9, null, {times}) AS at")


@pytest.mark.parametrize(
    "settings", [{}, {"mode": "sharded", "shards": 4}], ids=["whole", "shards"]
)
def test_now_is_one_moment_that_spark_takes_as_a_constant(spark, table, timed, settings, tmp_path):
    for moment in ("2024-01-02 12:00:00", "2024-01-02 23:59:59.999999"):
        constants = [
            text.replace("now()", f"TIMESTAMP '{moment}'").replace(
                "current_date()", f"DATE '{moment[:10]}'"
            )
            for text in CLOCKS
        ]
        expected = kept_by_spark(timed, constants, "id")
        job = MatchJob(timed, table(CLOCKS), now=moment, **settings)
        assert job.is_sharded == bool(settings)
        assert pairs_of(job.matches) == pairs_of(job.counted().frame) == expected
        place = str(tmp_path / moment[11:13])
        assert job.write(place, "parquet").matches == len(expected) > 100
        assert pairs_of(spark.read.parquet(f"{place}/matches")) == expected


def test_a_job_has_the_moment_at_which_it_was_made(table, timed, monkeypatch):
    monkeypatch.setattr("tamis.language.arrival.present_moment", lambda: 1_704_196_800_000_000)
    job = MatchJob(timed, table(CLOCKS[:1]))
    monkeypatch.undo()  # from now on it is years later
    assert {event for event, _ in job.matches.collect()} == {*range(7, 60)} - {9}
    assert {event for event, _ in job.matches.collect()} == {*range(7, 60)} - {9}
    assert match(timed, table(CLOCKS[:1])).count() == 0
    with pytest.raises(OptionError, match="now is a datetime or a text"):
        match(timed, table(CLOCKS[:1]), now=7)
