"""Many subscriptions at once: every form in which they come, all of them or none."""

import collections
import types

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bulk_subscriptions import EVENTS, named, same, state
from cases import each
from stocks import SMALL, stock_filters
from tamis import (
    BulkError,
    Matcher,
    OptionError,
    parse,
)
from tamis.subscribed_filters import FEWEST_AT_ONCE
from tamis.subscriptions import bulk

SIZES = [1, FEWEST_AT_ONCE - 1, FEWEST_AT_ONCE, FEWEST_AT_ONCE + 1, 200]
ENGINES = ["auto", "sliced", "counting-list"]


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
    """An iterable that is neither a list nor an iterator."""

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
def test_what_is_not_a_bulk(what):
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
@settings(max_examples=20)
def test_any_bulks(first, second, gone, kind, few):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tamis.subscribed_filters.FEWEST_AT_ONCE", few)
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
