"""What workers do with Arrow batches; no session is needed for that."""

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from stocks import SMALL, stock_filters, stock_rows
from tamis import EventError, Matcher
from tamis.spark.batch.worker import BAD, MatchTask
from tamis.spark.tables import event_chunks, match_batches
from tamis.spark.tables.arrow_batches import gathered
from tamis.spark.tables.event_chunks import EventLayout, unreadable_rows

NAMES = ("i", "x", "s", "b", "side")
TABLE = pa.Table.from_pylist([dict(zip(SMALL, row, strict=True)) for row in stock_rows(1, 300)])


def rules(texts=None, **options):
    matcher = Matcher(SMALL, **options)
    matcher.subscribe_many(texts or {f"s{n}": text for n, text in enumerate(stock_filters(2, 80))})
    return lambda: matcher


def batches_of(table=TABLE, ids=None, kept=(), step=64):
    """As `EventTable.project` sends them."""
    ids = [f"e{n}" for n in range(table.num_rows)] if ids is None else ids
    columns = [pa.chunked_array([pa.array(ids)]), *table.columns, *(pa.array(k) for k in kept)]
    names = ["id", *(f"e{n}" for n in range(table.num_columns)),
             *(f"k{n}" for n in range(len(kept)))]  # fmt: skip
    whole = pa.table(columns, names=names).combine_chunks()
    return whole.to_batches(max_chunksize=step)


def answer(task, batches):
    found = list(task(batches))
    return pa.Table.from_batches(found).to_pylist() if found else []


# --- batches


@settings(max_examples=25)
@given(sizes=st.lists(st.integers(0, 30), max_size=12), most=st.integers(1, 20))
def test_batches_are_gathered_without_loss(sizes, most):
    numbers = iter(range(1000))
    batches = [
        pa.record_batch({"n": pa.array([next(numbers) for _ in range(size)], pa.int64())})
        for size in sizes
    ]
    tables = list(gathered(batches, most))
    assert [n for table in tables for n in table["n"].to_pylist()] == list(range(sum(sizes)))
    assert all(0 < table.num_rows <= most for table in tables)


def test_rows_that_cannot_be_read_or_have_no_id():
    table = pa.table(
        {"id": [1, None, 3, None], "e0": [1, 2, 3, 4], "corrupt": [None, None, "{" * 500, "x"]}
    )
    assert unreadable_rows(table, EventLayout(("i",), (), False)) == {
        1: "the event has no id", 3: "the event has no id",
    }  # fmt: skip
    found = unreadable_rows(table, EventLayout(("i",), (), True))
    assert found == {
        1: "the event has no id", 2: "the row cannot be read: " + "{" * 200 + "...",
        3: "the row cannot be read: x",
    }  # fmt: skip
    assert unreadable_rows(table.slice(0, 1), EventLayout(("i",), (), True)) == {}


# --- matching


@pytest.mark.parametrize("output", ["pairs", "lists", "counts"])
@pytest.mark.parametrize("bytes_", [1, 1000, match_batches.BYTES])
@pytest.mark.parametrize("step", [1, 64, 1000])
def test_matches_are_those_of_the_matcher(monkeypatch, output, bytes_, step):
    monkeypatch.setattr(match_batches, "BYTES", bytes_)
    monkeypatch.setattr(event_chunks, "EVENTS", 100)
    made = rules()
    kept = [[{"n": n} for n in range(300)], [[n] * (n % 3) for n in range(300)]]
    task = MatchTask(made, EventLayout(NAMES, ("r", "l"), False), output, "keep")
    found = answer(task, batches_of(kept=kept, step=step))
    expected = made().match_batch(TABLE, output).to_pylist()
    for row in expected:
        number = row.pop("event")
        row |= {"event_id": f"e{number}", "r": {"n": number}, "l": [number] * (number % 3)}
        if output == "lists":
            row["subscriptions"].sort()
    assert found == expected
    assert len(found) > 100


@pytest.mark.parametrize("kind", [str, int])
def test_types_that_go_back_to_spark(kind):
    texts = {kind(n): text for n, text in enumerate(stock_filters(3, 70))}
    ids = pa.string() if kind is str else pa.int64()
    wanted = {"pairs": ids, "lists": pa.list_(pa.field("element", ids)), "counts": pa.int64()}
    for output, expected in wanted.items():
        task = MatchTask(rules(texts), EventLayout(NAMES, (), False), output, "keep")
        for batch in task(batches_of()):
            assert batch.schema.names[0] == "event_id"
            assert batch.schema.types == [pa.string(), expected]


def test_long_ids_and_matches_in_shares(monkeypatch):
    """What goes back is cut before ids and kept columns are multiplied."""
    monkeypatch.setattr(match_batches, "BYTES", 100_000)
    task = MatchTask(
        rules(dict.fromkeys(range(200), "i IS NULL OR TRUE")), EventLayout(NAMES, ("k",), False),
        "pairs", "keep",
    )  # fmt: skip
    kept = [["x" * 1000] * 300]
    sizes = [batch.nbytes for batch in task(batches_of(kept=kept))]
    assert sum(sizes) > 300 * 200 * 1000
    assert max(sizes) < 150_000


