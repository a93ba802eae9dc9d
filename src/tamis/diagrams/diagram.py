"""A shared, reduced, ordered binary decision diagram that grows and shrinks (BDD, section 5).

BDD is short for Campailla et al., "Efficient filtering in publish-subscribe systems using binary
decision diagrams" (ICSE 2001).

A function is represented by a node. Nodes stay valid until `collect`, which keeps the functions
that it is given and renumbers them. A variable gets its level when it is made; smaller levels are
on top.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tamis.errors import CapacityError
from tamis.kernels import bdd_nodes as nodes
from tamis.kernels import bdd_operations as operations
from tamis.kernels.bdd_evaluation import VariableRanges
from tamis.kernels.bdd_nodes import FALSE, FULL, LIMIT, NODES, OVER, TRUE, NodeStore
from tamis.kernels.bdd_operations import (
    AND,
    DO_AND,
    DO_FALSE,
    DO_NOT,
    DO_OR,
    DO_TRUE,
    OR,
    XOR,
)  # fmt: skip
from tamis.predicates.id_pool import IdPool

__all__ = ["AND", "DO_AND", "DO_FALSE", "DO_NOT", "DO_OR", "DO_TRUE", "FALSE", "OR", "TRUE", "XOR",
           "Array", "Diagram"]  # fmt: skip

Array = np.ndarray[Any, Any]

LARGEST_CACHE = 2**20  # results that are remembered
MOST_VISITED = 300_000  # nodes that one restriction visits; of each function, up to SCRATCH count
SCRATCH = 2**14  # nodes up to which a function is counted


class FunctionTooLarge(CapacityError):
    """A single function would have more nodes than allowed."""


class Diagram:
    """Makes, combines, restricts and forgets functions."""

    def __init__(self, max_nodes: int) -> None:
        self._variables = IdPool()
        self._retired: list[int] = []  # variables that are free after the next `collect`
        self._values = np.zeros(64, np.int64)  # the stack of programs
        self._scratch = np.zeros(SCRATCH, np.int64)
        self._max_nodes = max_nodes
        self._store = _store(1024, 16)
        self._store.sizes[LIMIT] = max_nodes
        self.live = 0  # nodes after the last collection
        self.variable_ranges = VariableRanges(np.empty(0, np.int64), np.array([2], np.int64))

    @property
    def nodes(self) -> int:
        """How many nodes there are, used or not, without false and true."""
        return int(self._store.sizes[NODES]) - 2

    @property
    def variables(self) -> int:
        """One more than the largest variable."""
        return self._variables.size

    @property
    def store(self) -> NodeStore:
        """The arrays, for kernels that read them."""
        return self._store

    @property
    def bytes(self) -> int:
        """The size of all arrays."""
        return sum(array.nbytes for array in self._store) + self._scratch.nbytes

    # --- variables

    def new_variable(self, level: int) -> int:
        """A variable at a level that no other has."""
        variable = self._variables.take()
        store = self._store
        if variable >= len(store.level):
            depth = 2 * (2 * len(store.level) + 4)
            self._store = store._replace(
                level=_longer(store.level), stack=np.zeros((depth, 4), np.int32)
            )
        self._store.level[variable] = level
        return variable

    def retire(self, variable: int) -> None:
        """Give up a variable; unused nodes may still have it until `collect`."""
        self._retired.append(variable)

    def level(self, variable: int) -> int:
        """The level of a variable."""
        return int(self._store.level[variable])

    # --- functions

    def variable(self, variable: int) -> int:
        """The function that is a variable."""
        return self._run(lambda: nodes.make_node(variable, FALSE, TRUE, self._store))

    def apply(self, op: int, f: int, g: int) -> int:
        """The function f op g, for AND, OR or XOR."""
        return self._run(lambda: operations.apply(op, f, g, self._store, 0))

    def restrict(self, f: int, care: int) -> int:
        """A function that equals f wherever `care` is true: Coudert and Madre's restrict."""
        if care == FALSE:
            raise ValueError("a function cannot be restricted by false")
        return self._run(lambda: operations.restrict(f, care, self._store))

    def build(self, program: Array, limit: int | None = None, care: int = TRUE) -> int:
        """The function of a program in postfix order; at most `limit` nodes are made for it.

        With `care`, a function that equals it wherever `care` is true.
        """
        values = self._values_for(program)
        return self._run(
            lambda: operations.build_function(program, care, values, self._store), limit
        )

    def restrict_by(self, f: int, facts: Array, limit: int | None = None) -> int:
        """A function that equals f wherever all functions of the program `facts` are true.

        It is never larger than f. A single fact is used once; several are used repeatedly, as long
        as f gets smaller and not too many nodes were visited.
        """
        values = self._values_for(facts)
        return self._run(
            lambda: operations.restrict_by(
                f, facts, values, self._scratch, self._store, MOST_VISITED
            ),
            limit,
        )

    def _values_for(self, program: Array) -> Array:
        if len(program) > len(self._values):
            self._values = np.zeros(2 * len(program), np.int64)
        return self._values

    def _run(self, call: Callable[[], int], limit: int | None = None) -> int:
        """Call a kernel, with larger arrays until they are large enough."""
        most = self._max_nodes
        if limit is not None:
            most = min(most, int(self._store.sizes[NODES]) + limit)
        self._store.sizes[LIMIT] = most
        while (answer := call()) == FULL:
            self._grow()
        if answer == OVER:
            if most < self._max_nodes:
                raise FunctionTooLarge(
                    f"the diagram of one filter would have more than {limit:,} nodes; use a "
                    "counting engine or naive for such a filter"
                )
            raise CapacityError(
                f"the diagrams would have more than max_nodes, {most - 2:,}, nodes; raise this "
                "option of the engine, or choose another engine"
            )
        return answer

    def _grow(self) -> None:
        store = self._store
        size = 2 * len(store.label)
        cache = min(LARGEST_CACHE, 2 * len(store.results))
        grown = store._replace(
            label=_longer(store.label), low=_longer(store.low), high=_longer(store.high),
            stamps=_longer(store.stamps), unique=np.zeros(2 * size, np.int32),
        )  # fmt: skip
        if cache > len(store.results):
            grown = grown._replace(
                keys=np.full((cache, 2), -1, np.int64), results=np.zeros(cache, np.int32)
            )
        nodes.rehash_nodes(grown)
        self._store = grown

    # --- looking at functions

    def label(self, node: int) -> int:
        """The variable of a node, -1 for false and true."""
        return int(self._store.label[node])

    def children(self, node: int) -> tuple[int, int]:
        """The low and the high child of a node."""
        return int(self._store.low[node]), int(self._store.high[node])

    def reachable(self, roots: Sequence[int]) -> list[int]:
        """The nodes of some functions in ascending order, without false and true."""
        found: set[int] = set()
        waiting = [root for root in roots if root > TRUE]
        while waiting:
            node = waiting.pop()
            if node not in found:
                found.add(node)
                waiting.extend(child for child in self.children(node) if child > TRUE)
        return sorted(found)

    def holds(self, f: int, truth: Callable[[int], bool]) -> bool:
        """Whether a function is true for an assignment, found along one path."""
        while f > TRUE:
            f = self.children(f)[truth(self.label(f))]
        return f == TRUE

    # --- collecting unused nodes

    def collect(self, roots: Array) -> None:
        """Forget every function except roots[*], which are renumbered in place."""
        store = self._store
        variables = np.argsort(store.level[: self.variables], kind="stable")[::-1].copy()
        ranks = np.empty(len(variables), np.int64)
        ranks[variables] = np.arange(len(variables))
        places = np.zeros(int(store.sizes[NODES]), np.int32)
        live = nodes.mark_nodes(roots, places, store)
        size = len(store.label)
        while size > 8 * (live + 256):
            size //= 2
        new = _store(size, len(store.level))
        new.level[:] = store.level
        starts = np.empty(len(variables) + 1, np.int64)
        nodes.compact_nodes(roots, places, ranks, starts, store, new)
        self._store = new
        self.variable_ranges = VariableRanges(variables, starts)
        self.live = self.nodes
        for variable in self._retired:
            self._variables.give_back(variable)
        self._retired.clear()


def _store(size: int, variables: int) -> NodeStore:
    """An empty store with space for `size` nodes."""
    label = np.zeros(size, np.int32)
    label[:2] = -1
    return NodeStore(
        label=label,
        low=np.zeros(size, np.int32),
        high=np.zeros(size, np.int32),
        stamps=np.zeros(size, np.int32),
        level=np.zeros(variables, np.int64),
        unique=np.zeros(2 * size, np.int32),
        keys=np.full((min(size, LARGEST_CACHE), 2), -1, np.int64),
        results=np.zeros(min(size, LARGEST_CACHE), np.int32),
        stack=np.zeros((2 * (variables + 4), 4), np.int32),
        sizes=np.array([2, 0], np.int64),
    )


def _longer(array: Array) -> Array:
    """A copy twice as long, with zeros in the second half."""
    grown = np.zeros(2 * len(array), array.dtype)
    grown[: len(array)] = array
    return grown
