import gc
import math

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from offers import EVENTS, OFFERS, offers, state
from tamis import (
    BulkError,
    Matcher,
    OptionError,
    ParseError,
    Schema,
    SubscriptionError,
    TamisError,
    TypeMismatch,
    parse,
)

# --- the first example


def test_the_example_of_the_documentation():
    matcher = Matcher({"company": "string", "product": "string", "price": "double"})
    matcher.subscribe(
        "alice", "company IN ('IBM', 'Dell') AND product LIKE '%PC%' AND price <= 1000"
    )
    matcher.subscribe_many([("bob", "price BETWEEN 5 AND 10"), ("eve", "company IS NULL")])
    assert matcher.match({"company": "IBM", "product": "PC AT", "price": 900}) == ["alice"]
    assert matcher.match('{"price": 7}') == ["bob", "eve"]
    document = "<company> IBM </company> <product> PC </product> <price> 5 </price>"
    assert matcher.match(document) == ["alice", "bob"]
    pairs = matcher.match_batch([{"price": 7}, {"company": "Dell"}])
    assert pairs.to_pydict() == {"event": [0, 0], "subscription": ["bob", "eve"]}
    matcher.subscribe("bob", "price < 5")
    matcher.unsubscribe("eve")
    assert matcher.match('{"price": 4}') == ["bob"]


@each(
    "event",
    [
        {"company": "IBM", "price": 900},
        '{"company": "IBM", "price": 900}',
        b'{"company": "IBM", "price": 900}',
        "<company> IBM </company> <price> 900 </price>",
    ],
)
def test_an_event_may_be_a_dict_json_or_xml(event):
    assert offers(alice="company = 'IBM' AND price <= 1000").match(event) == ["alice"]


def test_the_schema_may_be_arrows():
    matcher = Matcher(pa.schema([("price", pa.float32())]))
    matcher.subscribe("a", "price < 1")
    assert matcher.match({"price": 0.5}) == ["a"]


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_nan_is_above_every_number(value):
    assert offers(a="price > 1e308D").match({"price": value}) == ["a"]


# --- subscribing


def test_a_matcher_counts_lists_and_finds_its_subscriptions():
    matcher = offers(a="price < 1", b="price > 1")
    assert len(matcher) == 2
    assert list(matcher) == ["a", "b"]
    assert "a" in matcher
    assert "c" not in matcher
    assert matcher.get("a") == parse("price < 1", OFFERS)
    assert matcher.get("c") is None
    assert matcher.get("c", "nothing") == "nothing"


def test_an_empty_matcher():
    matcher = Matcher(OFFERS)
    assert len(matcher) == 0
    assert list(matcher) == []
    assert matcher.match(EVENTS[0]) == []
    assert repr(matcher) == "<Matcher of 0 subscriptions, engine 'naive', semantics 'sql'>"


def test_the_name_of_the_engine_is_never_auto():
    assert Matcher(OFFERS).engine == Matcher(OFFERS, engine="naive").engine == "naive"


def test_subscribing_again_replaces_the_filter_and_keeps_the_place():
    matcher = offers(a="price < 1", b="price > 1")
    matcher.subscribe("a", "price > 0")
    assert list(matcher) == ["a", "b"]
    assert matcher.match({"price": 0.5}) == ["a"]
    assert matcher.match({"price": 5}) == ["a", "b"]


def test_unsubscribing():
    matcher = offers(a="price > 1", b="price > 1")
    matcher.unsubscribe("a")
    assert list(matcher) == ["b"]
    assert matcher.match({"price": 5}) == ["b"]


def test_nothing_is_kept_of_those_who_left():
    matcher = Matcher(OFFERS)
    matcher.subscribe("a", "price > 1")
    matcher.unsubscribe("a")
    assert len(matcher) == 0
    assert matcher._held.subscriptions.kind is None
    assert not any(matcher._held.engine.statistics().values())


def test_one_who_comes_back_stands_at_the_end():
    matcher = offers(a="TRUE", b="TRUE")
    matcher.unsubscribe("a")
    matcher.subscribe("a", "TRUE")
    assert matcher.match({}) == ["b", "a"]


def test_matches_come_in_the_order_of_subscription():
    names = ["z", "b", "a", "y"]
    matcher = offers(**dict.fromkeys(names, "TRUE"))
    assert matcher.match({}) == names


