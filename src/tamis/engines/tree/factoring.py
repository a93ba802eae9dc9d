"""Which attributes the equality tree is factored by (TREE, section 5)."""

import math
from collections.abc import Sequence

import numpy as np

from tamis.engines.tree.arrays import Array
from tamis.engines.tree.distinct_conjunctions import ConjunctionStore
from tamis.engines.tree.elements import DistinctElements
from tamis.engines.tree.options import TreeOptions
from tamis.errors import CapacityError, OptionError, unknown_attribute
from tamis.kernels.tree_factoring import Factors, count_copies, number_values
from tamis.schema import Schema

MOST_SUBTREES = 65_536
# Index attributes that tamis chooses may make the tree at most this many times as large.
MOST_COPIES = 8


class Factoring:
    """Index attributes, chosen or given, and what they cost."""

    def __init__(self, options: TreeOptions, schema: Schema, elements: DistinctElements) -> None:
        self._options = options
        self._elements = elements
        self._attributes = len(schema)
        given = options.index_attributes
        self.number = given if isinstance(given, int) else len(given)
        self._named: tuple[int, ...] | None = None
        if not isinstance(given, int):
            for name in given:
                if name not in schema:
                    raise OptionError(f"index_attributes: {unknown_attribute(name, schema)}")
            self._named = tuple(schema.positions[schema[name].path] for name in given)
        # For each set of given attributes that groups test: the nodes of one copy of these groups.
        self._weights: dict[frozenset[int], int] = {}

    # --- given attributes: a conjunction is refused when it comes, if there is no room

    def count(self, sequence: Array, sign: int) -> None:
        """Count a conjunction that comes (+1) or goes (-1)."""
        if self._named:
            tested = self._tested(sequence)
            weight = self._weights.get(tested, 0) + sign * (len(sequence) + 1)
            self._weights[tested] = weight
            if not weight:
                del self._weights[tested]

    def check(self, sequence: Array) -> None:
        """`CapacityError` if the tree with one more conjunction could not be factored.

        Both limits are checked against upper bounds: values that only the general tree tests count,
        too, and copies are counted as if they shared no nodes.
        """
        if not self._named:
            return
        radix = {a: self._elements.classes(a) for a in self._named}
        subtrees = math.prod(radix.values())
        if subtrees > MOST_SUBTREES:
            raise CapacityError(
                f"the index attributes have {subtrees:,} combinations of values, and there can be "
                f"{MOST_SUBTREES:,} subtrees"
            )
        weights = [*self._weights.items(), (self._tested(sequence), len(sequence) + 1)]
        total = sum(
            weight * math.prod(n for a, n in radix.items() if a not in tested)
            for tested, weight in weights
        )
        if total > self._options.max_nodes:
            raise CapacityError(
                f"factored by its index attributes, the matching tree may need {total:,} nodes, "
                f"and may have {self._options.max_nodes:,} (option max_nodes)"
            )

    def _tested(self, sequence: Array) -> frozenset[int]:
        attributes = set(self._elements.attributes(sequence))
        return frozenset(attributes.intersection(self._named or ()))

    # --- when the tree is built

    def plan(self, groups: ConjunctionStore, members: Array) -> Factors:
        """index[*, 3] and classes[e] for `place_in_subtrees`."""
        rows = self._elements.rows
        classes = np.zeros(len(rows), np.int32)
        counts = np.zeros((self._attributes, 2), np.int64)
        if not self.number or not len(members):
            return np.zeros((0, 3), np.int64), classes
        number_values(groups.arrays, rows, members, classes, counts)
        named = self._named
        chosen = self._choose(groups, members, counts) if named is None else named
        index = np.zeros((len(chosen), 3), np.int64)
        stride = 1
        for place, attribute in enumerate(chosen):
            number = int(counts[attribute, 1]) + 1
            index[place] = attribute, number, stride
            stride *= number
        return index, classes

    def _choose(self, groups: ConjunctionStore, members: Array, counts: Array) -> Sequence[int]:
        """The attributes that are tested most, within the limits of subtrees and copies."""
        rows = self._elements.rows
        radix = np.zeros(self._attributes + 1, np.int64)
        room = count_copies(groups.arrays, rows, members, radix)[1] * MOST_COPIES
        room = min(room, self._options.max_nodes / 2)
        chosen: list[int] = []
        subtrees = 1
        for attribute in np.argsort(-counts[:, 0], kind="stable").tolist():
            number = int(counts[attribute, 1]) + 1
            if len(chosen) == self.number or number == 1:
                break
            if subtrees * number > MOST_SUBTREES:
                continue
            radix[attribute] = number
            if count_copies(groups.arrays, rows, members, radix)[1] > room:
                radix[attribute] = 0
                continue
            chosen.append(attribute)
            subtrees *= number
        return chosen
