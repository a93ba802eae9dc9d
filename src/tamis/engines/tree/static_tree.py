"""The annotated and factored tree of equalities (TREE, section 5)."""

from collections.abc import Callable

import numpy as np

from tamis.engines.tree.arrays import Array
from tamis.engines.tree.distinct_conjunctions import ConjunctionStore
from tamis.engines.tree.elements import DistinctElements
from tamis.engines.tree.growing_tree import GrowingTree
from tamis.engines.tree.options import LARGEST_TREE, TreeOptions
from tamis.kernels import growing_tree as t
from tamis.kernels import static_tree as s
from tamis.kernels.tree_factoring import (
    I_ATTRIBUTE,
    I_CLASSES,
    FactoringPlan,
    Factors,
    count_copies,
    place_in_subtrees,
)
from tamis.kernels.tree_match import EventArrays

# Successors that a node may have on average; if there would be more, the tree has none.
MOST_SUCCESSORS = 32
DEEPEST = 2**16  # length of the stack on which successors of successors are found


class StaticTree:
    """A tree that never changes; its leaves hold groups, whose slots come and go."""

    def __init__(
        self, elements: DistinctElements, groups: ConjunctionStore, members: Array,
        factors: Factors, options: TreeOptions, attributes: int,
    ) -> None:  # fmt: skip
        index, classes = factors
        self._groups = groups
        self.size = len(members)  # groups
        order = np.setdiff1d(np.arange(attributes), index[:, I_ATTRIBUTE]).astype(np.int32)
        subtrees = int(np.prod(index[:, I_CLASSES]))
        growing = GrowingTree(elements, groups, roots=subtrees)
        radix = np.zeros(attributes + 1, np.int64)
        radix[index[:, I_ATTRIBUTE]] = index[:, I_CLASSES]
        times = count_copies(groups.arrays, elements.rows, members, radix)[0]
        links = np.zeros((int(times) + 1, 2), np.int32)
        plan = (index, classes, links, order[:0] if options.collapse else order)
        _place_in_subtrees(growing, elements, groups, members, plan)
        self.nodes, self.edges = growing.nodes, growing.edges
        nodes = np.zeros((self.nodes, s.STATIC_COLUMNS), np.int32)
        parents = np.zeros(self.nodes, np.int32)
        roots = np.zeros(subtrees, np.int32)
        held = np.zeros(len(links), np.int32)
        s.freeze(growing.arrays, links, order, parents, (nodes, roots, held))
        del growing, plan, links
        self.subtrees = int(np.count_nonzero(roots >= 0))
        successors = None
        if options.successors != "none":
            refined = options.successors == "refined"
            successors = _successors(nodes, parents, refined=refined)
        s.set_gates(nodes)
        self.annotated = successors is not None
        self.successors = 0 if successors is None else len(successors)
        if successors is None:
            successors = np.zeros(0, np.int32)
        self.arrays: s.Static = (nodes, successors, roots, order, index, classes, held)

    def search(self, event: EventArrays) -> bool:
        """Find the conjunctions of an event; False if its stack is too short."""
        return s.match_static(self.arrays, self.annotated, self._groups.arrays, event)


def _place_in_subtrees(
    growing: GrowingTree,
    elements: DistinctElements,
    groups: ConjunctionStore,
    members: Array,
    plan: FactoringPlan,
) -> None:
    growing.arrays[3][t.LIMIT] = 2 * LARGEST_TREE
    done = 0
    while done < len(members):
        done = place_in_subtrees(
            growing.arrays, elements.arrays, groups.arrays, members, plan, done
        )
        if done < len(members):
            growing.make_room(t.NO_NODES)


def _successors(nodes: Array, parents: Array, *, refined: bool) -> Array | None:
    """The successors of all nodes, None if there are too many."""
    order = np.argsort(nodes[:, s.ENTRY], kind="stable")
    most = min(MOST_SUCCESSORS * len(nodes) + 64, 2**31 - 1)  # places of 32 bits
    stack = np.zeros(DEEPEST, np.int64)
    plain = _fitting(
        most, len(nodes), lambda pool: s.annotate_successors(nodes, parents, order, pool, stack)
    )
    if plain is None or not refined:
        return plain
    ends = np.zeros((len(nodes), 2), np.int32)
    better = _fitting(
        most, len(nodes), lambda pool: s.refine_successors(nodes, plain, pool, stack, ends)
    )
    if better is not None:
        nodes[:, s.SUCCESSORS : s.END + 1] = ends
    return better


def _fitting(most: int, start: int, run: Callable[[Array], int]) -> Array | None:
    """What `run` writes into a pool that is large enough; None if that would exceed `most`.

    The pool is never filled to its end, so that `run` can tell whether it was large enough.
    """
    size = start + 64
    while True:
        pool = np.zeros(min(size, most), np.int32)
        used = run(pool)
        if used != s.NO_SPACE:
            return pool[:used].copy()
        if size >= most:
            return None
        size *= 2