def test_equal_filters_of_many_subscribers():
    matcher = offers(a="price < 1", b="price<1", c="NOT price >= 1")
    assert matcher.match({"price": 0}) == ["a", "b", "c"]


@pytest.mark.parametrize("ids", [["a", "", "é", " ", "😀"], [0, -1, 2**63 - 1, -(2**63)]])
def test_ids_are_strings_or_integers_of_64_bits(ids):
    matcher = Matcher(OFFERS)
    for one in ids:
        matcher.subscribe(one, "TRUE")
    assert matcher.match({}) == ids
    assert matcher.match_batch([{}])["subscription"].to_pylist() == ids


@each("bad", [None, True, 1.0, b"a", ("a",), ["a"], object()])
def test_what_cannot_be_an_id(bad):
    with pytest.raises(SubscriptionError, match="a subscription id is a string or an integer"):
        Matcher(OFFERS).subscribe(bad, "TRUE")


@each("bad", [2**63, -(2**63) - 1, 10**100])
def test_an_id_beyond_64_bits(bad):
    with pytest.raises(SubscriptionError, match="does not fit in 64 bits"):
        Matcher(OFFERS).subscribe(bad, "TRUE")


def test_an_id_that_is_not_unicode_text():
    with pytest.raises(SubscriptionError, match="not valid Unicode text"):
        Matcher(OFFERS).subscribe("\ud800", "TRUE")


@each(("first", "second", "kind"), [("1", 1, "strings"), (1, "1", "integers"), (0, "", "integers")])
def test_ids_of_two_kinds_do_not_mix(first, second, kind):
    matcher = Matcher(OFFERS)
    matcher.subscribe(first, "TRUE")
    with pytest.raises(SubscriptionError, match=f"the ids of this matcher are {kind}, and"):
        matcher.subscribe(second, "TRUE")
    assert list(matcher) == [first]


def test_an_emptied_matcher_takes_ids_of_the_other_kind():
    matcher = Matcher(OFFERS)
    matcher.subscribe("a", "TRUE")
    matcher.unsubscribe("a")
    matcher.subscribe(1, "TRUE")
    assert matcher.match({}) == [1]


def test_an_expression_of_the_same_schema_is_taken():
    matcher = Matcher(OFFERS)
    expression = parse("price < 1", Schema.of_attributes(OFFERS.attributes))
    matcher.subscribe("a", expression)
    assert matcher.get("a") is expression
    assert matcher.match({"price": 0}) == ["a"]


@pytest.mark.parametrize("other", [{"price": "double"}, {"price": "int"}])
def test_an_expression_of_another_schema_is_refused(other):
    with pytest.raises(SubscriptionError, match="parsed with another schema"):
        Matcher(OFFERS).subscribe("a", parse("price < 1", other))


# --- calls that fail


BAD_CALLS = {
    "a text that is not a filter": lambda m: m.subscribe("a", "price <"),
    "an empty filter": lambda m: m.subscribe("a", ""),
    "an unknown attribute": lambda m: m.subscribe("new", "prize < 1"),
    "a type mismatch": lambda m: m.subscribe("a", "price = 'x'"),
    "a constant outside its domain": lambda m: m.subscribe("a", "level = 9"),
    "a filter that is a number": lambda m: m.subscribe("a", 5),
    "no filter": lambda m: m.subscribe("a", None),
    "an expression of another schema": lambda m: m.subscribe("a", parse("TRUE", {})),
    "an id of the other kind": lambda m: m.subscribe(1, "TRUE"),
    "an id that is a bool": lambda m: m.subscribe(True, "TRUE"),
    "an unknown id": lambda m: m.unsubscribe("zzz"),
    "an unknown id of the other kind": lambda m: m.unsubscribe(1),
    "why of an unknown id": lambda m: m.why("zzz", {}),
    "why of a bad event": lambda m: m.why("a", {"price": "x"}),
    "a bad row among good ones": lambda m: m.subscribe_many([("a", "TRUE"), ("c", "prize < 1")]),
    "ids of two kinds": lambda m: m.subscribe_many([("c", "TRUE"), (1, "TRUE")]),
    "rows that are not pairs": lambda m: m.subscribe_many([("c", "TRUE"), ("a", "b", "c"), None]),
    "a number of subscriptions": lambda m: m.subscribe_many(5),
    "a text of subscriptions": lambda m: m.subscribe_many("abc"),
    "a table without filters": lambda m: m.subscribe_many(pa.table({"id": ["a"]})),
    "an event of the wrong type": lambda m: m.match({"price": "x"}),
    "no event": lambda m: m.match(None),
    "a single event as a batch": lambda m: m.match_batch({"price": 1}),
    "a bad event in a batch": lambda m: m.match_batch([{}, {"level": 9}]),
    "an unknown output": lambda m: m.match_batch([], "pear"),
}


