"""Compacted tables: whatever they leave out, the matches of the originals come back."""

import math

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from stocks import stock_filters, stock_rows
from strategies import DECIMALS, LONG_DECIMALS, SCHEMA, filters, rows
from tamis import BulkError, EventError, ExpressionError, Matcher, OptionError, SubscriptionError
from tamis import parse as read
from tamis.compaction import Report, compact, fresh_ids
from tamis.semantics import NAMES

SMALL = {"x": "int", "y": "double", "s": "string"}


def pairs_of(table):
    columns = table["event"].to_pylist(), table["subscription"].to_pylist()
    return sorted(zip(*columns, strict=True))


def plain(table):
    """Columns of a table of matches whose lists are in order."""
    columns = table.to_pydict()
    if "subscription" in columns:
        return pairs_of(table)
    if "subscriptions" in columns:
        columns["subscriptions"] = [sorted(ids) for ids in columns["subscriptions"]]
    return columns


def compacted(texts, **settings):
    return compact(texts, SMALL, **settings)


# --- what is left


def test_duplicates_covered_ones_and_mergers():
    found = compacted(
        {
            "a": "x > 1 AND s = 'p'", "b": "s = 'p' AND NOT x <= 1", "c": "x > 4 AND s = 'p'",
            "d": "y < 3", "e": "y >= 3", "f": "y = 7", "g": "x > 3 AND x < 4", "h": "y = 7.0",
        }
    )  # fmt: skip
    assert found.subscriptions.to_pylist() == [
        {"id": "a", "filter": "x > 1 AND s = 'p'"},
        {"id": "merged-1", "filter": "y IS NOT NULL"},
    ]
    assert [tuple(row.values()) for row in found.mapping.to_pylist()] == [
        ("a", "a", True), ("a", "b", True), ("a", "c", False), ("merged-1", "d", False),
        ("merged-1", "e", False), ("merged-1", "f", False), ("merged-1", "h", False),
    ]  # fmt: skip
    ((never, reason),) = [tuple(row.values()) for row in found.never.to_pylist()]
    assert never == "g"
    assert reason == "no event can match it: no value of x passes all its tests"
    assert found.report == Report(
        originals=8, never=1, duplicates=2, covered=2, merged=2, kept=1, mergers=1
    )
    assert str(found.report) == (
        "8 subscriptions became 2: 2 duplicates, 2 covered, 2 merged into 1 merger, "
        "1 that can never match"
    )
    assert found.report.to_dict()["left"] == 2


def test_without_merging_every_filter_is_an_original():
    found = compacted({1: "y < 3", 2: "y >= 3", 3: "y < 2"}, merge=False)
    assert found.subscriptions.to_pylist() == [
        {"id": 1, "filter": "y < 3"},
        {"id": 2, "filter": "y >= 3"},
    ]
    assert found.mapping["exact"].to_pylist() == [True, True, False]


def test_without_covering_only_duplicates_go():
    texts = {1: "y < 3", 2: "y >= 3", 3: "y < 2", 4: "3 > y", 5: "y < 2 AND y > 3"}
    found = compacted(texts, cover=False)
    assert found.subscriptions["id"].to_pylist() == [1, 2, 3]
    assert found.mapping["exact"].to_pylist() == [True] * 4
    assert found.report == Report(originals=5, never=1, duplicates=1, kept=3)
    assert found.match({"y": 1.0}) == [1, 4, 3]  # those of one meaning stand together


def test_of_an_id_the_last_row_counts():
    found = compacted([("a", "x > 1"), ("b", "x > 2"), ("a", "x > 3")])
    assert found.subscriptions.to_pylist() == [{"id": "b", "filter": "x > 2"}]
    assert found.match({"x": 9}) == ["a", "b"]
    assert found.match({"x": 3}) == ["b"]


def test_every_form_of_subscriptions_and_no_subscriptions():
    table = pa.table({"id": [1, 2], "filter": ["x > 1", "x>1"]})
    assert compacted(table).report.duplicates == 1
    expressions = [(1, read("x > 1", SMALL)), (2, read("x < 1", SMALL))]
    assert compacted(expressions, merge=False).subscriptions["filter"].to_pylist() == [
        "x > 1", "x < 1",
    ]  # fmt: skip
    nothing = compacted([])
    assert nothing.report == Report()
    assert nothing.match({"x": 1}) == []
    assert nothing.match_batch([{"x": 1}], output="counts")["count"].to_pylist() == [0]
    never = compacted({"a": "x > 1 AND x < 1"})
    assert never.match({"x": 1}) == []
    assert never.restore(pa.table({"event": [], "subscription": []}), [{}]).num_rows == 0


