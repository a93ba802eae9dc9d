from datetime import timedelta

import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from cases import each
from offers import EVENTS, OFFERS, event_of, offers, parsed
from strategies import DECIMALS, LONG_DECIMALS, SCHEMA, filters, rows
from tamis import (
    BulkError,
    EventError,
    Expression,
    ExpressionError,
    Matcher,
    OptionError,
    Schema,
    SchemaError,
    SubscriptionError,
    parse,
)
from tamis.language.evaluation import Logic, compile_tree
from tamis.semantics import Semantics
from tamis.timestamps import EPOCH

# --- batches

BATCHES = {
    "dicts": EVENTS,
    "a generator": lambda: iter(EVENTS),
    "texts": ['{"company": "IBM", "price": 900}', b'{"company": "Dell", "price": 10.5, "level": 3}',
              "<company>Acer</company>", {}],
    "an Arrow table": pa.Table.from_pylist(EVENTS, pa.schema(
        [("company", pa.string()), ("price", pa.float64()), ("level", pa.int8())])),
    "a record batch": pa.RecordBatch.from_pylist(EVENTS, pa.schema(
        [("company", pa.string()), ("price", pa.float64()), ("level", pa.int8())])),
    "pandas": pd.DataFrame(EVENTS).astype({"level": "Int64"}),
    "polars": pl.DataFrame(EVENTS, {"company": pl.String, "price": pl.Float32, "level": pl.Int8}),
}  # fmt: skip


@pytest.fixture
def four():
    return offers(
        ibm="company = 'IBM'",
        cheap="price < 100",
        unpriced="price IS NULL",
        three="level = 3",
    )


@pytest.mark.parametrize("events", BATCHES.values(), ids=BATCHES)
def test_pairs(four, events):
    table = four.match_batch(events() if callable(events) else events)
    assert table.to_pydict() == {
        "event": [0, 1, 1, 2, 3],
        "subscription": ["ibm", "cheap", "three", "unpriced", "unpriced"],
    }


@pytest.mark.parametrize("events", BATCHES.values(), ids=BATCHES)
def test_lists(four, events):
    table = four.match_batch(events() if callable(events) else events, output="lists")
    assert table.to_pydict() == {
        "event": [0, 1, 2, 3],
        "subscriptions": [["ibm"], ["cheap", "three"], ["unpriced"], ["unpriced"]],
    }


def test_counts(four):
    table = four.match_batch([*EVENTS, {"price": 100}], output="counts")
    assert table.to_pydict() == {"event": [0, 1, 2, 3, 4], "count": [1, 2, 1, 1, 0]}


TEXTS, WHOLE = (pa.dictionary(pa.int32(), kind) for kind in (pa.string(), pa.int64()))


@each("events", [EVENTS, [], pa.table({"price": pa.array([], pa.float64())})])
@each(("ids", "kind"), [(["a"], TEXTS), ([1], WHOLE), ([], TEXTS)])
def test_the_schemas_of_the_answers(events, ids, kind):
    matcher = Matcher(OFFERS)
    matcher.subscribe_many(dict.fromkeys(ids, "price < 100"))
    event = ("event", pa.int64())
    assert matcher.match_batch(events).schema == pa.schema([event, ("subscription", kind)])
    assert matcher.match_batch(events, "lists").schema == pa.schema(
        [event, ("subscriptions", pa.large_list(kind))]
    )
    assert matcher.match_batch(events, "counts").schema == pa.schema([event, ("count", pa.int64())])


def test_an_empty_batch(four):
    assert four.match_batch([]).num_rows == 0
    assert four.match_batch([], "lists").num_rows == 0
    assert four.match_batch([], "counts").num_rows == 0


def test_a_batch_for_an_empty_matcher():
    matcher = Matcher(OFFERS)
    assert matcher.match_batch(EVENTS).num_rows == 0
    assert matcher.match_batch(EVENTS, "lists")["subscriptions"].to_pylist() == [[], [], [], []]
    assert matcher.match_batch(EVENTS, "counts")["count"].to_pylist() == [0, 0, 0, 0]