@each("call", BAD_CALLS.values())
def test_a_call_that_fails_changes_nothing(call):
    matcher = offers(a="price < 1", b="company = 'IBM'")
    before = state(matcher)
    with pytest.raises(TamisError):
        call(matcher)
    assert state(matcher) == before


def test_an_unknown_id_brings_the_nearest():
    with pytest.raises(SubscriptionError, match=r"no subscription 'alcie'; did you mean 'alice'\?"):
        offers(alice="TRUE").unsubscribe("alcie")


def test_a_filter_that_fails_shows_the_place():
    with pytest.raises(TypeMismatch) as caught:
        Matcher(OFFERS).subscribe("a", "company = 'IBM' AND prize < 1")
    assert caught.value.text[caught.value.start : caught.value.end] == "prize"
    assert "did you mean 'price'?" in str(caught.value)


@each(
    ("options", "message"),
    [
        ({"engine": "naiv"}, "unknown engine 'naiv'; did you mean 'naive'"),
        ({"engine": None}, "unknown engine None; choices: auto, "),
        ({"semantics": "SQL"}, "unknown semantics 'SQL'; choices: sql, strict, default, total"),
        ({"unknown": "drop"}, "'drop'; choices: ignore, refuse"),
        ({"defaults": {"price": 1}}, 'defaults belong to semantics="default"'),
        ({"semantics": "default"}, "needs defaults"),
        ({"semantics": "default", "defaults": {"price": 1}}, "defaults lack company, level"),
        (
            {"semantics": "default", "defaults": {"prize": 1}},
            r"unknown attribute 'prize'; did you mean 'price'\?",
        ),
        (
            {"semantics": "default", "defaults": {"company": 5, "price": 1, "level": 1}},
            "defaults: attribute company expects string, got 5",
        ),
        (
            {"semantics": "default", "defaults": {"company": "", "price": 1, "level": 9}},
            "defaults: attribute level: 9 .* lies outside the domain",
        ),
    ],
)
def test_options_that_are_none(options, message):
    with pytest.raises(OptionError, match=message):
        Matcher(OFFERS, **options)


# --- many subscriptions

MANY = {
    "pairs": [("a", "price < 1"), ("b", "price > 1")],
    "tuples": (("a", "price < 1"), ("b", "price > 1")),
    "an iterator": lambda: iter([("a", "price < 1"), ("b", "price > 1")]),
    "a generator": lambda: (pair for pair in [("a", "price < 1"), ["b", "price > 1"]]),
    "a mapping": {"a": "price < 1", "b": "price > 1"},
    "items": {"a": "price < 1", "b": "price > 1"}.items(),
    "expressions": {"a": parse("price < 1", OFFERS), "b": "price > 1"},
    "an Arrow table": pa.table({"filter": ["price < 1", "price > 1"], "id": ["a", "b"]}),
    "a record batch": pa.record_batch({"id": ["a", "b"], "filter": ["price < 1", "price > 1"]}),
    "pandas": pd.DataFrame({"id": ["a", "b"], "filter": ["price < 1", "price > 1"], "x": [1, 2]}),
    "polars": pl.DataFrame({"id": ["a", "b"], "filter": ["price < 1", "price > 1"]}),
}


@each("subscriptions", MANY.values())
def test_many_subscriptions_at_once(subscriptions):
    matcher = Matcher(OFFERS)
    matcher.subscribe_many(subscriptions() if callable(subscriptions) else subscriptions)
    assert list(matcher) == ["a", "b"]
    assert matcher.match({"price": 0}) == ["a"]


@each("make", [pa.table, pd.DataFrame, pl.DataFrame])
def test_integer_ids_of_tables(make):
    matcher = Matcher(OFFERS)
    matcher.subscribe_many(make({"id": [7, 3], "filter": ["TRUE", "TRUE"]}))
    assert matcher.match({}) == [7, 3]


@each("nothing", [[], {}, pa.table({"id": [], "filter": []})])
def test_no_subscriptions_at_all(nothing):
    matcher = offers(a="TRUE")
    matcher.subscribe_many(nothing)
    assert list(matcher) == ["a"]


