"""What a new box says about the variables of others: two bits each (MBD, sections 4.2 and 4.4).

A variable is a distinct constraint. Its right bit says that the new box implies it; its left bit
says that it implies the new box's constraint on the same attribute, or that the new box has none
there (Fig. 6).

With the cache, a minimal table says which constraints imply which (Fig. 8,
`predicates.dependencies`), and what follows from it is remembered for each variable. Without it,
the new box is compared with all variables of its attributes, one by one.
"""

from collections.abc import Callable

import numpy as np

from tamis.diagrams.diagram import Array
from tamis.kernels.mbd_covering import LEFT, RIGHT
from tamis.language.ast import Node
from tamis.names import Path
from tamis.predicates.dependencies import Dependencies
from tamis.predicates.implication import Facts
from tamis.relations.tables.constraints import Constraint, ConstraintPool
from tamis.relations.tables.prepared_filters import PreparedFilter
from tamis.schema import Domain


class Assignments:
    """Constraints with their variables, and the bits that a new box gives to these."""

    def __init__(self, pool: ConstraintPool, *, cache: bool) -> None:
        self._pool = pool
        self._variables: dict[Constraint, int] = {}
        self._by_position: dict[int, dict[Constraint, int]] = {}
        self._positions: Array = np.zeros(64, np.int32)  # variable -> attribute
        self._truth: Array = np.zeros(64, np.uint8)
        self._size = 0  # one more than the largest variable
        self._cache = _Cache(pool) if cache else None

    def __len__(self) -> int:
        return len(self._variables)

    def __contains__(self, constraint: Constraint) -> bool:
        return constraint in self._variables

    def __getitem__(self, constraint: Constraint) -> int:
        return self._variables[constraint]

    @property
    def constraints(self) -> list[Constraint]:
        """All constraints that have a variable, in the order in which they came."""
        return list(self._variables)

    @property
    def dependencies(self) -> int:
        """How many dependencies the minimal table holds; none without the cache."""
        return len(self._cache.table) if self._cache else 0

    def add(self, constraint: Constraint, variable: int) -> None:
        """Give a constraint its variable."""
        self._variables[constraint] = variable
        self._by_position.setdefault(constraint.position, {})[constraint] = variable
        while variable >= len(self._positions):
            self._positions = np.concatenate([self._positions, np.zeros_like(self._positions)])
            self._truth = np.concatenate([self._truth, np.zeros_like(self._truth)])
        self._positions[variable] = constraint.position
        self._size = max(self._size, variable + 1)
        if self._cache:
            self._cache.add(constraint)

    def remove(self, constraint: Constraint) -> int:
        """Remove a constraint; returns the variable that it had."""
        if self._cache:
            self._cache.remove(constraint)
        del self._by_position[constraint.position][constraint]
        return self._variables.pop(constraint)

    def renumber(self, variables: dict[Constraint, int]) -> None:
        """Give the same constraints other variables."""
        cache, self._cache = self._cache, None
        self._variables, self._by_position, self._size = {}, {}, 0
        for constraint, variable in variables.items():
            self.add(constraint, variable)
        self._cache = cache
        if cache:
            cache.closures.clear()

    def assign(self, new: PreparedFilter) -> Array:
        """The bits of all variables for a new box; valid until the next call.

        With the cache, the constraints of the box must have variables.
        """
        if self._cache is None:
            return self.compare(new)
        truth = self._untested(new)
        for constraint in new.by_position.values():
            weaker, stronger = self._cache.closure(constraint, self._variables)
            truth[stronger] = LEFT
            truth[weaker] |= RIGHT
        return truth

    def compare(self, new: PreparedFilter) -> Array:
        """The same without the cache; the constraints of the box need no variables."""
        truth = self._untested(new)
        for constraint in new.by_position.values():
            weaker, stronger = self._compared(constraint)
            truth[stronger] = LEFT
            truth[weaker] |= RIGHT
        return truth

    def _untested(self, new: PreparedFilter) -> Array:
        """The left bits that come from attributes which the new box does not test."""
        untested = np.full(len(self._pool.space.schema), LEFT, np.uint8)
        untested[list(new.by_position)] = 0
        np.take(untested, self._positions[: self._size], out=self._truth[: self._size])
        return self._truth

    def _compared(self, constraint: Constraint) -> tuple[list[int], list[int]]:
        """The variables that a constraint implies and those that imply it, by comparing all."""
        implies = self._pool.implies
        known = self._by_position.get(constraint.position, {}).items()
        weaker = [variable for other, variable in known if implies(constraint, other)]
        return weaker, [variable for other, variable in known if implies(other, constraint)]


class _Cache:
    """The minimal table of dependencies, and what follows from it."""

    def __init__(self, pool: ConstraintPool) -> None:
        self._pool = pool
        self._constraints: dict[Node, Constraint] = {}
        self.table = Dependencies(pool.space.schema, self._subject, self._facts)
        self.closures: dict[Constraint, tuple[Array, Array]] = {}

    def add(self, constraint: Constraint) -> None:
        self._constraints[constraint.node] = constraint
        self.table.add(constraint.node)
        self._forget_around(constraint)

    def remove(self, constraint: Constraint) -> None:
        self._forget_around(constraint)
        self.closures.pop(constraint, None)
        self.table.remove(constraint.node)
        del self._constraints[constraint.node]

    def closure(
        self, constraint: Constraint, variables: dict[Constraint, int]
    ) -> tuple[Array, Array]:
        """The variables that a constraint implies and those that imply it, itself among both."""
        found = self.closures.get(constraint)
        if found is None:
            weaker = self._numbers(constraint, self.table.implied_by, variables)
            stronger = self._numbers(constraint, self.table.that_imply, variables)
            found = self.closures[constraint] = weaker, stronger
        return found

    def _numbers(
        self,
        constraint: Constraint,
        related: Callable[[Node], set[Node]],
        variables: dict[Constraint, int],
    ) -> Array:
        nodes = [constraint.node, *related(constraint.node)]
        return np.array([variables[self._constraints[node]] for node in nodes], np.int64)

    def _forget_around(self, constraint: Constraint) -> None:
        """Forget what follows for related constraints, because one of them comes or goes."""
        if self.closures:
            for node in self.table.implied_by(constraint.node) | self.table.that_imply(
                constraint.node
            ):
                self.closures.pop(self._constraints[node], None)

    def _subject(self, node: Node) -> Path | None:
        return self._pool.space.schema.attributes[self._constraints[node].position].path

    def _facts(self, u: Node, v: Node, _domain: Domain | None) -> Facts:
        one, other = self._constraints[u], self._constraints[v]
        return Facts(self._pool.implies(one, other), self._pool.implies(other, one))
