"""Orders in which EvalBDD visits the nodes of a shared diagram (BDD, section 7).

BDD numbers nodes by variable, and tried "simple scheduling heuristics for changing the enumeration
order", which it does not describe, to have fewer cache misses. Any order is possible in which
children come before their parents. These are tried:

* ``by variable``: as the paper numbers nodes; within a variable in the order of making
* ``by variable, sorted by children``: neighbours read neighbouring values
* ``by variable, shuffled``: as far from that as possible
* ``by variable, tested at each node``: as the first, but what a variable is worth is looked up for
  each node, as in Fig. 3, and not once for all nodes of the variable
* ``depth first``: a query's nodes are near each other; the values of variables are mixed
"""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from tamis.diagrams.diagram import Array
from tamis.engines import make_engine
from tamis.engines.bdd import BddEngine
from tamis.events.event_reader import Row
from tamis.kernels.bdd_evaluation import VariableRanges, eval_bdd, true_slots
from tamis.kernels.bdd_nodes import TRUE, NodeStore
from tamis.papers.contest import Answers, draw, fill, time_in_turns
from tamis.papers.measurements import Point
from tamis.workloads import workload


class Nodes(NamedTuple):
    """The nodes of an engine after a collection: by variable, the lowest ones first."""

    store: NodeStore
    ranges: VariableRanges
    roots: Array
    size: int  # false and true included

    @classmethod
    def of(cls, engine: BddEngine, queries: int) -> "Nodes":
        engine.collect()
        diagram = engine.diagram
        return cls(
            diagram.store, diagram.variable_ranges, engine.roots[:queries].copy(), diagram.nodes + 2
        )

    def groups(self) -> Iterator[tuple[int, int]]:
        """Where the nodes of each variable are."""
        starts = self.ranges.starts.tolist()
        yield from pairwise(starts)

    def renumbered(self, order: Array, *, grouped: bool) -> "Nodes":
        """The same diagram; `order` has all old numbers, children before their parents.

        If `order` is `grouped`, it has the nodes of each variable where they were.
        """
        places = np.arange(self.size, dtype=np.int32)
        places[order] = np.arange(2, self.size)
        label, low, high = (array[: self.size].copy() for array in self.store[:3])
        label[2:] = self.store.label[order]
        low[2:] = places[self.store.low[order]]
        high[2:] = places[self.store.high[order]]
        none = VariableRanges(np.empty(0, np.int64), np.array([2], np.int64))
        return Nodes(
            self.store._replace(label=label, low=low, high=high),
            self.ranges if grouped else none, places[self.roots], self.size,
        )  # fmt: skip


def sorted_by_children(nodes: Nodes) -> Array:
    """Each variable's nodes in the order of their low children, then of their high ones."""
    places = np.arange(nodes.size)
    order = []
    for start, end in nodes.groups():
        low, high = nodes.store.low[start:end], nodes.store.high[start:end]
        some = start + np.lexsort((places[high], places[low]))
        places[some] = np.arange(start, end)
        order.append(some)
    return np.concatenate(order)


def shuffled(nodes: Nodes, seed: int) -> Array:
    """Each variable's nodes in a random order."""
    chance = np.random.default_rng(seed)
    return np.concatenate(
        [start + chance.permutation(end - start) for start, end in nodes.groups()]
    )


def depth_first(nodes: Nodes) -> Array:
    """The nodes of the first query, each after its children, then those of the next one."""
    low, high = nodes.store.low.tolist(), nodes.store.high.tolist()
    seen = bytearray(nodes.size)
    order: list[int] = []
    for root in nodes.roots.tolist():
        waiting = [root]
        while waiting:
            node = waiting.pop()
            if node < 0:  # its children are done
                order.append(~node)
            elif node > TRUE and not seen[node]:
                seen[node] = 1
                waiting += [~node, high[node], low[node]]
    return np.array(order)


def times_by_enumeration(size: int, seed: int, parameters: Mapping[str, Any]) -> Iterator[Point]:
    """Measure EvalBDD on the diagram of `size` queries in several orders of its nodes:
    ``evaluation``, microseconds for one total message without listing its matches.
    """
    data = draw(workload("bdd"), size, parameters["events"], seed, semantics="total")
    engine: Any = make_engine("bdd", data.semantics)
    fill(engine, data.expressions)
    nodes = Nodes.of(engine, size)
    truths = [_truth(engine, row) for row in data.rows]
    same = np.arange(2, nodes.size)
    orders = {
        "by variable": (same, True),
        "by variable, sorted by children": (sorted_by_children(nodes), True),
        "by variable, shuffled": (shuffled(nodes, seed), True),
        "by variable, tested at each node": (same, False),
        "depth first": (depth_first(nodes), False),
    }
    answers = Answers()
    works = {}
    for name, (order, grouped) in orders.items():
        some = nodes.renumbered(order, grouped=grouped)
        value = np.zeros(nodes.size, np.uint8)

        def evaluate(truth: Array, some: Nodes = some, value: Array = value) -> None:
            eval_bdd(truth, some.ranges, some.store, value)

        works[name] = evaluate
        answers.compare(name, [_matches(some, truth, value) for truth in truths[:5]])
    # The orders within a variable may differ by little.
    nothing = dict.fromkeys(works, lambda _: None)
    for name, seconds in time_in_turns(works, truths, nothing).items():
        yield Point(name, "evaluation", size, 1e6 * seconds)


def _truth(engine: BddEngine, row: Row) -> Array:
    truth = np.zeros(engine.diagram.variables, np.uint8)
    truth[engine.variable_of[engine.predicates.satisfied(row)]] = 1
    return truth


def _matches(nodes: Nodes, truth: Array, value: Array) -> Array:
    eval_bdd(truth, nodes.ranges, nodes.store, value)
    found = np.empty(nodes.roots.size + 1, np.int32)
    return found[: true_slots(value, nodes.roots, found)]
