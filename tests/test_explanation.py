import json

import pytest
from hypothesis import given, settings

from cases import each
from strategies import SCHEMA, filters, rows
from tamis import EventError, ExpressionError, Matcher, SubscriptionError, parse
from tamis.explanation import explain_match
from tamis.semantics import Semantics

OFFERS = {"company": "string", "price": "double", "halted": "bool", "address.city": "string"}
FILTER = "company IN ('IBM', 'Dell') AND (price <= 1000 OR NOT halted)"


def why(text, event, **options):
    matcher = Matcher(OFFERS, **options)
    matcher.subscribe("alice", text)
    return matcher.why("alice", event)


def test_a_match_is_taken_apart():
    assert str(why(FILTER, {"company": "IBM", "price": 900, "halted": True})).splitlines() == [
        "'alice' matches: company IN ('IBM', 'Dell') AND (price <= 1000 OR NOT halted)",
        "  true   AND",
        "  true     company IN ('IBM', 'Dell')   company = 'IBM'",
        "  true     OR",
        "  true       price <= 1000              price = 900.0",
        "  false      NOT",
        "  true         halted                   halted = True",
    ]


def test_a_missing_attribute_is_explained():
    assert str(why("price < 10 AND company = 'x'", {"company": "x"})).splitlines() == [
        "'alice' does not match: price < 10 AND company = 'x'",
        "  null   AND",
        "  null     price < 10      price is missing",
        "  true     company = 'x'   company = 'x'",
    ]


def test_a_test_of_several_attributes_shows_all_of_them():
    text = str(why("lower(company) = address.city", {"company": "A", "address": {"city": "a"}}))
    assert text.endswith("address.city = 'a', company = 'A'")


def test_arrays_and_maps_are_shown_with_what_they_have():
    kinds = {"tags": "array<string>", "seen": "array<timestamp>", "props": "map<string, int>"}
    matcher = Matcher(kinds)
    matcher.subscribe("alice", "size(tags) > 1 OR size(seen) > 1 OR props['a'] > 1")
    event = {"tags": ["x", None], "seen": ["2024-01-01T00:00:00Z"], "props": {"a": 1}}
    tested = [part["values"] for part in matcher.why("alice", event).to_dict()["root"]["parts"]]
    assert tested == [
        {"tags": ["x", None]},
        {"seen": ["2024-01-01 00:00:00Z"]},
        {"props": {"a": 1}},
    ]
    tested = [part["values"] for part in matcher.why("alice", {}).to_dict()["root"]["parts"]]
    assert tested == [{"tags": None}, {"seen": None}, {"props": None}]


def test_a_filter_without_attributes():
    assert str(why("TRUE", {})).splitlines() == ["'alice' matches: TRUE", "  true   TRUE"]


def test_an_integer_id():
    matcher = Matcher(OFFERS)
    matcher.subscribe(7, "TRUE")
    assert str(matcher.why(7, {})).startswith("7 matches: TRUE")


def test_strict_semantics_says_what_decides():
    text = str(why("price < 10 OR company = 'x'", {"company": "x"}, semantics="strict"))
    assert "does not match" in text
    assert "  note   price is missing: no match, whatever the rest says (strict)\n" in text


@pytest.mark.parametrize(
    ("default", "shown", "matched"), [(5.0, "5.0", True), (None, "the special value ⊥", False)]
)
def test_default_semantics_shows_what_was_filled_in(default, shown, matched):
    defaults = dict.fromkeys(OFFERS) | {"price": default}
    explanation = why("price < 10", {}, semantics="default", defaults=defaults)
    assert explanation.matched is matched
    assert explanation.notes == (f"price is missing and takes its default, {shown}",)


@pytest.mark.parametrize("semantics", ["sql", "strict"])
def test_attributes_that_the_filter_does_not_name_are_not_mentioned(semantics):
    assert "company" not in str(why("price < 10", {"price": 5}, semantics=semantics))


def test_a_long_value_and_a_long_filter_are_cut():
    text = str(why("company = 'x' AND " * 100 + "TRUE", {"company": "y" * 100_000}))
    assert max(map(len, text.splitlines())) < 200


def test_the_explanation_as_plain_data():
    explanation = why("price < 10 AND NOT company = 'x'", {"price": 5})
    assert explanation.to_dict() == {
        "subscription": "alice",
        "matched": False,
        "filter": "price < 10 AND NOT company = 'x'",
        "semantics": "sql",
        "notes": [],
        "root": {
            "text": "AND",
            "truth": None,
            "parts": [
                {"text": "price < 10", "truth": True, "values": {"price": 5.0}},
                {
                    "text": "NOT",
                    "truth": None,
                    "parts": [
                        {"text": "company = 'x'", "truth": None, "values": {"company": None}}
                    ],
                },
            ],
        },
    }
    assert json.loads(json.dumps(explanation.to_dict())) == explanation.to_dict()


@each("event", ['{"price": 5}', b'{"price": 5}', "<price>5</price>"])
def test_the_event_may_be_text(event):
    assert why("price < 10", event).matched


def test_an_unknown_subscription():
    matcher = Matcher(OFFERS)
    matcher.subscribe("alice", "TRUE")
    with pytest.raises(SubscriptionError, match=r"no subscription 'alcie'; did you mean 'alice'\?"):
        matcher.why("alcie", {})


@each("event", [{"price": "x"}, None, "{"])
def test_an_event_that_cannot_be_read(event):
    with pytest.raises(EventError):
        why("price < 10", event)


def test_a_partial_event_under_total_semantics():
    with pytest.raises(EventError, match="the event lacks"):
        why("price < 10", {"price": 5}, semantics="total")


@settings(max_examples=30)
@given(filters(), rows())
def test_every_filter_can_be_explained(text, row):
    try:
        expression = parse(text, SCHEMA)
    except ExpressionError:
        return
    semantics = Semantics("sql", SCHEMA)
    explanation = explain_match(1, expression, semantics, row)
    assert explanation.matched is semantics.condition(expression)(row)
    assert (explanation.root.truth is True) is explanation.matched
    assert explanation.filter == str(expression)
    assert str(explanation)