def test_no_batches_and_empty_ones():
    def never():
        raise AssertionError("nothing is opened for nothing")

    task = MatchTask(never, EventLayout(NAMES, (), False), "counts", "keep")
    assert answer(task, []) == []
    assert answer(task, [batches_of()[0].slice(0, 0)]) == []


@each("output", ["pairs", "lists", "counts"])
def test_filters_that_test_nothing(output):
    task = MatchTask(
        rules({1: "TRUE", 2: "FALSE", 3: "TRUE"}), EventLayout((), ("k",), False), output, "keep"
    )
    found = answer(task, [pa.record_batch({"id": ["a", "b"], "k0": [True, False]})])
    if output == "pairs":
        assert [(row["event_id"], row["subscription"]) for row in found] == [
            ("a", 1), ("a", 3), ("b", 1), ("b", 3),
        ]  # fmt: skip
    else:
        both = {"lists": {"subscriptions": [1, 3]}, "counts": {"count": 2}}[output]
        assert found == [{"event_id": "a", "k": True} | both, {"event_id": "b", "k": False} | both]


# --- bad events

BAD_TABLE = pa.table(
    {
        "i": pa.array([1, 2, 3, 4, 5], pa.int64()),
        "side": pa.array([b"buy", b"bye", b"sell", b"\xff", None], pa.binary()).view(pa.string()),
    }
)


@each("output", ["pairs", "lists", "counts"])
def test_bad_events_are_left_out(output):
    task = MatchTask(
        rules({"a": "i > 0", "b": "i > 4"}), EventLayout(("i", "side"), (), False), output, "keep"
    )
    ids = ["p", "q", None, "s", "t"]
    found = answer(task, batches_of(BAD_TABLE, ids, step=2))
    events = [row["event_id"] for row in found]
    assert events == (["p", "t", "t"] if output == "pairs" else ["p", "t"])


@each("output", ["pairs", "lists", "counts"])
@each("kind", ["string", "bigint"])
def test_bad_events_are_counted_with_a_tag(output, kind):
    texts = {"a": "i > 0"} if kind == "string" else {1: "i > 0"}
    layout = EventLayout(("i", "side"), ("k",), False)
    task = MatchTask(rules(texts), layout, output, "keep", kind)
    batches = batches_of(BAD_TABLE, ["p", "q", None, "s", "t"], kept=[[1, 2, 3, 4, 5]], step=2)
    found = pa.Table.from_batches(task(batches)).to_pylist()  # all are of one type
    assert [row["event_id"] for row in found if not row[BAD]] == ["p", "t"]
    bad = [row for row in found if row[BAD]]
    assert len(bad) == 3
    assert all(value is None for row in bad for name, value in row.items() if name != BAD)


@each(
    ("rows", "said"),
    [
        ([0, 1], "event 'q': attribute side: 'bye' (str) lies outside the domain"),
        ([2, 1], "an event: the event has no id"),
        ([3], "event 's': column side holds invalid UTF-8"),
    ],
)
def test_bad_events_fail_if_they_shall(rows, said):
    task = MatchTask(rules({"a": "i > 0"}), EventLayout(("i", "side"), (), False), "pairs", "fail")
    ids = [["p", "q", None, "s", "t"][row] for row in rows]
    with pytest.raises(EventError) as caught:
        answer(task, batches_of(BAD_TABLE.take(pa.array(rows)), ids))
    assert str(caught.value).startswith(said)


def test_partial_events_and_total_semantics():
    table = pa.table({name: pa.array([None, None], TABLE.schema.field(name).type)
                      for name in NAMES})  # fmt: skip
    task = MatchTask(rules(semantics="total"), EventLayout(NAMES, (), False), "counts", "keep")
    assert answer(task, batches_of(table)) == []
    with pytest.raises(EventError, match="event 'e0': the event lacks i, x, s, b, side"):
        answer(MatchTask(task.rules, task.layout, "counts", "fail"), batches_of(table))


@each("row", [0, 70_000, 99_999])
def test_a_bad_event_anywhere_in_a_large_batch(row):
    """A session may be set to batches of any size."""
    values = [1] * 100_000
    values[row] = 6
    matcher = Matcher({"level": "int(1, 5)"})
    matcher.subscribe("a", "level = 1")
    batch = pa.record_batch({"id": range(100_000), "e0": values})
    task = MatchTask(lambda: matcher, EventLayout(("level",), (), False), "counts", "keep")
    found = pa.Table.from_batches(task([batch]))
    assert found["event_id"].to_pylist() == [n for n in range(100_000) if n != row]
