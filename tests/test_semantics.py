"""Four meanings of a missing attribute: the numbered examples of the BDD paper, and their laws."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from strategies import SCHEMA, delicate_rows, filters, rows
from tamis import EventError, Matcher, OptionError, Schema, TypeMismatch, parse
from tamis.semantics import NAMES, Semantics

SALES = Schema({"company": "string", "product": "string", "price": "double"})
IBM_PC = """<company> IBM </company>
<product> PC AT, 20 Mhz, 256 KB RAM
</product>
<price> 5000 </price>"""
FUTURE_PC = """<company> Future Inc. </company>
<product> 100 GHz Super PC </product>"""


def matcher(semantics="sql", **filters_by_id):
    defaults = None
    if semantics == "default":
        defaults = {"company": "", "product": "", "price": -1}
    made = Matcher(SALES, semantics=semantics, defaults=defaults)
    made.subscribe_many(filters_by_id)
    return made


# --- the examples of the paper


def test_example_1_a_stock_and_a_threshold():
    quotes = Matcher({"symbol": "string", "price": "double"})
    quotes.subscribe("hits", "symbol = 'IBM' AND price >= 100")
    assert quotes.match({"symbol": "IBM", "price": 101}) == ["hits"]
    assert quotes.match({"symbol": "IBM", "price": 99}) == []
    assert quotes.match({"symbol": "DELL", "price": 101}) == []


def test_example_2_topics_of_news():
    news = Matcher({"topic": "string", "vendor": "string"})
    news.subscribe("reader", "topic IN ('books', 'music') AND NOT vendor = 'spam'")
    assert news.match({"topic": "music", "vendor": "shop"}) == ["reader"]
    assert news.match({"topic": "cars", "vendor": "shop"}) == []


def test_example_3_a_document_is_a_message():
    reader = matcher().reader
    assert reader.row(IBM_PC) == ("IBM", "PC AT, 20 Mhz, 256 KB RAM", 5000.0)
    assert reader.row(FUTURE_PC) == ("Future Inc.", "100 GHz Super PC", None)


@each("semantics", NAMES)
def test_example_4_cheap_fast_computers(semantics):
    query = (
        "company IN {'IBM', 'Dell', 'Siemens'} AND 'PC' SUBSTRING OF product "
        "AND '1000Mhz' SUBSTRING OF product AND price <= 1000"
    )
    m = matcher(semantics, q=query)
    wanted = {"company": "Dell", "product": "PC 1000Mhz", "price": 1000}
    assert m.match(wanted) == ["q"]
    for other in (
        {"company": "HAL"}, {"product": "PC 900Mhz"}, {"product": "Mac 1000Mhz"}, {"price": 1001},
    ):  # fmt: skip
        assert m.match(wanted | other) == []


def test_example_5_alice_and_bob_join_efforts():
    """Even a tautology needs its attribute: what strict semantics needs is in the text."""
    strict = matcher(
        "strict", alice="price < 1000", bob="price > 500", both="price < 1000 OR price > 500"
    )
    assert strict.match({"price": 700}) == ["alice", "bob", "both"]
    assert strict.match({"price": 1700}) == ["bob", "both"]
    assert strict.match({"company": "IBM"}) == []


def test_the_remark_on_irrelevant_variables():
    """``y AND (x OR NOT x)`` is not treated like ``y``."""
    strict = Matcher({"x": "bool", "y": "bool"}, semantics="strict")
    strict.subscribe_many([("y", "y"), ("padded", "y AND (x OR NOT x)")])
    assert strict.match({"y": True}) == ["y"]
    assert strict.match({"y": True, "x": False}) == ["y", "padded"]


def test_example_6_defaults_for_absent_attributes():
    m = matcher("default", cheap="price < 10", named="company <> ''", free="NOT price >= 0")
    assert m.match(FUTURE_PC) == ["cheap", "named", "free"]
    assert m.match({"price": 5}) == ["cheap"]


def test_a_bottom_default_tests_for_presence():
    """⊥ is a value of its own: equal to no constant, in order with none, and negation is plain."""
    m = Matcher({"v": "int"}, semantics="default", defaults={"v": None})
    m.subscribe_many(
        {
            "defined": "v IS NOT NULL",
            "three": "v = 3", "not three": "v <> 3", "not three either": "NOT v = 3",
            "small": "v < 3", "not small": "NOT v < 3", "large": "v >= 3",
            "none of": "v NOT IN (1, 2)",
        }
    )  # fmt: skip
    assert m.match({}) == ["not three", "not three either", "not small", "none of"]
    assert m.match({"v": 3}) == ["defined", "three", "not small", "large", "none of"]


def test_examples_8_and_9_formulas_over_conditions():
    m = Matcher({"x": "bool", "y": "bool", "z": "bool"})
    m.subscribe_many({1: "x AND (y OR z)", 2: "NOT x AND (y OR z)", 3: "y OR z"})
    assert m.match({"x": True, "y": False, "z": True}) == [1, 3]
    assert m.match({"x": False, "y": True, "z": False}) == [2, 3]
    assert m.match({"x": True, "y": False, "z": False}) == []


def test_example_11_two_subscriptions_share_an_atom():
    m = matcher(
        q1="price < 1500 AND 'IBM' SUBSTRING OF company",
        q2="price < 1500 AND 'McDonalds' SUBSTRING OF company",
    )
    assert m.match({"company": "IBM Corp.", "price": 1000}) == ["q1"]
    assert m.match({"company": "McDonalds", "price": 1000}) == ["q2"]


def test_null_semantics_of_jms():
    m = matcher(a="price > 5 OR company = 'IBM'", b="NOT (price > 5)", c="price IS NULL")
    assert m.match({"company": "IBM"}) == ["a", "c"]
    assert m.match({"company": "Dell"}) == ["c"]


# --- errors


def test_a_partial_event_is_an_error_where_events_are_total():
    m = matcher("total", q="company = 'IBM'")
    assert m.match(IBM_PC) == ["q"]
    with pytest.raises(EventError, match="lacks price"):
        m.match(FUTURE_PC)
    with pytest.raises(EventError, match="event 1: the event lacks price"):
        m.match_batch([IBM_PC, FUTURE_PC])


@each(
    ("defaults", "message"),
    [
        (None, "needs defaults"),
        ({"company": "", "product": ""}, "defaults lack price"),
        ({"company": "", "product": "", "prise": 1}, "did you mean 'price'"),
        ({"company": "", "product": "", "price": "low"}, "price expects double"),
    ],
)
def test_defaults_are_checked(defaults, message):
    with pytest.raises(OptionError, match=message):
        Matcher(SALES, semantics="default", defaults=defaults)


def test_defaults_belong_to_the_default_semantics():
    with pytest.raises(OptionError, match="belong to semantics"):
        Matcher(SALES, semantics="sql", defaults={"price": 1})


# --- laws


def parsed(text):
    try:
        return parse(text, SCHEMA)
    except TypeMismatch:
        return None


def semantics_of(name):
    bottom = dict.fromkeys(SCHEMA)
    return Semantics(name, SCHEMA, bottom if name == "default" else None)


@given(filters(), rows())
def test_proposition_7_on_total_events_all_agree(text, row):
    """But for nulls that an expression makes itself, as by dividing by zero."""
    expression = parsed(text)
    if expression is None:
        return
    row = tuple(d if v is None else v for v, d in zip(row, delicate_rows()[3], strict=True))
    nulls = {"/", "%", "DIV", "NULL", "UNKNOWN", "*", "+", "-"} & set(
        re.sub(r"[(),]", " ", text).split()
    )
    names = ("sql", "strict", "total") if nulls else NAMES
    answers = {semantics_of(n).condition(expression)(semantics_of(n).prepare(row)) for n in names}
    assert len(answers) == 1


@given(filters(), rows())
def test_strict_matches_are_sql_matches(text, row):
    expression = parsed(text)
    if expression is not None and semantics_of("strict").condition(expression)(row):
        assert semantics_of("sql").condition(expression)(row)


@given(filters(), rows())
def test_strict_needs_every_attribute_of_the_text(text, row):
    expression = parsed(text)
    if expression is None:
        return
    occurring = [row[SCHEMA.positions[path]] for path in expression.attributes]
    if None in occurring:
        assert not semantics_of("strict").condition(expression)(row)


@given(filters(), rows())
def test_classical_negation_is_plain(text, row):
    """Under default semantics a filter or its negation matches, never both and never neither."""
    expression, negation = parsed(text), parsed(f"NOT ({text})")
    if expression is None or negation is None:
        return
    semantics = semantics_of("default")
    assert semantics.condition(expression)(row) != semantics.condition(negation)(row)


@given(st.sampled_from(["sql", "strict", "default"]), rows())
def test_prepare_keeps_what_is_there(name, row):
    assert semantics_of(name).prepare(row) == row
