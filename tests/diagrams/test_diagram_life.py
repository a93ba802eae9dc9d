"""A diagram that grows to its limits, shrinks, and is collected."""

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from cases import each
from diagram_programs import (
    ENOUGH,
    array,
    assignments,
    cases,
    check_shape,
    diagram_of,
    negated,
    plain,
    programs,
    table,
    values,
)
from tamis import CapacityError
from tamis.diagrams.diagram import (
    DO_AND,
    DO_NOT,
    DO_OR,
    FALSE,
    XOR,
    Diagram,
    FunctionTooLarge,
)

# --- limits


@given(cases(count=2), st.integers(0, 12))
@settings(max_examples=100)
def test_a_function_over_its_limit_leaves_everything_usable(case, limit):
    levels, (first, second) = case
    diagram = diagram_of(levels)
    f = diagram.build(array(first))
    before = diagram.nodes
    try:
        g = diagram.build(array(second), limit)
        assert diagram.nodes <= before + limit
    except FunctionTooLarge:
        assert diagram.nodes == before + limit
        with pytest.raises(FunctionTooLarge, match=r"more than 0 nodes"):
            diagram.build(array(second), 0)
        g = diagram.build(array(second))
    assert values(diagram, f, len(levels)) == table(first, len(levels))
    assert values(diagram, g, len(levels)) == table(second, len(levels))
    check_shape(diagram)


@given(cases(count=3), st.integers(0, 16))
@settings(max_examples=100)
def test_a_full_diagram_goes_on_after_a_collection(case, max_nodes):
    levels, some = case
    diagram = diagram_of(levels, max_nodes + 2)
    held = []
    for program in some:
        try:
            held.append((diagram.build(array(program)), program))
        except CapacityError:
            assert diagram.nodes == max_nodes
            roots = np.array([f for f, _ in held], np.int32)
            diagram.collect(roots)
            held = [(int(f), p) for f, (_, p) in zip(roots, held, strict=True)]
    for f, program in held:
        assert values(diagram, f, len(levels)) == table(program, len(levels))
    check_shape(diagram)


OPERATIONS = {
    "variable": lambda diagram, _f, _g: diagram.variable(3),
    "apply": lambda diagram, f, g: diagram.apply(XOR, f, g),
    "restrict": lambda diagram, f, g: diagram.restrict(f, g),
    "build": lambda diagram, _f, _g: diagram.build(array([0, 1, DO_AND])),
    "restrict_by": lambda diagram, f, _g: diagram.restrict_by(f, array([0, 2, DO_OR])),
}


@each("operation", OPERATIONS)
def test_every_operation_keeps_to_the_limit(operation):
    diagram = diagram_of([0, 1, 2, 3])
    f = diagram.build(array([0, 1, DO_AND, 0, DO_NOT, 2, DO_AND, DO_OR]))
    g = diagram.build(array([0, 2, DO_OR]))
    roots = np.array([f, g], np.int32)
    diagram.collect(roots)
    f, g = roots.tolist()
    diagram._max_nodes = diagram.nodes + 2
    with pytest.raises(CapacityError, match=f"more than max_nodes, {diagram.nodes}, nodes"):
        OPERATIONS[operation](diagram, f, g)
    check_shape(diagram)
    diagram._max_nodes = ENOUGH
    OPERATIONS[operation](diagram, f, g)
    check_shape(diagram)
    assert values(diagram, f, 3) == [(a[1] if a[0] else a[2]) for a in assignments(3)]
    assert values(diagram, g, 3) == [(a[0] or a[2]) for a in assignments(3)]


# --- size


def test_growth_to_many_nodes_and_back():
    """All products of two out of 60 variables: arrays and tables grow, and shrink again."""
    diagram = diagram_of(list(range(60)))
    pairs = list(itertools.combinations(range(60), 2))
    products = {pair: diagram.build(array([*pair, DO_AND])) for pair in pairs}
    union = array([step for pair in pairs for step in (*pair, DO_AND)] + [DO_OR] * 1769)
    two_of_all = diagram.build(union)
    assert len(diagram.reachable([two_of_all])) == 2 * 59
    for wide in range(10):
        diagram.build(array([*range(wide, 50)] + [DO_NOT, DO_AND] * (49 - wide)))
    for (a, b), f in products.items():
        assert diagram.holds(f, {a, b}.__contains__)
        assert not diagram.holds(f, lambda v, a=a: v != a)
    check_shape(diagram)
    large = diagram.bytes
    roots = np.array([two_of_all], np.int32)
    diagram.collect(roots)
    assert diagram.nodes == 2 * 59
    assert diagram.live == diagram.nodes
    assert diagram.bytes < large
    assert diagram.build(union) == roots[0]


