"""Formulas in one table: taken, mapped and put together without changing what they say."""

import numpy as np

from tamis.engines.sliced.formula_table import NO_FORMULAS, formula_table, stacked
from tamis.engines.sliced.leaves import Leaves

SHAPES = ["aa|", "aaa|&", "aa&aa&|a|", "aa|aa|&"]


def table(first=0):
    """Formulas 10, 11, ... whose leaves refer to first, first + 1, ..."""
    filters = [
        (10 + n, Leaves(shape, (0,) * shape.count("a"), (None,) * shape.count("a")))
        for n, shape in enumerate(SHAPES)
    ]
    leaves = sum(shape.count("a") for shape in SHAPES)
    return formula_table(filters, np.arange(first, first + leaves, dtype=np.int32))


def formulas(of):
    """Each formula as plain numbers, by its handle."""
    return {
        handle: (of.operands[first:end].tolist(), of.targets[first:end].tolist())
        for handle, first, end in zip(of.handles.tolist(), of.at[:-1], of.at[1:], strict=True)
    }


def test_references_are_those_of_the_leaves():
    made = table(first=100)
    assert made.size == 4
    assert sorted({*made.references().tolist()}) == list(range(100, 114))
    handles, refs = made.uses()
    assert {*zip(handles.tolist(), refs.tolist(), strict=True)} == {
        (handle, ref)
        for handle, first, end in ((10, 100, 102), (11, 102, 105), (12, 105, 110), (13, 110, 114))
        for ref in range(first, end)
    }


def test_formulas_are_taken_in_any_order():
    made = table()
    taken = made.taken(np.array([3, 0, 2]))
    assert taken.handles.tolist() == [13, 10, 12]
    assert formulas(taken) == {h: f for h, f in formulas(made).items() if h != 11}
    assert made.taken(np.empty(0, np.int64)).size == 0


def test_only_references_are_mapped():
    moved = table().mapped(lambda refs: refs + 100)
    assert formulas(moved) == formulas(table(first=100))


def test_tables_are_put_together():
    one, other = table(), table(first=50)
    other = other._replace(handles=other.handles + 10)
    both = stacked([one, NO_FORMULAS, other])
    assert formulas(both) == formulas(one) | formulas(other)
    assert stacked([]) is NO_FORMULAS
    assert stacked([NO_FORMULAS, one]) is one
