"""Ordered lists of constants, against trying every one."""

import operator

from hypothesis import given
from hypothesis import strategies as st

from tamis.kernels.comparisons import OPERATORS
from tamis.predicates.string_index import OrderedStrings

TESTS = {
    "=": operator.eq, "<>": operator.ne, "<": operator.lt,
    "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}  # fmt: skip


constants = st.text("abc", max_size=3)
steps = st.lists(st.tuples(st.sampled_from(OPERATORS), constants, st.booleans()), max_size=200)


@given(steps, st.lists(constants, min_size=1, max_size=5))
def test_any_history_of_additions_and_removals(history, values):
    index, held, ids = OrderedStrings(), {}, iter(range(1000))
    for op, constant, add in history:
        if add and (op, constant) not in held:
            held[op, constant] = next(ids)
            index.add(op, constant, held[op, constant])
        elif not add and (op, constant) in held:
            index.remove(op, constant)
            del held[op, constant]
        found = [int(i) for part in index.satisfied(values[0]) for i in part]
        assert sorted(found) == sorted(i for (o, c), i in held.items() if TESTS[o](values[0], c))
    for value in values:
        found = [int(i) for part in index.satisfied(value) for i in part]
        assert sorted(found) == sorted(i for (o, c), i in held.items() if TESTS[o](value, c))
