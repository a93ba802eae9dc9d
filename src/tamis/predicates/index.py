"""The index of predicates: each distinct one has one id, however many filters use it.

Ids are small and dense: those of predicates that nobody uses any more are given out again, so
vectors over predicates have no holes (COUNT, section 3). Predicates are kept by attribute and kind:

* comparisons with constants in ordered lists, or in a table where the domain is small,
* sets (``IN``) by their members,
* presence (``IS NULL`` and its opposite),
* other tests of one attribute (prefix, suffix, contains, contained in, LIKE, RLIKE, arithmetic),
  evaluated once a distinct value,
* what has several attributes one by one.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tamis.events import Row
from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.evaluation import compile_tree
from tamis.predicates.comparison_index import Comparisons, Ids
from tamis.predicates.id_pool import IdPool
from tamis.predicates.keys import Keys
from tamis.predicates.string_index import OrderedStrings
from tamis.schema import Schema

Array = np.ndarray[Any, Any]

MOST_VALUES = 10_000  # distinct values of one attribute whose tests are remembered

TRUE, FALSE, UNDEFINED = 1, 0, -1


class PredicateIndex:
    """Distinct predicates over one schema, and which of them are true of an event."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.ids: dict[Node, int] = {}
        self._uses: dict[int, int] = {}
        self._nodes: dict[int, Node] = {}
        self._pool = IdPool()
        self._keys = Keys(schema)
        self._comparisons = Comparisons(schema, self._keys)
        self._attributes = [AttributeIndex(n, schema) for n in range(len(schema))]
        self._busy: set[int] = set()  # attributes with predicates other than keyed comparisons
        self._others: dict[int, Callable[[Row], Any]] = {}

    def __len__(self) -> int:
        return len(self.ids)

    @property
    def size(self) -> int:
        """One more than the largest id ever given out: the length of vectors over predicates."""
        return self._pool.size

    def intern(self, predicate: Node) -> int:
        """The id of a predicate, which has one user more."""
        known = self.ids.get(predicate)
        if known is not None:
            self._uses[known] += 1
            return known
        new = self._pool.take()
        self.ids[predicate], self._nodes[new], self._uses[new] = new, predicate, 1
        position = self._position(predicate)
        if position is None:
            self._others[new] = compile_tree(predicate, self.schema)
            return new
        home = self._attributes[position]
        match predicate:
            case ast.Compare(op, _, ast.Literal(constant, _)) if self._is_keyed(predicate):
                self._comparisons.add(position, op, constant, new)
                home.compared.add(new)
            case _:
                home.add(predicate, new)
                self._busy.add(position)
        return new

    def release(self, predicate_id: int) -> None:
        """One user of a predicate less; without any it goes and its id is free."""
        self._uses[predicate_id] -= 1
        if self._uses[predicate_id]:
            return
        predicate = self._nodes.pop(predicate_id)
        del self._uses[predicate_id], self.ids[predicate]
        self._pool.give_back(predicate_id)
        position = self._position(predicate)
        if position is None:
            del self._others[predicate_id]
            return
        home = self._attributes[position]
        match predicate:
            case ast.Compare(op, _, ast.Literal(constant, _)) if self._is_keyed(predicate):
                self._comparisons.remove(position, op, constant)
                home.compared.remove(predicate_id)
            case _:
                home.remove(predicate, predicate_id)
                if home.is_idle():
                    self._busy.remove(position)

    def node(self, predicate_id: int) -> Node:
        """The predicate of an id."""
        return self._nodes[predicate_id]

    def uses(self, predicate_id: int) -> int:
        """How many users the predicate of an id has."""
        return self._uses[predicate_id]

    @staticmethod
    def is_comparison(predicate: Node) -> bool:
        """Whether a predicate compares an attribute with a constant of its type."""
        return _is_plain(predicate)

    def satisfied(self, row: Row, *, comparisons: bool = True) -> Ids:
        """The ids of the predicates that are true of a row, each once; or all but comparisons."""
        found: list[Ids] = []
        if comparisons and self._comparisons.size:
            found.append(self._comparisons.satisfied(*self._keys.row(row)))
        for position in self._busy:
            home = self._attributes[position]
            found += home.satisfied(row[position], comparisons=comparisons)
        if self._others:
            true = [i for i, test in self._others.items() if test(row) is True]
            found.append(np.array(true, np.int32))
        if len(found) == 1:
            return found[0]
        return np.concatenate(found) if found else np.empty(0, np.int32)

    def truth(self, row: Row) -> np.ndarray[Any, np.dtype[np.int8]]:
        """The assignment of a row: TRUE, FALSE or UNDEFINED for each id, FALSE for a free one."""
        answer = np.zeros(self.size, np.int8)
        for home, value in zip(self._attributes, row, strict=True):
            if value is None:
                answer[home.ids_of_values()] = UNDEFINED
        for predicate_id, test in self._others.items():
            if test(row) is None:
                answer[predicate_id] = UNDEFINED
        answer[self.satisfied(row)] = TRUE
        return answer

    def truth_many(self, rows: Sequence[Row]) -> np.ndarray[Any, np.dtype[np.int8]]:
        """The assignments of many rows, one a line."""
        answer = np.zeros((len(rows), self.size), np.int8)
        for line, row in zip(answer, rows, strict=True):
            line[:] = self.truth(row)
        return answer

    def _is_keyed(self, predicate: Node) -> bool:
        """Whether a predicate is a comparison of an attribute with a constant that has a key."""
        match predicate:
            case ast.Compare(_, ast.Attribute(path, kind), ast.Literal(constant, same)):
                position = self.schema.positions[path]
                return kind == same and self._keys.key(position, constant) is not None
            case _:
                return False

    def _position(self, predicate: Node) -> int | None:
        """The attribute at home with which a predicate is kept, None if it has several."""
        bare = predicate.operand if isinstance(predicate, ast.Not) else predicate
        if isinstance(bare, ast.IsNull) and not isinstance(bare.operand, ast.Attribute):
            return None  # it may be true of a missing value
        paths = ast.attributes(bare)
        return self.schema.positions[next(iter(paths))] if len(paths) == 1 else None


