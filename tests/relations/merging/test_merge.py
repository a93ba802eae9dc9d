"""`tamis.merge`: fixtures anyone can extend, and that a merger matches what its parts match."""

from itertools import product
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from strategies import SCHEMA as COMMON
from strategies import delicate_rows, filters, rows
from tamis import Schema, parse
from tamis.errors import LimitError, OptionError, TamisError
from tamis.profiles import Profile
from tamis.relations.merging import merge
from tamis.semantics import Semantics

FIXTURE = Schema(
    {
        "i": "int", "j": "int", "x": "double", "s": "string", "t": "string", "b": "bool",
        "at": "timestamp", "level": "int(1, 20)", "side": "enum('buy', 'sell', 'hold')",
    }
)  # fmt: skip
SMALL = Schema({"n": "int(1, 5)", "m": "int(1, 4)", "side": "enum('a', 'ab', 'c')", "b": "bool"})
VALUES = [[None, 1, 2, 3, 4, 5], [None, 1, 2, 3, 4], [None, "a", "ab", "c"], [None, True, False]]
EVENTS = list(product(*VALUES))
DEFAULTS = {"n": 2, "m": None, "side": None, "b": True}
MEANINGS = [("sql", None), ("strict", None), ("default", DEFAULTS), ("total", None)]


def cases():
    path = Path(__file__).parents[1] / "fixtures" / "merging.txt"
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if line.strip() and not line.startswith("#"):
            head, _, rest = line.removeprefix("[").partition("] ")
            parts, merger = rest.split(" => ")
            yield pytest.param(
                head.split(), parts.split(" ; "), merger, id=f"line {number}: {line}"
            )


@each(("words", "parts", "merger"), list(cases()))
def test_fixtures(words, parts, merger):
    options = {}
    for word in words:
        if word in {"paper", "full", "stretches"}:
            options["rules"] = word
        elif word in {"sql", "strict", "default", "total"}:
            options["semantics"] = word
        else:
            options["imperfect"] = float(word)
    if options.get("semantics") == "default":
        options["defaults"] = dict.fromkeys(FIXTURE)
    found = merge([parse(part, FIXTURE) for part in parts], **options)
    assert str(found) == merger
    assert parse(merger, FIXTURE) == found


# --- what a merger matches


def matched(expression, meaning, events):
    holds = meaning.condition(expression)
    return [holds(event) for event in events]


def matched_by_one(expressions, meaning, events):
    conditions = [meaning.condition(each) for each in expressions]
    return [any(holds(event) for holds in conditions) for event in events]


def prepared(meaning, events):
    if meaning.name == "total":
        return [event for event in events if None not in event]
    return [meaning.prepare(event) for event in events]


@st.composite
def predicates(draw):
    attribute = draw(st.sampled_from(["n", "m", "n", "m", "side", "b"]))
    if attribute == "b":
        return draw(st.sampled_from(["b", "NOT b", "b IS NULL", "b IS NOT NULL"]))
    if attribute == "side":
        test = draw(
            st.sampled_from(
                ["side = '{}'", "side <> '{}'", "side LIKE '{}%'", "NOT side LIKE '%{}'",
                 "side < '{}'", "NOT side = '{}'", "side IS NULL OR side = '{}'"]
            )
        )  # fmt: skip
        return f"({test.format(draw(st.sampled_from(['a', 'ab', 'c'])))})"
    op = draw(st.sampled_from(["=", "<", "<=", ">", ">=", "<>"]))
    negation = draw(st.sampled_from(["", "", "", "NOT "]))
    return f"{negation}{attribute} {op} {draw(st.integers(1, 5 if attribute == 'n' else 4))}"


def conjunctions(most=3):
    return st.lists(predicates(), min_size=1, max_size=most).map(" AND ".join)


def small_filters():
    disjunctions = st.lists(conjunctions(2), min_size=2, max_size=2).map(" OR ".join)
    return conjunctions() | conjunctions() | conjunctions() | disjunctions | st.just("n > m")


@pytest.mark.long
@pytest.mark.parametrize("rules", ["paper", "full", "stretches"])
@pytest.mark.parametrize(("name", "defaults"), MEANINGS)
@given(texts=st.lists(small_filters(), min_size=2, max_size=6))
@settings(max_examples=25)
def test_a_perfect_merger_matches_what_one_of_its_parts_matches(name, defaults, rules, texts):
    meaning = Semantics(name, SMALL, defaults)
    parts = [parse(text, SMALL) for text in texts]
    try:
        merger = merge(parts, semantics=name, defaults=defaults, rules=rules)
    except OptionError:
        assert name == "strict"
        assert len({part.attributes for part in parts}) > 1
        return
    events = prepared(meaning, EVENTS)
    wanted = matched_by_one(parts, meaning, events)
    assert matched(merger, meaning, events) == wanted
    assert matched(parse(str(merger), SMALL), meaning, events) == wanted


