"""Many subscriptions at once of which some are bad: each is named, and nothing is changed."""

import contextlib

import pyarrow as pa
import pytest

from bulk_subscriptions import but_for_the_engine, named, same, state
from cases import each
from stocks import SMALL
from tamis import (
    BulkError,
    CapacityError,
    LimitError,
    Matcher,
    OptionError,
    ParseError,
    SubscriptionError,
    TypeMismatch,
    parse,
)
from tamis.engines.sliced import segment_merges
from tamis.language import negations

BAD = {
    "no filter": ("x", "i >", ParseError),
    "an unknown attribute": ("x", "prize > 1", TypeMismatch),
    "None for a filter": ("x", None, ParseError),
    "a number for a filter": ("x", 5, ParseError),
    "bytes for a filter": ("x", b"i > 1", ParseError),
    "a filter that is not text": ("x", "s = '\ud800'", ParseError),
    "another schema": ("x", parse("TRUE", {}), SubscriptionError),
    "None for an id": (None, "TRUE", SubscriptionError),
    "a truth for an id": (True, "TRUE", SubscriptionError),
    "a float for an id": (1.0, "TRUE", SubscriptionError),
    "the other kind of id": (7, "TRUE", SubscriptionError),
    "an id that is not text": ("\ud800", "TRUE", SubscriptionError),
    "too large an id": (2**63, "TRUE", SubscriptionError),
    "too deep a filter": ("x", "(" * 1000 + "b" + ")" * 1000, LimitError),
}


@each("size", [5, 100])
@each("engine", ["auto", "sliced", "naive"])
def test_every_bad_row_is_named_and_nothing_is_changed(size, engine):
    matcher = Matcher(SMALL, engine)
    matcher.subscribe_many(named(80, seed=3))
    matcher.subscribe("live", "i > 0")
    matcher.unsubscribe("7")
    before = state(matcher)
    rows, wrong = named(size, seed=4, first=60), []
    for place, (name, text, kind) in enumerate(BAD.values()):
        row = place * 2 % len(rows) + place
        rows.insert(row, (name, text))
        wrong.append((name, kind))
    rows[3:3] = ["ab", ("a", "b", "c"), {"id": 1}, 5]
    calls = []
    with pytest.raises(BulkError) as caught:
        matcher.subscribe_many(rows, calls.append)
    assert state(matcher) == before
    assert sum(calls) == len(rows)
    failures = caught.value.failures
    assert [row for row, _, _ in failures] == sorted(row for row, _, _ in failures)
    assert caught.value.total == len(rows)
    for row, name, error in failures:
        if row in {3, 4, 5, 6}:
            assert (name, type(error)) == (None, SubscriptionError)
            assert "expected (id, filter), perhaps with parameters, got" in str(error)
        else:
            assert rows[row][0] is name
            assert (name, type(error)) in wrong
    assert len(failures) == len(BAD) + 4


@pytest.mark.parametrize("size", [5, 100])
def test_only_bad_rows(size):
    for rows in ([("a", "?")] * size, [(None, "TRUE")] * size, [5] * size, [(1.5, "?")] * size):
        for before in ([], named(3), named(3, int), named(100, int)):
            matcher = Matcher(SMALL)
            matcher.subscribe_many(before)
            seen = state(matcher)
            with pytest.raises(BulkError) as caught:
                matcher.subscribe_many(rows)
            assert [row for row, _, _ in caught.value.failures] == list(range(size))
            assert state(matcher) == seen


