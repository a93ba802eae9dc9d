"""Which filters are merged: mergers cover their parts, perfect ones add nothing."""

from fractions import Fraction
from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from tamis import Schema, parse
from tamis.errors import OptionError
from tamis.relations.covering import covers
from tamis.relations.merging.measures import Sampled, Uniform
from tamis.relations.merging.mergers import MergeOptions, find_mergers, imt_of
from tamis.semantics import Semantics

SCHEMA = Schema({"n": "int(1, 5)", "m": "int(1, 4)", "side": "enum('a', 'ab', 'c')", "b": "bool"})
VALUES = [[1, 2, 3, 4, 5], [1, 2, 3, 4], ["a", "ab", "c"], [True, False]]
EVENTS = list(product(*([None, *values] for values in VALUES)))
COMPLETE = list(product(*VALUES))
DEFAULTS = {"n": 2, "m": None, "side": None, "b": True}
MEANINGS = [("sql", None), ("strict", None), ("default", DEFAULTS), ("total", None)]


def exp(text):
    return parse(text, SCHEMA)


def merge_all(texts, options=None, meaning=None):
    filters = {n: exp(text) for n, text in enumerate(texts)}
    return find_mergers(filters, meaning or Semantics("sql", SCHEMA), options)


@st.composite
def conjunctions(draw):
    found = []
    for name in draw(st.sets(st.sampled_from(["n", "m", "side", "b"]), min_size=1, max_size=3)):
        if name == "b":
            found.append(draw(st.sampled_from(["b", "NOT b"])))
        elif name == "side":
            found.append(draw(st.sampled_from(["side = 'a'", "side = 'ab'", "side <> 'c'"])))
        else:
            op = draw(st.sampled_from(["=", "<", "<=", ">", ">=", "<>"]))
            found.append(f"{name} {op} {draw(st.integers(1, 4))}")
    return " AND ".join(sorted(found))


def option_sets(measure):
    return st.builds(
        MergeOptions,
        rules=st.sampled_from(["paper", "full", "stretches"]),
        candidates=st.sampled_from(["any", "any", "mbd"]),
        order=st.sampled_from([None, ("b", "side", "m", "n")]),
        imperfect=st.sampled_from([None, 0, 0.02, 0.1, 0.4]),
        measure=st.just(measure),
    )


@pytest.mark.long
@pytest.mark.parametrize(("name", "defaults"), MEANINGS)
@given(
    texts=st.lists(conjunctions(), min_size=2, max_size=12), options=option_sets(Uniform(SCHEMA))
)
@settings(max_examples=20)
def test_mergers(name, defaults, texts, options):
    meaning = Semantics(name, SCHEMA, defaults)
    found = merge_all(texts, options, meaning)
    taken = [part for merger in found for part in merger.parts]
    assert len(taken) == len(set(taken))
    assert set(taken) <= set(range(len(texts)))
    events = COMPLETE if name == "total" else [meaning.prepare(event) for event in EVENTS]
    for merger in found:
        assert len(merger.parts) > 1
        parts = [exp(texts[n]) for n in merger.parts]
        assert all(
            covers(merger.expression, part, semantics=name, defaults=defaults) for part in parts
        )
        tests = [meaning.condition(part) for part in parts]
        holds = meaning.condition(merger.expression)
        union = [any(test(event) for test in tests) for event in events]
        matched = [holds(event) for event in events]
        assert all(m for m, u in zip(matched, union, strict=True) if u)
        if merger.degree.probability is None:
            assert matched == union
        else:
            check_degree(merger, tests, holds)
            assert merger.degree.imt <= options.imperfect + 1e-9


def check_degree(merger, tests, holds):
    hits = [event for event in COMPLETE if holds(event)]
    added = [event for event in hits if not any(test(event) for test in tests)]
    assert merger.degree.exact
    assert merger.degree.value == Fraction(len(added), len(hits))
    assert merger.degree.probability == Fraction(len(hits), len(COMPLETE))


@given(
    texts=st.lists(conjunctions(), min_size=2, max_size=12), options=option_sets(Uniform(SCHEMA))
)
@settings(max_examples=20)
def test_the_same_mergers_every_time(texts, options):
    one, other = merge_all(texts, options), merge_all(texts, options)
    assert [(m.expression, m.parts, m.degree) for m in one] == [
        (m.expression, m.parts, m.degree) for m in other
    ]


def test_many_at_a_time_and_one_attribute_after_another():
    texts = [f"n = {n} AND m = {m} AND b" for n in (1, 2, 3) for m in (1, 3)]
    (merger,) = merge_all(texts)
    assert str(merger.expression) == "n <= 3 AND m NOT IN (2, 4) AND b = TRUE"
    assert merger.parts == (0, 1, 2, 3, 4, 5)
    assert merger.degree.imt == 0


