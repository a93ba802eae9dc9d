"""Covering among boxes by evaluating all of them as a set of MBDs (MBD, section 4, Fig. 7).

The constraints of boxes are variables, and boxes are output nodes; boxes that differ in the
constraint on top and share the rest are one MBD, whose children are evaluated once (Fig. 4). A new
box is an assignment of two bits per variable (`assignments`), and one pass over all MBDs finds the
box that covers it or the boxes that it covers (`kernels/mbd_covering.py`). The two passes of other
approaches, one for each direction, are here for comparison.

MBD is Li, Hou, Jacobsen, "A unified approach to routing, covering and merging in publish/subscribe
systems based on modified binary decision diagrams" (ICDCS 2005).
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice

import numpy as np

from tamis.diagrams.attribute_orders import FIRST_REORDER, HISTORY, attribute_order, ranks_of
from tamis.diagrams.diagram import DO_AND, DO_TRUE, Array, Diagram
from tamis.diagrams.mbds import MbdSet
from tamis.kernels.mbd_covering import RIGHT, find_covered, find_covering, one_pass_covering
from tamis.predicates.id_pool import IdPool
from tamis.relations.tables.assignments import Assignments
from tamis.relations.tables.constraints import Constraint, ConstraintPool, Constraints
from tamis.relations.tables.prepared_filters import PreparedFilter
from tamis.relations.tables.search import SearchResult

MAX_NODES = 2**30
UNUSED = 1_000  # constraints that no box has, and that are kept because the next box may
WORD = (1 << 64) - 1


class MbdSearch:
    """A set of MBDs over the constraints of boxes."""

    def __init__(self, pool: ConstraintPool, *, passes: int = 1, cache: bool = True) -> None:
        self._pool = pool
        self._passes = passes
        self.assignments = Assignments(pool, cache=cache)
        self.diagram, self.mbds = Diagram(MAX_NODES), MbdSet()
        self._rank = list(range(len(pool.space.schema)))
        self._made = 0  # variables
        self._uses: Counter[Constraint] = Counter()  # by boxes
        self._slots: dict[int, int] = {}  # box -> slot
        self._boxes: list[int] = []  # slot -> box
        self._constraints: dict[int, Constraints] = {}  # of boxes
        self._free = IdPool()
        words = max(1, -(-len(pool.space.schema) // 64))
        self._masks: Array = np.zeros((64, words), np.uint64)
        self._always: dict[int, None] = {}  # boxes without constraints
        self._removed = 0  # boxes since the last collection
        self._reorder_at = FIRST_REORDER

    def find(self, new: PreparedFilter) -> SearchResult:
        """Find a box that covers a new one, or else the boxes that the new one covers (Fig. 7)."""
        if self._always:
            return SearchResult(next(iter(self._always)), [])
        return self.evaluate(new, self.assign(new))

    def assign(self, new: PreparedFilter) -> Array:
        """The first step: the bits that a new box gives to all variables, its own included."""
        self._make_variables(new.by_position.values())
        return self.assignments.assign(new)

    def evaluate(self, new: PreparedFilter, truth: Array) -> SearchResult:
        """The second step: evaluate all output nodes."""
        size, outputs = self.mbds.arrays
        found = np.empty(max(1, self._free.size), np.int32)
        store, tested = self.diagram.store, self._split(new.mask)
        if self._passes == 1:
            slot, count = one_pass_covering(size, outputs, truth, self._masks, tested, store, found)
        else:
            slot, count = find_covering(size, outputs, truth, store), 0
            if slot < 0:
                count = find_covered(size, outputs, truth, self._masks, tested, store, found)
        if slot >= 0:
            return SearchResult(self._boxes[slot], [])
        return SearchResult(None, [self._boxes[slot] for slot in found[:count].tolist()])

    def covering(self, new: PreparedFilter) -> Iterator[int]:
        """All boxes that cover a new one."""
        yield from self._always
        truth = self.assignments.compare(new) & RIGHT
        for slot in self.mbds.true_slots(truth, self.diagram).tolist():
            yield self._boxes[slot]

    def testing(self, mask: int) -> Iterator[int]:
        """All boxes that test some attributes, and maybe others."""
        wanted = self._split(mask)
        for box, slot in self._slots.items():
            if not (wanted & ~self._masks[slot]).any():
                yield box
        if not mask:
            yield from self._always

    def add(self, box: int, prepared: PreparedFilter) -> None:
        """Add a box that is not there (Fig. 4)."""
        constraints = prepared.constraints or ()
        if not constraints:
            self._always[box] = None
            return
        self._make_variables(constraints)
        root = self._root(constraints)
        slot = self._slots[box] = self._free.take()
        if slot == len(self._boxes):
            self._boxes.append(box)
        self._boxes[slot] = box
        if slot >= len(self._masks):
            self._masks = np.concatenate([self._masks, np.zeros_like(self._masks)])
        self._masks[slot] = self._split(prepared.mask)
        self._constraints[box] = constraints
        self._uses.update(constraints)
        self.mbds.insert(slot, root, self.diagram)
        if len(self._constraints) >= self._reorder_at:
            self._reorder_at *= 2
            self._reorder()

    def remove(self, box: int, prepared: PreparedFilter) -> None:
        """Remove a box."""
        if not prepared.constraints:
            del self._always[box]
            return
        slot = self._slots.pop(box)
        self.mbds.remove(slot)
        self._free.give_back(slot)
        del self._constraints[box]
        for constraint in prepared.constraints:
            self._uses[constraint] -= 1
        self._removed += 1
        if self._removed > len(self._constraints) + 100:
            self._collect()

    # --- variables

    def _make_variables(self, constraints: Iterable[Constraint]) -> None:
        # First, because the constraints of a new box do not count as used yet and must stay.
        if len(self.assignments) > 2 * len(self._uses) + UNUSED:
            self._drop_unused()
        for constraint in constraints:
            if constraint not in self.assignments:
                self.assignments.add(constraint, self._variable(constraint))

    def _variable(self, constraint: Constraint) -> int:
        self._made += 1
        return self.diagram.new_variable((self._rank[constraint.position] << 40) + self._made)

    def _drop_unused(self) -> None:
        self._uses = +self._uses  # without those that no box has any more
        for constraint in self.assignments.constraints:
            if constraint not in self._uses:
                self.diagram.retire(self.assignments.remove(constraint))
        self._collect()

    # --- diagrams

    def _root(self, constraints: Constraints) -> int:
        program = [DO_TRUE]
        for constraint in constraints:
            program += [self.assignments[constraint], DO_AND]
        return self.diagram.build(np.array(program, np.int64))

    def _collect(self) -> None:
        self.mbds.collect(self.diagram)
        self._removed = 0

    def _reorder(self) -> None:
        """Order the attributes by the boxes seen (section 3.2), and rebuild if the order is new.

        Until then the order is that of the schema, as in the paper.
        """
        history = (
            [constraint.node for constraint in constraints]
            for constraints in islice(self._constraints.values(), HISTORY)
        )
        rank = ranks_of(attribute_order(history, self._pool.space.schema.positions))
        if rank == self._rank:
            return
        self._rank = rank
        self.diagram, self.mbds = Diagram(MAX_NODES), MbdSet()
        self.assignments.renumber(
            {constraint: self._variable(constraint) for constraint in self.assignments.constraints}
        )
        for box, constraints in self._constraints.items():
            self.mbds.insert(self._slots[box], self._root(constraints), self.diagram)

    def _split(self, mask: int) -> Array:
        words = self._masks.shape[1]
        return np.array([mask >> 64 * word & WORD for word in range(words)], np.uint64)
