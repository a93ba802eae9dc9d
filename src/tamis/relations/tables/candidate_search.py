"""Covering among boxes by candidates: few boxes are compared, however many there are.

A box can only cover one that tests all of its attributes. So boxes are kept by the set of
attributes that they test, and a search visits the subsets and supersets of the new box's set. A
group of many boxes has postings: under each constraint, the boxes that have it. The search takes
the attribute with the fewest boxes under related constraints, and compares these.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

import numpy as np

from tamis.predicates.id_pool import IdPool
from tamis.relations.tables.constraints import Constraint, ConstraintPool, Constraints
from tamis.relations.tables.postings import Postings
from tamis.relations.tables.prepared_filters import PreparedFilter
from tamis.relations.tables.search import SearchResult

Array = np.ndarray[Any, Any]

FLAT = 24  # boxes of one group that are all compared
NESTED = 64  # the same for the boxes of a group that share a constraint
FEW = 16  # candidates for which no better attribute is looked for
WORTH = 4  # another attribute must have this many times fewer candidates
WORD = (1 << 64) - 1


class CandidateSearch:
    """Boxes by the attributes that they test."""

    def __init__(self, pool: ConstraintPool) -> None:
        self._pool = pool
        self._groups: dict[int, _Group] = {}  # by mask
        self._sets = _AttributeSets(len(pool.space.schema))

    def find(self, new: PreparedFilter) -> SearchResult:
        """Find a box that covers a new one, or else the boxes that the new one covers."""
        for group in self._narrower(new.mask):
            for box in group.covering(new):
                return SearchResult(box, [])
        return SearchResult(None, list(self._covered(new)))

    def add(self, box: int, prepared: PreparedFilter) -> None:
        """Add a box that is not there."""
        group = self._groups.get(prepared.mask)
        if group is None:
            group = self._groups[prepared.mask] = _Group(self._pool)
            self._sets.add(prepared.mask)
        assert prepared.constraints is not None  # noqa: S101 - a general filter has its own search
        group.add(box, prepared.constraints)

    def remove(self, box: int, prepared: PreparedFilter) -> None:
        """Remove a box."""
        group = self._groups[prepared.mask]
        group.remove(box)
        if not group.members:
            del self._groups[prepared.mask]
            self._sets.remove(prepared.mask)

    def covering(self, new: PreparedFilter) -> Iterator[int]:
        """All boxes that cover a new one."""
        return chain.from_iterable(group.covering(new) for group in self._narrower(new.mask))

    def testing(self, mask: int) -> Iterator[int]:
        """All boxes that test some attributes, and maybe others."""
        return chain.from_iterable(self._groups[m].members for m in self._sets.supersets(mask))

    def _covered(self, new: PreparedFilter) -> Iterator[int]:
        for mask in self._sets.supersets(new.mask):
            yield from self._groups[mask].covered(new)

    def _narrower(self, mask: int) -> Iterator["_Group"]:
        """The groups that test no other attributes."""
        if mask.bit_count() < 20 and 1 << mask.bit_count() <= 8 + len(self._groups) // 8:
            subset = mask  # every subset in descending order, the empty one last
            while True:
                group = self._groups.get(subset)
                if group is not None:
                    yield group
                if not subset:
                    return
                subset = (subset - 1) & mask
        for subset in self._sets.subsets(mask):
            yield self._groups[subset]


class _Group:
    """The boxes that test the same attributes; in postings once there are many.

    Under a constraint that many boxes have they are in postings again, by the other attributes;
    only once, because otherwise every pair of attributes of a box, and more, would have an entry.
    """

    def __init__(self, pool: ConstraintPool, used: int | None = None) -> None:
        self._pool = pool
        self._used = used  # the attribute of the constraint that all members have, None at the top
        self._flat = FLAT if used is None else NESTED
        self.members: dict[int, Constraints] = {}
        self._postings: dict[int, Postings[_Group]] = {}  # by position

    def add(self, box: int, constraints: Constraints) -> None:
        self.members[box] = constraints
        if self._postings:
            self._post(box, constraints)
        elif len(self.members) > self._flat:
            attributes = self._pool.space.schema.attributes
            for constraint in constraints:
                if constraint.position != self._used:
                    self._postings[constraint.position] = Postings(attributes[constraint.position])
            for member, held in self.members.items():
                self._post(member, held)

    def _post(self, box: int, constraints: Constraints) -> None:
        for constraint in constraints:
            postings = self._postings.get(constraint.position)
            if postings is not None:
                under = postings.under.get(constraint)
                if under is None:
                    under = (
                        _Group(self._pool, constraint.position) if self._used is None else _Leaf()
                    )
                    postings.add(constraint, under)
                under.add(box, constraints)

    def remove(self, box: int) -> None:
        constraints = self.members.pop(box)
        if len(self.members) < self._flat // 2:
            self._postings.clear()
        for constraint in constraints:
            postings = self._postings.get(constraint.position)
            if postings is not None:
                under = postings.under[constraint]
                under.remove(box)
                if not under.members:
                    postings.remove(constraint)

    def covering(self, new: PreparedFilter) -> Iterator[int]:
        """The members that cover a new box, which tests all their attributes."""
        members, implies, of_new = self.members, self._pool.implies, new.by_position
        for box in self.candidates(new, covering=True):
            for weak in members[box]:
                strong = of_new[weak.position]
                if strong is weak:
                    continue
                if strong.is_interval and weak.is_interval:
                    if weak.low > strong.low or weak.high < strong.high:
                        break
                elif not implies(strong, weak):
                    break
            else:
                yield box

    def covered(self, new: PreparedFilter) -> Iterator[int]:
        """The members that a new box covers; they test all its attributes."""
        members, implies, of_new = self.members, self._pool.implies, new.by_position
        for box in self.candidates(new, covering=False):
            for strong in members[box]:
                weak = of_new.get(strong.position)
                if weak is None or strong is weak:
                    continue
                if strong.is_interval and weak.is_interval:
                    if weak.low > strong.low or weak.high < strong.high:
                        break
                elif not implies(strong, weak):
                    break
            else:
                yield box

    def candidates(self, new: PreparedFilter, *, covering: bool) -> Iterable[int]:
        """The members under related constraints of the attribute for which these are the fewest."""
        if not self._postings:
            return self.members
        shared = [
            constraint
            for constraint in new.by_position.values()
            if constraint.position in self._postings
        ]
        shared.sort(
            key=lambda constraint: constraint.members is None
        )  # those of single values first
        best: list[_Group] | None = None
        limit = len(self.members)
        for constraint in shared:
            found = self._under(constraint, limit, covering=covering)
            if found is not None:
                best, limit = found, sum(len(one.members) for one in found) // WORTH
                if limit <= FEW:
                    break
        if best is None:
            return self.members
        return chain.from_iterable(one.candidates(new, covering=covering) for one in best)

    def _under(
        self, constraint: Constraint, limit: int, *, covering: bool
    ) -> list["_Group"] | None:
        """The boxes under each related constraint, None if finding them takes `limit` steps."""
        postings = self._postings[constraint.position]
        implies = self._pool.implies
        found: dict[Constraint, _Group] = {}
        steps = 0
        for other in postings.weaker(constraint) if covering else postings.stronger(constraint):
            steps += 1
            strong, weak = (constraint, other) if covering else (other, constraint)
            if strong.is_interval and weak.is_interval:
                related = weak.low <= strong.low and strong.high <= weak.high
            else:
                related = implies(strong, weak)
            if related and other not in found:
                under = found[other] = postings.under[other]
                steps += len(under.members)
            if steps >= limit:
                return None
        return list(found.values())


class _Leaf(_Group):
    """The boxes under a constraint of an inner group."""

    def __init__(self) -> None:
        self.members = {}

    def add(self, box: int, constraints: Constraints) -> None:
        self.members[box] = constraints

    def remove(self, box: int) -> None:
        del self.members[box]

    def candidates(self, new: PreparedFilter, *, covering: bool) -> Iterable[int]:  # noqa: ARG002 - all
        return self.members


class _AttributeSets:
    """Sets of attributes as rows of 64-bit words, to find subsets and supersets among them."""

    def __init__(self, attributes: int) -> None:
        self._words = max(1, -(-attributes // 64))
        self._rows: Array = np.zeros((self._words, 64), np.uint64)
        self._taken: Array = np.zeros(64, np.bool_)
        self._masks: list[int] = []
        self._places: dict[int, int] = {}
        self._pool = IdPool()

    def add(self, mask: int) -> None:
        place = self._places[mask] = self._pool.take()
        if place == len(self._masks):
            self._masks.append(mask)
        self._masks[place] = mask
        if place >= self._taken.size:
            self._rows = np.concatenate([self._rows, np.zeros_like(self._rows)], axis=1)
            self._taken = np.concatenate([self._taken, np.zeros_like(self._taken)])
        self._rows[:, place] = self._split(mask)
        self._taken[place] = True

    def remove(self, mask: int) -> None:
        place = self._places.pop(mask)
        self._taken[place] = False
        self._pool.give_back(place)

    def subsets(self, mask: int) -> list[int]:
        """The sets that are subsets of one."""
        return self._chosen([(row & ~word) == 0 for row, word in self._pairs(mask)])

    def supersets(self, mask: int) -> list[int]:
        """The sets that are supersets of one."""
        return self._chosen([(row & word) == word for row, word in self._pairs(mask)])

    def _pairs(self, mask: int) -> Iterator[tuple[Array, np.uint64]]:
        rows = self._rows[:, : len(self._masks)]
        return zip(rows, self._split(mask), strict=True)

    def _chosen(self, tests: list[Array]) -> list[int]:
        chosen = self._taken[: len(self._masks)]
        for test in tests:
            chosen = chosen & test
        return [self._masks[place] for place in np.flatnonzero(chosen)]

    def _split(self, mask: int) -> list[np.uint64]:
        return [np.uint64(mask >> 64 * word & WORD) for word in range(self._words)]
