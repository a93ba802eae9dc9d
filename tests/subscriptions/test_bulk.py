"""Many subscriptions at once: every form in which they come, all of them or none."""

import collections
import contextlib
import types

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from stocks import SMALL, stock_filters, stock_rows
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
from tamis.matcher import FEWEST_AT_ONCE
from tamis.subscriptions import bulk

EVENTS = [dict(zip(SMALL, row, strict=True)) for row in stock_rows(2, 20)]
SIZES = [1, FEWEST_AT_ONCE - 1, FEWEST_AT_ONCE, FEWEST_AT_ONCE + 1, 200]
ENGINES = ["auto", "sliced", "counting-list"]


def named(size, kind=str, seed=1, first=0):
    """Ids and filters."""
    return [(kind(n), text) for n, text in enumerate(stock_filters(seed, size), first)]


def state(matcher):
    """All that can be seen of a matcher, and what engine and store say of their sizes."""
    return (
        [(name, str(matcher.get(name))) for name in matcher],
        len(matcher),
        matcher.engine,
        matcher._engine.statistics()["subscriptions"],
        matcher._subscriptions.next_handle,
        matcher._subscriptions.kind,
        [matcher.match(event) for event in EVENTS[:4]],
        matcher.match_batch(EVENTS, "lists").to_pydict(),
    )


def but_for_the_engine(seen):
    return [part for part in seen if part not in ("naive", "sliced")]


def oracle(pairs):
    """A matcher to which the same came one by one."""
    matcher = Matcher(SMALL, "naive")
    for name, text in pairs:
        matcher.subscribe(name, text)
    return matcher


