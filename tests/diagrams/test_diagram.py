"""The package of diagrams, against plain evaluation, dd, and what "reduced" means."""

import itertools
import random

import numpy as np
import pytest
from dd.autoref import BDD
from hypothesis import assume, given, settings
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
from tamis import CapacityError
from tamis.diagrams import diagram as package
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
    Diagram,
    FunctionTooLarge,
)
from tamis.kernels.bdd_evaluation import UNDEFINED, eval_bdd, mv_eval_bdd

MOST = 8  # variables
ENOUGH = 100_000  # nodes


def chances():
    """Random generators, each of its own seed.

    Recursive strategies of hypothesis make mostly constants, and the same ones again and again.
    """
    return st.integers(0, 2**64).map(random.Random)


def programs(variables):
    """Programs in postfix order over variables 0, 1, ..., each leaving one function."""
    return chances().map(lambda chance: program_of(chance, variables))


def program_of(chance, variables, leaves=None):
    """A random tree."""
    leaves = chance.choice((1, 2, 4, 8, 12, 16, 24)) if leaves is None else leaves
    if leaves > 1:
        left = chance.randrange(1, leaves)
        parts = [program_of(chance, variables, part) for part in (left, leaves - left)]
        program = [*parts[0], *parts[1], chance.choice([DO_AND, DO_OR])]
    elif chance.random() < 0.04:
        program = [chance.choice([DO_TRUE, DO_FALSE])]
    elif chance.random() < 0.3:  # exactly one of two
        v, w = chance.choices(range(variables), k=2)
        program = [v, w, DO_NOT, DO_AND, v, DO_NOT, w, DO_AND, DO_OR]
    else:
        program = [chance.randrange(variables)]
    return [*program, DO_NOT] if chance.random() < 0.2 else program


def cases(count=1):
    """The levels of up to eight variables, and programs over them."""

    def case(chance):
        size = chance.choice((1, 2, 3, 5, 7, MOST, MOST))
        levels = chance.sample(range(-20, 20), size)
        return levels, [program_of(chance, size) for _ in range(count)]

    return chances().map(case)


def array(program):
    return np.array(program, np.int64)


def plain(program, truth):
    """What a program leaves when variable v is truth(v)."""
    stack = []
    for step in program:
        if step >= 0:
            stack.append(bool(truth(step)))
        elif step in {DO_TRUE, DO_FALSE}:
            stack.append(step == DO_TRUE)
        elif step == DO_NOT:
            stack.append(not stack.pop())
        else:
            right, left = stack.pop(), stack.pop()
            stack.append(left and right if step == DO_AND else left or right)
    return stack


def assignments(variables):
    return list(itertools.product([False, True], repeat=variables))


def table(program, variables):
    return [plain(program, a.__getitem__)[0] for a in assignments(variables)]


def values(diagram, f, variables):
    return [diagram.holds(f, a.__getitem__) for a in assignments(variables)]


def diagram_of(levels, max_nodes=ENOUGH):
    """A diagram with a variable at each level that starts with hardly any room."""
    made = Diagram(max_nodes)
    made._store = package._store(4, 1)
    assert [made.new_variable(level) for level in levels] == list(range(len(levels)))
    return made


def reduced(tables):
    """How many nodes the shared reduced diagram of tables has, whose first variable is on top.

    The nodes of a level are the distinct functions that fixing all variables above it leaves, as
    far as they depend on the variable of the level.
    """
    found, tables = 0, {tuple(one) for one in tables}
    while len(next(iter(tables))) > 1:
        halves = {(one[: len(one) // 2], one[len(one) // 2 :]) for one in tables}
        found += sum(low != high for low, high in halves)
        tables = {half for pair in halves for half in pair}
    return found


def in_order(program, levels):
    """The table of a program with the variables sorted by level."""
    order = sorted(range(len(levels)), key=levels.__getitem__)
    place = {variable: position for position, variable in enumerate(order)}
    return [plain(program, lambda v, a=a: a[place[v]])[0] for a in assignments(len(levels))]


def check_shape(diagram):
    """Reduced, ordered, and with children before their parents, everywhere."""
    seen = set()
    for node in range(2, diagram.nodes + 2):
        low, high = diagram.children(node)
        assert low != high
        assert max(low, high) < node
        variable = diagram.label(node)
        assert (variable, low, high) not in seen
        seen.add((variable, low, high))
        for child in (low, high):
            if child > TRUE:
                assert diagram.level(variable) < diagram.level(diagram.label(child))
    assert not diagram.store.stamps.any()


# --- functions


@given(cases())
@settings(max_examples=200)
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
@settings(max_examples=200)
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
    classes = {min(node, diagram.negate(node)) for node in diagram.reachable([f])}
    assert len(classes) + 1 == len(oracle)
    assert {f"v{v}" for v in diagram.support(f)} == manager.support(oracle)


@given(cases(count=4))
@settings(max_examples=200)
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
@settings(max_examples=200)
def test_operations(case):
    levels, some = case
    diagram = diagram_of(levels)
    f, g = (diagram.build(array(program)) for program in some)
    one, other = (table(program, len(levels)) for program in some)
    for op, meaning in ((AND, bool.__and__), (OR, bool.__or__), (XOR, bool.__xor__)):
        h = diagram.apply(op, f, g)
        assert h == diagram.apply(op, g, f)
        assert values(diagram, h, len(levels)) == list(map(meaning, one, other))
    assert values(diagram, diagram.negate(f), len(levels)) == [not value for value in one]
    assert diagram.negate(diagram.negate(f)) == f
    for variable in range(len(levels)):
        assert diagram.variable(variable) == diagram.build(array([variable]))
    check_shape(diagram)


# --- restriction


@given(cases(count=2))
@settings(max_examples=200)
def test_restricted_functions_are_right_where_anybody_cares(case):
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
    assert diagram.support(restricted) <= diagram.support(f)
    assert diagram.support(cared_for) <= {step for step in program if step >= 0}
    assert diagram.restrict(f, TRUE) == f
    check_shape(diagram)


@given(cases(count=4))
@settings(max_examples=200)
def test_restriction_by_facts_never_makes_a_function_larger(case):
    levels, (program, *conditions) = case
    diagram = diagram_of(levels)
    f = diagram.build(array(program))
    facts = [step for condition in conditions for step in condition]
    restricted = diagram.restrict_by(f, array(facts))
    assert len(diagram.reachable([restricted])) <= len(diagram.reachable([f]))
    assert diagram.support(restricted) <= diagram.support(f)
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


def test_restriction_needs_something_to_care_about():
    diagram = diagram_of([0])
    with pytest.raises(ValueError, match="nothing is left"):
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
@settings(max_examples=200)
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
        assert bool(value[node] & UNDEFINED) == bool(diagram.support(node) & undefined)
        assert (value[node] == 1) <= diagram.holds(node, two.__getitem__)
        if not diagram.support(node) & undefined:
            assert value[node] == diagram.holds(node, two.__getitem__)


# --- limits


@given(cases(count=2), st.integers(0, 12))
@settings(max_examples=200)
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
@settings(max_examples=200)
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
    "negate": lambda diagram, f, _g: diagram.negate(f),
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
    even = diagram.restrict(every, diagram.negate(parity))
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
