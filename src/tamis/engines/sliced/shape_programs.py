"""The program of a shape: the operations by which kernels evaluate filters of that shape."""

from functools import lru_cache
from typing import NamedTuple

from tamis.kernels.programs import AND_LEAF, AND_TOP, OR_LEAF, OR_TOP, PUSH


class ShapeProgram(NamedTuple):
    """The operations of a formula, after the leading leaves that must all be true."""

    width: int  # number of leaves
    leads: int  # number of leading leaves
    ops: tuple[int, ...]  # what to do with the other leaves
    depth: int  # of the stack


@lru_cache(maxsize=10_000)
def shape_program(text: str) -> ShapeProgram:
    """The program of a shape: ``aaa|&`` has one leading leaf, before an OR of two."""
    leads = _leads(text)
    ops = _operations(text[2 * leads - 1 :] if leads else text)
    depth = deepest = min(leads, 1)
    for op in ops:
        depth += (op == PUSH) - (op >= AND_TOP)
        deepest = max(deepest, depth)
    return ShapeProgram(text.count("a"), leads, ops, deepest)


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
