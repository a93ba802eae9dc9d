"""Tests for elements are found by the elements, and are as true as `array_contains` says."""

from hypothesis import given
from hypothesis import strategies as st

from array_strategies import ARRAYS, NAMES, array_rows, literal
from tamis import parse
from tamis.language.evaluation import Logic, compile_tree
from tamis.language.normal_form import normalize
from tamis.predicates.classification import ElementTest, classify
from tamis.predicates.computed_values import elements_of, term_of
from tamis.predicates.index import PredicateIndex


def predicate(text):
    return normalize(parse(text, ARRAYS).tree, Logic.KLEENE)


@st.composite
def element_tests(draw):
    kind = draw(st.sampled_from(list(NAMES)))
    array = draw(st.sampled_from(NAMES[kind]))
    constants = draw(st.lists(literal(kind).filter(lambda text: "nan" not in text), min_size=1))
    text = f"array_contains({array}, {constants[0]})"
    if len(constants) > 1:
        text = f"arrays_overlap({array}, array({', '.join(constants)}))"
    return predicate(draw(st.sampled_from(["", "NOT "])) + text)


@given(found=st.lists(element_tests(), max_size=8), row=array_rows())
def test_those_that_are_true_are_found(found, row):
    index = PredicateIndex(ARRAYS)
    ids = [index.intern(one) for one in found]
    satisfied = set(index.satisfied(row))
    for number, one in zip(ids, found, strict=True):
        assert (number in satisfied) == (compile_tree(one, ARRAYS)(row) is True)
    for number in ids:
        index.release(number)
    assert len(index) == 0
    assert index._terms == {}


def test_one_term_for_all_tests_of_an_array():
    texts = ["array_contains(tags, 'a')", "NOT array_contains(tags, 'b')"]
    texts += ["arrays_overlap(array('b', 'a'), tags)"]
    found = [predicate(text) for text in texts]
    assert {term_of(one) for one in found} == {elements_of(found[0].left.arguments[0])}
    assert [classify(one)[1:] for one in found] == [
        (("a",), False),
        (("b",), True),
        (("a", "b"), False),
    ]


def test_what_is_not_a_test_for_elements():
    for text in [
        "array_contains(tags, s)", "array_contains(array('a'), s)", "arrays_overlap(tags, more)",
        "arrays_overlap(tags, array('a', NULL))", "arrays_overlap(tags, array())",
        "array_contains(ns, 1.5)", "array_contains(tags, 'a') IS NULL",
    ]:  # fmt: skip
        assert not isinstance(classify(predicate(text)), ElementTest), text


def test_keys_of_maps_are_elements():
    test = classify(predicate("NOT map_contains_key(props, 'k')"))
    assert test == classify(predicate("NOT array_contains(map_keys(props), 'k')"))
    assert test.negated
