"""The steps of shapes compute what the formula says, in registers that are free."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from filter_readings import truth_of_shape
from tamis import LimitError
from tamis.engines.sliced.shape_steps import (
    MOST_REGISTERS,
    ShapeSteps,
    conjunction_of,
    is_conjunction,
    is_width,
    shape_steps,
)
from tamis.kernels.formula_steps import OR


@st.composite
def shapes(draw, depth=4):
    """Formulas in postfix order, in any order of their parts."""
    if depth == 0:
        return "a"
    parts = draw(st.lists(shapes(depth - 1), min_size=1, max_size=4))
    sign = draw(st.sampled_from("&|"))
    if draw(st.booleans()):
        return "".join(parts) + sign * (len(parts) - 1)
    return parts[0] + "".join(part + sign for part in parts[1:])


def run(steps, values):
    """What kernels do with steps."""
    registers, triples = {}, zip(*[iter(steps.operands)] * 3, strict=True)
    result = None
    for operands, target in zip(triples, steps.targets, strict=True):
        one, other, third = (values[o] if o >= 0 else registers[~o] for o in operands)
        register, signs = divmod(target, 4)
        made = one or other if signs & 1 == OR else one and other
        registers[register] = result = made or third if signs >> 1 == OR else made and third
    assert steps.targets[-1] // 4 == 0
    return result


A1, O1 = 0, 3  # both signs AND, both OR


@each(
    ("shape", "operands", "targets"),
    [
        ("aa|", (0, 1, 1), (O1,)),
        ("aa&", (0, 1, 1), (A1,)),
        ("aaa|&", (1, 2, 0), (1,)),
        ("aa|a&", (0, 1, 2), (1,)),
        ("aa&a|a|", (0, 1, 2, ~0, 3, 3), (2, O1)),
        ("aa&aa&|", (0, 1, 1, 2, 3, ~0), (A1, 2)),
        ("aa|aa|aa|&&", (0, 1, 1, 2, 3, 3, 4, 5, ~1, ~0, ~1, ~1), (O1, 4 + O1, 4 + 1, A1)),
    ],
)
def test_steps_by_hand(shape, operands, targets):
    assert shape_steps(shape) == ShapeSteps(operands, targets)


@given(shapes(), st.randoms(use_true_random=False))
def test_the_steps_compute_the_formula(shape, chance):
    if shape == "a":
        return
    steps, leaves = shape_steps(shape), shape.count("a")
    assert len(steps.operands) == 3 * len(steps.targets)
    assert len(steps.targets) < leaves
    for share in (0, 1, 1, 2, 2, 3, 3, 4):
        values = [chance.randrange(4) < share for _ in range(leaves)]
        assert run(steps, values) == truth_of_shape(shape, values)


@each("leaves", [2, 3, 4, 5, 64, 501])
def test_a_chain_takes_half_as_many_steps_as_it_has_leaves(leaves):
    steps = shape_steps("a" + "a|" * (leaves - 1))
    assert len(steps.targets) == leaves // 2
    assert {target // 4 for target in steps.targets} == {0}


def test_a_deep_formula():
    shape = "a" * 301 + "".join("&|"[n % 2] for n in range(300))
    values = [n % 3 == 0 for n in range(301)]
    assert run(shape_steps(shape), values) == truth_of_shape(shape, values)


def test_a_formula_that_needs_too_many_registers_is_refused():
    pairs = MOST_REGISTERS + 1
    with pytest.raises(LimitError, match="nested deeper than"):
        shape_steps("aa|" * pairs + "&" * (pairs - 1))


def test_conjunctions():
    for width in (1, 2, 5):
        assert conjunction_of(width) == "a" + "a&" * (width - 1)
        assert is_conjunction(conjunction_of(width))
    assert not is_conjunction("aa|")
    assert [is_width(n) for n in (1, 2**31 - 1, 0, -1, 2**31, 1.0, "1", True)] == [
        True, True, False, False, False, False, False, False,
    ]  # fmt: skip
