"""Filters that are not conjunctions, as steps over references to predicates."""

from collections.abc import Callable, Sequence
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from tamis.engines.sliced.leaves import Leaves
from tamis.engines.sliced.shape_steps import shape_steps

Array = np.ndarray[Any, Any]


class FormulaTable(NamedTuple):
    """The steps of all formulas, one formula after the other; `shape_steps` says what steps are.

    An operand is a reference, or ~register. The last step of a filter leaves its result in
    register 0.
    """

    handles: Array  # int64[filter]
    at: Array  # int64[filter + 1]: its first step
    operands: Array  # int32[step, 3]
    targets: Array  # int16[step]

    @property
    def size(self) -> int:
        """How many filters there are."""
        return len(self.handles)

    def references(self) -> Array:
        """The references of all filters."""
        found: Array = self.operands[self.operands >= 0]
        return found

    def mapped(self, refer: Callable[[Array], Array]) -> "FormulaTable":
        """The same filters with other references."""
        is_reference, operands = self.operands >= 0, self.operands.copy()
        operands[is_reference] = refer(operands[is_reference])
        return self._replace(operands=operands)

    def uses(self) -> tuple[Array, Array]:
        """Handles, and for each of them a reference of its filter."""
        steps, places = np.nonzero(self.operands >= 0)
        return np.repeat(self.handles, np.diff(self.at))[steps], self.operands[steps, places]

    def taken(self, places: Array) -> "FormulaTable":
        """The filters at some places, in that order."""
        sizes = np.diff(self.at)[places]
        at = _starts(sizes)
        steps = np.repeat(self.at[places] - at[:-1], sizes) + np.arange(int(at[-1]))
        return FormulaTable(self.handles[places], at, self.operands[steps], self.targets[steps])


def formula_table(filters: Sequence[tuple[int, Leaves]], refs: Array) -> FormulaTable:
    """Filters with their handles; refs[*] are the references of their leaves, one by one."""
    steps = [shape_steps(leaves.shape) for _, leaves in filters]
    sizes = np.fromiter((len(one.targets) for one in steps), np.int64, len(steps))
    leaves = np.fromiter((len(leaves.codes) for _, leaves in filters), np.int64, len(steps))
    at, total = _starts(sizes), int(sizes.sum())
    every = chain.from_iterable(one.operands for one in steps)
    operands = np.fromiter(every, np.int32, 3 * total)
    is_leaf = operands >= 0
    first_leaf = np.repeat(_starts(leaves)[:-1], 3 * sizes)
    operands[is_leaf] = refs[(first_leaf + operands)[is_leaf]]
    return FormulaTable(
        np.fromiter((handle for handle, _ in filters), np.int64, len(filters)), at,
        operands.reshape(-1, 3),
        np.fromiter(chain.from_iterable(one.targets for one in steps), np.int16, total),
    )  # fmt: skip


def stacked(tables: Sequence[FormulaTable]) -> FormulaTable:
    """The formulas of several tables."""
    tables = [table for table in tables if table.size]
    if len(tables) < 2:
        return tables[0] if tables else NO_FORMULAS
    sizes = np.concatenate([np.diff(table.at) for table in tables])
    handles, _, *steps = (np.concatenate(parts) for parts in zip(*tables, strict=True))
    return FormulaTable(handles, _starts(sizes), *steps)


def _starts(sizes: Array) -> Array:
    starts = np.zeros(len(sizes) + 1, np.int64)
    np.cumsum(sizes, out=starts[1:])
    return starts


NO_FORMULAS = formula_table([], np.empty(0, np.int32))