@pytest.mark.parametrize("events", [{"price": 1}, "{}", b"{}", None, 5])
def test_what_is_not_a_batch(four, events):
    with pytest.raises(OptionError, match="match takes a single event"):
        four.match_batch(events)


@pytest.mark.parametrize("output", ["pair", "", None, 5])
def test_an_unknown_output(four, output):
    with pytest.raises(OptionError, match="choices: pairs, lists, counts"):
        four.match_batch(EVENTS, output)


@pytest.mark.parametrize(
    ("events", "row"),
    [
        ([{}, {}, {"price": "x"}, {"level": 9}], 2),
        (iter([{}, None]), 1),
        (["{}", "{"], 1),
        (pa.table({"level": [1, 5, 6]}), 2),
    ],
)
def test_a_bad_event_is_named_by_its_number(four, events, row):
    with pytest.raises(EventError, match=f"^event {row}: ") as caught:
        four.match_batch(events)
    assert caught.value.row == row


def test_unknown_attributes_are_ignored_or_refused():
    event = {"company": "IBM", "prize": 5}
    assert offers(a="company = 'IBM'").match(event) == ["a"]
    stern = Matcher(OFFERS, unknown="refuse")
    with pytest.raises(EventError, match="unknown attribute 'prize'"):
        stern.match(event)
    with pytest.raises(EventError, match="unknown attribute 'prize'"):
        stern.match_batch(pa.table({"prize": [5]}))


def test_numbers_of_events_can_be_given(four):
    some_rows = [four.reader.row(event) for event in EVENTS[:2]]
    counts = four.match_rows(some_rows, "counts", [7, 9])
    assert counts.to_pydict() == {"event": [7, 9], "count": [1, 2]}
    assert four.match_rows(some_rows, "pairs", [7, 9])["event"].to_pylist() == [7, 9, 9]


@pytest.mark.long
@settings(max_examples=25)
@given(st.lists(filters(), max_size=4), st.lists(rows(), max_size=4))
def test_batches_agree_with_single_events(texts, some_rows):
    matcher = Matcher(SCHEMA)
    for number, text in enumerate(texts):
        matcher.subscribe(number, parsed(text))
    events = [event_of(row) for row in some_rows]
    singly = [matcher.match(event) for event in events]
    pairs = [(n, one) for n, found in enumerate(singly) for one in found]
    table = matcher.match_batch(events)
    assert list(zip(*table.to_pydict().values(), strict=True)) == pairs
    assert matcher.match_batch(events, "lists")["subscriptions"].to_pylist() == singly
    assert matcher.match_batch(events, "counts")["count"].to_pylist() == list(map(len, singly))


# --- semantics


@each(
    ("semantics", "matched"),
    [
        ({"semantics": "sql"}, ["or", "priced"]),
        ({"semantics": "strict"}, ["priced"]),
        (
            {
                "semantics": "default",
                "defaults": {"company": None, "price": 0, "level": None},
            },
            ["not", "or", "priced"],
        ),
        (
            {
                "semantics": "default",
                "defaults": {"company": "IBM", "price": 0, "level": None},
            },
            ["is", "or", "priced"],
        ),
    ],
)
def test_what_a_missing_attribute_means(semantics, matched):
    matcher = Matcher(OFFERS, **semantics)
    matcher.subscribe_many(
        {
            "is": "company = 'IBM'",
            "not": "NOT company = 'IBM'",
            "or": "company = 'IBM' OR price < 10",
            "priced": "price < 10",
        }
    )
    assert matcher.match({"price": 5}) == matched


def test_total_semantics_refuses_partial_events():
    matcher = Matcher(OFFERS, semantics="total")
    matcher.subscribe("a", "price < 10")
    assert matcher.match({"company": "IBM", "price": 5, "level": 1}) == ["a"]
    with pytest.raises(EventError, match="the event lacks company, level, and"):
        matcher.match({"price": 5})


