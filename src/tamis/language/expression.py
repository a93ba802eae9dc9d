"""An expression: a filter that was parsed and checked, the result of `tamis.parse`."""

import functools
from collections.abc import Mapping
from typing import Any

from tamis.deep_stack import with_deep_stack
from tamis.errors import LimitError
from tamis.language import ast
from tamis.language.lost_escapes import warn_of_lost_escapes
from tamis.language.parameters import read_with
from tamis.language.parser import parse_tree
from tamis.language.printer import print_tree
from tamis.names import Path
from tamis.schema import Schema, as_schema

MATCHES_ALL = "TRUE"  # the filter that every event matches


class Expression:
    """A filter over one schema. It prints as text, and equals an expression of the same structure.

    >>> from tamis import Schema, parse
    >>> schema = Schema({"price": "double", "company": "string"})
    >>> expression = parse("price<10 and not company='IBM'", schema)
    >>> print(expression)
    price < 10 AND NOT company = 'IBM'
    >>> expression == parse("price < 10 AND NOT (company = 'IBM')", schema)
    True
    """

    __slots__ = ("__dict__", "_tree", "schema")

    def __init__(self, tree: ast.Node, schema: Schema) -> None:
        self._tree = tree
        self.schema = schema

    @property
    def tree(self) -> ast.Node:
        """The typed tree."""
        return self._tree

    @functools.cached_property
    def attributes(self) -> frozenset[Path]:
        """The attributes that occur in the text."""
        return with_deep_stack(ast.attributes)(self.tree)

    @functools.cached_property
    def has_clock(self) -> bool:
        """Whether it depends on when an event arrives: ``now()`` or ``current_date()``."""
        return with_deep_stack(ast.has_clock)(self.tree)

    @property
    def nbytes(self) -> int:
        """About how much memory the tree takes."""
        return self.tree.nbytes

    @with_deep_stack
    def __str__(self) -> str:
        return print_tree(self.tree)

    def __repr__(self) -> str:
        return f"Expression({str(self)!r})"

    @with_deep_stack
    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Expression):
            return NotImplemented
        return self.tree == other.tree and self.schema == other.schema

    @with_deep_stack
    def __hash__(self) -> int:
        return hash(self.tree)

    def __reduce__(self) -> tuple[Any, ...]:
        return Expression, (self.tree, self.schema)


def parse(
    text: str, schema: Schema | Mapping[str, str] | Any, parameters: Mapping[str, Any] | None = None
) -> Expression:
    """Read a filter over a schema.

    `parameters` are the values of its parameters: ``{"limit": 10}`` for ``price < :limit``.

    Raises `ParseError`, `TypeMismatch` or `LimitError`, each with the place in the text, what was
    expected there and, if there is one, a suggestion.
    """
    known = as_schema(schema)
    return read_with(lambda filled: parse_with(filled, known), text, parameters)


def parse_with(text: str, schema: Schema) -> Expression:
    """`parse`, for a schema that is already a `Schema`."""
    try:
        expression = Expression(with_deep_stack(parse_tree)(text, schema), schema)
    except RecursionError:
        raise LimitError(
            "the filter is nested too deeply for Python's stack", text, 0, 0,
            "raise sys.setrecursionlimit",
        ) from None  # fmt: skip
    warn_of_lost_escapes(text)
    return expression
