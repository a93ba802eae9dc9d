"""The values of terms for many events at once: each operation is done for a whole column.

A function with a kernel (`language.functions`) is called once for all events. Others are called
once for each distinct combination of the strings they are given, or event by event.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.calendar import DAY, moments_of
from tamis.deep_stack import with_deep_stack
from tamis.events.event_reader import Row
from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.evaluation import compile_value
from tamis.language.functions.decimal_kernels import doubles, narrowed, rescaled
from tamis.language.functions.function import Nulls
from tamis.language.functions.table import FUNCTIONS
from tamis.predicates.decimal_columns import column_numbers, number_keys
from tamis.predicates.event_batches import Batch, Column
from tamis.predicates.keys import double_keys, key_doubles, scaled, unscaled
from tamis.schema import Enumeration
from tamis.types import BOOL, DATE, DAYS, DOUBLE, DURATION, INT32, STRING, TIMESTAMP, Kind, Type

Array = np.ndarray[Any, Any]


class Vector(NamedTuple):
    """A value for each event, or one for all; what `values` has where it is missing is anything."""

    present: Array  # bool[event]
    values: Array  # int64, float64, bool; codes of texts; numbers of decimals (`decimal_kernels`)
    texts: list[str] | None = None  # the strings of the codes


class _NoColumn(Exception):
    """Something that is not computed by columns."""


_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": np.equal, "<>": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater,
    ">=": np.greater_equal,
}  # fmt: skip


class TermColumns:
    """The columns of terms over one batch; what terms have in common is computed once."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self._schema = batch.schema
        self._known: dict[Node, Vector] = {}

    @with_deep_stack
    def column(self, term: Node) -> Column:
        """The column of a term."""
        found = self.vector(term)
        present = np.broadcast_to(found.present, self._batch.size).astype(np.uint8)
        values = np.broadcast_to(found.values, self._batch.size)
        if found.texts is not None:
            codes = np.where(present, values, 0).astype(np.int64)
            return Column(present, codes, pa.array(found.texts, pa.large_string()))
        if term.type == DOUBLE:
            values = np.where(present, values, 0.0)
            return Column(present, double_keys(values), None, values)
        if term.type.kind is Kind.DECIMAL:
            numbers = np.where(present, values, 0)
            return Column(present, number_keys(numbers, term.type), None)
        return Column(present, np.where(present, values, 0).astype(np.int64), None)

    def vector(self, node: Node) -> Vector:
        """The values of a node."""
        known = self._known.get(node)
        if known is None:
            try:
                known = self._computed(node)
            except _NoColumn:
                known = self._by_rows(node)
            self._known[node] = known
        return known

    # --- by columns

    def _computed(self, node: Node) -> Vector:
        match node:
            case ast.Literal(value, of):
                return _constant(value, of)
            case ast.Attribute(path, _):
                return self._attribute(self._schema.positions[path])
            case ast.Cast(operand, wanted):
                return self._converted(self.vector(operand), operand.type, wanted)
            case ast.Call():
                return self._call(node)
            case ast.Compare(op, left, right) if op in _COMPARE:
                return self._comparison(op, left, right)
            case ast.And(items):
                return self._chain(items, decisive=False)
            case ast.Or(items):
                return self._chain(items, decisive=True)
            case ast.Not(operand):
                inner = self.vector(operand)
                return Vector(inner.present, ~inner.values)
            case ast.IsNull(operand):
                inner = self.vector(operand)
                return Vector(np.array(True), ~inner.present)
            case ast.IsTruth(operand, truth):
                inner = self.vector(operand)
                return Vector(np.array(True), inner.present & (inner.values == truth))
            case _:
                raise _NoColumn

    def _attribute(self, position: int) -> Vector:
        column, attribute = self._batch.columns[position], self._schema.attributes[position]
        present = column.present.view(np.bool_)
        if isinstance(attribute.domain, Enumeration):
            return Vector(present, column.keys, sorted(attribute.domain.values))
        if column.distinct is not None:
            return Vector(present, column.keys, column.distinct.to_pylist() or [""])
        if attribute.type == DOUBLE:
            values = key_doubles(column.keys) if column.doubles is None else column.doubles
            return Vector(present, values)
        if attribute.type == BOOL:
            return Vector(present, column.keys.astype(np.bool_))
        if column.decimals is not None:
            return Vector(present, column_numbers(column.decimals))
        return Vector(present, column.keys)

    @staticmethod
    def _converted(inner: Vector, source: Type, wanted: Type) -> Vector:
        if source == wanted or source.kind is Kind.NULL:
            return inner if source == wanted else _constant(None, wanted)
        if source.is_integer and wanted == DOUBLE:
            return Vector(inner.present, inner.values.astype(np.float64))
        if wanted.kind is Kind.DECIMAL:
            return Vector(inner.present, rescaled(inner.values, source.scale, wanted.scale))
        if source.kind is Kind.DECIMAL and wanted == DOUBLE:
            return Vector(inner.present, doubles(inner.values, source.scale))
        if source.is_integer and wanted.is_integer:
            if wanted != INT32:
                return inner
            return Vector(inner.present, inner.values.astype(np.int32).astype(np.int64))
        if source == TIMESTAMP and wanted == DATE:
            return Vector(inner.present, inner.values // DAY)
        if source == DATE and wanted == TIMESTAMP:
            return Vector(inner.present, moments_of(inner.values))
        if source == DAYS and wanted == DURATION:
            return inner
        raise _NoColumn

    def _call(self, node: ast.Call) -> Vector:
        entry = FUNCTIONS[node.name]
        nulls, kernel = entry.nulls(node), entry.kernel(node)
        if kernel is None:
            return self._by_texts(node)
        arguments = [self.vector(argument) for argument in node.arguments]
        if any(
            vector.texts is not None and not isinstance(argument, ast.Literal)
            for vector, argument in zip(arguments, node.arguments, strict=True)
        ):  # constants are known to the kernel
            raise _NoColumn
        with np.errstate(all="ignore"):
            if nulls is Nulls.OWN:
                values, present = kernel(*((a.values, a.present) for a in arguments))
                return Vector(np.asarray(present), np.asarray(values))
            found = kernel(*(a.values for a in arguments))
        present = _all_present(arguments)
        if isinstance(found, tuple):
            found, also = found
            present = present & also
        return Vector(present, np.asarray(found))

    def _comparison(self, op: str, left: Node, right: Node) -> Vector:
        if left.type != right.type or left.type.kind is Kind.NULL:
            raise _NoColumn
        a, b = self.vector(left), self.vector(right)
        present = a.present & b.present
        if a.texts is not None and b.texts is not None:
            order = {text: place for place, text in enumerate(sorted({*a.texts, *b.texts}))}
            x, y = (np.array([order[t] for t in v.texts or ()])[v.values] for v in (a, b))
            return Vector(present, _COMPARE[op](x, y))
        return Vector(present, _COMPARE[op](_ordered(a, left.type), _ordered(b, right.type)))

    def _chain(self, items: Sequence[Node], *, decisive: bool) -> Vector:
        """AND or OR: decided by one part that is false, or true; unknown if a part is."""
        decided, unknown = np.array(False), np.array(False)
        for item in items:
            part = self.vector(item)
            decided = decided | (part.present & (part.values == decisive))
            unknown = unknown | ~part.present
        return Vector(decided | ~unknown, decided if decisive else ~decided)

    # --- one by one

    def _by_texts(self, node: ast.Call) -> Vector:
        """A function called once for each distinct combination of its arguments."""
        arguments = [self.vector(argument) for argument in node.arguments]
        lists = [
            _listed(vector, argument.type)
            for vector, argument in zip(arguments, node.arguments, strict=True)
        ]
        sizes = [len(values) for _, values in lists]
        room = int(np.prod([float(size) for size in sizes])) if sizes else 1
        if room >= 2**62:
            raise _NoColumn
        codes = np.zeros(self._batch.size, np.int64)
        for (own, _), size in zip(lists, sizes, strict=True):
            codes = codes * size + own
        distinct, places = np.unique(codes, return_inverse=True)
        entry = FUNCTIONS[node.name]
        function, nulls = entry.meaning(node), entry.nulls(node)
        found: list[Any] = []
        for code in distinct.tolist():
            values: list[Any] = []
            rest = code
            for (_, known), size in zip(reversed(lists), reversed(sizes), strict=True):
                rest, place = divmod(rest, size)
                values.append(known[place])
            values.reverse()
            is_null = nulls is not Nulls.OWN and None in values
            found.append(None if is_null else function(*values))
        return _spread(found, places.reshape(-1), node.type)

    def _by_rows(self, node: Node) -> Vector:
        """Any node, computed for each distinct combination of its strings, or for each event."""
        paths = sorted(ast.attributes(node))
        compute = compile_value(node, self._schema)
        columns = [self._attribute(self._schema.positions[path]) for path in paths]
        places = [self._schema.positions[path] for path in paths]
        row: list[Any] = [None] * len(self._schema)

        def value(values: Sequence[Any]) -> Any:
            for place, one in zip(places, values, strict=True):
                row[place] = one
            return compute(row)

        types = [self._schema.attributes[place].type for place in places]
        rows: list[Row] = list(zip(*map(_objects, columns, types), strict=True))
        if not columns:
            return _spread([compute(row)], np.zeros(self._batch.size, np.int64), node.type)
        known: dict[Row, int] = {}
        found: list[Any] = []
        at = np.empty(len(rows), np.int64)
        few = all(column.texts is not None for column in columns)
        for number, one in enumerate(rows):
            place = known.get(one) if few else None
            if place is None:
                place = len(found)
                found.append(value(one))
                if few:
                    known[one] = place
            at[number] = place
        return _spread(found, at, node.type)


def _constant(value: Any, of: Type) -> Vector:
    there = np.array(value is not None)
    if of == STRING:
        return Vector(there, np.array(0), ["" if value is None else value])
    if of.kind is Kind.DECIMAL:
        number = 0 if value is None else unscaled(value, of.scale)
        return Vector(there, narrowed(np.array(number, object)))
    kind = np.float64 if of == DOUBLE else np.bool_ if of == BOOL else np.int64
    return Vector(there, np.array(value or 0, kind))


def _all_present(vectors: Sequence[Vector]) -> Array:
    present = np.array(True)
    for vector in vectors:
        present = present & vector.present
    return present


def _ordered(vector: Vector, of: Type) -> Array:
    """Numbers in the order of the values."""
    if of != DOUBLE:
        return vector.values
    return double_keys(np.atleast_1d(vector.values))


def _listed(vector: Vector, of: Type) -> tuple[Array, list[Any]]:
    """Codes, and the values that they stand for, the last one for a missing value."""
    if vector.texts is not None:
        values: list[Any] = [*vector.texts, None]
        return np.where(vector.present, vector.values, len(values) - 1), values
    if vector.values.dtype == np.bool_:
        return np.where(vector.present, vector.values.astype(np.int64), 2), [False, True, None]
    if vector.values.ndim == 0:
        one = Vector(np.atleast_1d(vector.present), np.atleast_1d(vector.values))
        return np.array(0), _objects(one, of)
    raise _NoColumn


def _objects(vector: Vector, of: Type) -> list[Any]:
    """The values as Python has them, None where they are missing."""
    values: list[Any] = vector.values.tolist()
    if vector.texts is not None:
        values = [vector.texts[code] for code in values]
    if of.kind is Kind.DECIMAL:
        values = scaled(values, of.scale)
    if vector.present.all():
        return values
    pairs = zip(values, vector.present.tolist(), strict=True)
    return [value if there else None for value, there in pairs]


def _spread(found: list[Any], places: Array, of: Type) -> Vector:
    """The vector in which event e has the value found[places[e]]."""
    there = np.array([value is not None for value in found], np.bool_)
    if of == STRING:
        texts: dict[str, int] = {"": 0}
        codes = [0 if value is None else texts.setdefault(value, len(texts)) for value in found]
        return Vector(there[places], np.array(codes, np.int64)[places], list(texts))
    if of.kind is Kind.DECIMAL:
        numbers = np.empty(len(found), object)
        numbers[:] = [0 if value is None else unscaled(value, of.scale) for value in found]
        return Vector(there[places], narrowed(numbers)[places])
    kind = np.float64 if of == DOUBLE else np.bool_ if of == BOOL else np.int64
    values: Array = np.array([value if value is not None else 0 for value in found], kind)
    return Vector(there[places], values[places])