@pytest.mark.parametrize("size", [5, 100])
def test_ids_of_two_kinds(size):
    rows = named(size)
    rows[size // 2] = (5, "TRUE")
    with pytest.raises(BulkError, match="the ids of this matcher are strings, and 5 is not"):
        Matcher(SMALL).subscribe_many(rows)
    rows[0] = (6, "TRUE")  # the first one decides
    with pytest.raises(BulkError) as caught:
        Matcher(SMALL).subscribe_many(rows)
    assert len(caught.value.failures) == size - 2


@each("size", [10, 100, 1300])
def test_an_error_after_many_good_rows(size):
    """Also behind more than are asked one by one; they may be compiled then, and that is all."""
    matcher = Matcher(SMALL)
    matcher.subscribe("a", "i > 0")
    before = state(matcher)
    with pytest.raises(BulkError):
        matcher.subscribe_many([*named(size), ("x", "?")])
    after = state(matcher)
    assert but_for_the_engine(after) == but_for_the_engine(before)
    assert size > 1000 or after == before


@pytest.mark.parametrize("compiled", [False, True])
@pytest.mark.parametrize("size", [5, 100])
def test_what_cannot_be_compiled(monkeypatch, compiled, size):
    monkeypatch.setattr(negations, "MAX_NORMAL_NODES", 60)
    text = "b"
    for number in range(6):
        text = f"({text}) = (i > {size + 10 * number + compiled})"
    matcher = Matcher(SMALL)
    matcher.subscribe("a", "i > 0")
    if compiled:
        matcher._held.engine.compile()
    before = state(matcher)
    with pytest.raises(BulkError, match="normal form") as caught:
        matcher.subscribe_many([*named(size), ("x", text)])
    assert [(row, type(error)) for row, _, error in caught.value.failures] == [(size, LimitError)]
    assert state(matcher) == before


@pytest.mark.parametrize("before", [10, 1100])
def test_more_than_memory_allows(before):
    matcher = Matcher(SMALL, options={"memory": 350_000})
    matcher.subscribe_many(named(before, seed=5))
    matcher.match({"i": 1})
    seen = state(matcher)
    with pytest.raises(CapacityError, match=r"compiling .* subscriptions needs about"):
        matcher.subscribe_many(named(3000, seed=6))
    assert but_for_the_engine(state(matcher)) == but_for_the_engine(seen)
    matcher.subscribe_many(named(100, seed=7))
    pairs = [*named(before, seed=5), *named(100, seed=7)]
    same(matcher, pairs)


def test_a_merge_that_fails(monkeypatch):
    """Merging is a matter of speed: either the bulk is there, or nothing of it."""
    matcher = Matcher(SMALL, "sliced")
    matcher.subscribe_many(named(100, seed=5))
    before = state(matcher)

    def fail(*_, **__):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(segment_merges, "compiled", fail)
        with contextlib.suppress(MemoryError):
            matcher.subscribe_many(named(100, seed=6, first=1000))
            before = None
    assert before is None or state(matcher) == before
    matcher.subscribe_many(named(100, seed=7, first=2000))
    more = [] if before else named(100, seed=6, first=1000)
    same(matcher, [*named(100, seed=5), *more, *named(100, seed=7, first=2000)])


def test_a_source_that_breaks_off():
    def pairs(size):
        yield from named(size)
        raise RuntimeError("the source is gone")

    for size in (5, 100, 1300):
        matcher = Matcher(SMALL)
        matcher.subscribe("a", "i > 0")
        before = state(matcher)
        with pytest.raises(RuntimeError, match="the source is gone"):
            matcher.subscribe_many(pairs(size))
        assert state(matcher) == before


@pytest.mark.parametrize("column", ["id", "filter"])
def test_tables_that_lack_a_column_or_have_two(column):
    table = pa.table({"id": ["a"], "filter": ["TRUE"]})
    for other in (table.drop_columns([column]), table.append_column(column, [["b"]])):
        with pytest.raises(OptionError, match=f"needs exactly one column '{column}'; it has "):
            Matcher(SMALL).subscribe_many(other)


def test_nulls_in_a_large_table():
    ids = [str(n) for n in range(100)]
    ids[5], filters = None, ["TRUE"] * 100
    filters[7] = None
    with pytest.raises(BulkError) as caught:
        Matcher(SMALL).subscribe_many(pa.table({"id": ids, "filter": filters}))
    assert [(row, name) for row, name, _ in caught.value.failures] == [(5, None), (7, "7")]


@pytest.mark.parametrize("size", [3, 100])
def test_what_is_not_text_in_a_table_is_named_with_its_row(size):
    texts = [b"i > 0"] * size
    texts[1] = b"i > \xff"
    ids = [f"{n}".encode() for n in range(size)]
    ids[2] = b"\x80"
    table = pa.table({"id": pa.array(ids).view(pa.string()),
                      "filter": pa.array(texts).view(pa.string())})  # fmt: skip
    matcher = Matcher(SMALL)
    with pytest.raises(BulkError) as caught:
        matcher.subscribe_many(table)
    assert [(row, name, str(error)) for row, name, error in caught.value.failures] == [
        (1, "1", "the filter is not valid UTF-8: invalid start byte"),
        (2, None, "the id is not valid UTF-8: invalid start byte"),
    ]
    assert len(matcher) == 0