def test_an_mbd_groups_by_its_top_attribute():
    texts = ["n = 1 AND m = 2", "n = 1 AND m = 3"]
    by_schema = MergeOptions(candidates="mbd")
    assert merge_all(texts, by_schema) == []  # n is on top, and the same
    by_order = MergeOptions(candidates="mbd", order=("m", "n"))
    assert [str(m.expression) for m in merge_all(texts, by_order)] == [
        "n = 1 AND m >= 2 AND m <= 3"
    ]
    assert len(merge_all(texts)) == 1


def test_imperfect_mergers_come_in_the_order_of_what_they_add():
    texts = ["n = 1 AND m < 4", "n = 4 AND m < 4", "n = 5 AND m < 2"]
    measure = Uniform(SCHEMA)
    (merger,) = merge_all(texts, MergeOptions("paper", imperfect=0.1, measure=measure))
    assert merger.parts == (1, 2)  # n >= 4 AND m < 4 adds two events of twenty
    assert merger.degree.imt == Fraction(1, 10)
    (merger,) = merge_all(texts, MergeOptions("paper", imperfect=0.5, measure=measure))
    assert merger.parts == (0, 1, 2)


def test_differing_attributes_are_dropped():
    texts = ["n > 1 AND b", "m > 1 AND b"]
    measure = Uniform(SCHEMA)
    (merger,) = merge_all(texts, MergeOptions(imperfect=0.1, measure=measure))
    assert str(merger.expression) == "b = TRUE"
    assert merger.degree.imt == Fraction(1, 5) * Fraction(1, 4) / 2
    assert merge_all(texts, MergeOptions("paper", imperfect=0.1, measure=measure)) == []


def test_events_that_were_seen_are_a_measure():
    texts = ["n = 1 AND b", "n = 3 AND b"]
    seen = [{"n": 1, "b": True}, {"n": 3, "b": True}, {"n": 2, "b": False}]
    options = MergeOptions("paper", imperfect=0, measure=Sampled(seen, SCHEMA))
    (merger,) = merge_all(texts, options)
    assert str(merger.expression) in {
        "n >= 1 AND b = TRUE",
        "n IS NOT NULL AND b = TRUE",
        "n <= 3 AND b = TRUE",
    }
    assert merger.degree.value == 0


def test_advertisements_make_mergers_perfect():
    texts = ["n > 3 AND b", "n = 1 AND b"]
    measure = Uniform(SCHEMA)
    assert merge_all(texts, MergeOptions("paper", imperfect=0, measure=measure)) == []
    announced = (exp("n > 3"), exp("n <= 1"))
    options = MergeOptions("paper", imperfect=0, measure=measure, advertisements=announced)
    (merger,) = merge_all(texts, options)
    assert merger.degree.value == 0
    assert merger.parts == (0, 1)


def test_mergers_of_mergers_have_the_parts_of_both():
    meaning = Semantics("sql", SCHEMA)
    (first,) = merge_all(["n = 1 AND b", "n = 2 AND b"])
    (second,) = find_mergers({first: first.expression, 7: exp("n = 4 AND b")}, meaning)
    assert second.parts == (0, 1, 7)
    assert len(second.boxes) == 3


def test_filters_that_are_not_boxes_are_left_alone():
    assert merge_all(["n > m", "n > m", "n = 1 OR b", "n = 1 OR NOT b"]) == []


@each(
    ("options", "complaint"),
    [
        ({"rules": "ful"}, "did you mean 'full'"),
        ({"imperfect": 2, "measure": Uniform(SCHEMA)}, "from 0 to 1"),
        ({"imperfect": 0.1}, "need a measure"),
    ],
)
def test_bad_options(options, complaint):
    with pytest.raises(OptionError, match=complaint):
        MergeOptions(**options)


def test_bad_orders_and_candidates():
    with pytest.raises(OptionError, match="unknown attribute 'k'"):
        merge_all(["n = 1", "n = 2"], MergeOptions(candidates="mbd", order=("k",)))
    with pytest.raises(OptionError, match="choices: any, mbd"):
        merge_all(["n = 1", "n = 2"], MergeOptions(candidates="all"))


def test_a_price_is_paid_for_each_filter_that_is_saved():
    measure, semantics = Uniform(SCHEMA), Semantics("sql", SCHEMA)
    # "paper" has no lists: from one to the next, a fifth of the events is let through.
    texts = ["n < 2", "n = 3", "n = 5"]
    common = {"rules": "paper", "imperfect": 1.0, "measure": measure}
    dear, cheap = (merge_all(texts, MergeOptions(**common, price=price)) for price in (0.19, 0.21))
    assert not dear
    (wide,) = cheap
    assert float(wide.degree.imt) == pytest.approx(0.4)  # in all, for two filters
    assert imt_of(wide, semantics, measure) == pytest.approx(0.4)
    seen = Sampled([{"n": 3, "m": 1, "side": "a", "b": False}], SCHEMA)
    assert imt_of(wide, semantics, seen) == 0