def test_strict_semantics_goes_by_the_text():
    # Example 5 of the BDD paper: true of every price, and still not of an event without one.
    text = "price < 1000 OR price > 500"
    strict = Matcher(OFFERS, semantics="strict")
    strict.subscribe("a", text)
    assert strict.match({"price": 700}) == ["a"]
    assert strict.match({"company": "IBM"}) == []


@pytest.mark.long
@given(filters(), rows())
def test_sql_means_true_in_kleenes_logic(text, row):
    expression = parsed(text)
    matcher = Matcher(SCHEMA)
    matcher.subscribe(1, text)
    expected = compile_tree(expression.tree, SCHEMA)(row) is True
    assert matcher.match(event_of(row)) == [1] * expected


@pytest.mark.long
@given(filters(), rows())
def test_strict_means_true_and_no_attribute_missing(text, row):
    expression = parsed(text)
    matcher = Matcher(SCHEMA, semantics="strict")
    matcher.subscribe(1, text)
    present = all(row[SCHEMA.positions[path]] is not None for path in expression.attributes)
    expected = present and compile_tree(expression.tree, SCHEMA)(row) is True
    assert matcher.match(event_of(row)) == [1] * expected


@pytest.mark.long
@given(filters(), rows(), rows())
def test_default_means_true_of_the_event_filled_up(text, row, defaults):
    expression = parsed(text)
    named = {
        name: EPOCH + timedelta(microseconds=value)
        if value is not None and str(SCHEMA[name].type) == "timestamp"
        else value
        for name, value in zip(SCHEMA, defaults, strict=True)
    }
    matcher = Matcher(SCHEMA, semantics="default", defaults=named)
    matcher.subscribe(1, text)
    filled = [d if v is None else v for v, d in zip(row, defaults, strict=True)]
    expected = compile_tree(expression.tree, SCHEMA, Logic.CLASSICAL)(filled)
    assert matcher.match(event_of(row)) == [1] * expected


FILLED = {
    "int": 5, "double": 2.5, "string": "ab", "bool": True, "timestamp": 0,
    "decimal(9, 2)": DECIMALS[3], "decimal(38, 10)": LONG_DECIMALS[-1],
}  # fmt: skip


@pytest.mark.long
@given(filters(), rows())
def test_total_means_the_same_as_sql_where_nothing_is_missing(text, row):
    expression = parsed(text)
    matcher = Matcher(SCHEMA, semantics="total")
    matcher.subscribe(1, text)
    whole = tuple(
        FILLED[str(attribute.type)] if value is None else value
        for attribute, value in zip(SCHEMA.attributes, row, strict=True)
    )
    expected = Semantics("sql", SCHEMA).condition(expression)(whole)
    assert matcher.match(event_of(whole)) == [1] * expected


# --- a long life

PLAIN = {
    "TRUE": lambda _: True,
    "FALSE": lambda _: False,
    "price < 10": lambda e: "price" in e and e["price"] < 10,
    "price < 20": lambda e: "price" in e and e["price"] < 20,
    "NOT price < 10": lambda e: "price" in e and e["price"] >= 10,
    "price * 2 >= 15": lambda e: "price" in e and e["price"] * 2 >= 15,
    "price IS NULL": lambda e: "price" not in e,
    "company = 'IBM'": lambda e: e.get("company") == "IBM",
    "company IN ('IBM', 'Dell')": lambda e: e.get("company") in {"IBM", "Dell"},
    "company LIKE '%e%' OR price = 5": lambda e: "e" in e.get("company", "") or e.get("price") == 5,
}
OFFER = st.fixed_dictionaries(
    {},
    optional={
        "company": st.sampled_from(["IBM", "Dell", "Acer", ""]),
        "price": st.sampled_from([0, 5, 7.5, 10, 15, 20]),
    },
)
SOME_ID = st.integers(0, 5)
SOME_FILTER = st.sampled_from(list(PLAIN))