def _is_plain(predicate: Node) -> bool:
    """Whether a predicate compares an attribute with a constant of its type."""
    match predicate:
        case ast.Compare(_, ast.Attribute(_, kind), ast.Literal(_, constant)):
            return kind == constant
        case _:
            return False


class AttributeIndex:
    """The predicates of one attribute alone."""

    def __init__(self, position: int, schema: Schema) -> None:
        self._schema = schema
        self._position = position
        self.compared: set[int] = set()  # comparisons, wherever they are kept
        self._strings = OrderedStrings()
        self._members: dict[Any, dict[int, None]] = {}  # value -> the sets that hold it
        self._sets: set[int] = set()
        self._absences: dict[int, frozenset[Any]] = {}  # NOT IN
        self._null: set[int] = set()
        self._present: set[int] = set()
        self._tests: dict[int, Callable[[Row], Any]] = {}
        self._remembered: dict[Any, Ids] = {}

    def add(self, predicate: Node, new: int) -> None:
        match predicate:
            case ast.Compare(op, _, ast.Literal(constant, _)) if _is_plain(predicate):
                self._strings.add(op, constant, new)
                self.compared.add(new)
            case ast.In(ast.Attribute(), items):
                self._sets.add(new)
                for value in _values(items):
                    self._members.setdefault(value, {})[new] = None
            case ast.Not(ast.In(ast.Attribute(), items)):
                self._absences[new] = frozenset(_values(items))
            case ast.IsNull():
                self._null.add(new)
            case ast.Not(ast.IsNull()):
                self._present.add(new)
            case _:
                self._tests[new] = compile_tree(predicate, self._schema)
                self._remembered.clear()

    def remove(self, predicate: Node, old: int) -> None:
        match predicate:
            case ast.Compare(op, _, ast.Literal(constant, _)) if _is_plain(predicate):
                self._strings.remove(op, constant)
                self.compared.remove(old)
            case ast.In(ast.Attribute(), items):
                self._sets.remove(old)
                for value in _values(items):
                    del self._members[value][old]
                    if not self._members[value]:
                        del self._members[value]
            case ast.Not(ast.In(ast.Attribute())):
                del self._absences[old]
            case ast.IsNull():
                self._null.remove(old)
            case ast.Not(ast.IsNull()):
                self._present.remove(old)
            case _:
                del self._tests[old]
                self._remembered.clear()

    def satisfied(self, value: Any, *, comparisons: bool = True) -> Iterator[Ids]:
        """The ids of the predicates that are true of a value, None for a missing one."""
        if value is None:
            yield _ids(self._null)
            return
        if self._present:
            yield _ids(self._present)
        if comparisons and self._strings.size:
            yield from self._strings.satisfied(value)
        if self._members:
            yield _ids(self._members.get(value, ()))
        if self._absences:
            yield _ids([i for i, values in self._absences.items() if value not in values])
        if self._tests:
            yield self._tested(value)

    def is_idle(self) -> bool:
        """Whether nothing is kept here."""
        return not (
            self._strings.size or self._sets or self._absences or self._null
            or self._present or self._tests
        )  # fmt: skip

    def ids_of_values(self) -> Ids:
        """The predicates that are undefined of a missing value."""
        return _ids([*self.compared, *self._sets, *self._absences, *self._tests])

    def _tested(self, value: Any) -> Ids:
        known = self._remembered.get(value)
        if known is None:
            before, behind = self._position, len(self._schema) - self._position - 1
            row = (None,) * before + (value,) + (None,) * behind
            known = _ids([i for i, test in self._tests.items() if test(row) is True])
            if len(self._remembered) >= MOST_VALUES:
                self._remembered.clear()
            self._remembered[value] = known
        return known


def _ids(found: Any) -> Ids:
    return np.fromiter(found, np.int32, len(found))


def _values(items: tuple[Node, ...]) -> list[Any]:
    return [item.value for item in items if isinstance(item, ast.Literal)]
