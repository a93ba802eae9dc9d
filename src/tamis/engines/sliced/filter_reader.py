"""The leaves of many filters, fast: each atom is normalised once, each structure built once.

A filter that came through the shape cache is a boolean structure and atoms. Since only truth
matters, negation distributes over AND and OR in both logics, so the normal form of the filter is
that of its atoms, or of their negations, put together as the structure says. This needs no tree:

* A *fragment* is what an atom, or its negation, becomes (`fragments`).
* A *template* says which shape the fragments make together, and in which order their leaves come.
  It depends on the structure and on the shapes of the fragments.

The result means what `leaves_of` gives. It may have leaves twice that the normal form has once.
Filters that did not come through the shape cache, and those with an atom that is always or never
true, go the slow way. The limit of normal forms needs no test here: the texts of the shape cache
are far too short for it.
"""

from collections.abc import Callable
from itertools import chain
from operator import itemgetter
from typing import Any, NamedTuple

from tamis.bounded_caches import BoundedCache
from tamis.engines.sliced.formulas import (
    ALWAYS,
    NEVER,
    Formula,
    chain_of,
    of_shape,
    of_structure,
    written,
)
from tamis.engines.sliced.fragments import AtomAttributes, Fragment, Fragments
from tamis.engines.sliced.leaves import LEAF_KINDS, PRESENT, Leaves, leaves_of
from tamis.language.atoms import Atom
from tamis.language.expression import Expression
from tamis.language.shape_cache import ShapedExpression
from tamis.predicates.presence import positions_in
from tamis.semantics import Semantics

MOST_TEMPLATES = 16_000_000  # bytes

GetFragment = Callable[[Atom], Fragment]

_NEW = tuple.__new__  # what the constructor of a named tuple calls, without the detour


class FilterReader:
    """Reads the leaves of filters in one semantics."""

    def __init__(self, semantics: Semantics) -> None:
        self._semantics = semantics
        self._is_strict = semantics.name == "strict"
        self._plain = Fragments(semantics, negated=False).__getitem__
        self._negated = Fragments(semantics, negated=True).__getitem__
        self._getters = FragmentGetters(self._plain, self._negated)
        self._templates = Templates(MOST_TEMPLATES)
        self._presence = PresenceLeaves(MOST_TEMPLATES)

    def leaves(self, expression: Expression) -> Leaves:
        """The leaves of a filter, with the meaning of those of `leaves_of`."""
        if type(expression) is not ShapedExpression:
            return leaves_of(expression, self._semantics)
        structure = expression.structure
        if "!" in structure:
            getters = self._getters[structure]
            found: Any = [get(atom) for get, atom in zip(getters, expression.atoms, strict=True)]
        else:
            found = map(self._plain, expression.atoms)
        shapes, codes, constants, attributes = zip(*found)  # noqa: B905 - fours, strict is slow
        template = self._templates[structure, shapes, 0]
        if template is CONSTANT:
            return leaves_of(expression, self._semantics)
        if self._is_strict:
            presence = self._presence[structure, attributes]
            if presence:
                template = self._templates[structure, shapes, len(presence)]
                codes = (*codes, presence)
                constants = (*constants, (None,) * len(presence))
        shape, pick = template
        if len(codes) < 20:
            leaf_codes, leaf_constants = sum(codes, ()), sum(constants, ())  # for few the fastest
        else:
            leaf_codes = tuple(chain.from_iterable(codes))
            leaf_constants = tuple(chain.from_iterable(constants))
        if pick is not None:
            leaf_codes, leaf_constants = pick(leaf_codes), pick(leaf_constants)
        return _NEW(Leaves, (shape, leaf_codes, leaf_constants))


class FragmentGetters(BoundedCache[str, tuple[GetFragment, ...]]):
    """How the fragment of each atom of a structure is found: its own, or that of its negation."""

    def __init__(self, plain: GetFragment, negated: GetFragment) -> None:
        super().__init__(MOST_TEMPLATES)
        self._plain, self._negated = plain, negated

    def make(self, structure: str) -> tuple[GetFragment, ...]:
        _, signs = of_structure(structure)
        return tuple([self._plain if positive else self._negated for positive in signs])


# --- strict semantics


class PresenceLeaves(BoundedCache[tuple[str, tuple[AtomAttributes, ...]], tuple[int, ...]]):
    """The codes of the leaves that strict semantics adds, by structure and attributes of atoms.

    An attribute that occurs in the text needs a leaf, unless the filter requires it anyway.
    """

    def make(self, key: tuple[str, tuple[AtomAttributes, ...]]) -> tuple[int, ...]:
        structure, attributes = key
        formula, _ = of_structure(structure)
        demanded = 0
        for occurring, _ in attributes:
            demanded |= occurring
        missing = demanded & ~_required(formula, attributes)
        return tuple([position * LEAF_KINDS + PRESENT for position in positions_in(missing)])


def _required(formula: Formula, attributes: tuple[AtomAttributes, ...]) -> int:
    """As `required_by_conjuncts`, for a formula over atoms."""
    if isinstance(formula, int):
        return attributes[formula][1]
    found = 0
    for item in formula.items if formula.sign == "&" else ():
        if isinstance(item, int):
            found |= attributes[item][1]
    return found


# --- templates


class Template(NamedTuple):
    """How fragments are put together."""

    shape: str
    pick: Callable[[tuple[Any, ...]], tuple[Any, ...]] | None  # brings leaves into order


CONSTANT = Template("", None)  # where a fragment is always or never true


class Templates(BoundedCache[tuple[str, tuple[str, ...], int], Template]):
    """Templates by structure, shapes of the fragments, and number of presence leaves."""

    def make(self, key: tuple[str, tuple[str, ...], int]) -> Template:
        return template_of(*key)

    def size(self, key: tuple[str, tuple[str, ...], int], template: Template) -> int:
        # `pick` has the numbers of the leaves.
        return super().size(key, template) + 50 * len(template.shape)


def template_of(structure: str, shapes: tuple[str, ...], presence: int) -> Template:
    """The template of a structure; presence leaves come after the fragments and must hold, too."""
    if ALWAYS in shapes or NEVER in shapes:
        return CONSTANT
    fragments: list[Formula] = []
    leaves = 0
    for shape in shapes:
        fragments.append(of_shape(shape, leaves))
        leaves += shape.count("a")

    def filled(part: Formula) -> Formula:
        if isinstance(part, int):
            return fragments[part]
        return chain_of(part.sign, map(filled, part.items))

    formula, _ = of_structure(structure)
    whole = filled(formula)
    if presence:
        whole = chain_of("&", [whole, *range(leaves, leaves + presence)])
    together, order = written(whole)
    in_order = order == tuple(range(len(order)))
    return Template(together, None if in_order else itemgetter(*order))
