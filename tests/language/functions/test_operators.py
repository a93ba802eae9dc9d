"""Arithmetic of arrays computes what that of single values gives, at the ends of each type."""

import itertools
import math

import numpy as np

from cases import each
from function_differences import value_tree
from tamis.language.functions.function import Nulls
from tamis.language.functions.table import FUNCTIONS

WHOLE = [0, 1, -1, 2, -2, 7, -7, 10, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63)]
REAL = [0.0, -0.0, 1.0, -1.0, 0.1, -7.5, 1e308, 5e-324, math.inf, -math.inf, math.nan]


def alike(one, other):
    """Whether two values are the same, or both NaN; the sign of zero counts."""
    return repr(one) == repr(other)


@each("op", ["+", "-", "*", "%", "DIV", "/"])
@each("left, right, some", [("i", "j", WHOLE), ("x", "y", REAL)])
def test_operators_of_arrays(op, left, right, some):
    if op == "DIV" and left == "x":
        return  # of whole numbers only
    call = value_tree(f"{left} {op} {right}")
    function = FUNCTIONS[op]
    compute, kernel = function.meaning(call), function.kernel(call)
    held = float if op == "/" else type(some[0])  # whole numbers are divided as doubles
    pairs = [(held(a), held(b)) for a, b in itertools.product(some, repeat=2)]
    columns = [np.array(column) for column in zip(*pairs, strict=True)]
    with np.errstate(all="ignore"):  # as whoever calls it
        found = kernel(*columns)
    values, present = (
        (found, [True] * len(pairs)) if function.nulls(call) is Nulls.STRICT else found
    )
    for pair, value, is_there in zip(pairs, values.tolist(), list(present), strict=True):
        expected = compute(*pair)
        assert bool(is_there) == (expected is not None), pair
        assert expected is None or alike(value, expected), pair
