"""Subscriptions as a mapping: looking up, removing many, removing all."""

import copy
import pickle
import threading

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from bulk_subscriptions import EVENTS, named, same, state
from cases import each
from stocks import SMALL
from tamis import Matcher, OptionError, SubscriptionError, TamisError, UnknownSubscription, parse
from tamis.engines import ENGINES


def made(size=100, kind=str, engine="auto", **options):
    matcher = Matcher(SMALL, engine, **options)
    matcher.subscribe_many(named(size, kind))
    return matcher


# --- looking up


def test_items_and_brackets():
    matcher = Matcher(SMALL)
    matcher.subscribe("b", "i < 3")
    matcher.subscribe_many({f"many {n}": f"i = {n}" for n in range(100)})
    matcher.subscribe("many 7", "i IS NULL")
    matcher.unsubscribe("many 8")
    expected = {"b": "i < 3"} | {f"many {n}": f"i = {n}" for n in range(100) if n != 8}
    expected["many 7"] = "i IS NULL"
    assert {name: str(filter_) for name, filter_ in matcher.items()} == expected
    assert list(dict(matcher.items())) == list(matcher)
    assert matcher["many 7"] == parse("i IS NULL", SMALL)
    again = Matcher(SMALL)
    again.subscribe_many(matcher.items())
    assert list(again.items()) == list(matcher.items())


@each("ids", [("a", "b"), (1, 2)])
def test_an_unknown_id_is_a_tamis_error_and_a_key_error(ids):
    known, unknown = ids
    matcher = Matcher(SMALL)
    matcher.subscribe(known, "i > 1")
    for kind in (UnknownSubscription, KeyError, SubscriptionError):
        with pytest.raises(kind) as caught:
            matcher[unknown]
        assert str(caught.value).startswith(f"no subscription {unknown!r}")
    with pytest.raises(UnknownSubscription, match=r"^no subscription None$"):
        matcher[None]
    with pytest.raises(UnknownSubscription, match="no subscription True"):
        matcher.unsubscribe(True)


def test_a_suggestion_for_an_unknown_id():
    matcher = Matcher(SMALL)
    matcher.subscribe("Alice", "i > 1")
    with pytest.raises(UnknownSubscription, match="did you mean 'Alice'"):
        matcher["alice"]


@each("kind", [np.int64, np.int8, np.uint64])
def test_numbers_of_numpy_are_found_as_they_were_given(kind):
    matcher = Matcher(SMALL)
    matcher.subscribe(kind(5), "i > 1")
    matcher.subscribe(6, "i > 1")
    assert list(matcher) == [5, 6]
    for one in (5, kind(5)):
        assert one in matcher
        assert str(matcher[one]) == str(matcher.get(one)) == "i > 1"
        assert matcher.why(one, {"i": 2}).matched
    matcher.unsubscribe(kind(5))
    matcher.unsubscribe_many([kind(6)])
    assert len(matcher) == 0


def test_items_while_subscriptions_come_and_go():
    matcher = made(100)
    items = matcher.items()
    first = next(items)[0]
    matcher.unsubscribe_many([f"{n}" for n in range(50, 100)])
    matcher.subscribe("new", "i > 1")
    seen = [first, *(name for name, _ in items)]
    assert seen == [f"{n}" for n in range(50)]


def test_items_while_filters_are_replaced():
    matcher = made(200)
    items = matcher.items()
    next(items)
    matcher.subscribe("5", "i = 77")
    matcher.subscribe_many([(f"{n}", "i = 78") for n in range(10, 100)])
    seen = {name: str(filter_) for name, filter_ in items}
    assert seen == {name: str(matcher[name]) for name in matcher if name != "0"}
    assert (seen["5"], seen["50"]) == ("i = 77", "i = 78")


def test_items_are_not_read_before_somebody_looks_into_them():
    filter_ = dict(made(100).items())["3"]
    assert not hasattr(filter_, "_tree")
    assert pickle.loads(pickle.dumps(filter_)) == filter_ == made(100)["3"]
    assert hasattr(filter_, "_tree")


# --- removing many


