"""Whatever is switched on: the answers of `naive`; whatever came and went: the tree of what is."""

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import SCHEMA, delicate_rows, filters, rows
from tamis import LimitError, Schema, TypeMismatch, parse
from tamis.engines import make_engine
from tamis.semantics import Semantics

SMALL = Schema({"a": "int", "b": "int", "c": "int", "s": "string", "x": "double"})
MEANING = Semantics("sql", SMALL)

EQUALITIES = [f"{name} = {value}" for name in "abc" for value in (1, 2, 3)]
OTHERS = [
    *(f"a {op} {value}" for op in ("<", "<=", ">", ">=", "<>") for value in (1, 2, 3)),
    "b BETWEEN 1 AND 2", "b BETWEEN 2 AND 3", "b >= 2", "c IN (1, 3)", "c IN (1, 2, 3)",
    "c NOT IN (2, 3)", "a IS NULL", "a IS NOT NULL", "s IS NOT NULL", "s = 'ab'", "s <> 'ab'",
    "s < 'b'", "s >= 'ab'", "s BETWEEN 'a' AND 'b'", "s LIKE 'a%'", "s LIKE 'ab%'",
    "s NOT LIKE '%b'", "s RLIKE 'b$'", "contains(s, 'a')", "x > 0", "x <= 1.5D", "x <> 0",
    "x = 0", "a < b", "a + b = 3", "length(s) = 2",
]  # fmt: skip

SWITCHES = [
    {
        "implied_edges": implied, "equality_tree": apart, "collapse": collapse,
        "successors": successors, "index_attributes": index if apart else 0, "young": young,
    }
    for implied, apart, collapse, successors, index, young in itertools.product(
        (True, False), (True, False), (True, False), ("refined", "plain", "none"),
        (0, 1, 2, ("b",), ("c", "a")), (0, 3),
    )
]  # fmt: skip


def conjunctions(atoms):
    return st.lists(st.sampled_from(atoms), min_size=1, max_size=4).map(" AND ".join)


MIXED = st.lists(conjunctions(EQUALITIES) | conjunctions(EQUALITIES + OTHERS), max_size=25)

SOME_ROWS = [
    (a, b, c, s, x)
    for (a, b), (c, s, x) in itertools.product(
        [(1, 1), (2, 3), (3, None), (None, 2), (2, 2)],
        [(1, "ab", 0.0), (2, "b", float("nan")), (3, None, -0.0), (None, "a", 1.5), (9, "", None)],
    )
]


def engine_of(options, texts, schema_meaning=MEANING):
    engine = make_engine("tree", schema_meaning, options)
    for handle, text in enumerate(texts):
        engine.add(handle, engine.prepare(parse(text, schema_meaning.schema)))
    return engine


@pytest.mark.long
@settings(max_examples=75)
@given(MIXED, st.sampled_from(SWITCHES))
def test_no_switch_changes_an_answer(texts, options):
    oracle = make_engine("naive", MEANING)
    for handle, text in enumerate(texts):
        oracle.add(handle, parse(text, SMALL))
    engine = engine_of(options, texts)
    for row in SOME_ROWS:
        assert engine.match(row).tolist() == oracle.match(row).tolist()


@pytest.mark.long
@settings(max_examples=30)
@given(
    st.lists(filters(), min_size=1, max_size=10), st.lists(rows(), max_size=4),
    st.sampled_from(SWITCHES),
)  # fmt: skip
def test_nor_for_filters_of_every_kind(texts, some_rows, options):
    meaning = Semantics("sql", SCHEMA)
    names = {"b": "i", "c": "x", "a": "s"}
    index = options["index_attributes"]
    if isinstance(index, tuple):
        options = options | {"index_attributes": tuple(names[name] for name in index)}
    engine, oracle = make_engine("tree", meaning, options), make_engine("naive", meaning)
    for handle, text in enumerate(texts):
        try:
            expression = parse(text, SCHEMA)
            engine.add(handle, engine.prepare(expression))
        except (TypeMismatch, LimitError):
            continue
        oracle.add(handle, expression)
    for row in [*some_rows, *delicate_rows()[:5]]:
        assert engine.match(row).tolist() == oracle.match(row).tolist()


