"""The program of a shape: the operations by which kernels evaluate filters of that shape."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tamis.bounded_caches import remembered
from tamis.kernels.programs import AND_LEAF, AND_TOP, OR_LEAF, OR_TOP, PUSH

Array = np.ndarray[Any, Any]


class ShapeProgram(NamedTuple):
    """The operations of a formula, after the leading leaves that must all be true."""

    width: int  # number of leaves
    leads: int  # number of leading leaves
    ops: tuple[int, ...]  # what to do with the other leaves
    depth: int  # of the stack


@remembered()
def shape_program(text: str) -> ShapeProgram:
    """The program of a shape: ``aaa|&`` has one leading leaf, before an OR of two."""
    leads = _leads(text)
    ops = _operations(text[2 * leads - 1 :] if leads else text)
    depth = deepest = min(leads, 1)
    for op in ops:
        depth += (op == PUSH) - (op >= AND_TOP)
        deepest = max(deepest, depth)
    return ShapeProgram(text.count("a"), leads, ops, deepest)


class ShapeArrays(NamedTuple):
    """What `Programs` says about each shape, whatever the filters refer to."""

    refs_at: Array
    widths: Array
    leads: Array
    ops_at: Array
    ops: Array


def shape_arrays(shapes: Sequence[str], subs: Array) -> ShapeArrays:
    """The fields of `Programs` that follow from the shapes and the numbers of their filters."""
    programs = [shape_program(shape) for shape in shapes]
    widths = np.array([program.width for program in programs], np.int32)
    return ShapeArrays(
        refs_at=_before(np.diff(subs) * widths)[:-1], widths=widths,
        leads=np.array([program.leads for program in programs], np.int32),
        ops_at=_before([len(program.ops) for program in programs]),
        ops=np.array([op for program in programs for op in program.ops], np.int8),
    )  # fmt: skip


def _before(sizes: Any) -> Array:
    """The sum of the sizes before each place, and at the end that of all."""
    sums = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=sums[1:])
    return sums


def is_shape(text: Any) -> bool:
    """Whether something is the postfix form of a formula."""
    if not isinstance(text, str) or not text or set(text) - set("a&|"):
        return False
    depth = 0
    for sign in text:
        depth += 1 if sign == "a" else -1
        if depth < 1:
            return False
    return depth == 1


def _leads(text: str) -> int:
    """How many leaves at the start belong to the outermost AND."""
    depth = 0
    for sign in text:
        depth += 1 if sign == "a" else -1
        if depth == 1 and sign == "|":  # the first leaf is part of an OR
            return 0
    count = 1
    while text.startswith("a&", 2 * count - 1):
        count += 1
    return count


def _operations(text: str) -> tuple[int, ...]:
    """The operations of a formula; a leaf that is combined right away is not pushed."""
    found = []
    for place, sign in enumerate(text):
        following = text[place + 1 : place + 2]
        if sign == "a":
            found.append({"&": AND_LEAF, "|": OR_LEAF}.get(following, PUSH))
        elif text[place - 1] != "a":
            found.append(AND_TOP if sign == "&" else OR_TOP)
    return tuple(found)
