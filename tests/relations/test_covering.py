"""The pairs of ``fixtures/covering.txt``, and what callers of covering may rely on."""

from pathlib import Path

import pytest

from cases import each
from tamis import Matcher, OptionError, Schema, parse
from tamis.relations.covering import (
    Relation,
    can_match,
    counterexample,
    covers,
    decide,
    intersects,
    relation,
)
from tamis.relations.entailment.decision import Answer

SCHEMA = Schema(
    {
        "price": "double", "bid": "double", "ask": "double", "last": "double", "quantity": "int",
        "sold": "int", "level": "int(1, 250)", "side": "enum('buy', 'sell', 'short')",
        "company": "string", "note": "string", "active": "bool", "halted": "bool",
        "at": "timestamp", "until": "timestamp",
    }
)  # fmt: skip
DEFAULTS = dict.fromkeys(SCHEMA) | {"price": 0, "active": False}
SEMANTICS = ("sql", "strict", "default", "total")

YES, NO, UNDECIDED = Answer.YES, Answer.NO, Answer.UNDECIDED
MEANINGS = {
    "covers": (YES, NO),
    "covered by": (NO, YES),
    "equals": (YES, YES),
    "overlaps": (NO, NO),
    "excludes": (NO, NO),
    "undecided": (UNDECIDED, UNDECIDED),
    "covers, rest undecided": (YES, UNDECIDED),
}


def options(semantics):
    return {"semantics": semantics} | ({"defaults": DEFAULTS} if semantics == "default" else {})


def cases():
    """The lines of the file: semantics, filter, relation, filter."""
    path = Path(__file__).parent / "fixtures" / "covering.txt"
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        first, word, second = line.split(" | ")
        semantics, colon, rest = first.partition(": ")
        named = colon and semantics in SEMANTICS
        case = (semantics, rest) if named else ("sql", first)
        yield pytest.param(*case, word, second, id=f"line {number}: {line}")


@each(("semantics", "first", "word", "second"), list(cases()))
def test_pairs(semantics, first, word, second):
    a, b = parse(first, SCHEMA), parse(second, SCHEMA)
    meaning = options(semantics)
    assert (decide(a, b, **meaning), decide(b, a, **meaning)) == MEANINGS[word]
    forth, back = (answer is YES for answer in MEANINGS[word])
    assert covers(a, b, **meaning) == forth
    assert relation(a, b, **meaning) == Relation(2 * forth + back)
    if word in {"overlaps", "excludes"}:
        assert intersects(a, b, **meaning) == (word == "overlaps")


@each(("semantics", "first", "word", "second"), list(cases()))
def test_a_counterexample_shows_why_there_is_no_cover(semantics, first, word, second):
    a, b = parse(first, SCHEMA), parse(second, SCHEMA)
    if MEANINGS[word][0] is not NO:
        assert counterexample(a, b, **options(semantics)) is None
        return
    event = counterexample(a, b, **options(semantics))
    matcher = Matcher(SCHEMA, engine="naive", **options(semantics))
    matcher.subscribe("a", first)
    matcher.subscribe("b", second)
    assert matcher.match(event) == ["b"]


@each(
    ("text", "semantics", "expected"),
    [
        ("price > 10", "sql", True),
        ("price > 10 AND price < 5", "sql", False),
        ("company LIKE 'a%' AND company LIKE 'b%'", "sql", False),
        ("price IS NULL", "sql", True),
        ("price IS NULL", "strict", False),
        ("price IS NULL", "default", False),
        ("company IS NULL", "default", True),
        ("company IS NULL", "total", False),
        ("company RLIKE '^a' AND company RLIKE '^b'", "sql", True),  # not decided
    ],
)
def test_whether_a_filter_can_match(text, semantics, expected):
    assert can_match(parse(text, SCHEMA), **options(semantics)) == expected


def test_what_is_not_decided_is_neither_a_cover_nor_an_exclusion():
    a, b = parse("company RLIKE '^I'", SCHEMA), parse("company RLIKE '^[I]'", SCHEMA)
    assert decide(a, b) is UNDECIDED
    assert not covers(a, b)
    assert relation(a, b) is Relation.NONE
    assert intersects(a, b)


def test_a_counterexample_has_records_and_moments_as_events_have_them():
    schema = Schema({"a.b": "int", "a.c.d": "string", "at": "timestamp"})
    b = parse("a.b > 3 AND a.c.d = 'x' AND at > '2024-01-01'", schema)
    event = counterexample(parse("a.b > 5", schema), b)
    assert event == {"a": {"b": 4, "c": {"d": "x"}}, "at": "2024-01-01 00:00:00.000001Z"}


def test_a_filter_of_another_schema_is_refused():
    other = parse("price > 10", Schema({"price": "double"}))
    with pytest.raises(OptionError, match=r"different schemas.*parse both with one schema"):
        covers(parse("price > 10", SCHEMA), other)


def test_an_equal_schema_is_the_same():
    assert covers(parse("price > 10", SCHEMA), parse("price > 20", Schema(dict(_texts()))))


def _texts():
    return ((name, str(attribute)) for name, attribute in SCHEMA.items())


@each("function", [covers, decide, relation, intersects, counterexample])
def test_text_is_refused_with_what_to_do(function):
    with pytest.raises(OptionError, match=r"tamis\.parse\('price > 10', schema\)"):
        function("price > 10", parse("price > 20", SCHEMA))
    with pytest.raises(OptionError, match=r"made by tamis\.parse, not int"):
        function(parse("price > 20", SCHEMA), 3)


def test_options_are_those_of_a_matcher():
    a = parse("price > 10", SCHEMA)
    with pytest.raises(OptionError, match="unknown semantics"):
        covers(a, a, semantics="sqk")
    with pytest.raises(OptionError, match="needs defaults"):
        covers(a, a, semantics="default")
    with pytest.raises(OptionError, match="defaults belong to"):
        can_match(a, defaults=DEFAULTS)
