"""Matches as tables, against plain lists of ids."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from tamis import Matcher, results
from tamis.id_columns import IdColumn, Places
from tamis.memory import SMALLEST
from tamis.results import pieces_of, table_of, table_of_counts

WORDS = ["", "a", "é", "日本", "a\nb", "x" * 1000, "0", "NULL"]
NUMBERS = [0, -1, 2**63 - 1, -(2**63), 7, 2**53 + 1, 10, 11]


def handles_of(draw, size):
    """Ascending handles, with gaps or without."""
    steps = draw(st.lists(st.sampled_from([1, 1, 1, 2, 1000, 2**33]), min_size=size, max_size=size))
    return (np.cumsum([0, *steps])[1:] - 1).tolist()


@st.composite
def id_maps(draw):
    pool = draw(st.sampled_from([WORDS, NUMBERS]))
    ids = draw(st.lists(st.sampled_from(pool), unique=True, max_size=len(pool)))
    return dict(zip(handles_of(draw, len(ids)), ids, strict=True))


@given(id_maps(), st.data())
def test_ids_of_handles(ids, data):
    asked = data.draw(st.lists(st.sampled_from(sorted(ids)), max_size=20)) if ids else []
    found = IdColumn(ids).take(np.array(asked, np.int64))
    assert found.to_pylist() == [ids[handle] for handle in asked]


def pieces(events, sizes, kind=np.int64):
    """Events in pieces of some sizes; a piece may be empty."""
    left = list(events)
    for size in [*sizes, len(left)]:
        piece, left = left[:size], left[size:]
        counts = np.array([len(one) for one in piece], np.int64)
        yield counts, np.array([handle for one in piece for handle in one], kind)


@given(id_maps(), st.data())
def test_tables(ids, data):
    lists = st.just([])
    if ids:
        lists = st.sets(st.sampled_from(sorted(ids))).map(sorted)
    events = data.draw(st.lists(lists, max_size=8))
    first = data.draw(st.sampled_from([0, 5, 2**40]))
    numbers = range(first, first + len(events))
    named = [[ids[handle] for handle in one] for one in events]
    pairs = {
        "event": [n for n, one in zip(numbers, named, strict=True) for _ in one],
        "subscription": [name for one in named for name in one],
    }
    kind = np.int64 if any(handle >= 2**31 for handle in ids) else np.int32
    sizes = data.draw(st.lists(st.integers(0, 3), max_size=4))
    column = IdColumn(ids)
    for read in (
        lambda: pieces_of(np.array(one, np.int64) for one in events),
        lambda: pieces(events, sizes, kind),
    ):
        table = table_of(read(), numbers, "lists", column)
        assert table.to_pydict() == {"event": list(numbers), "subscriptions": named}
        assert table_of(read(), numbers, "pairs", column).to_pydict() == pairs


def kind_of(table, name):
    """The type of ids, whether they are in lists or codes of a dictionary."""
    kind = table.schema.field(name).type
    if pa.types.is_large_list(kind):
        kind = kind.value_type
    return kind.value_type if pa.types.is_dictionary(kind) else kind


@each(
    ("ids", "kind"),
    [
        ({}, pa.string()),
        ({0: "a", 1: "b"}, pa.string()),
        ({3: "a", 9: "b"}, pa.string()),
        ({0: 1, 1: 2}, pa.int64()),
        ({3: 1, 9: 2}, pa.int64()),
    ],
)
@each("size", [0, 1, 3])
def test_the_types_of_the_columns(ids, kind, size):
    """They do not depend on whether anything matched."""
    found, column = [np.array(sorted(ids), np.int64)] * size, IdColumn(ids)
    for output, name in (("pairs", "subscription"), ("lists", "subscriptions")):
        table = table_of(pieces_of(found), range(size), output, column)
        assert table.schema.names == ["event", name]
        assert table.schema.field("event").type == pa.int64()
        assert kind_of(table, name) == kind
        assert table.schema == table_of([], [], output, column).schema
        table.validate(full=True)
    assert pa.types.is_large_list(table_of([], [], "lists", column).schema.field(1).type)


def test_counts():
    table = table_of_counts(np.array([3, 0, 2]), [7, 8, 2**40])
    assert table.to_pydict() == {"event": [7, 8, 2**40], "count": [3, 0, 2]}
    empty = table_of_counts(np.empty(0, np.int64), [])
    assert empty.schema == table.schema == pa.schema([("event", pa.int64()), ("count", pa.int64())])


def test_a_single_handle_with_a_gap_before_it():
    assert IdColumn({1: "a"}).take(np.array([1, 1])).to_pylist() == ["a", "a"]
    assert IdColumn({0: "a"}).take(np.array([0, 0])).to_pylist() == ["a", "a"]
    assert IdColumn({5: 50, 6: 60}).take(np.array([6, 5])).to_pylist() == [60, 50]


def test_numbers_of_any_kind():
    column = IdColumn({0: "a"})
    for numbers in ([7, 9], (7, 9), np.array([7, 9]), range(7, 11, 2)):
        found = [(np.array([1, 0]), np.array([0]))]
        table = table_of(found, numbers, "lists", column)
        assert table.to_pydict() == {"event": [7, 9], "subscriptions": [["a"], []]}
        assert table_of(found, numbers, "pairs", column)["event"].to_pylist() == [7]


def test_strings_are_not_copied():
    """A thousand matches of a long id hold it once."""
    column = IdColumn({0: "x" * 10_000, 1: "y"})
    found = column.take(np.zeros(1000, np.int64))
    assert found.nbytes < 50_000


# --- handles and rows


@given(
    st.lists(st.integers(0, 30) | st.integers(0, 2**40), unique=True, max_size=20),
    st.lists(st.integers(0, 40) | st.integers(0, 2**41), max_size=20),
    st.booleans(),
)
def test_places(handles, others, ascending):
    handles = sorted(handles) if ascending else handles
    rows = {handle: row for row, handle in enumerate(handles)}
    places = Places.of(np.array(handles, np.int64))
    asked = others + handles
    found, known = places.rows(np.array(asked, np.int64))
    known = [True] * len(asked) if known is None else known.tolist()
    assert known == [handle in rows for handle in asked]
    assert [row for row, is_known in zip(found.tolist(), known, strict=True) if is_known] == [
        rows[handle] for handle in asked if handle in rows
    ]
    assert places.rows(np.array(handles, np.int64))[1] is None
    assert places.handles(np.arange(len(handles))).tolist() == handles


@each("first", [0, 5, 2**40])
def test_places_without_gaps(first):
    """Handles of 32 bits are asked for too, of which none may be there."""
    for places in (Places(first, 10), Places.of(np.arange(first, first + 10))):
        assert places.handles(np.array([0, 9])).tolist() == [first, first + 9]
        for kind in (np.int32, np.int64):
            rows, known = places.rows(np.arange(8, dtype=kind))
            expected = [max(0, first) <= handle < first + 10 for handle in range(8)]
            assert (known is None) == all(expected)
            if known is not None:
                assert known.tolist() == expected
                assert rows[known].tolist() == [h - first for h in range(8) if expected[h]]


@given(id_maps(), st.data())
def test_subscriptions_that_went_meanwhile_are_left_out(ids, data):
    """Handles that a column does not know: an engine found them before they went."""
    gone = st.integers(0, 12).filter(lambda handle: handle not in ids)
    known = st.sampled_from(sorted(ids)) if ids else gone
    events = data.draw(st.lists(st.sets(gone | known).map(sorted), max_size=6))
    left = [[ids[handle] for handle in one if handle in ids] for one in events]
    column, numbers = IdColumn(ids), range(len(events))
    table = table_of(pieces(events, [2]), numbers, "lists", column)
    assert table["subscriptions"].to_pylist() == left
    table = table_of(pieces(events, [2]), numbers, "pairs", column)
    assert table["event"].to_pylist() == [n for n in numbers for _ in left[n]]
    assert table["subscription"].to_pylist() == [name for one in left for name in one]
    table.validate(full=True)
    one = [handle for event in events for handle in event]
    assert column.take(np.array(one, np.int64)).to_pylist() == [ids[h] for h in one if h in ids]


def test_a_column_of_an_array():
    for kind in (pa.string(), pa.large_string()):
        column = IdColumn(pa.array(["a", "b", "c"], kind))
        assert column.take(np.array([2, 0])).to_pylist() == ["c", "a"]
        assert column.none().type.value_type == kind
    column = IdColumn(pa.array([10, 20, 30]), Places.of(np.array([7, 5, 2**40])))
    assert column.take(np.array([5, 2**40, 7])).to_pylist() == [20, 30, 10]
    assert column.none().type.value_type == pa.int64()


@given(counts=st.lists(st.integers(0, 9), max_size=30))
def test_numbers_of_many_matches_are_those_of_few(counts):
    ids = IdColumn({n: f"s{n}" for n in range(9)})
    piece = np.array(counts, np.int64), np.concatenate([np.arange(n) for n in [0, *counts]])
    few = table_of([piece], range(7, 7 + len(counts)), "pairs", ids)
    results.MANY, before = 0, results.MANY
    try:
        many = table_of([piece], range(7, 7 + len(counts)), "pairs", ids)
    finally:
        results.MANY = before
    assert many.equals(few)


def _places(table):
    return {
        buffer.address
        for column in table.columns
        for chunk in column.chunks
        for buffer in (chunk.indices if column.type != pa.int64() else chunk).buffers()
        if buffer is not None and buffer.size >= SMALLEST
    }


def test_tables_that_were_dropped_are_written_over_and_others_are_not():
    matcher = Matcher({"x": "int"}, engine="sliced", options={"threads": 1})
    matcher.subscribe_many([(n, f"x >= {n}") for n in range(100)])
    events = pa.table({"x": np.full(4000, 99)})
    first = matcher.match_batch(events)
    assert first.num_rows == 400_000
    other = matcher.match_batch(pa.table({"x": np.full(4000, 98)}))  # while the first is held
    assert first["subscription"][99].as_py() == 99
    assert not _places(first) & _places(other)
    used = _places(other)
    assert used
    del other
    for _ in range(3):
        again = matcher.match_batch(events)
        assert _places(again) & used
        del again
    assert first.equals(matcher.match_batch(events))