@each("engine", ENGINES)
def test_every_engine_removes_many_and_all(engine):
    pairs = named(40)
    matcher = Matcher(SMALL, engine)
    matcher.subscribe_many(pairs)
    gone = {name for name, _ in pairs[3:38:2]}
    matcher.unsubscribe_many(gone)
    same(matcher, [pair for pair in pairs if pair[0] not in gone])
    matcher.clear()
    assert state(matcher)[:2] == ([], 0)
    assert matcher.match(EVENTS[0]) == []
    assert not any(matcher._held.engine.statistics().values())
    matcher.clear()
    matcher.subscribe_many([(7, "TRUE")])  # ids may be of another type now
    assert matcher.match(EVENTS[0]) == [7]


@each("size, gone", [(100, 1), (100, 40), (600, 17), (600, 599), (600, 600)])
def test_compiled_filters_are_removed(size, gone):
    pairs = named(size, str if gone % 2 else int)
    matcher = Matcher(SMALL, "sliced")
    matcher.subscribe_many(pairs[: size // 2])
    matcher.match(EVENTS[0])
    matcher.subscribe_many(pairs[size // 2 :])
    matcher.subscribe(pairs[5][0], "i = 1")  # one of the live part, of a filter in a page
    pairs[5] = pairs[5][0], "i = 1"
    step = size // gone
    leaving = [name for name, _ in pairs[::step]][:gone]
    matcher.unsubscribe_many(leaving[::-1])
    same(matcher, [pair for pair in pairs if pair[0] not in set(leaving)])
    matcher.unsubscribe_many(list(matcher))
    assert state(matcher)[:2] == ([], 0)
    matcher.subscribe_many(pairs[:80])
    same(matcher, pairs[:80])


@each(
    "ids",
    [["3", "1", "3"], ("3", "1"), {"1": 0, "3": 0}, iter(["1", "3"]), pa.array(["1", "3"]),
     pa.chunked_array([["1"], ["3"]]), pd.Series(["1", "3"]), pl.Series(["1", "3"]),
     np.array(["1", "3"])],
)  # fmt: skip
def test_ids_in_any_form(ids):
    matcher = made(6)
    matcher.unsubscribe_many(ids)
    assert list(matcher) == ["0", "2", "4", "5"]


def test_no_ids():
    matcher = made(3)
    matcher.unsubscribe_many([])
    Matcher(SMALL).unsubscribe_many([])
    assert len(matcher) == 3


@each("ids", ["1", b"1", 5, None])
def test_what_are_not_ids(ids):
    with pytest.raises(OptionError, match="unsubscribe takes one id"):
        made(6).unsubscribe_many(ids)


@each("engine", ["auto", "sliced", "tree"])
@each(
    "ids, message",
    [
        (["1", "x"], "1 of 2 ids are not subscribed, none was removed: 'x'$"),
        (["x"], "no subscription 'x'"),
        (["1", 2, None, "y"], "3 of 4 ids are not subscribed, none was removed: 2, None, 'y'$"),
        ([f"x{n}" for n in range(12)], "12 of 12 .* 'x9' and 2 more$"),
    ],
)
def test_an_unknown_id_among_many_changes_nothing(engine, ids, message):
    matcher = made(80, engine=engine)
    before = state(matcher)
    with pytest.raises(UnknownSubscription, match=message):
        matcher.unsubscribe_many(ids)
    assert state(matcher) == before


def test_a_match_sees_all_of_a_removal_or_nothing():
    """Half of the subscriptions come and go together, while another thread matches."""
    texts = {f"{n}": "i >= 0" for n in range(400)}
    some = list(texts)[::2]
    matcher = Matcher(SMALL, "sliced")
    matcher.subscribe_many(texts)
    over, seen = threading.Event(), set()

    def match():
        while not over.is_set():
            counts = matcher.match_batch([{"i": 1}] * 3, "lists")["subscriptions"].to_pylist()
            seen.update(len(one) for one in counts)

    thread = threading.Thread(target=match)
    thread.start()
    for _ in range(20):
        matcher.unsubscribe_many(some)
        matcher.subscribe_many({name: texts[name] for name in some})
    matcher.clear()
    over.set()
    thread.join()
    assert seen <= {200, 400, 0}


# --- what cannot be sent


@each("send", [pickle.dumps, copy.copy, copy.deepcopy])
def test_a_matcher_says_how_it_travels(send):
    with pytest.raises(TamisError, match=r"neither pickled nor copied; .* Matcher\.load"):
        send(made(3))