def same(matcher, pairs, events=EVENTS[:5]):
    expected = oracle(pairs)
    assert list(matcher) == list(expected)
    some = list(expected)[:: len(expected) // 200 + 1]
    assert [matcher.get(name) for name in some] == [expected.get(name) for name in some]
    lists = expected.match_batch(events, "lists").to_pydict()
    assert matcher.match_batch(events, "lists").to_pydict() == lists
    assert [matcher.match(event) for event in events[:3]] == lists["subscriptions"][:3]
    assert len(matcher) == len(expected) == matcher._engine.statistics()["subscriptions"]


# --- every form


def frame(make):
    return lambda pairs: make({"id": [n for n, _ in pairs], "filter": [t for _, t in pairs]})


def arrow(ids, filters):
    def make(pairs):
        columns = [[n for n, _ in pairs], [t for _, t in pairs]]
        kind = ids if type(pairs[0][0]) is str else pa.int64()
        return pa.table([pa.array(columns[0]).cast(kind), pa.array(columns[1]).cast(filters)],
                        ["id", "filter"])  # fmt: skip

    return make


class Several:
    """An iterable that is no list and no iterator."""

    def __init__(self, pairs):
        self.pairs = pairs

    def __iter__(self):
        return iter(self.pairs)


WORDS = pa.dictionary(pa.int32(), pa.string())
FORMS = {
    "pairs": list,
    "tuples": tuple,
    "lists": lambda pairs: [list(pair) for pair in pairs],
    "an iterator": iter,
    "a generator": lambda pairs: (pair for pair in pairs),
    "zip": lambda pairs: zip(*zip(*pairs, strict=True), strict=True),
    "an iterable": Several,
    "dicts": lambda pairs: [{"id": n, "filter": t, "more": 1} for n, t in pairs],
    "a generator of dicts": lambda pairs: ({"filter": t, "id": n} for n, t in pairs),
    "a mapping": dict,
    "a view of a mapping": lambda pairs: types.MappingProxyType(dict(pairs)),
    "items": lambda pairs: dict(pairs).items(),
    "a deque": collections.deque,
    "expressions": lambda pairs: [(n, parse(t, SMALL)) for n, t in pairs],
    "some expressions": lambda pairs: [
        (n, parse(t, SMALL) if k % 2 else t) for k, (n, t) in enumerate(pairs)
    ],
    "an Arrow table": arrow(pa.string(), pa.string()),
    "large strings": arrow(pa.large_string(), pa.large_string()),
    "dictionaries": arrow(WORDS, WORDS),
    "views": arrow(pa.string_view(), pa.string_view()),
    "a record batch": lambda pairs: frame(pa.table)(pairs).combine_chunks().to_batches()[0],
    "chunks": lambda pairs: pa.concat_tables(
        [frame(pa.table)(pairs[:1]), frame(pa.table)(pairs[1:])], promote_options="permissive"
    ),
    "other columns": lambda pairs: frame(pa.table)(pairs).append_column("x", [[1] * len(pairs)]),
    "pandas": frame(pd.DataFrame),
    "rows of pandas": lambda pairs: frame(pd.DataFrame)(pairs).itertuples(index=False),
    "polars": frame(pl.DataFrame),
    "rows of polars": lambda pairs: frame(pl.DataFrame)(pairs).iter_rows(named=True),
}


@pytest.mark.long
@each("form", FORMS.values())
@each(("size", "kind"), [(2, str), (70, str), (70, int)])
def test_every_form(form, size, kind):
    pairs = named(size, kind)
    matcher = Matcher(SMALL)
    matcher.subscribe_many(form(pairs))
    same(matcher, pairs)
    assert {type(name) for name in matcher} == {kind}


@pytest.mark.parametrize("size", [2, 100])
def test_integers_of_other_kinds(size):
    for kind in (np.int8, np.uint64, np.int64):
        matcher = Matcher(SMALL)
        matcher.subscribe_many([(kind(n), "i > 0") for n in range(size)])
        assert list(matcher) == list(range(size))
        assert {type(name) for name in matcher} == {int}


@pytest.mark.parametrize("size", [2, 100])
def test_strings_of_other_kinds(size):
    class Name(str):
        __slots__ = ()

    matcher = Matcher(SMALL)
    matcher.subscribe_many([(Name(n), Name("i > 0")) for n in range(size)])
    assert {type(name) for name in matcher} == {str}
    assert str(matcher.get("1")) == "i > 0"


@each("what", [5, None, "abc", b"abc", 1.5, object()])
def test_what_is_no_bulk(what):
    matcher = Matcher(SMALL)
    with pytest.raises(OptionError, match="subscribe_many takes"):
        matcher.subscribe_many(what)


@each(
    "nothing",
    [[], {}, iter([]), pa.table({"id": [], "filter": []})],
)
def test_nothing(nothing):
    matcher, calls = Matcher(SMALL), []
    matcher.subscribe_many(nothing, calls.append)
    assert len(matcher) == sum(calls) == 0


# --- one and the same as one by one


@pytest.mark.long
@each("engine", ENGINES)
@each("size", SIZES)
def test_sizes_around_the_border(engine, size):
    matcher, kind = Matcher(SMALL, engine), (str, int)[size % 2]
    pairs = named(size, kind)
    matcher.subscribe_many(pairs)
    same(matcher, pairs)
    more = named(size, kind, 2, first=size // 2)  # half of them replace
    matcher.subscribe_many(more)
    same(matcher, pairs + more)
    matcher.subscribe_many(more[::-1])
    same(matcher, pairs + more)
    matcher.unsubscribe(pairs[0][0])
    matcher.subscribe_many(pairs)
    same(matcher, (pairs + more)[1:] + pairs if size > 1 else pairs)


@given(
    first=st.lists(st.tuples(st.integers(0, 9), st.sampled_from(stock_filters(4, 12))), max_size=9),
    second=st.lists(st.tuples(st.integers(0, 9), st.sampled_from(stock_filters(5, 12)))),
    gone=st.sets(st.integers(0, 9), max_size=3),
    kind=st.sampled_from([str, int]),
    few=st.sampled_from([1, 4, 100]),
)
@settings(max_examples=40)
def test_any_bulks(first, second, gone, kind, few):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tamis.matcher.FEWEST_AT_ONCE", few)
        patch.setattr("tamis.subscriptions.subscriptions.SMALL", 2)
        patch.setattr("tamis.engines.auto.MOST_UNCOMPILED", 5)
        matcher, model = Matcher(SMALL), {}
        for pairs in (first, second, first[::-1]):
            named_pairs = [(kind(n), text) for n, text in pairs]
            matcher.subscribe_many(named_pairs)
            model.update(named_pairs)
            for name in sorted(set(map(kind, gone)) & model.keys()):
                matcher.unsubscribe(name)
                del model[name]
        same(matcher, model.items())


@pytest.mark.parametrize("size", [5, 100])
def test_of_equal_ids_the_last_counts_where_the_first_stood(size):
    pairs = named(size, int)
    twice = [(3, "i > 5"), *pairs, (0, "TRUE"), (3, "i < 5"), (size, "b"), (0, "FALSE")]
    matcher = Matcher(SMALL)
    matcher.subscribe_many(twice)
    assert list(matcher) == [3, 0, 1, 2, *range(4, size + 1)]
    assert [str(matcher.get(n)) for n in (3, 0, size)] == ["i < 5", "FALSE", "b"]
    same(matcher, twice)


@pytest.mark.parametrize("size", [5, 100])
def test_a_row_that_does_not_count_must_be_right_too(size):
    pairs = [(0, "i >"), *named(size, int)]
    with pytest.raises(BulkError) as caught:
        Matcher(SMALL).subscribe_many(pairs)
    assert [row for row, _, _ in caught.value.failures] == [0]


@pytest.mark.long
@pytest.mark.parametrize("size", [1100, 5100])
def test_thousands(size):
    matcher = Matcher(SMALL)
    matcher.subscribe_many({"first": "i > 0", "2": "b"})
    pairs = named(size)
    matcher.subscribe_many(pairs)
    assert matcher.engine == "sliced"
    before = [("first", "i > 0"), ("2", "b")]
    same(matcher, before + pairs, EVENTS[:3])
    if size < 5000:
        matcher.subscribe("late", "TRUE")
        more = named(size, seed=2, first=600)
        matcher.subscribe_many(more)
        same(matcher, [*before, *pairs, ("late", "TRUE"), *more], EVENTS[:3])


def test_filters_of_every_kind():
    texts = ["TRUE", "FALSE", "i = i", "s LIKE 'T1%'", "x > i", "s = 'é''\\n😀'", "i > 1 OR b"] * 15
    matcher = Matcher(SMALL)
    matcher.subscribe_many(dict(enumerate(texts)))
    same(matcher, enumerate(texts))


# --- errors


BAD = {
    "no filter": ("x", "i >", ParseError),
    "an unknown attribute": ("x", "prize > 1", TypeMismatch),
    "None for a filter": ("x", None, ParseError),
    "a number for a filter": ("x", 5, ParseError),
    "bytes for a filter": ("x", b"i > 1", ParseError),
    "a filter that is no text": ("x", "s = '\ud800'", ParseError),
    "another schema": ("x", parse("TRUE", {}), SubscriptionError),
    "None for an id": (None, "TRUE", SubscriptionError),
    "a truth for an id": (True, "TRUE", SubscriptionError),
    "a float for an id": (1.0, "TRUE", SubscriptionError),
    "the other kind of id": (7, "TRUE", SubscriptionError),
    "an id that is no text": ("\ud800", "TRUE", SubscriptionError),
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
            assert "expected (id, filter), got" in str(error)
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
def test_an_error_behind_many_good_rows(size):
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
        matcher._engine.compile()
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


# --- progress


@pytest.mark.parametrize("size", [1, 9, 10, 11, 100, 105])
@pytest.mark.parametrize("bad", [False, True])
def test_progress(monkeypatch, size, bad):
    monkeypatch.setattr(bulk, "STEP", 10)
    rows, calls = named(size), []
    if bad:
        rows[size // 2] = ("x", "?")
    matcher = Matcher(SMALL)
    try:
        matcher.subscribe_many(rows, calls.append)
    except BulkError:
        assert bad
    assert sum(calls) == size
    assert len(calls) == -(-size // 10)
    assert all(0 < call <= 10 for call in calls)


def test_progress_of_thousands():
    calls = []
    Matcher(SMALL).subscribe_many([(n, "i > 0") for n in range(25_000)], calls.append)
    assert calls == [10_000, 10_000, 5_000]


@pytest.mark.parametrize("size", [5, 100])
def test_progress_that_fails_changes_nothing(size):
    def stop(_):
        raise KeyboardInterrupt

    matcher = Matcher(SMALL)
    matcher.subscribe("a", "i > 0")
    before = state(matcher)
    with pytest.raises(KeyboardInterrupt):
        matcher.subscribe_many(named(size), stop)
    assert state(matcher) == before


# --- expressions


@pytest.mark.parametrize("size", [5, 100])
def test_expressions_come_back_equal(size):
    texts = ["s = 'é''\\n'", "x > 1e308D OR i IN (1, 2)", "NOT (b AND side <> 'buy')", "TRUE",
             "x IN (1, 1e308 * 10D)", "s RLIKE '\\\\d+'"]  # fmt: skip
    expressions = {n: parse(texts[n % len(texts)], SMALL) for n in range(size)}
    matcher = Matcher(SMALL)
    matcher.subscribe_many(expressions)
    assert {n: matcher.get(n) for n in matcher} == expressions
    same(matcher, expressions.items())
