"""The values of terms for many events at once: each operation is done for a whole column.

A function with a kernel (`language.functions`) is called once for all events. Others are called
once for each distinct combination of the strings they are given, or event by event.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from itertools import repeat
from typing import Any

import numpy as np

from tamis.calendar import DAY, moments_of
from tamis.deep_stack import with_deep_stack
from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.evaluation import compile_value
from tamis.language.functions.decimal_kernels import doubles, rescaled
from tamis.language.functions.function import Nulls
from tamis.language.functions.table import FUNCTIONS
from tamis.predicates import nested_vectors as nested
from tamis.predicates.event_batches import Batch, Column
from tamis.predicates.vectors import (
    NoColumn,
    Vector,
    column_of,
    comparable,
    constant,
    dtype_of,
    objects_of,
    spread,
    taken,
    vector_of,
)
from tamis.schema import Schema
from tamis.types import BOOL, DATE, DAYS, DOUBLE, DURATION, INT32, TIMESTAMP, Kind, Type

Array = np.ndarray[Any, Any]

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": np.equal, "<>": np.not_equal, "<": np.less, "<=": np.less_equal, ">": np.greater,
    ">=": np.greater_equal,
}  # fmt: skip

# Functions of arrays and maps that are computed by columns.
_NESTED = frozenset(
    {"size", "array_size", "[]", "element_at", "map_keys", "map_values", "map_contains_key",
     "array_contains", "arrays_overlap", "exists", "forall"}
)  # fmt: skip


class TermColumns:
    """The columns of terms over one batch; what terms have in common is computed once."""

    def __init__(self, batch: Batch) -> None:
        self._batch = batch
        self.schema: Schema = batch.schema
        self.size = batch.size
        self._known: dict[Node, Vector] = {}
        self._map_keys: dict[Node, nested.MapKeys] = {}
        self._lists: dict[Node, tuple[Array, list[Any]]] = {}

    @with_deep_stack
    def column(self, term: Node) -> Column:
        """The column of a term."""
        if isinstance(term, ast.Elements):
            return self._elements(term)
        return column_of(self.vector(term), term.type, self.size)

    def _elements(self, term: ast.Elements) -> Column:
        """The column of the elements of arrays; an array with a null counts as a missing one."""
        try:
            array = self.vector(term.operand)
        except NoColumn:
            return self._listed_elements(term)
        inner = array.parts[0]
        part = column_of(inner, term.type, len(inner.values))
        present = nested.without_nulls(array).astype(np.uint8)
        keys = np.zeros(self.size, np.int64)
        return Column(present, keys, None, offsets=nested.offsets_of(array), parts=(part,))

    def vector(self, node: Node) -> Vector:
        """The values of a node."""
        known = self._known.get(node)
        if known is None:
            try:
                known = self._computed(node)
            except NoColumn:
                if node.type.is_nested:
                    raise
                known = self._by_rows(node)
            self._known[node] = known
        return known

    # --- by columns

    def _computed(self, node: Node) -> Vector:
        match node:
            case ast.Literal(value, of):
                return constant(value, of)
            case ast.Attribute(path, _):
                return self._attribute(self.schema.positions[path])
            case ast.Cast(operand, wanted):
                return self._converted(self.vector(operand), operand.type, wanted)
            case ast.Call(name) if name in _NESTED:
                return self._nested(node)
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
                raise NoColumn

    def _attribute(self, position: int) -> Vector:
        return vector_of(self._batch.columns[position], self.schema.attributes[position])

    @staticmethod
    def _converted(inner: Vector, source: Type, wanted: Type) -> Vector:
        if source == wanted or source.kind is Kind.NULL:
            return inner if source == wanted else constant(None, wanted)
        if source.element is not None and wanted.element is not None:
            part = TermColumns._converted(inner.parts[0], source.element, wanted.element)
            return inner._replace(parts=(part,))
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
        raise NoColumn

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
            raise NoColumn
        with np.errstate(all="ignore"):
            if nulls.are_given:
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
            raise NoColumn
        a, b = self.vector(left), self.vector(right)
        return Vector(a.present & b.present, _COMPARE[op](*comparable(a, b, left.type)))

    def _chain(self, items: Sequence[Node], *, decisive: bool) -> Vector:
        """AND or OR: decided by one part that is false, or true; unknown if a part is."""
        decided, unknown = np.array(False), np.array(False)
        for item in items:
            part = self.vector(item)
            decided = decided | (part.present & (part.values == decisive))
            unknown = unknown | ~part.present
        return Vector(decided | ~unknown, decided if decisive else ~decided)

    # --- arrays and maps

    def _nested(self, node: ast.Call) -> Vector:
        match node.name:
            case "size" | "array_size":
                return self._size(node)
            case "[]" | "element_at":
                return self._element(node)
            case "map_keys" | "map_values":
                return self._map_part(node)
            case "map_contains_key":
                return self._keys_of(node.arguments[0]).has(_key_of(node.arguments[1]))
            case "array_contains":
                return self._contains(node)
            case "arrays_overlap":
                return self._overlap(node)
            case _:
                return self._quantified(node)

    def _size(self, node: ast.Call) -> Vector:
        array = self.vector(node.arguments[0])
        found = nested.sizes(array)
        if node.name == "array_size":
            return Vector(array.present, found)
        return Vector(np.array(True), np.where(array.present, found, -1))

    def _element(self, node: ast.Call) -> Vector:
        holder, place = node.arguments
        if holder.type.kind is Kind.MAP:
            return self._keys_of(holder).values_of(_key_of(place))
        from_one = node.name == "element_at"
        return nested.elements_at(self.vector(holder), self.vector(place), from_one=from_one)

    def _map_part(self, node: ast.Call) -> Vector:
        found = self.vector(node.arguments[0])
        return found._replace(parts=(found.parts[node.name == "map_values"],))

    def _keys_of(self, node: Node) -> nested.MapKeys:
        if node not in self._map_keys:
            self._map_keys[node] = nested.MapKeys(self.vector(node))
        return self._map_keys[node]

    def _contains(self, node: ast.Call) -> Vector:
        array, value = node.arguments
        if value.type.kind is Kind.DECIMAL:
            raise NoColumn
        return nested.containing(self.vector(array), self.vector(value), value.type)

    def _overlap(self, node: ast.Call) -> Vector:
        a, b = node.arguments
        element = a.type.element
        if element is None or element.kind is Kind.DECIMAL:
            raise NoColumn
        return nested.overlapping(self.vector(a), self.vector(b), element)

    def _quantified(self, node: ast.Call) -> Vector:
        """exists or forall: a condition on elements alone is tested once per distinct element."""
        array, (inner,) = self.vector(node.arguments[0]), self.vector(node.arguments[0]).parts
        function, of = node.arguments[1], node.arguments[0].type.element
        if not isinstance(function, ast.Lambda) or of is None:  # pragma: no cover - typed
            raise NoColumn
        owners = nested.owners_of(nested.offsets_of(array))
        if ast.attributes(function):
            truth = _ElementColumns(self, inner, owners, of).vector(function.body)
        else:
            distinct, codes = nested.distinct_elements(inner, of)
            truth = taken(_ElementColumns(self, distinct, None, of).vector(function.body), codes)
        return nested.quantified(array, truth, decisive=node.name == "exists")

    # --- one by one

    def _listed_elements(self, term: ast.Elements) -> Column:
        """The column of elements of arrays that are computed event by event."""
        compute = compile_value(term, self.schema)
        inputs = self._inputs(term)
        row: list[Any] = [None] * len(self.schema)
        arrays: list[Any] = []
        for number in range(self.size):
            for place, listed, _ in inputs:
                row[place] = listed[number]
            arrays.append(compute(row))
        offsets = np.zeros(self.size + 1, np.int64)
        np.cumsum([len(array or ()) for array in arrays], out=offsets[1:])
        flat = [element for array in arrays for element in array or ()]
        part = column_of(spread(flat, np.arange(len(flat)), term.type), term.type, len(flat))
        present = [array is not None and None not in array for array in arrays]
        keys = np.zeros(self.size, np.int64)
        return Column(np.array(present, np.uint8), keys, None, offsets=offsets, parts=(part,))

    def _by_texts(self, node: ast.Call) -> Vector:
        """A function called once for each distinct combination of its arguments."""
        lists = [self._distinct(argument) for argument in node.arguments]
        entry = FUNCTIONS[node.name]
        function, nulls = entry.meaning(node), entry.nulls(node)
        many = [place for place, (_, values) in enumerate(lists) if len(values) > 1]
        if len(many) == 1:  # and constants, as most often
            return self._by_one(node, many[0], lists)
        room = math.prod(len(values) for _, values in lists)
        if room >= 2**62:
            raise NoColumn
        codes = np.zeros(self.size, np.int64)
        for own, values in lists:
            codes = codes * len(values) + own
        distinct, places = np.unique(codes, return_inverse=True)
        answers: list[Any] = []
        for code in distinct.tolist():
            given: list[Any] = []
            rest = code
            for _, known in reversed(lists):
                rest, at = divmod(rest, len(known))
                given.append(known[at])
            given.reverse()
            is_null = not nulls.are_given and None in given
            answers.append(None if is_null else function(*given))
        return spread(answers, places.reshape(-1), node.type)

    def _by_one(
        self, node: ast.Call, place: int, lists: Sequence[tuple[Array, list[Any]]]
    ) -> Vector:
        """A function of one argument that has several values, and of constants.

        The last of the values may be None, and no other.
        """
        entry, (places, values) = FUNCTIONS[node.name], lists[place]
        function, nulls = entry.meaning(node), entry.nulls(node)
        constants = [known[0] for at, (_, known) in enumerate(lists) if at != place]
        if not nulls.are_given and None in constants:
            return constant(None, node.type)
        there = values if nulls.are_given or values[-1] is not None else values[:-1]
        arguments: list[Iterable[Any]] = [repeat(one) for one in constants]
        arguments.insert(place, there)
        made = map(function, *arguments)
        if nulls is Nulls.STRICT and (node.type.is_integer or node.type in {DOUBLE, BOOL}):
            kind = dtype_of(node.type)
            table: Array = np.zeros(len(values), kind)
            table[: len(there)] = np.fromiter(made, kind, len(there))
            return Vector(self.vector(node.arguments[place]).present, table[places])
        return spread([*made, *[None] * (len(values) - len(there))], places, node.type)

    def _distinct(self, argument: Node) -> tuple[Array, list[Any]]:
        """places[event] in the distinct values of an argument, and these."""
        known = self._lists.get(argument)
        if known is None:
            codes, values = _listed(self.vector(argument), argument.type)
            if codes.ndim and len(values) > self.size:  # a part of a batch has a part of the texts
                distinct, codes = np.unique(codes, return_inverse=True)
                values = [values[code] for code in distinct.tolist()]
            elif not codes.ndim:
                codes, values = np.array(0), [values[int(codes)]]
            known = self._lists[argument] = codes, values
        return known

    def _inputs(self, node: Node) -> list[tuple[int, list[Any], bool]]:
        """The values that a node is computed from, with their place in a row.

        The last of each says whether values come again often, as strings do.
        """
        found = {part for part in ast.walk(node) if isinstance(part, ast.Attribute)}
        return [self.listed_values(a) for a in sorted(found, key=lambda attribute: attribute.path)]

    def listed_values(self, attribute: ast.Attribute) -> tuple[int, list[Any], bool]:
        """As `_inputs`, of one attribute."""
        vector = self.vector(attribute)
        listed = objects_of(vector, attribute.type)
        return self.schema.positions[attribute.path], listed, vector.texts is not None

    def _by_rows(self, node: Node) -> Vector:
        """Any node, computed for each distinct combination of its strings, or for each event."""
        compute = compile_value(node, self.schema)
        inputs = self._inputs(node)
        places = [place for place, _, _ in inputs]
        row: list[Any] = [None] * (len(self.schema) + 1)  # the last one is for an element

        def value(values: Sequence[Any]) -> Any:
            for place, one in zip(places, values, strict=True):
                row[place] = one
            return compute(row)

        rows = list(zip(*(listed for _, listed, _ in inputs), strict=True))
        if not inputs:
            return spread([compute(row)], np.zeros(self.size, np.int64), node.type)
        known: dict[tuple[Any, ...], int] = {}
        found: list[Any] = []
        at = np.empty(len(rows), np.int64)
        few = all(is_few for _, _, is_few in inputs)
        for number, one in enumerate(rows):
            place = known.get(one) if few else None
            if place is None:
                place = len(found)
                found.append(value(one))
                if few:
                    known[one] = place
            at[number] = place
        return spread(found, at, node.type)


def _all_present(vectors: Sequence[Vector]) -> Array:
    present = np.array(True)
    for vector in vectors:
        present = present & vector.present
    return present


def _listed(vector: Vector, of: Type) -> tuple[Array, list[Any]]:
    """Codes, and the values that they stand for, the last one for a missing value."""
    if vector.texts is not None:
        values: list[Any] = [*vector.texts, None]
        return np.where(vector.present, vector.values, len(values) - 1), values
    if vector.values.dtype == np.bool_:
        return np.where(vector.present, vector.values.astype(np.int64), 2), [False, True, None]
    if vector.values.ndim == 0:
        one = Vector(np.atleast_1d(vector.present), np.atleast_1d(vector.values))
        return np.array(0), objects_of(one, of)
    raise NoColumn


def _key_of(node: Node) -> str:
    """A key that is the same for all events."""
    if isinstance(node, ast.Literal) and isinstance(node.value, str):
        return node.value
    raise NoColumn


class _ElementColumns(TermColumns):
    """The columns of terms over elements, each of which belongs to an event of other columns."""

    def __init__(self, outer: TermColumns, element: Vector, owners: Array | None, of: Type) -> None:
        self._outer = outer
        self._variable = element
        self._owners = owners  # None if no term is about the events
        self._of = of
        self.schema = outer.schema
        self.size = len(element.values)
        self._known = {}
        self._map_keys = {}
        self._lists = {}

    def vector(self, node: Node) -> Vector:
        if isinstance(node, ast.Variable):
            return self._variable
        if isinstance(node, ast.Literal) or self._owners is None or has_variable(node):
            return super().vector(node)
        return taken(self._outer.vector(node), self._owners)

    def _inputs(self, node: Node) -> list[tuple[int, list[Any], bool]]:
        found = super()._inputs(node)
        listed = objects_of(self._variable, self._of)
        return [*found, (len(self.schema), listed, self._variable.texts is not None)]

    def listed_values(self, attribute: ast.Attribute) -> tuple[int, list[Any], bool]:
        place, listed, is_few = self._outer.listed_values(attribute)
        owners = [] if self._owners is None else self._owners.tolist()
        return place, [listed[owner] for owner in owners], is_few


def has_variable(node: Node) -> bool:
    """Whether a node is computed from an element."""
    return any(isinstance(part, ast.Variable) for part in ast.walk(node))
