"""What a new box says about the variables of others: two bits each (MBD, sections 4.2 and 4.4).

A variable is a distinct term. Its right bit says that the new box implies it; its left bit says
that it implies the new box's term on the same attribute, or that the new box has no such term
(Fig. 6).

With the cache, a minimal table says which terms imply which (Fig. 8, `predicates.dependencies`),
and what follows from it is remembered for each variable. Without it, the new box is compared with
all variables of its attributes, one by one.
"""

from collections.abc import Callable

import numpy as np

from tamis.diagrams.diagram import Array
from tamis.kernels.mbd_covering import LEFT, RIGHT
from tamis.language.ast import Node
from tamis.names import Path
from tamis.predicates.dependencies import Dependencies
from tamis.predicates.implication import Facts
from tamis.relations.tables.prepared_filters import PreparedFilter
from tamis.relations.tables.terms import Term, TermPool
from tamis.schema import Domain


class Assignments:
    """Terms with their variables, and the bits that a new box gives to these."""

    def __init__(self, pool: TermPool, *, cache: bool) -> None:
        self._pool = pool
        self._variables: dict[Term, int] = {}
        self._by_position: dict[int, dict[Term, int]] = {}
        self._positions: Array = np.zeros(64, np.int32)  # variable -> attribute
        self._truth: Array = np.zeros(64, np.uint8)
        self._size = 0  # one more than the largest variable
        self._cache = _Cache(pool) if cache else None

    def __len__(self) -> int:
        return len(self._variables)

    def __contains__(self, term: Term) -> bool:
        return term in self._variables

    def __getitem__(self, term: Term) -> int:
        return self._variables[term]

    @property
    def terms(self) -> list[Term]:
        """All terms that have a variable, in the order in which they came."""
        return list(self._variables)

    @property
    def dependencies(self) -> int:
        """How many dependencies the minimal table holds; none without the cache."""
        return len(self._cache.table) if self._cache else 0

    def add(self, term: Term, variable: int) -> None:
        """Give a term its variable."""
        self._variables[term] = variable
        self._by_position.setdefault(term.position, {})[term] = variable
        while variable >= len(self._positions):
            self._positions = np.concatenate([self._positions, np.zeros_like(self._positions)])
            self._truth = np.concatenate([self._truth, np.zeros_like(self._truth)])
        self._positions[variable] = term.position
        self._size = max(self._size, variable + 1)
        if self._cache:
            self._cache.add(term)

    def remove(self, term: Term) -> int:
        """Remove a term; the variable that it had."""
        if self._cache:
            self._cache.remove(term)
        del self._by_position[term.position][term]
        return self._variables.pop(term)

    def renumber(self, variables: dict[Term, int]) -> None:
        """Give the same terms other variables."""
        cache, self._cache = self._cache, None
        self._variables, self._by_position, self._size = {}, {}, 0
        for term, variable in variables.items():
            self.add(term, variable)
        self._cache = cache
        if cache:
            cache.closures.clear()

    def assign(self, new: PreparedFilter) -> Array:
        """The bits of all variables for a new box; valid until the next call.

        With the cache, the terms of the box must have variables.
        """
        if self._cache is None:
            return self.compare(new)
        truth = self._untested(new)
        for term in new.by_position.values():
            weaker, stronger = self._cache.closure(term, self._variables)
            truth[stronger] = LEFT
            truth[weaker] |= RIGHT
        return truth

    def compare(self, new: PreparedFilter) -> Array:
        """The same without the cache; the terms of the box need no variables."""
        truth = self._untested(new)
        for term in new.by_position.values():
            weaker, stronger = self._compared(term)
            truth[stronger] = LEFT
            truth[weaker] |= RIGHT
        return truth

    def _untested(self, new: PreparedFilter) -> Array:
        """The left bits that come from attributes which the new box does not test."""
        untested = np.full(len(self._pool.space.schema), LEFT, np.uint8)
        untested[list(new.by_position)] = 0
        np.take(untested, self._positions[: self._size], out=self._truth[: self._size])
        return self._truth

    def _compared(self, term: Term) -> tuple[list[int], list[int]]:
        """The variables that a term implies and those that imply it, by comparing all."""
        implies = self._pool.implies
        known = self._by_position.get(term.position, {}).items()
        weaker = [variable for other, variable in known if implies(term, other)]
        return weaker, [variable for other, variable in known if implies(other, term)]


class _Cache:
    """The minimal table of dependencies, and what follows from it."""

    def __init__(self, pool: TermPool) -> None:
        self._pool = pool
        self._terms: dict[Node, Term] = {}
        self.table = Dependencies(pool.space.schema, self._subject, self._facts)
        self.closures: dict[Term, tuple[Array, Array]] = {}

    def add(self, term: Term) -> None:
        self._terms[term.node] = term
        self.table.add(term.node)
        self._forget_around(term)

    def remove(self, term: Term) -> None:
        self._forget_around(term)
        self.closures.pop(term, None)
        self.table.remove(term.node)
        del self._terms[term.node]

    def closure(self, term: Term, variables: dict[Term, int]) -> tuple[Array, Array]:
        """The variables that a term implies and those that imply it, itself among both."""
        found = self.closures.get(term)
        if found is None:
            weaker = self._numbers(term, self.table.implied_by, variables)
            stronger = self._numbers(term, self.table.that_imply, variables)
            found = self.closures[term] = weaker, stronger
        return found

    def _numbers(
        self, term: Term, related: Callable[[Node], set[Node]], variables: dict[Term, int]
    ) -> Array:
        nodes = [term.node, *related(term.node)]
        return np.array([variables[self._terms[node]] for node in nodes], np.int64)

    def _forget_around(self, term: Term) -> None:
        """Forget what follows for related terms, which changes when a term comes or goes."""
        if self.closures:
            for node in self.table.implied_by(term.node) | self.table.that_imply(term.node):
                self.closures.pop(self._terms[node], None)

    def _subject(self, node: Node) -> Path | None:
        return self._pool.space.schema.attributes[self._terms[node].position].path

    def _facts(self, u: Node, v: Node, _domain: Domain | None) -> Facts:
        one, other = self._terms[u], self._terms[v]
        return Facts(self._pool.implies(one, other), self._pool.implies(other, one))
