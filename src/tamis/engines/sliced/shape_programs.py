"""Shapes of filters, as the kernels run them."""

from functools import lru_cache
from typing import NamedTuple

from tamis.kernels.programs import AND_LEAF, AND_TOP, OR_LEAF, OR_TOP, PUSH


class Shape(NamedTuple):
    """A formula in postfix order, taken apart."""

    width: int  # leaves
    leads: int  # the first of them, which must all be true
    ops: tuple[int, ...]  # what to do with the others
    depth: int  # of the stack


@lru_cache(maxsize=10_000)
def shape_of(text: str) -> Shape:
    """Take a formula apart: ``aaa|&`` has one lead, before a disjunction of two."""
    leads = _leads(text)
    ops = _operations(text[2 * leads - 1 :] if leads else text)
    depth = deepest = min(leads, 1)
    for op in ops:
        depth += (op == PUSH) - (op >= AND_TOP)
        deepest = max(deepest, depth)
    return Shape(text.count("a"), leads, ops, deepest)


def _leads(text: str) -> int:
    """How many leaves at the start are members of the outermost AND."""
    depth = 0
    for sign in text:
        depth += 1 if sign == "a" else -1
        if depth == 1 and sign == "|":  # something is combined with the first leaf by OR
            return 0
    count = 1
    while text.startswith("a&", 2 * count - 1):
        count += 1
    return count


def _operations(text: str) -> tuple[int, ...]:
    """The operations of a formula; a leaf that is combined at once is not pushed."""
    found = []
    for place, sign in enumerate(text):
        behind = text[place + 1 : place + 2]
        if sign == "a":
            found.append({"&": AND_LEAF, "|": OR_LEAF}.get(behind, PUSH))
        elif text[place - 1] != "a":
            found.append(AND_TOP if sign == "&" else OR_TOP)
    return tuple(found)
