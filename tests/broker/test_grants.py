"""Grants: nobody gets, or publishes, an event outside of them, whatever they ask for."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

import coverings
import strategies
from cases import each
from coverings import DEFAULTS, SEMANTICS, semantics_of
from tamis import Matcher, Schema, covers, parse
from tamis.broker.accounts import Account, free_account
from tamis.broker.grants import (
    PUBLISHED,
    Grants,
    narrowed,
    publish_matcher,
    subscribe_grant,
)
from tamis.errors import ExpressionError, Forbidden, OptionError, ParseError
from tamis.semantics import Semantics

SCHEMA = Schema({"symbol": "string", "price": "double"})

_VALUES = {
    "i": st.integers(-1, 7), "n": st.integers(0, 6),
    "x": st.sampled_from([-0.0, 0.5, 2.5, math.nan]),
    "s": st.sampled_from(["", "a", "ab", "abc", "b", "ba", "aab"]),
    "side": st.sampled_from(["buy", "sell"]), "b": st.booleans(),
}  # fmt: skip
COMPLETE = st.tuples(*_VALUES.values())
PARTIAL = st.tuples(*(st.none() | values for values in _VALUES.values()))


def account(grant, wider="narrow"):
    grants = Grants({"t": grant})
    return Account("desk", publish=grants, subscribe=grants, wider=wider)


def defaults_of(semantics):
    return DEFAULTS if semantics == "default" else None


@pytest.mark.parametrize("semantics", SEMANTICS)
@given(data=st.data())
def test_what_an_account_gets_is_what_it_asked_for_and_may_have(semantics, data):
    grant = data.draw(coverings.subscriptions | st.just("TRUE"))
    asked = data.draw(coverings.subscriptions | st.none())
    meaning, named = semantics_of(semantics), {"defaults": defaults_of(semantics)}
    got = narrowed(account(grant), "t", coverings.SCHEMA, semantics, asked, **named)
    wanted, allowed = (coverings.read(text) for text in (asked or "TRUE", grant))
    matcher = Matcher(coverings.SCHEMA, semantics=semantics, **named)
    matcher.subscribe("got", got)
    tests = [meaning.condition(one) for one in (wanted, allowed, got)]
    rows = data.draw(st.lists(COMPLETE if semantics == "total" else PARTIAL, max_size=8))
    rows = [meaning.prepare(row) for row in rows]
    for row in rows:
        is_wanted, is_allowed, is_got = (test(row) for test in tests)
        assert is_got == (is_wanted and is_allowed)
    found = set(matcher.match_rows(rows).column("event").to_pylist())
    assert found == {n for n, row in enumerate(rows) if tests[0](row) and tests[1](row)}


@pytest.mark.parametrize("semantics", SEMANTICS)
@given(data=st.data())
def test_what_is_not_refused_lies_within_the_grant(semantics, data):
    grant, asked = data.draw(coverings.subscriptions), data.draw(coverings.subscriptions)
    asked = data.draw(st.sampled_from([asked, f"({asked}) AND {grant}", f"({grant})"]))
    named = {"defaults": defaults_of(semantics)}
    refusing = account(grant, "refuse")
    wanted, allowed = coverings.read(asked), coverings.read(grant)
    try:
        got = narrowed(refusing, "t", coverings.SCHEMA, semantics, wanted, **named)
    except Forbidden:
        assert not covers(allowed, wanted, semantics=semantics, **named)
    else:
        assert got == wanted
        meaning = semantics_of(semantics)
        row = meaning.prepare(data.draw(COMPLETE if semantics == "total" else PARTIAL))
        assert meaning.condition(allowed)(row) or not meaning.condition(wanted)(row)


@given(strategies.filters(2), strategies.filters(2), st.lists(strategies.rows(), max_size=5))
def test_the_whole_language_is_narrowed_exactly(grant, asked, rows):
    try:
        allowed, wanted = parse(grant, strategies.SCHEMA), parse(asked, strategies.SCHEMA)
    except ExpressionError:
        return
    for name in ("sql", "strict"):
        meaning = Semantics(name, strategies.SCHEMA)
        got = narrowed(account(grant), "t", strategies.SCHEMA, name, asked)
        tests = [meaning.condition(one) for one in (wanted, allowed, got)]
        for row in [*rows, *strategies.delicate_rows()[::11]]:
            assert tests[2](row) == (tests[0](row) and tests[1](row))


@pytest.mark.parametrize("semantics", SEMANTICS)
@given(data=st.data())
def test_an_account_publishes_only_what_matches_its_grant(semantics, data):
    grant = data.draw(coverings.subscriptions)
    meaning = semantics_of(semantics)
    matcher = publish_matcher(
        account(grant), "t", coverings.SCHEMA, semantics, defaults=defaults_of(semantics)
    )
    row = meaning.prepare(data.draw(COMPLETE if semantics == "total" else PARTIAL))
    found = matcher.match_rows([row]).column("subscription").to_pylist()
    assert found == [PUBLISHED] * meaning.condition(coverings.read(grant))(row)


def test_a_filter_within_the_grant_stays_as_it_is():
    asked = parse("price < 5 AND symbol = 'IBM'", SCHEMA)
    assert narrowed(account("price < 10"), "t", SCHEMA, "sql", asked) is asked


def test_arrays_maps_and_decimals_are_granted():
    schema = Schema(
        {"tags": "array<string>", "props": "map<string, int>", "total": "decimal(9, 2)"}
    )
    grant = "array_contains(tags, 'eu') AND NOT props['secret'] = 1 AND total < 99.995"
    within = "arrays_overlap(tags, array('eu')) AND props['secret'] > 5 AND total <= 99.99"
    outside = "arrays_overlap(tags, array('eu', 'us')) AND total < 10"
    asked = parse(within, schema)
    assert narrowed(account(grant, "refuse"), "t", schema, "sql", asked) is asked
    with pytest.raises(Forbidden, match="outside"):
        narrowed(account(grant, "refuse"), "t", schema, "sql", outside)
    matcher = Matcher(schema)
    matcher.subscribe("got", narrowed(account(grant), "t", schema, "sql", outside))
    sent = publish_matcher(account(grant), "t", schema, "sql")
    for tags, secret, is_allowed in (
        (["eu"], 0, True), (["us", "eu", None], 0, True), (["us"], 0, False), ([None], 0, False),
        (["eu"], 1, False), (["eu"], None, False),
    ):  # fmt: skip
        event = {"tags": tags, "props": {"secret": secret}, "total": "9.99"}
        assert bool(matcher.match(event)) is is_allowed
        assert bool(sent.match(event)) is is_allowed


def test_the_texts_are_not_joined():
    got = narrowed(account("price < 10"), "t", SCHEMA, "sql", "symbol = 'a' OR TRUE")
    assert str(got) == "(symbol = 'a' OR TRUE) AND price < 10"
    with pytest.raises(ParseError):
        narrowed(account("price < 10"), "t", SCHEMA, "sql", "TRUE) OR (TRUE")


def test_a_refusal_shows_the_grant_and_an_event_outside():
    with pytest.raises(Forbidden, match=r"'desk' may receive from topic 't'.*price < 10.*outside"):
        narrowed(account("price < 10", "refuse"), "t", SCHEMA, "sql", "price < 11")


def test_who_has_no_grant_gets_and_publishes_nothing():
    nobody = Account("nobody")
    with pytest.raises(Forbidden, match="'nobody' may not receive from topic 't'"):
        narrowed(nobody, "t", SCHEMA)
    with pytest.raises(Forbidden, match="'nobody' may not publish to topic 't'"):
        publish_matcher(nobody, "t", SCHEMA)


def test_the_free_account_gets_and_publishes_everything():
    free = free_account()
    assert str(narrowed(free, "t", SCHEMA)) == "TRUE"
    assert subscribe_grant(free, "t", SCHEMA) is None
    assert publish_matcher(free, "t", SCHEMA) is None


def test_a_grant_that_does_not_fit_the_topic_grants_nothing():
    with pytest.raises(Forbidden, match=r"does not fit the topic's schema: unknown attribute"):
        narrowed(account("level = 3"), "t", SCHEMA)


@each(
    "topic, found",
    [("quotes", "a"), ("quotes.us", "c"), ("quotes.eu", "b"), ("news", None), ("quote", None)],
)
def test_the_most_specific_entry_counts(topic, found):
    grants = Grants({"quotes": "a", "quotes*": "b", "quotes.us*": "c"})
    assert grants.find(topic) == found


def test_a_star_stands_at_the_end():
    with pytest.raises(OptionError, match="at the end of a pattern"):
        Grants({"a*b": "TRUE"})
