"""Trees as the paper draws them, for tests and documents."""

from collections.abc import Iterable
from dataclasses import dataclass

from tamis.engines.tree.distinct_conjunctions import ConjunctionStore
from tamis.engines.tree.elements import DistinctElements
from tamis.engines.tree.growing_tree import GrowingTree
from tamis.engines.tree.static_tree import StaticTree
from tamis.kernels import growing_tree as t
from tamis.kernels import static_tree as s
from tamis.kernels.tree_conjunctions import NEXT
from tamis.kernels.tree_factoring import I_ATTRIBUTE, I_CLASSES, I_STRIDE
from tamis.language.printer import print_tree
from tamis.schema import Schema

STAR = "*"
OTHER = "other"

# The labels of the edges from the root to a node. In a factored tree the first ones are the values
# of the index attributes to which the subtree belongs.
Path = tuple[str, ...]


@dataclass(frozen=True)
class NodeView:
    """A node: its test, or the slots of a leaf."""

    test: str = ""
    slots: frozenset[int] = frozenset()
    successors: frozenset[Path] = frozenset()


Outline = dict[Path, NodeView]


class Outliner:
    """Writes the trees of an engine as outlines."""

    def __init__(
        self, schema: Schema, elements: DistinctElements, groups: ConjunctionStore
    ) -> None:
        self._names = [attribute.name for attribute in schema.attributes]
        self._elements = elements
        self._groups = groups

    def growing(self, tree: GrowingTree) -> Outline:
        """The outline of a growing tree."""
        nodes, _, roots, state = tree.arrays
        children: dict[int, list[int]] = {}
        free, v = set(), int(state[t.FREE])
        while v >= 0:
            free.add(v)
            v = int(nodes[v, t.STAR])
        for v in set(range(int(state[t.USED]))) - free:
            children.setdefault(int(nodes[v, t.PARENT]), []).append(v)
        found: Outline = {}
        stack: list[tuple[Path, int]] = [((), int(root)) for root in roots if root >= 0]
        while stack:
            path, v = stack.pop()
            test = int(nodes[v, t.TEST])
            below = children.get(v, ())
            stack += [((*path, self._label(int(nodes[c, t.LABEL]))), c) for c in below]
            if test == t.LEAF:
                found[path] = NodeView(slots=self._slots(self._leaf_groups(tree, v)))
            else:
                found[path] = NodeView(self._names[test] if test >= 0 else self._test(test))
        return found

    def static(self, tree: StaticTree) -> Outline:
        """The outline of an annotated tree."""
        nodes, successors, roots, order, _, _, held = tree.arrays
        stack = [
            (self._subtree(tree, place), int(root)) for place, root in enumerate(roots) if root >= 0
        ]
        paths: dict[int, Path] = {}
        while stack:
            path, v = stack.pop()
            paths[v] = path
            first, count = int(nodes[v, s.BLOCK]), int(nodes[v, s.COUNT])
            below = list(range(first, first + max(count, 0)))
            if count >= 0 and nodes[v, s.STAR] >= 0:
                below.append(int(nodes[v, s.STAR]))
            stack += [((*path, self._label(int(nodes[c, s.LABEL]))), c) for c in below]
        found: Outline = {}
        for v, path in paths.items():
            listed = successors[nodes[v, s.SUCCESSORS] : nodes[v, s.END]] >> 1
            after = [paths[w] for w in listed.tolist()]
            if nodes[v, s.COUNT] < 0:
                slots = self._slots(held[nodes[v, s.BLOCK] : nodes[v, s.STAR]].tolist())
                found[path] = NodeView(slots=slots, successors=frozenset(after))
                continue
            if nodes[v, s.STAR] >= 0 and tree.annotated:
                after.append(paths[int(nodes[v, s.STAR])])
            test = self._names[order[nodes[v, s.LEVEL]]]
            found[path] = NodeView(test, successors=frozenset(after))
        return found

    def _label(self, element: int) -> str:
        if element == t.STAR_EDGE:
            return STAR
        parts = self._elements.nodes(element)
        return " AND ".join(print_tree(part, suffixes=False) for part in parts)

    def _test(self, test: int) -> str:
        return self._label(t.BOOLEAN - test)

    def _subtree(self, tree: StaticTree, place: int) -> Path:
        _, _, _, _, index, classes, _ = tree.arrays
        path = []
        for row in index:
            wanted = place // row[I_STRIDE] % row[I_CLASSES]
            values = self._elements.examined.get(int(row[I_ATTRIBUTE]), {})
            text = f"{self._names[row[I_ATTRIBUTE]]} = {OTHER}"
            for element in values.values():
                if wanted and element < len(classes) and classes[element] == wanted:
                    text = self._label(element)
            path.append(text)
        return tuple(path)

    def _leaf_groups(self, tree: GrowingTree, leaf: int) -> Iterable[int]:
        group = int(tree.arrays[0][leaf, t.CHILD])
        while group >= 0:
            yield group
            group = int(self._groups.rows[group, NEXT])

    def _slots(self, groups: Iterable[int]) -> frozenset[int]:
        return frozenset(slot for group in groups for slot in self._groups.slots_of(group))