def test_a_very_deep_function():
    """A conjunction and a parity of 5,000 variables: nothing recurses."""
    deep = 5_000
    diagram = Diagram(1_000_000)
    for level in range(deep):
        diagram.new_variable(level)
    every = diagram.build(array([*range(deep)] + [DO_AND] * (deep - 1)))
    assert len(diagram.reachable([every])) == deep
    assert diagram.holds(every, lambda _: True)
    assert not diagram.holds(every, lambda v: v != deep - 1)
    parity = FALSE
    for variable in reversed(range(deep)):
        parity = diagram.apply(XOR, diagram.variable(variable), parity)
    assert len(diagram.reachable([parity])) == 2 * deep - 1
    assert diagram.holds(parity, lambda v: v == 7)
    assert diagram.restrict(parity, every) == FALSE
    even = diagram.restrict(every, negated(diagram, parity))
    assert diagram.holds(even, lambda _: True)
    assert not diagram.holds(even, lambda v: v > 1)
    roots = np.array([every], np.int32)
    diagram.collect(roots)
    assert diagram.nodes == deep


# --- a long life


class Life(RuleBasedStateMachine):
    """Functions and variables come and go; numbers and levels are used again."""

    @initialize()
    def start(self):
        self.diagram = diagram_of([])
        self.variables = {}  # name -> variable
        self.functions = []  # node, program over names
        self.levels = {}  # of all names, and of those that went and were not collected
        self.retired = []
        self.most = 0

    def of(self, program):
        return array([self.variables[step] if step >= 0 else step for step in program])

    @precondition(lambda self: len(self.variables) < 6)
    @rule(level=st.integers(-50, 50))
    def new_variable(self, level):
        if level in self.levels.values():
            return
        name = len(self.levels) + 100 * self.most
        self.levels[name] = level
        self.variables[name] = self.diagram.new_variable(level)
        self.most = max(self.most + 1, len(self.variables))
        assert self.diagram.level(self.variables[name]) == level

    @precondition(lambda self: self.variables)
    @rule(program=programs(6))
    def build(self, program):
        names = sorted(self.variables)
        renamed = [names[step % len(names)] if step >= 0 else step for step in program]
        self.functions.append((self.diagram.build(self.of(renamed)), renamed))

    @precondition(lambda self: self.functions)
    @rule(data=st.data())
    def drop(self, data):
        self.functions.pop(data.draw(st.integers(0, len(self.functions) - 1)))

    @rule()
    def retire_what_nobody_uses(self):
        used = {step for _, program in self.functions for step in program}
        for name in [name for name in self.variables if name not in used]:
            self.diagram.retire(self.variables.pop(name))
            self.retired.append(name)

    @rule()
    def collect(self):
        roots = np.array([node for node, _ in self.functions], np.int32)
        self.diagram.collect(roots)
        self.functions = [
            (int(node), program) for node, (_, program) in zip(roots, self.functions, strict=True)
        ]
        for name in self.retired:
            del self.levels[name]
        self.retired.clear()
        assert self.diagram.nodes == self.diagram.live
        assert self.diagram.nodes == len(self.diagram.reachable(roots.tolist()))

    @invariant()
    def functions_are_what_they_were(self):
        if not hasattr(self, "diagram"):
            return
        check_shape(self.diagram)
        held = self.variables.values()
        assert len(set(held)) == len(held)
        assert all(variable < self.diagram.variables for variable in held)
        names = sorted(self.variables)
        by_table = {}
        for node, program in self.functions:
            answers = []
            for assignment in itertools.product([False, True], repeat=len(names)):
                truth = dict(zip(names, assignment, strict=True))
                by_variable = {self.variables[name]: value for name, value in truth.items()}
                answers.append(self.diagram.holds(node, by_variable.__getitem__))
                assert answers[-1] == plain(program, truth.__getitem__)[0]
            assert by_table.setdefault(tuple(answers), node) == node

    def teardown(self):
        assert self.diagram.variables <= self.most


@pytest.mark.long
def test_a_long_life():
    run_state_machine_as_test(Life, settings=settings(max_examples=30, stateful_step_count=30))


def test_a_retired_variable_comes_back_at_another_level():
    diagram = diagram_of([0, 10])
    f = diagram.build(array([0, 1, DO_AND]))
    assert diagram.label(f) == 0
    diagram.retire(0)
    assert diagram.new_variable(5) == 2  # not yet: old nodes may have it
    roots = np.array([diagram.variable(1)], np.int32)
    diagram.collect(roots)
    assert diagram.new_variable(20) == 0
    g = diagram.build(array([0, 1, DO_AND]))
    assert diagram.label(g) == 1
    assert diagram.children(g) == (FALSE, diagram.variable(0))
