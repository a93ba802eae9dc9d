"""Which attributes an event must have for a filter to match it.

There are two reasons. Strict semantics demands every attribute that occurs in the text of the
filter (`Semantics.demanded`). And in every semantics, a test other than IS NULL is not true of a
missing value, so ``a > 1 AND (b < 2 OR b > 5)`` is not true of an event without a or without b.

A set of attributes is a whole number here: bit n stands for the attribute at position n of the
schema, and -1 for all of them, however many. Union and intersection are ``|`` and ``&``.
"""

from collections.abc import Iterable

from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.expression import Expression
from tamis.language.normal_form import normalize
from tamis.language.nulls import needed_attributes
from tamis.names import Path
from tamis.schema import Schema
from tamis.semantics import Semantics

ALL = -1


def attribute_set(paths: Iterable[Path], schema: Schema) -> int:
    """Attributes as a set of bits."""
    found = 0
    for path in paths:
        found |= 1 << schema.positions[path]
    return found


def positions_in(attributes: int) -> list[int]:
    """The positions of the attributes of a set, ascending."""
    return [n for n in range(attributes.bit_length()) if attributes >> n & 1]


def required_attributes(form: Node, schema: Schema) -> int:
    """The attributes without which a normal form is not true; `ALL` for FALSE."""
    match form:
        case ast.And(items):
            found = 0
            for item in items:
                found |= required_attributes(item, schema)
            return found
        case ast.Or(items):
            found = ALL
            for item in items:
                found &= required_attributes(item, schema)
            return found
        case ast.Literal():
            return ALL if form == ast.FALSE else 0
        case ast.IsNull():
            return 0
        case ast.Not(ast.IsNull(operand)):
            return attribute_set(needed_attributes(operand), schema)
        case _:
            return attribute_set(needed_attributes(form), schema)


def required_by_conjuncts(form: Node, schema: Schema) -> int:
    """The attributes that a normal form requires by single tests, its parts with OR left aside.

    Strict semantics adds a presence test for every other attribute. For one that all parts of an OR
    require the test is not needed; it stays because saved rules name tests by their place among the
    leaves of a filter.
    """
    found = 0
    for part in form.items if isinstance(form, ast.And) else (form,):
        if not isinstance(part, ast.Or):
            found |= required_attributes(part, schema)
    return found


def presence_tests(attributes: int, schema: Schema) -> tuple[Node, ...]:
    """``attribute IS NOT NULL`` for each attribute of a set, in the order of the schema."""
    found = [schema.attributes[n] for n in positions_in(attributes)]
    return tuple(ast.Not(ast.IsNull(ast.Attribute(a.path, a.type))) for a in found)


def missing_tests(form: Node, expression: Expression, semantics: Semantics) -> tuple[Node, ...]:
    """The presence tests that strict semantics adds to a normal form, or a part, of a filter.

    Attributes that the form requires anyway (`required_by_conjuncts`) get no test, and FALSE gets
    none at all.
    """
    demanded = semantics.demanded(expression)
    if not demanded:
        return ()
    schema = semantics.schema
    left = sum(1 << n for n in demanded) & ~required_by_conjuncts(form, schema)
    return presence_tests(left, schema)


def matching_form(expression: Expression, semantics: Semantics) -> Node:
    """A normal form that is true of a prepared event exactly when the filter matches it."""
    form = normalize(expression.tree, semantics.logic)
    tests = missing_tests(form, expression, semantics)
    if not tests:
        return form
    parts = form.items if isinstance(form, ast.And) else () if form == ast.TRUE else (form,)
    together = (*parts, *tests)
    return ast.And(together) if len(together) > 1 else together[0]
