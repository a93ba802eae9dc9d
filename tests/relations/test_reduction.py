"""Which filters are left out, and who stands for them."""

from tamis import Schema, parse
from tamis.predicates.event_space import EventSpace
from tamis.relations.merging.mergers import Merger
from tamis.relations.reduction import canonical, reduce_filters, why_never
from tamis.semantics import Semantics

SCHEMA = Schema({"x": "int", "y": "double", "s": "string"})
SQL = Semantics("sql", SCHEMA)


def reduced(texts, *, merge=True, given=None):
    filters = [(key, parse(text, SCHEMA)) for key, text in texts.items()]
    fixed = {key: parse(text, SCHEMA) for key, text in (given or {}).items()}
    return reduce_filters(filters, SQL, merge=merge, given=fixed)


def form(text, semantics=SQL):
    return canonical(parse(text, SCHEMA), semantics, EventSpace.of(semantics))


def test_filters_of_one_meaning_share_a_form():
    assert form("x > 1 AND y < 3") == form("3 > y AND NOT x <= 1")
    assert form("x = 1 OR x = 2") == form("x BETWEEN 1 AND 2")
    assert form("x > 1 OR y > 1") == form("(x > 1 OR y > 1)")
    assert form("x > 1") != form("x > 2")
    assert form("x > 3 AND x < 4") is None


def test_a_strict_filter_needs_what_its_text_has():
    strict = Semantics("strict", SCHEMA)
    assert form("x > 1 OR (x <= 1 AND y <> y)", strict) != form("x IS NOT NULL", strict)


def test_covered_filters_have_a_cover_that_is_left():
    found = reduced({1: "x > 5", 2: "x > 1", 3: "x > 7 AND s = 'a'", 4: "s = 'b'"}, merge=False)
    assert found.representatives == {1: 2, 2: 2, 3: 2, 4: 4}
    assert (found.mergers, found.never) == ([], [])


def test_mergers_stand_for_their_parts_and_what_these_covered():
    found = reduced({1: "x < 5", 2: "x >= 5 AND x < 9", 3: "x = 3", 4: "x = 3 AND y > 1"})
    (merger,) = found.mergers
    assert isinstance(merger, Merger)
    assert str(merger.expression) == "x <= 8"
    assert found.representatives == dict.fromkeys([1, 2, 3, 4], merger)


def test_what_is_given_stays_and_may_stand_for_others():
    found = reduced({1: "x = 1 AND s = 'a'", 2: "x = 2", 3: "s = 'b'"}, given={9: "s = 'a'"})
    assert found.representatives == {1: 9, 2: 2, 3: 3}
    assert found.mergers == []  # 3 and 9 could be one, but 9 is not ours


def test_filters_that_are_never_true_are_told_with_the_reason():
    texts = {1: "x > 3 AND y = 1 AND x < 3", 2: "(x > y OR s = 'a') AND x < y AND s = 'b'"}
    assert reduced(texts).never == [1, 2]
    reasons = [why_never(parse(text, SCHEMA), SQL, EventSpace.of(SQL)) for text in texts.values()]
    assert reasons == [
        "no event can match it: no value of x passes all its tests",
        "no event can match it: its tests exclude each other",
    ]
