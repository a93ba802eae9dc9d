"""One id for each distinct predicate, and which of them are true of an event."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from strategies import SCHEMA, delicate_rows, filters, rows
from tamis import OptionError, Schema, TypeMismatch, parse
from tamis.language import ast
from tamis.language.evaluation import compile_tree
from tamis.language.normal_form import normalize
from tamis.predicates.comparison_index import FORMS
from tamis.predicates.index import PredicateIndex


def predicates_of(text, schema=SCHEMA):
    form = normalize(parse(text, schema).tree)
    stack, found = [form], []
    while stack:
        node = stack.pop()
        if isinstance(node, ast.And | ast.Or):
            stack.extend(node.items)
        elif not isinstance(node, ast.Literal):
            found.append(node)
    return found


def predicate(text, schema=SCHEMA):
    (only,) = predicates_of(text, schema)
    return only


def test_equal_predicates_share_an_id():
    index = PredicateIndex(SCHEMA)
    assert index.intern(predicate("i < 5")) == index.intern(predicate("NOT i >= 5"))
    assert index.intern(predicate("i <= 4")) == index.intern(predicate("5.0 > i"))
    assert len(index) == 1


def test_ids_are_dense_and_used_again():
    index = PredicateIndex(SCHEMA)
    first, second = index.intern(predicate("i = 1")), index.intern(predicate("i = 2"))
    assert {first, second} == {0, 1}
    index.release(first)
    assert index.intern(predicate("s LIKE 'a_'")) == first
    assert index.size == 2


def test_a_predicate_stays_as_long_as_it_has_users():
    index = PredicateIndex(SCHEMA)
    a = index.intern(predicate("i = 1"))
    index.intern(predicate("i = 1"))
    index.release(a)
    assert len(index) == 1
    index.release(a)
    assert len(index) == 0
    assert list(index.satisfied(delicate_rows()[1])) == []


@pytest.mark.long
@given(st.lists(filters(depth=2), min_size=1, max_size=6), st.lists(rows(), max_size=4), st.data())
def test_what_is_satisfied_is_what_evaluation_says(texts, some_rows, data):
    index = PredicateIndex(SCHEMA)
    held = {}
    for text in texts:
        try:
            for node in predicates_of(text):
                held[index.intern(node)] = node
        except TypeMismatch:
            continue
    for old in data.draw(st.sets(st.sampled_from(sorted(held)))) if held else ():
        while old in index._nodes:
            index.release(old)
        del held[old]
    for row in [*some_rows, *delicate_rows()[:5]]:
        true = [n for n in sorted(held) if compile_tree(held[n], SCHEMA)(row) is True]
        assert sorted(index.satisfied(row)) == true


LEVELS = Schema({"level": "int(1, 5)", "side": "enum('sell', 'buy')", "far": "int(-9, 8000)"})


@each("form", FORMS)
def test_tables_are_as_good_as_lists(form):
    operators = ("=", "<>", "<", "<=", ">", ">=")
    texts = [f"level {op} {c}" for op in operators for c in range(1, 6)]
    texts += [f"side {op} '{c}'" for op in ("=", "<>", "<", ">=") for c in ("buy", "sell")]
    texts += [f"far {op} {c}" for op in operators for c in (-9, 0, 7999, 8000)]
    index = PredicateIndex(LEVELS, form)
    held = {}
    for text in texts:
        for node in predicates_of(text, LEVELS):
            held[index.intern(node)] = node
    for old in list(held)[::7]:
        while old in index._nodes:  # some texts mean the same
            index.release(old)
        del held[old]
    for level in (1, 2, 3, 4, 5, None):
        for side in ("buy", "sell", None):
            for far in (-9, 0, 1, 8000, None):
                row = (level, side, far)
                true = {n for n, node in held.items() if compile_tree(node, LEVELS)(row) is True}
                assert set(index.satisfied(row).tolist()) == true


def test_the_form_of_comparisons_is_what_was_asked_for():
    """A table has an entry for each operator and value, a list one for each constant."""

    def size(form, *texts):
        index = PredicateIndex(LEVELS, form)
        for text in texts:
            index.intern(predicate(text, LEVELS))
        return index._comparisons.bytes

    empty = {form: size(form) for form in FORMS}
    entries = {"auto": 6 * 5 * 4, "lists": 12, "tables": 6 * 5 * 4}
    wide = {"auto": 12, "lists": 12, "tables": 6 * 8010 * 4}
    few = [f"far = {n}" for n in range(40)]  # more than may wait unsorted
    for form in FORMS:
        small = size(form, *(f"level {op} 3" for op in ("=", "<>", "<", "<=")))
        assert small - empty[form] == {"lists": 4 * 20}.get(form, entries[form])
        large = size(form, *few) - empty[form]
        assert large == (wide["tables"] if form == "tables" else 40 * 12)
    with pytest.raises(OptionError, match="form of comparisons"):
        PredicateIndex(LEVELS, "trees")


def test_a_string_is_tested_once():
    index = PredicateIndex(SCHEMA)
    number = index.intern(predicate("s RLIKE '^a'"))
    calls = []
    home = index._attributes[SCHEMA.positions["s",]]
    test = home._tests[number]
    home._tests[number] = lambda row: calls.append(row) or test(row)
    row = tuple("abc" if name == "s" else None for name in SCHEMA)
    assert [list(index.satisfied(row)) for _ in range(3)] == [[number]] * 3
    assert len(calls) == 1