@each(
    ("ids", "expected"),
    [
        (["a", "b"], "merged-1"),
        (["merged-1", "b"], "merged--1"),
        ([3, 7], 8),
        ([2**63 - 1, 7], 6),
        ([2**63 - 1, -(2**63)], 0),
    ],
)
def test_mergers_have_ids_that_no_original_has(ids, expected):
    assert next(fresh_ids(ids)) == expected
    found = compacted(dict(zip(ids, ["x < 3", "x >= 3"], strict=True)))
    assert found.subscriptions["id"].to_pylist() == [expected]
    assert found.match({"x": 3}) == ids[1:]


# --- what cannot be used


def test_all_bad_rows_are_named_at_once():
    with pytest.raises(BulkError) as caught:
        compacted([("a", "x >"), ("b", "x > 1"), (None, "x > 1"), ("c", "z > 1")])
    assert [(row, one) for row, one, _ in caught.value.failures] == [(0, "a"), (2, None), (3, "c")]
    other = read("x > 1", {"x": "int"})
    with pytest.raises(BulkError, match="another schema"):
        compacted({"a": other})
    with pytest.raises(OptionError, match="unknown semantics"):
        compacted({}, semantics="loose")


def test_matches_that_are_not_of_this_table_or_of_other_events():
    found = compacted({"a": "x > 1", "b": "x > 2"})
    matches = pa.table({"event": [0], "subscription": ["b"]})
    with pytest.raises(
        SubscriptionError, match="'b', which is not a subscription of the compacted"
    ):
        found.restore(matches, [{"x": 1}])
    matches = pa.table({"event": [1], "subscription": ["a"]})
    with pytest.raises(EventError, match="name event 1, but there are only 1 events"):
        found.restore(matches, [{"x": 1}])
    with pytest.raises(OptionError, match="as pairs, with the columns event and subscription"):
        found.restore(pa.table({"event": [1]}), [{"x": 1}])
    with pytest.raises(OptionError, match="unknown output"):
        found.match_batch([{"x": 1}], output="sets")


# --- back to the originals


def test_matches_in_any_order_and_as_plain_ids():
    found = compacted({"a": "x > 1", "b": "x > 2", "c": "y > 0", "d": "x>1"})
    events = [{"x": 2, "y": 1.0}, {}, {"x": 3}]
    matches = pa.table({"event": [2, 0, 0], "subscription": ["a", "c", "a"]})
    expected = [(0, "a"), (0, "c"), (0, "d"), (2, "a"), (2, "b"), (2, "d")]
    assert pairs_of(found.restore(matches, events)) == expected
    assert pairs_of(found.match_batch(iter(events))) == expected


@st.composite
def tables(draw):
    """Filters of the whole language with their likes: the same again, narrower, wider, shifted."""
    texts = draw(st.lists(filters(2), min_size=1, max_size=4))
    bounds = st.integers(-3, 3)
    texts += [f"i > {draw(bounds)}" for _ in range(draw(st.integers(0, 3)))]
    texts += [f"x = {draw(bounds)}" for _ in range(draw(st.integers(0, 3)))]
    for _ in range(draw(st.integers(1, 10))):
        one, other = draw(st.sampled_from(texts)), draw(st.sampled_from(texts))
        likes = [one, f"({one})", f"({one}) AND ({other})", f"({one}) OR ({other})",
                 f"NOT ({one})", f"({one}) AND i > {draw(bounds)}"]  # fmt: skip
        texts.append(draw(st.sampled_from(likes)))
    good = []
    for text in texts:
        try:
            read(text, SCHEMA)
        except ExpressionError:  # beyond a limit of decimals
            continue
        good.append(text)
    return good


def defaults_of(semantics):
    values = {"i": 0, "x": math.nan, "s": "a", "b": True}
    return {name: values.get(name) for name in SCHEMA} if semantics == "default" else None


