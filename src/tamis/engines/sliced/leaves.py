"""A filter as a shape and its leaves: for each predicate a code and a constant.

The code of a leaf is ``attribute * LEAF_KINDS + kind``: which attribute of the schema it tests, and
how. Kinds 0 to 5 are comparisons, in the order of `tamis.kernels.comparisons`. A predicate that no
single attribute decides (`deciding_attribute`) belongs to no attribute: its code is that of a TEST
of the position after the last attribute.

========= ============================ =====================================================
kind      predicate                    constant
========= ============================ =====================================================
EQUAL ... attribute op constant        int (whole numbers, moments, truth as 0 and 1), float,
                                       Decimal, str
ONE_OF    attribute IN (...)           tuple of constants, ascending, at least two
NONE_OF   NOT attribute IN (...)       the same
HAS       one of the elements is one   tuple of constants, ascending
HAS_NOT   none of them is, nor a null  the same
PRESENT   attribute IS NOT NULL        None
ABSENT    attribute IS NULL            None
TEST      anything else                the predicate
========= ============================ =====================================================

A leaf is true of a missing value only if it is ABSENT, or belongs to no attribute. A constant of an
enumeration is one of its values; a predicate with any other constant is a TEST.
"""

from typing import Any, Final, NamedTuple

from tamis.engines.sliced.formulas import of_normal_form
from tamis.kernels.comparisons import (
    ABOVE,
    AT_LEAST,
    AT_MOST,
    BELOW,
    EQUAL,
    OPERATORS,
    UNEQUAL,
)
from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.expression import Expression
from tamis.predicates.classification import (
    Comparison,
    ElementTest,
    Membership,
    Presence,
    classify,
    deciding_attribute,
)
from tamis.predicates.computed_values import elements_of, term_of
from tamis.predicates.keys import constant_key
from tamis.predicates.presence import matching_form
from tamis.schema import Enumeration, Schema
from tamis.semantics import Semantics
from tamis.types import Kind

__all__ = [
    "ABOVE", "ABSENT", "AT_LEAST", "AT_MOST", "BELOW", "EQUAL", "HAS", "HAS_NOT", "LEAF_KINDS",
    "NONE_OF", "ONE_OF", "PRESENT", "TEST", "UNEQUAL", "Leaves", "leaf_of", "leaves_of",
    "term_of_leaf",
]  # fmt: skip

ONE_OF, NONE_OF, PRESENT, ABSENT, TEST, HAS, HAS_NOT = range(len(OPERATORS), len(OPERATORS) + 7)
LEAF_KINDS: Final = 16  # a power of two, with room for kinds to come

_KIND_OF = {op: kind for kind, op in enumerate(OPERATORS)}


class Leaves(NamedTuple):
    """A filter that is ready to be compiled; `formulas` says what a shape is."""

    shape: str
    codes: tuple[int, ...]
    constants: tuple[Any, ...]


def leaves_of(expression: Expression, semantics: Semantics) -> Leaves:
    """The leaves of a filter, by its normal form: the oracle of `filter_reader`."""
    shape, predicates = of_normal_form(matching_form(expression, semantics))
    leaves = [leaf_of(predicate, semantics.schema) for predicate in predicates]
    codes = tuple(code for code, _ in leaves)
    return Leaves(shape, codes, tuple(constant for _, constant in leaves))


def leaf_of(predicate: Node, schema: Schema) -> tuple[int, Any]:
    """Code and constant of a canonical predicate."""
    match classify(predicate):
        case Comparison(ast.Attribute(path, _), op, constant):
            position = schema.positions[path]
            if _are_values((constant,), position, schema):
                return position * LEAF_KINDS + _KIND_OF[op], _plain(constant)
        case Membership(ast.Attribute(path, _), constants, negated):
            position = schema.positions[path]
            if _are_values(constants, position, schema):
                kind = NONE_OF if negated else ONE_OF
                return position * LEAF_KINDS + kind, tuple(map(_plain, constants))
        case ElementTest(ast.Attribute(path, _), constants, negated):
            kind = HAS_NOT if negated else HAS
            return schema.positions[path] * LEAF_KINDS + kind, tuple(map(_plain, constants))
        case Presence(ast.Attribute(path, _), present):
            kind = PRESENT if present else ABSENT
            return schema.positions[path] * LEAF_KINDS + kind, None
    decided_by = deciding_attribute(predicate)
    position = len(schema) if decided_by is None else schema.positions[decided_by]
    return position * LEAF_KINDS + TEST, predicate


def term_of_leaf(code: int, constant: Any, schema: Schema) -> Node | None:
    """The term that a leaf tests, None if it tests an attribute as it is."""
    position, kind = divmod(code, LEAF_KINDS)
    if kind in {HAS, HAS_NOT}:
        attribute = schema.attributes[position]
        return elements_of(ast.Attribute(attribute.path, attribute.type))
    return term_of(constant) if kind == TEST else None


def _are_values(constants: tuple[Any, ...], position: int, schema: Schema) -> bool:
    """Whether all constants are among the values that an attribute can have, and have keys."""
    attribute = schema.attributes[position]
    if attribute.type.kind is Kind.DECIMAL:
        return all(constant_key(constant, attribute.type) is not None for constant in constants)
    domain = attribute.domain
    return not isinstance(domain, Enumeration) or all(c in domain.values for c in constants)


def _plain(constant: Any) -> Any:
    return int(constant) if isinstance(constant, bool) else constant
