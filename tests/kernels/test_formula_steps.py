"""Gates of formulas, and the checks of steps that come from a file."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.engines.sliced.formula_table import formula_table
from tamis.engines.sliced.layout import formulas_of
from tamis.engines.sliced.leaves import Leaves
from tamis.kernels.formula_steps import (
    ENOUGH,
    NO_GATE,
    OR,
    TRACKS,
    are_gates,
    are_written_before,
    choose_gates,
)
from tamis.kernels.simd_rows import LANES

pytestmark = pytest.mark.uncompiled

PREDICATES = 9
REGISTERS = 40


@st.composite
def shapes(draw, depth=3):
    if depth == 0:
        return "a"
    parts = draw(st.lists(shapes(depth - 1), min_size=1, max_size=3))
    sign = draw(st.sampled_from("&|"))
    return parts[0] + "".join(part + sign for part in parts[1:])


@st.composite
def tables(draw):
    """Some formulas over a few predicates."""
    made = [shape for shape in draw(st.lists(shapes(), min_size=1, max_size=6)) if "|" in shape]
    made = made or ["aa|"]
    leaves = sum(shape.count("a") for shape in made)
    refs = draw(st.lists(st.integers(0, PREDICATES - 1), min_size=leaves, max_size=leaves))
    filters = [(n, Leaves(s, (0,) * s.count("a"), ())) for n, s in enumerate(made)]
    return formula_table(filters, np.array(refs, np.int32))


def value_of(table, number, truths):
    """A formula of a table, step by step."""
    registers = {}
    for k in range(table.at[number], table.at[number + 1]):
        one, other, third = (truths[o] if o >= 0 else registers[~o] for o in table.operands[k])
        register, signs = divmod(int(table.targets[k]), 4)
        made = one or other if signs & 1 == OR else one and other
        registers[register] = made or third if signs >> 1 == OR else made and third
    return registers[0]


def gates_of(table, shares):
    gates = np.empty(table.size, np.int64)
    wanted = np.zeros(REGISTERS, np.uint8)
    choose_gates(table.at, table.operands, table.targets, shares, wanted, gates)
    assert not wanted.any()
    return gates.tolist()


@given(tables(), st.permutations(range(PREDICATES)))
@settings(max_examples=60)
def test_gates_are_the_most_telling_predicates(table, order):
    shares = np.array(order, np.float64)
    for number, gate in enumerate(gates_of(table, shares)):
        everyone = range(PREDICATES)
        operands = table.operands[table.at[number] : table.at[number + 1]]
        used = {int(o) for o in operands.reshape(-1) if o >= 0}
        needed = [p for p in used if not value_of(table, number, [q != p for q in everyone])]
        enough = [p for p in used if value_of(table, number, [q == p for q in everyone])]
        if gate == NO_GATE:
            continue
        predicate, kind = divmod(gate, 2)
        assert predicate in (enough if kind == ENOUGH else needed)


def table_of(shape, *refs):
    filters = [(0, Leaves(shape, (0,) * len(refs), ()))]
    return formula_table(filters, np.array(refs, np.int32))


@pytest.mark.parametrize(
    ("shape", "refs", "gate"),
    [
        ("aa|a&a&", (0, 1, 5, 3), 2 * 3),  # the rarest of those that are needed
        ("aa&a|a|", (0, 1, 5, 3), 2 * 5 + ENOUGH),  # the most frequent of those that are enough
        ("aa|aa|&", (0, 1, 2, 3), NO_GATE),
        ("aa&aa&|", (0, 1, 2, 3), NO_GATE),
        ("aaa|&a&aaa&|a|&", (4, 0, 1, 6, 7, 0, 1, 2), 2 * 4),
        ("aa|aa|a|aa||", (0, 1, 2, 3, 8, 5, 6), 2 * 8 + ENOUGH),
    ],
)
def test_gates_by_hand(shape, refs, gate):
    assert gates_of(table_of(shape, *refs), np.arange(PREDICATES) / 10) == [gate]


class Shares:
    """What predicates are expected to be true of; none is selective."""

    def of(self, refs):
        return refs / 100 + 0.5

    def findable(self, refs):
        return np.ones(len(refs), bool)


def steps_of(size=70):
    filters = [(n, Leaves(["aa|a&", "aa&aa&|", "aa|aa|&"][n % 3], (), ())) for n in range(size)]
    filters = [(n, leaves._replace(codes=(0,) * leaves.shape.count("a"))) for n, leaves in filters]
    leaves = sum(len(one.codes) for _, one in filters)
    refs = np.arange(leaves, dtype=np.int32) % PREDICATES
    return formulas_of(formula_table(filters, refs), Shares())[0]


def is_sound(steps):
    return bool(are_written_before(steps, np.full(TRACKS * REGISTERS, -1, np.int64)))


def test_steps_that_are_laid_out_are_sound():
    steps = steps_of()
    assert is_sound(steps)
    assert are_gates(steps, np.zeros(len(steps.tested) + LANES + TRACKS * REGISTERS, np.uint8))


def test_a_register_is_not_read_before_it_is_written():
    steps = steps_of()
    first = len(steps.tested) + LANES
    for value in (first, first + TRACKS * REGISTERS - 1, len(steps.tested)):
        operands = steps.operands.copy()
        operands[0, 2] = value
        assert not is_sound(steps._replace(operands=operands))


def test_a_register_belongs_to_one_track():
    steps = steps_of()
    written = np.flatnonzero(steps.targets >= 4 * LANES)
    targets = steps.targets.copy()
    targets[written[0]] += 4
    assert not is_sound(steps._replace(targets=targets))


def test_a_gate_that_is_none_is_noticed():
    steps = steps_of()
    truth = np.zeros(len(steps.tested) + LANES + TRACKS * REGISTERS, np.uint8)
    for gate in range(2 * len(steps.tested)):
        gates = np.full_like(steps.gates, gate)
        assert not are_gates(steps._replace(gates=gates), truth.copy())
