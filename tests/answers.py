"""What filters say and expressions compute, for the tests of evaluation."""

import math

from strategies import SCHEMA
from tamis import parse
from tamis.language.evaluation import Logic, compile_tree, compile_value

T, F, N = True, False, None
NAN, INF = math.nan, math.inf
MIN, MAX = -(2**63), 2**63 - 1


def answer(text, values=None, logic=Logic.KLEENE):
    """What a filter says of an event with these attributes and no others."""
    values = values or {}
    return compile_tree(parse(text, SCHEMA).tree, SCHEMA, logic)([values.get(n) for n in SCHEMA])


def value(text, values=None):
    """The value of an expression, as `expression IS NULL` sees it."""
    values = values or {}
    node = parse(f"({text}) IS NULL", SCHEMA).tree.operand
    return compile_value(node, SCHEMA)([values.get(n) for n in SCHEMA])
