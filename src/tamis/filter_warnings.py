"""Warnings about filters that are correct and yet, most likely, a mistake.

A filter that can never match is subscribed like any other (a broker refuses it); whoever wrote it
is told. Filters that people write are few and come first, and those of a bulk are generated: only
the first ones of a matcher are looked at, so that bulks take no longer.
"""

import logging
from typing import TYPE_CHECKING

from tamis.errors import TamisError
from tamis.language import ast
from tamis.language.printer import print_tree

if TYPE_CHECKING:
    from tamis.language.expression import Expression
    from tamis.semantics import Semantics

logger = logging.getLogger("tamis")

CHECKED = 100  # filters of a matcher
LARGEST = 50_000  # bytes of a tree; what is in a larger one was generated
SHOWN = 100  # characters of a filter
MOST_SAID = 10  # warnings of a matcher


class FilterWarnings:
    """What a matcher says about its first filters."""

    def __init__(self, semantics: "Semantics") -> None:
        self.left = CHECKED  # filters that are still looked at
        self._semantics = semantics
        self._said = 0

    def notice(self, expression: "Expression") -> None:
        """Look at a filter; warn if no event can match it."""
        self.left -= 1
        if expression.nbytes > LARGEST or expression.tree == ast.FALSE:
            return
        try:
            reason = why_never(expression, self._semantics)
        except TamisError:  # it is too large to be decided
            return
        if reason is None:
            return
        self._said += 1
        if self._said <= MOST_SAID:
            more = "; there may be more, which are not reported" if self._said == MOST_SAID else ""
            text = print_tree(expression.tree, suffixes=False)
            shown = text if len(text) <= SHOWN else text[: SHOWN - 3] + "..."
            logger.warning("no event can match the filter %s: %s%s", shown, reason, more)


def why_never(expression: "Expression", semantics: "Semantics") -> str | None:
    """Why no event can match a filter; None if one can, or if it is not known.

    Only filters that test each attribute by itself are decided, which takes no search.
    """
    from tamis.predicates.boxes import box_of
    from tamis.predicates.event_space import EventSpace, form_of

    space = EventSpace.of(semantics)
    box = box_of(form_of(expression, semantics), space)
    if box is None or not box.is_empty:
        return None
    null = _null_comparison(expression.tree)
    if null is not None:
        return f"a comparison with NULL is never true; write {null} IS NULL"
    from tamis.relations.reduction import why_never as reason_of

    return reason_of(expression, semantics, space).partition(": ")[2]


def _null_comparison(node: ast.Node) -> str | None:
    """What a filter compares with NULL, as text; None if nothing."""
    match node:
        case ast.Compare(op, left, right) if op != "<=>":
            sides = ast.without_cast(left), ast.without_cast(right)
            for side, other in (sides, sides[::-1]):
                if isinstance(side, ast.Literal) and side.value is None:
                    return print_tree(other, suffixes=False)
    for part in ast.children(node):
        found = _null_comparison(part)
        if found is not None:
            return found
    return None
