"""Filters as conjunctions, for the engines that hold nothing else.

Counting, the matching tree and the tables of a database hold conjunctions of predicates. A filter
reaches them as its disjuncts, which share its id: it matches when one of them does.
"""

from tamis.errors import LimitError
from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.expression import Expression
from tamis.language.normal_form import normalize
from tamis.predicates.presence import missing_tests
from tamis.semantics import Semantics

MAX_DISJUNCTS = 1000

# The predicates of a conjunction, all of which must be true; without any it always is.
Conjunction = frozenset[Node]


def conjunctions(expression: Expression, semantics: Semantics) -> tuple[Conjunction, ...]:
    """The disjuncts of a filter, such that an event matches it iff all of one of them is true.

    Strict semantics demands every attribute of the text, so each disjunct tests the presence of
    those that its predicates do not require.
    """
    form = normalize(expression.tree, semantics.logic)
    found = dict.fromkeys(_disjuncts(form, expression))
    if not semantics.demanded(expression):
        return tuple(found)
    return tuple(
        conjunction.union(missing_tests(ast.And(tuple(conjunction)), expression, semantics))
        for conjunction in found
    )


def _disjuncts(form: Node, expression: Expression) -> list[Conjunction]:
    match form:
        case ast.Literal(value, _):
            return [frozenset()] if value is True else []
        case ast.Or(items):
            return [c for item in items for c in _disjuncts(item, expression)]
        case ast.And(items) if not any(isinstance(item, ast.And | ast.Or) for item in items):
            return [frozenset(items)]
        case ast.And(items):
            product: list[Conjunction] = [frozenset()]
            for item in items:
                factors = _disjuncts(item, expression)
                if len(product) * len(factors) > MAX_DISJUNCTS:
                    raise LimitError(
                        f"the filter has more than {MAX_DISJUNCTS:,} disjuncts",
                        str(expression), 0, None,
                        "the engine holds conjunctions only; choose one that takes any filter",
                    )  # fmt: skip
                product = list(dict.fromkeys(a | b for a in product for b in factors))
            return product
        case _:
            return [frozenset({form})]