@pytest.mark.long
@pytest.mark.parametrize(("name", "defaults"), MEANINGS)
@given(
    texts=st.lists(conjunctions() | small_filters(), min_size=2, max_size=6),
    limit=st.sampled_from([0.0, 0.05, 0.2, 0.5, 1.0]),
    rules=st.sampled_from(["paper", "full"]),
)
@settings(max_examples=25)
def test_an_imperfect_merger_adds_no_more_than_it_may(name, defaults, texts, limit, rules):
    meaning = Semantics(name, SMALL, defaults)
    parts = [parse(text, SMALL) for text in texts]
    try:
        merger = merge(parts, semantics=name, defaults=defaults, imperfect=limit, rules=rules)
    except OptionError:
        assert name == "strict"
        assert limit < 1
        return
    events = prepared(meaning, EVENTS)
    wanted = matched_by_one(parts, meaning, events)
    found = matched(merger, meaning, events)
    assert all(f for f, w in zip(found, wanted, strict=True) if w)
    # Uniform events miss nothing.
    complete = [n for n, event in enumerate(events) if None not in event]
    complete = complete if name != "default" else [n for n in complete if None not in EVENTS[n]]
    added = sum(found[n] and not wanted[n] for n in complete)
    assert added <= limit * len(complete) + 1e-9
    assert matched(parse(str(merger), SMALL), meaning, events) == found


@pytest.mark.long
@given(texts=st.lists(filters(2), min_size=2, max_size=4), row=rows(), name=st.integers(0, 2))
@settings(max_examples=20)
def test_any_filters_merge(texts, row, name):
    semantics, defaults = [("sql", None), ("default", dict.fromkeys(COMMON)), ("strict", None)][
        name
    ]
    meaning = Semantics(semantics, COMMON, defaults)
    try:
        parts = [parse(text, COMMON) for text in texts]
    except TamisError:  # a few exceed a limit of decimals
        return
    try:
        merger = merge(parts, semantics=semantics, defaults=defaults)
    except OptionError:
        assert semantics == "strict"
        return
    events = [row, *delicate_rows()]
    wanted = matched_by_one(parts, meaning, events)
    assert matched(merger, meaning, events) == wanted
    assert matched(parse(str(merger), COMMON), meaning, events) == wanted


# --- choices and refusals


def test_one_expression_is_its_own_merger():
    one = parse("NOT (i < 5)", FIXTURE)
    assert merge([one]) is one


def test_a_profile_says_what_is_cheap_to_add():
    schema = Schema({"k": "int"})
    events = [{"k": 1}] * 90 + [{"k": 2}] * 5 + [{"k": 9}] * 5
    profile = Profile.of(events, schema)
    parts = [parse(text, schema) for text in ("k < 1", "k = 3", "k > 200")]
    assert str(merge(parts, imperfect=0.06, profile=profile)) == "k <= 0 OR k >= 3"
    assert str(merge(parts, imperfect=0.04, profile=profile)) == "k < 1 OR k = 3 OR k > 200"
    assert str(merge(parts, imperfect=1, profile=profile)) == "k IS NOT NULL"


def test_advertisements_say_what_never_comes():
    schema = Schema({"price": "int(1, 1000)"})
    parts = [parse(text, schema) for text in ("price > 150", "price = 130", "price = 120")]
    announced = [parse("price > 150", schema)]
    assert str(merge(parts, imperfect=0, advertisements=announced)) == "price >= 120"
    assert str(merge(parts, imperfect=0)) != "price >= 120"


@each(
    ("expressions", "complaint"),
    [
        ([], "at least one"),
        (["i = 1"], "tamis.parse"),
        ("i = 1", "tamis.parse"),
        ([parse("i = 1", FIXTURE), parse("n = 1", SMALL)], "one schema"),
    ],
)
def test_what_cannot_be_merged(expressions, complaint):
    with pytest.raises(OptionError, match=complaint):
        merge(expressions)


@pytest.mark.parametrize("imperfect", [-0.1, 1.5])
def test_a_share_is_between_0_and_1(imperfect):
    parts = [parse("i = 1", FIXTURE), parse("i = 5", FIXTURE)]
    with pytest.raises(OptionError, match="from 0 to 1"):
        merge(parts, imperfect=imperfect)


def test_unknown_rules_are_refused():
    parts = [parse("i = 1", FIXTURE), parse("i = 5", FIXTURE)]
    with pytest.raises(OptionError, match="choices: paper, full, stretches"):
        merge(parts, rules="papers")


def test_strict_filters_of_different_attributes_have_no_perfect_merger():
    parts = [parse("i = 1", FIXTURE), parse("x = 5", FIXTURE)]
    with pytest.raises(OptionError, match="different attributes; keep them apart"):
        merge(parts, semantics="strict")
    with pytest.raises(OptionError, match="raise imperfect"):
        merge(parts, semantics="strict", imperfect=0.1)


@pytest.mark.long
def test_a_merger_is_no_larger_than_a_filter_may_be():
    schema = Schema({"n": "int", "s": "string"})
    texts = [[f"'{n} {k}'" for k in range(150)] for n in range(140)]
    parts = [parse(f"n = {n} AND s IN ({', '.join(s)})", schema) for n, s in enumerate(texts)]
    with pytest.raises(LimitError, match="21,140 comparisons; a filter has at most 20,000"):
        merge(parts)
