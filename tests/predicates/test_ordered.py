"""Ordered lists of constants, against trying every one."""

import math
import operator

from hypothesis import given
from hypothesis import strategies as st

from tamis.predicates.ordered import OPERATORS, OrderedIndex

TESTS = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


def holds(op, value, constant):
    if math.isnan(value):  # equal to no constant and above all
        return op in {"<>", ">", ">="}
    return TESTS[op](value, constant)


steps = st.lists(
    st.tuples(st.sampled_from(OPERATORS), st.integers(-30, 30), st.booleans()), max_size=200
)


@given(steps, st.lists(st.integers(-35, 35) | st.just(math.nan), min_size=1, max_size=5))
def test_any_history_of_additions_and_removals(history, values):
    index, held, ids = OrderedIndex(), {}, iter(range(1000))
    for op, constant, add in history:
        if add and (op, constant) not in held:
            held[op, constant] = next(ids)
            index.add(op, constant, held[op, constant])
        elif not add and (op, constant) in held:
            index.remove(op, constant)
            del held[op, constant]
        found = [int(i) for part in index.satisfied(values[0]) for i in part]
        assert sorted(found) == sorted(i for (o, c), i in held.items() if holds(o, values[0], c))
    for value in values:
        found = [int(i) for part in index.satisfied(value) for i in part]
        assert sorted(found) == sorted(i for (o, c), i in held.items() if holds(o, value, c))