CHANGES = st.lists(st.tuples(st.booleans(), st.integers(0, 24)), max_size=60)


def changed(options, texts, changes, *, asked):
    """An engine to which subscriptions came and from which they went, and those it has."""
    engine = make_engine("tree", MEANING, options)
    held = set()
    for come, number in changes:
        if number >= len(texts):
            continue
        if come and number not in held:
            engine.add(number, engine.prepare(parse(texts[number], SMALL)))
            held.add(number)
        elif not come and number in held:
            engine.remove(number)
            held.remove(number)
        if asked:
            engine.match(SOME_ROWS[number % len(SOME_ROWS)])
    return engine, held


def drawn(engine):
    """The trees, with handles instead of slots."""
    handles = engine._slots._handles
    return {
        which: {
            path: (view.test, sorted(int(handles[slot]) for slot in view.slots), view.successors)
            for path, view in tree.items()
        }
        for which, tree in engine.outline().items()
    }


@settings(max_examples=50)
@given(MIXED, CHANGES, st.permutations(range(25)), st.booleans(), st.booleans())
def test_a_tree_that_changed_is_the_tree_built_from_what_is_left(
    texts, changes, order, collapse, apart
):
    """Without implied edges, which are there or not when a conjunction comes."""
    options = {
        "implied_edges": False, "successors": "none", "collapse": collapse, "equality_tree": apart,
    }  # fmt: skip
    engine, held = changed(options, texts, changes, asked=False)
    fresh = make_engine("tree", MEANING, options)
    for number in filter(held.__contains__, order):
        fresh.add(number, fresh.prepare(parse(texts[number], SMALL)))
    assert drawn(engine) == drawn(fresh)
    assert engine.statistics() == fresh.statistics()


@settings(max_examples=50)
@given(MIXED, CHANGES, st.sampled_from(SWITCHES))
def test_an_annotated_tree_that_is_built_anew_is_as_if_built_at_once(texts, changes, options):
    options = options | {"implied_edges": False}
    engine, held = changed(options, texts, changes, asked=True)
    fresh = make_engine("tree", MEANING, options)
    for number in sorted(held):
        fresh.add(number, fresh.prepare(parse(texts[number], SMALL)))
    engine.settle()
    fresh.settle()
    assert drawn(engine) == drawn(fresh)


@settings(max_examples=50)
@given(MIXED, CHANGES, st.sampled_from(SWITCHES))
def test_nothing_is_left_when_all_went_and_answers_are_right_before(texts, changes, options):
    engine, held = changed(options, texts, changes, asked=True)
    oracle = make_engine("naive", MEANING)
    for number in held:
        oracle.add(number, parse(texts[number], SMALL))
    for row in SOME_ROWS:
        assert engine.match(row).tolist() == oracle.match(row).tolist()
    for number in held:
        engine.remove(number)
    assert not any(engine.statistics().values())
    assert engine.outline() == {"general": {}, "equality": {}, "annotated": {}}
    assert not engine._elements.examined
    assert not engine._elements.compared
    assert engine._elements.index_tests == engine._elements.index_comparisons == 0


@settings(max_examples=50)
@given(MIXED, st.booleans())
def test_every_leaf_means_its_subscriptions(texts, implied):
    """Equation 2: the conjunction of the labels of a path is equivalent to the subscription."""
    engine = engine_of({"implied_edges": implied, "equality_tree": False}, texts)
    handles = engine._slots._handles
    for path, view in engine.outline()["general"].items():
        if not view.slots:
            continue
        labels = [label for label in path if label != "*"]
        meant = MEANING.condition(parse(" AND ".join(labels), SMALL))
        for slot in view.slots:
            said = MEANING.condition(parse(texts[int(handles[slot])], SMALL))
            for row in SOME_ROWS:
                assert meant(row) == said(row)
