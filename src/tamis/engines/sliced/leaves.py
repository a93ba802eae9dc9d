"""A filter as a shape and its leaves: for each predicate a code and a constant.

The code of a leaf is ``attribute * LEAF_KINDS + kind``: which attribute it tests, and how. Kinds 0
to 5 are comparisons, in the order of `tamis.kernels.comparisons`. A predicate of several
attributes, or one that may be true of a missing value, belongs to no attribute: its code is that of
a TEST of the attribute behind the last.

========= ============================ =====================================================
kind      predicate                    constant
========= ============================ =====================================================
EQUAL ... attribute op constant        int (whole numbers, moments, truth as 0 and 1), float, str
ONE_OF    attribute IN (...)           tuple of constants, ascending, at least two
NONE_OF   NOT attribute IN (...)       the same
PRESENT   attribute IS NOT NULL        None
ABSENT    attribute IS NULL            None
TEST      anything else                the predicate
========= ============================ =====================================================

A leaf is true of a missing value only if it is ABSENT, or belongs to no attribute. A constant of an
enumeration is one of its values; a predicate with any other is a TEST.
"""

from typing import Any, Final, NamedTuple

from tamis.engines.sliced.forms import form_of
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
from tamis.names import Path
from tamis.schema import Enumeration, Schema
from tamis.semantics import Semantics
from tamis.types import Kind, Type

__all__ = [
    "ABOVE", "ABSENT", "AT_LEAST", "AT_MOST", "BELOW", "EQUAL", "LEAF_KINDS", "NONE_OF", "ONE_OF",
    "PRESENT", "TEST", "UNEQUAL", "Leaves", "leaf_of", "leaves_of",
]  # fmt: skip

ONE_OF, NONE_OF, PRESENT, ABSENT, TEST = range(len(OPERATORS), len(OPERATORS) + 5)
LEAF_KINDS: Final = 16

_KIND_OF = {op: kind for kind, op in enumerate(OPERATORS)}
_CLASSES = {
    Kind.INT: int, Kind.TIMESTAMP: int, Kind.BOOL: bool, Kind.DOUBLE: float, Kind.STRING: str,
}  # fmt: skip


class Leaves(NamedTuple):
    """A filter that is ready to be held; `forms` says what a shape is."""

    shape: str
    codes: tuple[int, ...]
    constants: tuple[Any, ...]


def leaves_of(expression: Expression, semantics: Semantics) -> Leaves:
    """The leaves of a filter, by its normal form: the oracle of `reading`."""
    form = form_of(expression, semantics)
    leaves = [leaf_of(predicate, semantics.schema) for predicate in form.predicates]
    codes = tuple(code for code, _ in leaves)
    return Leaves(form.shape, codes, tuple(constant for _, constant in leaves))


def leaf_of(predicate: Node, schema: Schema) -> tuple[int, Any]:
    """Code and constant of a canonical predicate."""
    match predicate:
        case ast.Compare(op, ast.Attribute(path, kind), right) if op in _KIND_OF:
            constants = _constants((right,), path, kind, schema)
            if constants:
                return schema.positions[path] * LEAF_KINDS + _KIND_OF[op], constants[0]
        case ast.In(ast.Attribute(path, kind), items):
            constants = _constants(items, path, kind, schema)
            if constants:
                return schema.positions[path] * LEAF_KINDS + ONE_OF, constants
        case ast.Not(ast.In(ast.Attribute(path, kind), items)):
            constants = _constants(items, path, kind, schema)
            if constants:
                return schema.positions[path] * LEAF_KINDS + NONE_OF, constants
        case ast.IsNull(ast.Attribute(path, _)):
            return schema.positions[path] * LEAF_KINDS + ABSENT, None
        case ast.Not(ast.IsNull(ast.Attribute(path, _))):
            return schema.positions[path] * LEAF_KINDS + PRESENT, None
    return _home(predicate, schema) * LEAF_KINDS + TEST, predicate


def _constants(
    items: tuple[Node, ...], path: Path, kind: Type, schema: Schema
) -> tuple[Any, ...] | None:
    """The constants of a predicate, None if one is not among the attribute's values."""
    found = []
    domain = schema.attributes[schema.positions[path]].domain
    allowed = domain.values if isinstance(domain, Enumeration) else None
    wanted = _CLASSES[kind.kind]
    for item in items:
        if not isinstance(item, ast.Literal) or item.type != kind:
            return None
        value = item.value
        if type(value) is not wanted or (allowed is not None and value not in allowed):
            return None
        found.append(int(value) if value is True or value is False else value)
    return tuple(found)


def _home(predicate: Node, schema: Schema) -> int:
    """The attribute with which a predicate is kept, the one behind the last if with none."""
    bare = predicate.operand if isinstance(predicate, ast.Not) else predicate
    if isinstance(bare, ast.IsNull):
        return len(schema)  # of a computed value: it may be true of a missing one
    paths = ast.attributes(bare)
    return schema.positions[next(iter(paths))] if len(paths) == 1 else len(schema)