def test_of_equal_ids_the_last_wins():
    matcher = Matcher(OFFERS)
    matcher.subscribe_many([("a", "price < 1"), ("b", "TRUE"), ("a", "price > 1")])
    assert list(matcher) == ["a", "b"]
    assert str(matcher.get("a")) == "price > 1"


def test_many_subscriptions_replace_those_that_were_there():
    matcher = offers(a="price < 1", b="price > 1")
    matcher.subscribe_many({"c": "TRUE", "a": "FALSE"})
    assert list(matcher) == ["a", "b", "c"]
    assert matcher.match({"price": 0}) == ["c"]


def test_every_bad_row_is_reported():
    matcher = offers(z="TRUE")
    with pytest.raises(BulkError) as caught:
        matcher.subscribe_many(
            [
                ("a", "price <"),
                ("b", "TRUE"),
                ("c", "prize < 1"),
                (None, "TRUE"),
                (5, "TRUE"),
                "xyz",
                ("d", None),
                ("e", parse("TRUE", {})),
            ]
        )
    error = caught.value
    assert [(row, name) for row, name, _ in error.failures] == [
        (0, "a"), (2, "c"), (3, None), (4, 5), (5, None), (6, "d"), (7, "e"),
    ]  # fmt: skip
    assert [type(problem) for _, _, problem in error.failures] == [
        ParseError, TypeMismatch, SubscriptionError, SubscriptionError, SubscriptionError,
        ParseError, SubscriptionError,
    ]  # fmt: skip
    assert error.total == 8
    assert str(error).startswith("7 of 8 subscriptions cannot be used; none was subscribed\n")
    assert list(matcher) == ["z"]


def test_nulls_in_a_table_of_subscriptions():
    table = pa.table({"id": ["a", None], "filter": [None, "TRUE"]})
    with pytest.raises(BulkError) as caught:
        Matcher(OFFERS).subscribe_many(table)
    assert [(row, name) for row, name, _ in caught.value.failures] == [(0, "a"), (1, None)]


@pytest.mark.parametrize("column", ["id", "filter"])
def test_a_table_that_lacks_a_column(column):
    table = pa.table({"id": ["a"], "filter": ["TRUE"], "x": [1]}).drop_columns([column])
    with pytest.raises(OptionError, match=f"needs exactly one column '{column}'; it has "):
        Matcher(OFFERS).subscribe_many(table)


@pytest.mark.parametrize("enabled", [True, False])
def test_the_collector_is_left_as_it_was(enabled):
    was = gc.isenabled()
    (gc.enable if enabled else gc.disable)()
    try:
        matcher = Matcher(OFFERS)
        matcher.subscribe_many({"a": "TRUE"})
        assert gc.isenabled() is enabled
        with pytest.raises(BulkError):
            matcher.subscribe_many({"a": "?"})
        assert gc.isenabled() is enabled
    finally:
        (gc.enable if was else gc.disable)()


def test_an_iterable_that_breaks_off_changes_nothing():
    def pairs():
        yield "c", "TRUE"
        raise RuntimeError("the source is gone")

    matcher = offers(a="TRUE")
    with pytest.raises(RuntimeError, match="the source is gone"):
        matcher.subscribe_many(pairs())
    assert list(matcher) == ["a"]
    assert gc.isenabled()


GOOD = ["TRUE", "price < 1", "company = 'IBM' AND price > 3", "level IN (1, 2)", "price + 1 > 2"]
BAD = ["", "price <", "prize < 1", "price = 'x'", "level = 9", "(", 5, None]


@given(
    st.dictionaries(st.sampled_from("abcd"), st.sampled_from(GOOD)),
    st.lists(st.tuples(st.sampled_from("cdef"), st.sampled_from(GOOD + BAD)), max_size=6),
)
def test_many_subscriptions_are_taken_all_or_none(before, pairs):
    matcher = Matcher(OFFERS)
    matcher.subscribe_many(before)
    expected = before
    bad_rows = [row for row, (_, text) in enumerate(pairs) if text in BAD]
    if bad_rows:
        with pytest.raises(BulkError) as caught:
            matcher.subscribe_many(pairs)
        assert [row for row, _, _ in caught.value.failures] == bad_rows
    else:
        matcher.subscribe_many(pairs)
        expected = before | dict(pairs)
    assert [(name, matcher.get(name)) for name in matcher] == [
        (name, parse(text, OFFERS)) for name, text in expected.items()
    ]
