"""Elementary predicates ``test -> result`` of the matching tree (TREE, section 3).

The tests are "examine attribute a", whose results are the values of ``a = value``; every other
predicate, whose only result of interest is true; and a *range*, a lower and an upper bound of one
attribute in one conjunction. An *element* is a test with a result. Elements are small numbers that
are reused; what kernels know of them is in `rows` (`kernels.growing_tree` has the columns).
"""

from typing import Any

import numpy as np

from tamis.engines.tree.arrays import Array, grown
from tamis.engines.tree.descriptions import Description, describe, extent, keys, tightest
from tamis.kernels import growing_tree as t
from tamis.kernels.tree_conjunctions import IMPOSSIBLE, MOST_TRANSLATED, element_sequence
from tamis.language import ast
from tamis.language.ast import Node
from tamis.names import Path
from tamis.predicates.classification import Comparison, classify
from tamis.predicates.comparison_index import Ids
from tamis.predicates.id_pool import IdPool
from tamis.predicates.implication import implies
from tamis.predicates.index import PredicateIndex

MOST_FACTS = 2**20  # implications that are remembered; beyond that none is looked up
MOST_QUARANTINED = 1024  # dropped elements that a fact still names


class DistinctElements:
    """The elements of all conjunctions of one engine."""

    def __init__(self, predicates: PredicateIndex) -> None:
        self._predicates = predicates
        self._positions = predicates.schema.positions
        self._ids = IdPool()
        self._quarantine: list[int] = []
        self._named: set[int] = set()  # elements that facts name
        self._facts = 0
        self._ranges: dict[tuple[int, int], int] = {}
        self.examined: dict[int, dict[Any, int]] = {}  # attribute -> value -> element
        self.compared: dict[int, int] = {}  # attribute -> number of boolean tests of its value
        self.index_tests = 0  # boolean tests that need the satisfied predicates of the index
        self.index_comparisons = 0  # how many of them are comparisons
        self.of_predicate: Array = np.full(64, t.NONE, np.int32)
        self._buffer: Array = np.zeros(MOST_TRANSLATED, np.int32)
        self._set_arrays(np.zeros((64, t.ELEMENT_COLUMNS), np.int64), np.full(64, -1, np.int64))

    def _set_arrays(self, rows: Array, facts: Array) -> None:
        fallen = self.arrays[2] if hasattr(self, "arrays") else np.full(1, t.NONE, np.int64)
        self.arrays: t.Elements = (rows, facts, fallen)

    @property
    def size(self) -> int:
        """The length of vectors over elements."""
        return self._ids.size

    @property
    def rows(self) -> Array:
        return self.arrays[0]

    def classes(self, attribute: int) -> int:
        """How many values of an attribute can be told apart, all others being one."""
        return len(self.examined.get(attribute, ())) + 1

    def attributes(self, sequence: Array) -> list[int]:
        """The attributes of elements."""
        found: list[int] = self.rows[sequence, t.ATTRIBUTE].tolist()
        return found

    # --- from predicates to elements

    def sequence(self, predicates: Ids) -> Array | None:
        """The elements of a conjunction in the fixed order, None if it is never true.

        They may lie in a buffer that the next call overwrites.
        """
        size = element_sequence(predicates, self.of_predicate, self.rows, self._buffer)
        if size >= 0:
            return self._buffer[:size]
        return None if size == IMPOSSIBLE else self._composed(predicates)

    def _composed(self, predicates: Ids) -> Array | None:
        """The same, for predicates that are new or belong together."""
        tests: list[tuple[tuple[int, ...], Description]] = []
        bounds: dict[Path | None, list[tuple[int, Description]]] = {}
        values: set[Path | None] = set()
        for predicate in predicates.tolist():
            known = describe(self._predicates.node(predicate))
            if known.kind in {t.K_UPPER, t.K_LOWER}:
                bounds.setdefault(known.path, []).append((predicate, known))
                continue
            if known.kind == t.K_EXAMINE:
                if known.path in values:
                    return None
                values.add(known.path)
            tests.append(((predicate,), known))
        for some in bounds.values():
            test = tightest(some)
            if test is None:
                return None
            tests.append(test)
        found = np.array([self._element(parts, known) for parts, known in tests], np.int32)
        columns = self.rows[found, : t.SUBKEY + 1].T
        order = np.lexsort((found, *columns[::-1]))
        ordered: Array = found[order]
        return ordered

    def _element(self, parts: tuple[int, ...], known: Description) -> int:
        if len(parts) == 2:
            old = self._ranges.get((parts[0], parts[1]), t.NONE)
        else:
            old = self.of_predicate[parts[0]] if parts[0] < len(self.of_predicate) else t.NONE
        return int(old) if old >= 0 else self._new(parts, known)

    def _new(self, parts: tuple[int, ...], known: Description) -> int:
        new = self._ids.take()
        if new >= len(self.rows):
            self._set_arrays(grown(self.rows, new + 1), self.arrays[1])
        nodes = [self._predicates.node(part) for part in parts]
        attribute = len(self._positions) if known.path is None else self._positions[known.path]
        other = parts[1] if len(parts) == 2 else t.NONE
        # In the order of the columns; it is not used yet, and not linked to any other.
        row = (attribute, known.kind, *keys(nodes, known), *extent(known), 0, parts[0], other, -1)
        self.rows[new] = row
        self._count(self.rows[new], nodes, 1)
        # A test may outlive its conjunctions, as an implied edge of others.
        for node in nodes:
            self._predicates.intern(node)
        if len(parts) == 2:
            self._ranges[parts[0], parts[1]] = new
        else:
            self.of_predicate = grown(self.of_predicate, parts[0] + 1, t.NONE)
            self.of_predicate[parts[0]] = new
            if known.kind == t.K_EXAMINE:
                self.examined.setdefault(attribute, {})[known.constant] = new
        return new

    def _count(self, row: Array, nodes: list[Node], sign: int) -> None:
        """Update what matching must know of an event, as an element comes (1) or goes (-1)."""
        if row[t.KIND] == t.K_EXAMINE:
            return
        if row[t.FORM] in {t.F_NULL, t.F_INTERVAL, t.F_POINT}:
            attribute = int(row[t.ATTRIBUTE])
            self.compared[attribute] = self.compared.get(attribute, 0) + sign
            if not self.compared[attribute]:
                del self.compared[attribute]
            return
        self.index_tests += sign
        test = classify(nodes[0])
        if isinstance(test, Comparison) and isinstance(test.value, ast.Attribute):
            self.index_comparisons += sign

    # --- elements that are no longer used

    def collect(self) -> None:
        """Drop the elements that are no longer used."""
        rows, _, fallen = self.arrays
        while fallen[0] >= 0:
            old = int(fallen[0])
            fallen[0] = rows[old, t.LINK]
            self._let_go(old)

    def _let_go(self, old: int) -> None:
        row = self.rows[old]
        self._count(row, self.nodes(old), -1)
        first, second = int(row[t.PREDICATE]), int(row[t.OTHER])
        if second >= 0:
            del self._ranges[first, second]
            self._predicates.release(second)
        else:
            self.of_predicate[first] = t.NONE
            if row[t.KIND] == t.K_EXAMINE:
                attribute = int(row[t.ATTRIBUTE])
                values = self.examined[attribute]
                del values[describe(self._predicates.node(first)).constant]
                if not values:
                    del self.examined[attribute]
        self._predicates.release(first)
        if old in self._named:
            self._quarantine.append(old)
            if len(self._quarantine) > MOST_QUARANTINED:
                self._forget_facts()
        else:
            self._ids.give_back(old)

    # --- what follows from what

    def look_up(self, source: int, target: int) -> bool:
        """Note whether one element implies another; False if there is no room for the answer.

        Kernels decide about numbers themselves.
        """
        if self._facts >= MOST_FACTS:
            return False
        facts = self.arrays[1]
        if 2 * (self._facts + 1) > len(facts):
            old = facts[facts >= 0]
            facts = np.full(2 * len(facts), -1, np.int64)
            for fact in old.tolist():
                pair = fact >> 1
                facts[t.fact_place(facts, pair >> 31, pair & 0x7FFFFFFF)] = fact
            self._set_arrays(self.rows, facts)
        truth = all(
            any(implies(known, wanted) for known in self.nodes(source))
            for wanted in self.nodes(target)
        )
        facts[t.fact_place(facts, source, target)] = ((source << 31 | target) << 1) | truth
        self._facts += 1
        self._named |= {source, target}
        return True

    def nodes(self, element: int) -> list[Node]:
        """The predicate of an element, or the two of a range."""
        parts = (int(self.rows[element, t.PREDICATE]), int(self.rows[element, t.OTHER]))
        return [self._predicates.node(part) for part in parts if part >= 0]

    def _forget_facts(self) -> None:
        self._set_arrays(self.rows, np.full(64, -1, np.int64))
        self._facts = 0
        self._named.clear()
        for old in self._quarantine:
            self._ids.give_back(old)
        self._quarantine.clear()
