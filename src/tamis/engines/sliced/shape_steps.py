"""The steps of a shape: how the kernels of `formula_steps` evaluate filters of that shape."""

from typing import Any, NamedTuple

from tamis.bounded_caches import BoundedCache
from tamis.errors import LimitError
from tamis.kernels.formula_steps import AND, OR

MOST_REGISTERS = 2_000  # four times as many, and the results of a chunk, have numbers of 13 bits


class ShapeSteps(NamedTuple):
    """The steps of a formula: (one sign other) sign third.

    An operand is the number of a leaf, or ~register. A target is 4 * register, plus 1 if the first
    sign is OR, plus 2 if the second one is. The result is in register 0.
    """

    operands: tuple[int, ...]  # three for each step
    targets: tuple[int, ...]


class _Steps(BoundedCache[str, ShapeSteps]):
    """The steps of shapes that are used again and again."""

    def make(self, shape: str) -> ShapeSteps:
        return _steps_of(shape)

    def size(self, shape: str, steps: ShapeSteps) -> int:
        return self.least + len(shape) + 100 * len(steps.targets)  # four numbers for each step


_STEPS = _Steps()


def shape_steps(shape: str) -> ShapeSteps:
    """The steps of a shape: ``aaa|&`` is one step, (leaf 1 OR leaf 2) AND leaf 0."""
    return _STEPS[shape]


def _steps_of(shape: str) -> ShapeSteps:
    operands: list[int] = []
    targets: list[int] = []
    stack: list[int] = []
    leaf = registers = 0  # how many registers are in use
    is_open = False  # whether the last step has nothing but `other` as its third operand
    for code in shape:
        if code == "a":
            stack.append(leaf)
            leaf += 1
            continue
        sign = OR if code == "|" else AND
        other = stack.pop()
        one = stack[-1]
        # A register on top, or right below a leaf, is the result of the last step.
        recent, rest = (other, one) if other < 0 else (one, other)
        registers -= (one < 0) + (other < 0)
        if is_open and recent < 0:
            operands[-1] = rest
            targets[-1] = 4 * registers + targets[-1] % 2 + 2 * sign
            is_open = False
        else:
            operands += (one, other, other)  # x AND y AND y is x AND y
            targets.append(4 * registers + sign + 2 * sign)
            is_open = True
        stack[-1] = ~registers
        registers += 1
        if registers > MOST_REGISTERS:
            raise LimitError(
                f"the filter is nested deeper than {MOST_REGISTERS:,} levels", shape, 0, None,
                "write it as several filters",
            )  # fmt: skip
    return ShapeSteps(tuple(operands), tuple(targets))


def is_conjunction(shape: str) -> bool:
    """Whether a shape is an AND of leaves, or a single leaf."""
    return "|" not in shape


def conjunction_of(width: int) -> str:
    """The shape of an AND of `width` leaves."""
    return "a" + "a&" * (width - 1)


def is_width(number: Any) -> bool:
    """Whether something is the number of leaves of a conjunction."""
    return type(number) is int and 0 < number < 2**31
