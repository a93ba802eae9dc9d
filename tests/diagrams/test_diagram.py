"""Functions of a diagram, against plain evaluation, dd, and the definition of "reduced"."""

import itertools

import numpy as np
import pytest
from dd.autoref import BDD
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from diagram_programs import (
    MOST,
    array,
    assignments,
    cases,
    check_shape,
    diagram_of,
    in_order,
    negated,
    plain,
    reduced,
    support,
    table,
    values,
)
from tamis.diagrams.diagram import (
    AND,
    DO_AND,
    DO_FALSE,
    DO_NOT,
    DO_OR,
    DO_TRUE,
    FALSE,
    OR,
    TRUE,
    XOR,
    FunctionTooLarge,
)
from tamis.kernels.bdd_evaluation import UNDEFINED, eval_bdd, mv_eval_bdd

# --- functions


@given(cases())
@settings(max_examples=100)
def test_a_function_is_that_of_its_program(case):
    levels, (program,) = case
    diagram = diagram_of(levels)
    f = diagram.build(array(program))
    assert values(diagram, f, len(levels)) == table(program, len(levels))
    check_shape(diagram)
    assert len(diagram.reachable([f])) == reduced([in_order(program, levels)])


def with_dd(program, levels):
    """The function of a program in dd, with the same order of variables."""
    manager = BDD()
    manager.configure(reordering=False)
    manager.declare(*(f"v{v}" for v in sorted(range(len(levels)), key=levels.__getitem__)))
    stack = []
    for step in program:
        if step >= 0:
            stack.append(manager.var(f"v{step}"))
        elif step in {DO_TRUE, DO_FALSE}:
            stack.append(manager.true if step == DO_TRUE else manager.false)
        elif step == DO_NOT:
            stack.append(~stack.pop())
        else:
            right, left = stack.pop(), stack.pop()
            stack.append(left & right if step == DO_AND else left | right)
    return manager, stack[0]


@given(cases())
@settings(max_examples=100)
def test_as_in_dd(case):
    """dd has one node for a function and its negation, and one for false and true."""
    levels, (program,) = case
    diagram = diagram_of(levels)
    f = diagram.build(array(program))
    manager, oracle = with_dd(program, levels)
    names = [f"v{v}" for v in range(len(levels))]
    models = manager.pick_iter(oracle, care_vars=names)
    true = {tuple(bool(model[name]) for name in names) for model in models}
    assert {a for a in assignments(len(levels)) if diagram.holds(f, a.__getitem__)} == true
    classes = {min(node, negated(diagram, node)) for node in diagram.reachable([f])}
    assert len(classes) + 1 == len(oracle)
    assert {f"v{v}" for v in support(diagram, f)} == manager.support(oracle)


@given(cases(count=4))
@settings(max_examples=100)
def test_equal_functions_are_one_node_and_all_nodes_are_shared(case):
    levels, some = case
    diagram = diagram_of(levels)
    nodes = [diagram.build(array(program)) for program in some]
    tables = [table(program, len(levels)) for program in some]
    for (f, one), (g, other) in itertools.combinations(zip(nodes, tables, strict=True), 2):
        assert (f == g) == (one == other)
    shared = [in_order(program, levels) for program in some]
    assert len(diagram.reachable(nodes)) == reduced(shared)


@given(cases(count=2))
@settings(max_examples=100)
def test_operations(case):
    levels, some = case
    diagram = diagram_of(levels)
    f, g = (diagram.build(array(program)) for program in some)
    one, other = (table(program, len(levels)) for program in some)
    for op, meaning in ((AND, bool.__and__), (OR, bool.__or__), (XOR, bool.__xor__)):
        h = diagram.apply(op, f, g)
        assert h == diagram.apply(op, g, f)
        assert values(diagram, h, len(levels)) == list(map(meaning, one, other))
    assert values(diagram, negated(diagram, f), len(levels)) == [not value for value in one]
    assert negated(diagram, negated(diagram, f)) == f
    for variable in range(len(levels)):
        assert diagram.variable(variable) == diagram.build(array([variable]))
    check_shape(diagram)


# --- restriction


@given(cases(count=2))
@settings(max_examples=100)
def test_restricted_functions_are_right_where_the_care_function_is_true(case):
    levels, (program, condition) = case
    diagram = diagram_of(levels)
    f, care = diagram.build(array(program)), diagram.build(array(condition))
    assume(care != FALSE)
    right = table(program, len(levels))
    matters = table(condition, len(levels))
    restricted = diagram.restrict(f, care)
    cared_for = diagram.build(array(program), care=care)
    for g in (restricted, cared_for):
        answers = values(diagram, g, len(levels))
        assert all(a == r for a, r, m in zip(answers, right, matters, strict=True) if m)
    assert support(diagram, restricted) <= support(diagram, f)
    assert support(diagram, cared_for) <= {step for step in program if step >= 0}
    assert diagram.restrict(f, TRUE) == f
    check_shape(diagram)


