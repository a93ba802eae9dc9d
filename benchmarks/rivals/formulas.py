"""Boolean queries with numpy: 64 events per word, filters of one shape side by side.

The atoms of all filters are columns of truth over the events, packed into bits; a negated atom has
its own column, so that for a missing value neither is true. A node is AND or OR over atoms and
nodes below it; all nodes of one height, kind and number of children are computed together.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rivals.base import LeftOut
from tamis.language import ast
from tamis.language.normal_form import normalize
from tamis.language.shape_cache import ShapeCache
from tamis.workloads import Workload

Array = np.ndarray[Any, Any]

WORD = 64
WORDS = 32  # of events at a time
TOGETHER = 256  # nodes at a time: what fits the caches

_COMPARE = {
    "=": pc.equal, "<>": pc.not_equal, "<": pc.less, "<=": pc.less_equal, ">": pc.greater,
    ">=": pc.greater_equal,
}  # fmt: skip


class Group(NamedTuple):
    """Nodes of one kind; their rows follow one another."""

    is_and: bool
    first: int  # row
    children: Array  # rows[child, node]


class Formulas:
    """Formulas in layers; see the module."""

    def __init__(self, source: Workload, filters: pa.ChunkedArray) -> None:
        parse = ShapeCache(source.schema).parse
        self._trees = [normalize(parse(text).tree) for text in filters.to_pylist()]

    def build(self) -> None:
        made = _Layers()
        roots = [made.number(tree) for tree in self._trees]
        self._atoms = list(made.atoms)
        self._groups, row_of = made.groups()
        self._roots = np.array([row_of[root] for root in roots], np.int64)
        self._count = len(made.atoms) + len(made.nodes)

    def count(self, events: pa.Table) -> Array:
        counts = [np.empty(0, np.int64)]
        counts += [_bit_counts(rows[self._roots]) for rows in self._rows(events)]
        return np.concatenate(counts)[: events.num_rows]

    def pairs(self, events: pa.Table) -> tuple[Array, Array]:
        numbers, filters = [np.empty(0, np.int32)], [np.empty(0, np.int32)]
        for part, rows in enumerate(self._rows(events)):
            for start in range(0, len(self._roots), TOGETHER):
                found = rows[self._roots[start : start + TOGETHER]].view(np.uint8).ravel()
                place = np.flatnonzero(np.unpackbits(found, bitorder="little").view(np.bool_))
                filter_ = place // (rows.shape[1] * WORD)
                event = place - filter_ * (rows.shape[1] * WORD) + part * WORDS * WORD
                numbers.append(event.astype(np.int32))
                filters.append((filter_ + start).astype(np.int32))
        return np.concatenate(numbers), np.concatenate(filters)

    def arrays(self) -> list[Array]:
        return [self._roots, *(group.children for group in self._groups)]

    def _rows(self, events: pa.Table) -> Iterator[Array]:
        """rows[atom or node, word], some events at a time."""
        words = -(-events.num_rows // WORD)
        truth = np.zeros((len(self._atoms), words * WORD), np.uint8)
        for n, atom in enumerate(self._atoms):
            truth[n, : events.num_rows] = _truth(atom, events)
        packed = np.packbits(truth, axis=1, bitorder="little").view(np.uint64)
        for start in range(0, words, WORDS):
            some = packed[:, start : start + WORDS]
            rows = np.empty((self._count, some.shape[1]), np.uint64)
            rows[: len(some)] = some
            for group in self._groups:
                _compute(group, rows)
            yield rows


class _Layers:
    """Numbers for atoms and nodes: 0, 1, ... for atoms, -1, -2, ... for nodes."""

    def __init__(self) -> None:
        self.atoms: dict[ast.Node, int] = {}
        self.nodes: dict[tuple[bool, tuple[int, ...]], int] = {}
        self._heights: list[int] = []

    def number(self, tree: ast.Node) -> int:
        if not isinstance(tree, ast.And | ast.Or):
            return self.atoms.setdefault(tree, len(self.atoms))
        children = tuple(sorted(map(self.number, tree.items)))
        key = isinstance(tree, ast.And), children
        known = self.nodes.get(key)
        if known is None:
            known = self.nodes[key] = -1 - len(self.nodes)
            self._heights.append(1 + max(self._height(child) for child in children))
        return known

    def _height(self, number: int) -> int:
        return 0 if number >= 0 else self._heights[-1 - number]

    def groups(self) -> tuple[list[Group], dict[int, int]]:
        """Groups from the lowest up, and the row of each number."""
        kinds: dict[tuple[int, bool, int], list[tuple[int, tuple[int, ...]]]] = {}
        for (is_and, children), number in self.nodes.items():
            kind = self._height(number), is_and, len(children)
            kinds.setdefault(kind, []).append((number, children))
        row_of = {number: number for number in self.atoms.values()}
        for kind in sorted(kinds):
            for number, _ in kinds[kind]:
                row_of[number] = len(row_of)
        groups = []
        for kind in sorted(kinds):
            rows = [[row_of[child] for child in children] for _, children in kinds[kind]]
            first = row_of[kinds[kind][0][0]]
            groups.append(Group(kind[1], first, np.array(rows, np.int64).T.copy()))
        return groups, row_of


def _compute(group: Group, rows: Array) -> None:
    together = np.bitwise_and if group.is_and else np.bitwise_or
    count = group.children.shape[1]
    other = np.empty((min(count, TOGETHER), rows.shape[1]), np.uint64)
    for start in range(0, count, TOGETHER):
        end = min(start + TOGETHER, count)
        out = rows[group.first + start : group.first + end]
        np.take(rows, group.children[0, start:end], axis=0, out=out, mode="clip")
        for child in group.children[1:, start:end]:
            some = other[: end - start]
            np.take(rows, child, axis=0, out=some, mode="clip")
            together(out, some, out=out)


def _bit_counts(rows: Array) -> Array:
    """How many rows have each bit; full adders turn three rows into a sum and a carry."""
    counts = np.zeros(rows.shape[1] * WORD, np.int64)
    weight = 1
    while len(rows):
        carries = [rows[:0]]
        while len(rows) >= 3:
            third = len(rows) // 3
            a, b, c = rows[:third], rows[third : 2 * third], rows[2 * third : 3 * third]
            half = a ^ b
            carries.append((a & b) | (half & c))
            rows = np.concatenate([half ^ c, rows[3 * third :]])
        left = np.ascontiguousarray(rows).view(np.uint8)
        counts += weight * np.unpackbits(left, axis=1, bitorder="little").sum(
            axis=0, dtype=np.int64
        )
        rows = np.concatenate(carries)
        weight *= 2
    return counts


def _truth(atom: ast.Node, events: pa.Table) -> Array:
    """Whether an atom, or a negated one, is true of each event; an unknown result is not."""
    is_negated = isinstance(atom, ast.Not)
    found = _answers(atom.operand if isinstance(atom, ast.Not) else atom, events)
    true = pc.invert(found) if is_negated else found
    return np.asarray(pc.fill_null(true, False))


def _answers(atom: ast.Node, events: pa.Table) -> Any:
    match atom:
        case ast.Literal(bool() as value, _):
            return pa.array(np.full(events.num_rows, value))
        case ast.Compare(op, ast.Attribute() as attribute, ast.Literal(value, _)):
            return _COMPARE[op](events[attribute.path[0]], pa.scalar(value))
        case ast.Call("contains", (ast.Attribute() as attribute, ast.Literal(str() as value, _))):
            return pc.match_substring(events[attribute.path[0]], value)
        case ast.Call("contains", (ast.Literal(str() as value, _), ast.Attribute() as attribute)):
            ends = range(len(value) + 1)
            parts = pa.array(sorted({value[a:b] for a in ends for b in ends}))
            column = events[attribute.path[0]]
            return pc.if_else(column.is_valid(), pc.is_in(column, value_set=parts), None)
        case ast.In(ast.Attribute() as attribute, items):
            values = [item.value for item in items if isinstance(item, ast.Literal)]
            column = events[attribute.path[0]]
            found = pc.is_in(column, value_set=pa.array(values))
            return pc.if_else(column.is_valid(), found, None)
        case _:
            raise LeftOut(f"no column of truth for {type(atom).__name__}")
