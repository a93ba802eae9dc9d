"""The leaves of many filters, fast: each atom is normalised once, and no tree is built.

A filter that came through the shape cache is a boolean structure and atoms. Since only truth
matters, negation distributes over AND and OR in both logics, so the normal form of the filter is
that of its atoms, or of their negations, put together as the structure says:

* A *fragment* is what an atom, or its negation, becomes (`fragments`).
* The structure in postfix order, without negations (`tamis.language.structures`), has one ``a`` for
  each atom; with the shapes of the fragments in their place, it is the shape of the filter.

The result means what `leaves_of` gives. It may have leaves twice that the normal form has once.
Filters that did not come through the shape cache, and those with an atom that is always or never
true, go the slow way. So do filters that might exceed the limit of normal forms. The texts of the
shape cache are far too short for that, unless they have atoms whose normal form is larger than the
atom, such as ``(a > 1) = (b > 1)``.
"""

from itertools import chain
from typing import Any

from tamis.engines.sliced.formulas import ALWAYS, NEVER
from tamis.engines.sliced.fragments import AtomAttributes, Fragments
from tamis.engines.sliced.leaves import LEAF_KINDS, PRESENT, Leaves, leaves_of
from tamis.engines.sliced.shape_steps import conjunction_of, is_conjunction, shape_steps
from tamis.language.expression import Expression
from tamis.language.shape_cache import ShapedExpression
from tamis.language.structures import needed_atoms
from tamis.predicates.presence import positions_in
from tamis.semantics import Semantics

# Of a filter with atoms whose normal form may be larger; a leaf has fewer than 200 nodes of it.
MOST_LEAVES = 1_000
_NEW = tuple.__new__  # what the constructor of a named tuple calls, without the detour


class FilterReader:
    """Reads the leaves of filters in one semantics."""

    def __init__(self, semantics: Semantics) -> None:
        self._semantics = semantics
        self._is_strict = semantics.name == "strict"
        self._plain = Fragments(semantics, negated=False).__getitem__
        self._negated = Fragments(semantics, negated=True).__getitem__

    def leaves(self, expression: Expression) -> Leaves:
        """The leaves of a filter, with the meaning of those of `leaves_of`."""
        if type(expression) is not ShapedExpression:
            return self._slowly(expression)
        shape, signs = expression.postfix
        atoms = expression.atoms
        if signs is None:
            found: Any = map(self._plain, atoms)
        else:
            plain, negated = self._plain, self._negated
            pairs = zip(atoms, signs, strict=True)
            found = [plain(atom) if sign else negated(atom) for atom, sign in pairs]
        shapes, codes, constants, attributes = zip(*found)  # noqa: B905 - fours, strict is slow
        if shapes.count("a") < len(shapes):
            if ALWAYS in shapes or NEVER in shapes:
                return self._slowly(expression)
            shape = _filled(shape, shapes)
        if self._is_strict:
            presence = presence_leaves(expression.postfix.shape, attributes)
            shape += "a&" * len(presence)
            codes = (*codes, presence)
            constants = (*constants, (None,) * len(presence))
        if len(codes) < 20:
            leaf_codes, leaf_constants = sum(codes, ()), sum(constants, ())  # for few the fastest
        else:
            leaf_codes = tuple(chain.from_iterable(codes))
            leaf_constants = tuple(chain.from_iterable(constants))
        if len(leaf_codes) > MOST_LEAVES and any(atom.shape is None for atom in atoms):
            return self._slowly(expression)
        if is_conjunction(shape):
            shape = conjunction_of(len(leaf_codes))
        return _NEW(Leaves, (shape, leaf_codes, leaf_constants))

    def _slowly(self, expression: Expression) -> Leaves:
        """The leaves of a filter by its normal form; refused if its formula is too deep."""
        found = leaves_of(expression, self._semantics)
        if found.codes:
            shape_steps(found.shape)
        return found


def _filled(shape: str, shapes: tuple[str, ...]) -> str:
    """A shape with other shapes in the place of its leaves."""
    between = shape.split("a")
    return between[0] + "".join(map("".join, zip(shapes, between[1:], strict=True)))


def presence_leaves(shape: str, attributes: tuple[AtomAttributes, ...]) -> tuple[int, ...]:
    """The codes of the leaves that strict semantics adds, by the postfix form and its atoms.

    An attribute that occurs in the text needs a leaf, unless the filter requires it anyway.
    """
    demanded = 0
    for occurring, _ in attributes:
        demanded |= occurring
    for is_needed, (_, required) in zip(needed_atoms(shape), attributes, strict=True):
        if is_needed:
            demanded &= ~required
    return tuple([position * LEAF_KINDS + PRESENT for position in positions_in(demanded)])