class Life(RuleBasedStateMachine):
    """A matcher beside a dict of ids and filters."""

    @initialize()
    def begin(self):
        self.matcher = Matcher({"company": "string", "price": "double"})
        self.model = {}

    @rule(name=SOME_ID, text=SOME_FILTER)
    def subscribe(self, name, text):
        self.matcher.subscribe(name, text)
        self.model[name] = text

    @rule(name=SOME_ID, text=SOME_FILTER)
    def subscribe_an_expression(self, name, text):
        self.matcher.subscribe(name, parse(text, self.matcher.schema))
        self.model[name] = text

    @rule(name=SOME_ID, text=st.sampled_from(["", "price <", "prize < 1", "price = 'x'"]))
    def subscribe_badly(self, name, text):
        with pytest.raises(ExpressionError):
            self.matcher.subscribe(name, text)

    @rule(pairs=st.lists(st.tuples(SOME_ID, SOME_FILTER), max_size=4))
    def subscribe_many(self, pairs):
        self.matcher.subscribe_many(pairs)
        self.model.update(pairs)

    @rule(pairs=st.lists(st.tuples(SOME_ID, SOME_FILTER), max_size=4))
    def subscribe_many_badly(self, pairs):
        with pytest.raises(BulkError):
            self.matcher.subscribe_many([*pairs, (0, "?")])

    @rule(name=SOME_ID)
    def unsubscribe(self, name):
        if name in self.model:
            self.matcher.unsubscribe(name)
            del self.model[name]
        else:
            with pytest.raises(SubscriptionError):
                self.matcher.unsubscribe(name)

    @rule(event=OFFER)
    def match(self, event):
        expected = [name for name, text in self.model.items() if PLAIN[text](event)]
        assert self.matcher.match(event) == expected

    @rule(events=st.lists(OFFER, max_size=3))
    def match_batch(self, events):
        expected = [[n for n, text in self.model.items() if PLAIN[text](e)] for e in events]
        answer = self.matcher.match_batch(events, "lists")
        assert answer["subscriptions"].to_pylist() == expected

    @precondition(lambda self: self.model)
    @rule(data=st.data(), event=OFFER)
    def why(self, data, event):
        name = data.draw(st.sampled_from(list(self.model)))
        assert self.matcher.why(name, event).matched is PLAIN[self.model[name]](event)

    @invariant()
    def holds_what_the_model_holds(self):
        assert len(self.matcher) == len(self.model)
        assert list(self.matcher) == list(self.model)
        assert all(isinstance(self.matcher.get(name), Expression) for name in self.model)


Life.TestCase.settings = settings(max_examples=20, stateful_step_count=25)
TestLife = Life.TestCase


# --- what once went wrong


@each("strange", [["a"], {}, None, True, 1.0])
def test_what_is_not_an_id_is_not_there(strange):
    m = Matcher({"i": "int"})
    m.subscribe(1, "i > 1")
    assert strange not in m
    assert m.get(strange, "nothing") == "nothing"
    with pytest.raises(SubscriptionError):
        m.unsubscribe(strange)
    assert list(m) == [1]


def test_a_number_of_numpy_is_an_id():
    m = Matcher({"i": "int"})
    m.subscribe_many(pd.DataFrame({"id": [7], "filter": ["i > 1"]}).itertuples(index=False))
    assert list(m) == [7]
    assert type(next(iter(m))) is int


def test_a_string_is_not_a_pair():
    with pytest.raises(
        BulkError, match=r"expected \(id, filter\), perhaps with parameters, got str"
    ):
        Matcher({"b": "bool"}).subscribe_many(["ab"])


def test_records_are_pairs():
    m = Matcher({"b": "bool"})
    m.subscribe_many([{"id": "x", "filter": "b"}])
    assert list(m) == ["x"]


def test_a_huge_id_is_refused():
    with pytest.raises(SubscriptionError, match="64 bits"):
        Matcher({"b": "bool"}).subscribe(10**5000, "b")


@each("strange", [5, None, ["a"], "ab", [("a", "int", "x")]])
def test_what_is_not_a_schema(strange):
    with pytest.raises(SchemaError):
        Schema(strange)


def test_a_table_brings_its_schema():
    assert Matcher(pa.table({"i": [1]})).schema == Schema({"i": "int"})
    with pytest.raises(SchemaError, match="a schema is"):
        Matcher(pa.int64())