def present(row):
    """Values in the place of those that are missing."""
    fill = {"int": 1, "double": 0.5, "string": "ab", "bool": True, "timestamp": 0,
            "decimal(9, 2)": DECIMALS[3], "decimal(38, 10)": LONG_DECIMALS[-1]}  # fmt: skip
    pairs = zip(row, SCHEMA.attributes, strict=True)
    return tuple(fill[str(a.type)] if value is None else value for value, a in pairs)


def table_of(some):
    kinds = {"int": pa.int64(), "double": pa.float64(), "string": pa.string(), "bool": pa.bool_(),
             "timestamp": pa.timestamp("us", "UTC"), "decimal(9, 2)": pa.decimal128(9, 2),
             "decimal(38, 10)": pa.decimal128(38, 10)}  # fmt: skip
    return pa.table(
        {
            ".".join(a.path): pa.array([row[n] for row in some], kinds[str(a.type)])
            for n, a in enumerate(SCHEMA.attributes)
        }
    )


def test_ids_columns_to_keep_and_bad_events():
    texts = {"a": "x > 1", "b": "x>1", "c": "x > 5"}
    found = compacted(texts)
    matcher = Matcher(SMALL)
    matcher.subscribe_many(texts)
    events = [
        {"x": 3, "n": "three"}, {"x": "many", "n": "bad"}, {"x": 7, "n": "seven"}, {"x": 9},
    ]  # fmt: skip
    for output in ("pairs", "lists", "counts"):
        for wanted in ({}, {"event_id": "n"}, {"keep": ["n"]}, {"event_id": "n", "keep": ["x"]}):
            expected = matcher.match_batch(events, output, on_bad="skip", **wanted)
            answer = found.match_batch(events, output, on_bad="skip", **wanted)
            assert answer.to_pydict() == expected.to_pydict(), (output, wanted)
            assert answer.bad == expected.bad
    with pytest.raises(EventError, match="event 1"):
        found.match_batch(iter(events), event_id="n")
    with pytest.raises(OptionError, match="treatment of bad rows"):
        found.match_batch(events, on_bad="keep")


@pytest.mark.long
@pytest.mark.parametrize("semantics", NAMES)
@settings(max_examples=25)
@given(tables(), st.lists(rows(), max_size=12), st.booleans())
def test_the_matches_of_the_originals_come_back(semantics, texts, some, merge):
    of = {"semantics": semantics, "defaults": defaults_of(semantics)}
    if semantics == "total":
        some = [present(row) for row in some]
    naive = Matcher(SCHEMA, engine="naive", **of)
    naive.subscribe_many(enumerate(texts))
    found = compact(enumerate(texts), SCHEMA, merge=merge, **of)
    prepared = [naive.meaning.prepare(row) for row in some]
    expected = pairs_of(naive.match_rows(prepared))
    events = table_of(some)
    assert pairs_of(found.match_batch(events)) == expected
    first = Matcher(SCHEMA, engine="naive", **of)
    first.subscribe_many(found.subscriptions)
    assert pairs_of(found.restore(first.match_rows(prepared), events)) == expected
    assert pairs_of(found.restore(first.match_rows(prepared, "lists"), events)) == expected
    never = set(found.never["original"].to_pylist())
    assert never.isdisjoint(one for _, one in expected)
    assert sorted([*found.mapping["original"].to_pylist(), *never]) == list(range(len(texts)))


@pytest.mark.long
@each("output", ["pairs", "lists", "counts"])
def test_many_subscriptions_in_every_output(output):
    schema = {"i": "int", "x": "double", "s": "string", "b": "bool"}
    texts = stock_filters(3, 150) * 3
    columns = zip(*stock_rows(5, 700), strict=True)
    events = pa.table(dict(zip(["i", "x", "s", "b", "side"], map(list, columns), strict=True)))
    schema["side"] = "string"
    matcher = Matcher(schema)
    matcher.subscribe_many((f"s{n}", text) for n, text in enumerate(texts))
    found = compact(((f"s{n}", text) for n, text in enumerate(texts)), schema)
    assert found.report.duplicates >= 300
    expected = matcher.match_batch(events, output)
    assert plain(found.match_batch(events, output)) == plain(expected)
    one = events.slice(3, 1).to_pylist()[0]
    assert sorted(found.match(one)) == sorted(matcher.match(one))
    first = Matcher(schema)
    first.subscribe_many(found.subscriptions)
    for form in ("pairs", "lists"):
        restored = found.restore(first.match_batch(events, form), events, output)
        assert plain(restored) == plain(expected)
