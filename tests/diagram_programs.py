"""Random programs over variables, the diagrams that are built from them, and what these must be."""

import itertools
import random

import numpy as np
from hypothesis import strategies as st

from tamis.diagrams import diagram as package
from tamis.diagrams.diagram import DO_AND, DO_FALSE, DO_NOT, DO_OR, DO_TRUE, TRUE, XOR, Diagram

MOST = 8  # variables
ENOUGH = 100_000  # nodes


def chances():
    """Random generators, each with another seed.

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


def negated(diagram, f):
    """The function NOT f."""
    return diagram.apply(XOR, TRUE, f)


def support(diagram, f):
    """The variables that a function depends on."""
    return {diagram.label(node) for node in diagram.reachable([f])}


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
