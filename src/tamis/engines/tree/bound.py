"""The analysis of TREE, section 4: its lemmas, its theorem and their corollaries.

K is the number of attributes, K' = K + 1, V the number of values of each, |S| that of distinct
subscriptions. The tree is the one of appendix B, without collapsed chains. A node whose path has j
result edges is visited by V^(K - j) of the V^K events: that is its cost.
"""

import math
from collections.abc import Sequence

import numpy as np

from tamis.engines.tree.growing_tree import GrowingTree
from tamis.kernels import growing_tree as t


def nodes_by_result_edges(tree: GrowingTree) -> list[int]:
    """How many nodes have 0, 1, 2, ... edges on their path that are not *-edges."""
    nodes, _, _, state = tree.arrays
    if state[t.FREE] != t.NONE:
        raise ValueError("nodes were removed from this tree")
    used = nodes[: int(state[t.USED])]
    parents = used[:, t.PARENT]
    is_result = (used[:, t.LABEL] != t.STAR_EDGE) & (parents >= 0)
    edges = is_result.astype(np.int64)
    at = parents.copy()
    while (at >= 0).any():
        above = np.maximum(at, 0)
        edges += np.where(at >= 0, is_result[above], 0)
        at = np.where(at >= 0, parents[above], -1)
    counts: list[int] = np.bincount(edges).tolist()
    return counts


def expected_visits(nodes: Sequence[int], values: int) -> float:
    """C(S), the mean number of nodes that a random event visits (equation 6).

    nodes[j] is how many nodes have j result edges on their path.
    """
    return math.fsum(count / float(values) ** j for j, count in enumerate(nodes))


def most_nodes_of_cost(edges: int, attributes: int, values: int) -> int:
    """Lemma 1: at most V^j (K' choose j + 1) nodes have the cost V^(K - j), j being `edges`."""
    return int(values**edges) * math.comb(attributes + 1, edges + 1)


def simpler_most_nodes_of_cost(edges: int, attributes: int, values: int) -> int:
    """Corollary 2: at most K' (K' V)^j nodes have the cost V^(K - j), j being `edges`."""
    return (attributes + 1) * int(((attributes + 1) * values) ** edges)


def most_nodes(subscriptions: int, attributes: int) -> int:
    """Lemma 2: a tree has at most K' |S| nodes."""
    return (attributes + 1) * subscriptions


def theorem_bound(subscriptions: int, attributes: int, values: int) -> float:
    """The most nodes that a random event visits on average, in a tree of equality tests.

    ``subscriptions`` conjunctions over ``attributes`` K of ``values`` V >= 2 equally likely values
    each. With K' = K + 1 and λ = ln V / (ln V + ln K') (equation 5)::

        C(S) <= V K' (K' |S|^(1-λ) - 1) (ln V + ln K') / ((V K' - 1) ln K')

    It follows from the integral of g(x) = V^K' ((V - 1/K') x + 1)^-λ from 0 to K' |S|, divided by
    V^K, with V K' |S| - |S| + 1 <= V K' |S| and (V K')^(1-λ) = K'. The tree is the one without
    collapsed chains; collapsing only takes nodes away.
    """
    if subscriptions == 0:
        return 0.0
    bar = attributes + 1
    both = math.log(values) + math.log(bar)
    sublinear = math.pow(subscriptions, math.log(bar) / both)
    return values * bar * (bar * sublinear - 1) * both / ((values * bar - 1) * math.log(bar))


def simpler_bound(subscriptions: int, attributes: int, values: int) -> float:
    """Corollary 1: C(S) <= 2 K' |S|^(1-λ) (ln V + ln K')."""
    bar = attributes + 1
    both = math.log(values) + math.log(bar)
    return 2 * bar * math.pow(subscriptions, math.log(bar) / both) * both
