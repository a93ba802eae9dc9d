"""Filters without ``now()`` that match whatever a filter with it matches, at any time.

Another broker does not know when an event will be stored here, and is told this filter instead.
"""

from tamis.deep_stack import with_deep_stack
from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.expression import Expression


def timeless(expression: Expression) -> Expression:
    """A filter that covers an expression and does not depend on the time; itself if it does not.

    ``at > now() AND n = 1`` -> ``n = 1``; ``at > now() OR n = 1`` -> ``TRUE``
    """
    if not expression.has_clock:
        return expression
    return Expression(with_deep_stack(_timeless)(expression.tree), expression.schema)


def _timeless(tree: Node) -> Node:
    """AND and OR only get wider when one of their items does; NOT would get narrower."""
    if not ast.has_clock(tree):
        return tree
    if isinstance(tree, ast.And):
        items = tuple(item for item in map(_timeless, tree.items) if item != ast.TRUE)
        if len(items) > 1:
            return ast.And(items)
        return items[0] if items else ast.TRUE
    if isinstance(tree, ast.Or):
        items = tuple(map(_timeless, tree.items))
        return ast.TRUE if ast.TRUE in items else ast.Or(items)
    return ast.TRUE