@given(cases(count=4))
@settings(max_examples=100)
def test_restriction_by_facts_never_makes_a_function_larger(case):
    levels, (program, *conditions) = case
    diagram = diagram_of(levels)
    f = diagram.build(array(program))
    facts = [step for condition in conditions for step in condition]
    restricted = diagram.restrict_by(f, array(facts))
    assert len(diagram.reachable([restricted])) <= len(diagram.reachable([f]))
    assert support(diagram, restricted) <= support(diagram, f)
    right = table(program, len(levels))
    for assignment, wanted in zip(assignments(len(levels)), right, strict=True):
        if all(plain(facts, assignment.__getitem__)):
            assert diagram.holds(restricted, assignment.__getitem__) == wanted
    check_shape(diagram)


def test_facts_are_used_again_while_they_help():
    """That v0 implies v2 is of no use for (v0 OR v1) AND v2 until v1 is known to be false."""
    diagram = diagram_of([0, 1, 2])
    f = diagram.build(array([0, 1, DO_OR, 2, DO_AND]))
    implied = [0, DO_NOT, 2, DO_OR]
    assert diagram.restrict_by(f, array(implied)) == f
    assert diagram.restrict_by(f, array([*implied, 1, DO_NOT])) == diagram.variable(0)


def test_restriction_ends_after_some_effort(monkeypatch):
    monkeypatch.setattr("tamis.diagrams.diagram.MOST_VISITED", 1)
    diagram = diagram_of([0, 1, 2])
    f = diagram.build(array([0, 1, DO_OR, 2, DO_AND]))
    implied = [0, DO_NOT, 2, DO_OR]
    assert diagram.restrict_by(f, array([*implied, 1, DO_NOT])) == f  # the second is not tried


def test_facts_that_nothing_fulfils_are_left_alone():
    diagram = diagram_of([0, 1])
    f = diagram.build(array([0, 1, DO_AND]))
    assert diagram.restrict_by(f, array([DO_FALSE])) == f
    assert diagram.restrict_by(f, array([DO_FALSE, 0])) == diagram.variable(1)
    assert diagram.restrict_by(f, array([])) == f


def test_a_function_that_is_too_large_to_be_counted():
    """It is restricted only to one that is not."""
    diagram = diagram_of(list(range(MOST)))
    diagram._scratch = np.zeros(4, np.int64)
    parity = FALSE
    for variable in range(MOST):
        parity = diagram.apply(XOR, parity, diagram.variable(variable))
    assert diagram.restrict_by(parity, array([0])) == parity
    check_shape(diagram)
    none = [step for v in range(MOST) for step in (v, DO_NOT)] + [DO_AND] * (MOST - 1)
    assert diagram.restrict_by(parity, array(none)) == FALSE
    assert diagram.restrict_by(parity, array([0, *none])) == FALSE
    check_shape(diagram)


def test_restriction_by_false_is_refused():
    diagram = diagram_of([0])
    with pytest.raises(ValueError, match="cannot be restricted by false"):
        diagram.restrict(diagram.variable(0), FALSE)


def test_a_small_function_on_the_way_through_large_ones():
    """Pairs of far variables: 2^20 nodes alone, few where all variables of a kind are equal."""
    pairs = 20
    program = [step for v in range(pairs) for step in (v, v + pairs, DO_AND)] + [DO_OR] * 19
    same = [DO_TRUE]
    for v in range(1, 2 * pairs):
        same += [v - 1, DO_NOT, v, DO_OR, DO_AND, v, DO_NOT, v - 1, DO_OR, DO_AND]
    diagram = diagram_of(list(range(2 * pairs)))
    with pytest.raises(FunctionTooLarge):
        diagram.build(array(program), 1000)
    care = diagram.build(array(same), 2000)
    assert len(diagram.reachable([diagram.build(array(program), 2000, care)])) == 1


# --- evaluation of all nodes


@given(cases(count=3), st.data())
@settings(max_examples=100)
def test_one_pass_evaluates_every_node(case, data):
    """Those that a collection has sorted by variable, and those that came later."""
    levels, (*early, late) = case
    diagram = diagram_of(levels)
    roots = np.array([diagram.build(array(program)) for program in early], np.int32)
    if data.draw(st.booleans()):
        diagram.collect(roots)
        check_shape(diagram)
    nodes = [*roots.tolist(), diagram.build(array(late))]
    size = len(levels)
    truth = data.draw(st.lists(st.integers(0, UNDEFINED), min_size=size, max_size=size))
    two = np.array([value == 1 for value in truth], np.uint8)
    value = np.zeros(diagram.nodes + 2, np.uint8)
    eval_bdd(two, diagram.variable_ranges, diagram.store, value)
    for node in range(diagram.nodes + 2):
        assert value[node] == diagram.holds(node, two.__getitem__)
    mv_eval_bdd(np.array(truth, np.uint8), diagram.variable_ranges, diagram.store, value)
    undefined = {v for v, x in enumerate(truth) if x == UNDEFINED}
    for node in nodes:
        assert bool(value[node] & UNDEFINED) == bool(support(diagram, node) & undefined)
        assert (value[node] == 1) <= diagram.holds(node, two.__getitem__)
        if not support(diagram, node) & undefined:
            assert value[node] == diagram.holds(node, two.__getitem__)
