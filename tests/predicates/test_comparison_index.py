"""Comparisons by lists and tables, against trying every one."""

import math
import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from strategies import DOUBLES, INTS
from tamis import Schema
from tamis.kernels.comparisons import OPERATORS
from tamis.predicates import comparison_index
from tamis.predicates.comparison_index import ComparisonIndex
from tamis.predicates.keys import Keys, double_keys

TESTS = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def holds(op, value, constant):
    if isinstance(value, float) and math.isnan(value):  # equal to no constant and above all
        return op in {"<>", ">", ">="}
    return TESTS[op](value, constant)


POOLS = {
    "int": st.sampled_from(INTS) | st.integers(-30, 30),
    "double": st.sampled_from([v for v in DOUBLES if math.isfinite(v)]) | st.integers(-9, 9),
    "int(-30, 30)": st.integers(-31, 31),
    "enum('c', 'a', 'b')": st.sampled_from("abc"),
    "bool": st.booleans(),
}


@pytest.mark.long
@pytest.mark.parametrize("young", [0, 3, 1000])
@pytest.mark.parametrize("kind", POOLS)
@given(data=st.data())
def test_any_history_of_additions_and_removals(kind, young, data):
    schema = Schema({"other": "string", "v": kind})
    keys = Keys(schema)
    index, held, ids = ComparisonIndex(schema, keys), {}, iter(range(1000))
    history = st.lists(st.tuples(st.sampled_from(OPERATORS), POOLS[kind], st.booleans()))
    values = data.draw(st.lists(POOLS[kind], min_size=1, max_size=5))
    if kind == "double":
        values += [math.nan, math.inf, -math.inf, -0.0]
    if kind == "int(-30, 30)":
        values = [max(-30, min(30, value)) for value in values]
    for op, drawn, add in data.draw(history):
        constant = float(drawn) if kind == "double" else drawn
        if add and (op, constant) not in held:
            held[op, constant] = next(ids)
            index.add(1, op, constant, held[op, constant])
        elif not add and (op, constant) in held:
            del held[op, constant]
            index.remove(1, op, constant)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(comparison_index, "MOST_YOUNG", young)
            check(index, keys, held, values[0])
    for value in values:
        check(index, keys, held, value)
    assert index.satisfied(*keys.row(("x", None))).tolist() == []


def check(index, keys, held, value):
    found = index.satisfied(*keys.row((None, value))).tolist()
    assert sorted(found) == sorted(i for (op, c), i in held.items() if holds(op, value, c))


@given(st.lists(st.floats(), min_size=2, max_size=2))
def test_the_keys_of_doubles_are_in_their_order(pair):
    a, b = double_keys(np.array(pair)).tolist()
    x, y = pair
    if math.isnan(x) or math.isnan(y):
        assert (a < b) == (math.isnan(y) and not math.isnan(x))
    else:
        assert (a < b, a == b) == (x < y, x == y)


def test_free_strings_have_no_keys():
    keys = Keys(Schema({"s": "string", "side": "enum('buy', 'sell')", "at": "timestamp"}))
    assert [keys.has(n) for n in range(3)] == [False, True, True]
