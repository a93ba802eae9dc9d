"""Boolean structures: what a filter is made of besides its atoms.

A structure is a string of ``a`` for an atom, ``&``, ``|``, ``!`` and parentheses: ``a&(a|!a)``. Its
*postfix* form has no parentheses and no negations, which are pushed down to the atoms: the same
structure is ``aaa|&``, and its third atom is negated. Filters of which hardly two have the same
structure come in bulk, so a structure is read in one pass, without building a tree.
"""

import re
from typing import NamedTuple

DEEPEST = 30  # parentheses and NOTs around an atom; each adds at most three of the parser's levels

_FORMULA = re.compile(r"(?:[!(]*a\)*[&|])*[!(]*a\)*")
# What waits for its right side: AND and OR, each as it is written and as it is under a NOT. The
# codes of OR are greater.
_SIGNS = "&||&"
_AND, _OR = 0, 2


class NoStructure(Exception):
    """Codes that are not a structure, or are one that might be too deep for the parser."""


class Postfix(NamedTuple):
    """A structure in postfix order, and which atoms stand plain in it."""

    shape: str
    signs: tuple[bool, ...] | None  # False for an atom that is negated; None if none is


def postfix_of(structure: str) -> Postfix:
    """The postfix form of a structure; raises `NoStructure`."""
    if not _FORMULA.fullmatch(structure):
        raise NoStructure
    if "(" not in structure and "!" not in structure and ")" not in structure:
        return Postfix(_plain(structure), None)
    shape: list[str] = []
    signs: list[bool] = []
    waiting: list[int] = []  # of the innermost parentheses
    outer: list[tuple[list[int], int, int]] = []  # the same of those around, `negative` and `depth`
    negative = negated = depth = 0  # whether all here is under NOT, and what comes next
    start = 0  # of what is in NOTs and parentheses: the depth outside of them
    for code in structure:
        if code == "a":
            shape.append("a")
            signs.append(negative == negated)
            negated, depth = 0, start
        elif code == "!":
            negated ^= 1
            depth += 1
            continue
        elif code == "(":
            outer.append((waiting, negative, start))
            waiting = []
            negative ^= negated
            depth += 1
            negated, start = 0, depth
            if depth > DEEPEST:
                raise NoStructure
            continue
        elif code == ")":
            if not outer:
                raise NoStructure
            if waiting:
                shape.append(_SIGNS[waiting.pop()])
            waiting, negative, start = outer.pop()
            depth = start
        elif code == "&":
            waiting.append(_AND + negative)
            continue
        else:
            if waiting:
                shape.append(_SIGNS[waiting.pop()])
            waiting.append(_OR + negative)
            continue
        # An operand is complete; AND binds more tightly than OR.
        if waiting and waiting[-1] < _OR:
            shape.append(_SIGNS[waiting.pop()])
    if outer:
        raise NoStructure
    if waiting:
        shape.append(_SIGNS[waiting.pop()])
    return Postfix("".join(shape), None if all(signs) else tuple(signs))


def _plain(structure: str) -> str:
    """The postfix form of a structure without NOT and parentheses."""
    parts = [_conjunction(len(part) // 2) for part in structure.split("|")]
    return parts[0] + "".join([part + "|" for part in parts[1:]])


def _conjunction(ands: int) -> str:
    return "a" + "a&" * ands


def needed_atoms(shape: str) -> list[bool]:
    """For each atom of a postfix form, whether it is joined to all others by AND."""
    found: list[bool] = []
    waiting = [True]  # backwards: whether the part that ends here is needed
    for code in reversed(shape):
        is_needed = waiting.pop()
        if code == "a":
            found.append(is_needed)
        else:
            waiting += [is_needed and code == "&"] * 2
    found.reverse()
    return found
