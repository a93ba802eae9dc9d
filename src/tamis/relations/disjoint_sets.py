"""Disjoint sets of numbers that are joined one after another (union-find)."""

from collections.abc import Sequence


class DisjointSets:
    """Sets of numbers; a number that was not joined to another is alone in its set."""

    def __init__(self) -> None:
        self._above: dict[int, int] = {}

    def find(self, number: int) -> int:
        """The number that stands for the set of a number."""
        above = self._above
        root = number
        while root in above:
            root = above[root]
        while number != root:
            above[number], number = root, above[number]
        return root

    def join(self, numbers: Sequence[int]) -> None:
        """Make one set of the sets of some numbers."""
        root = self.find(numbers[0])
        for number in numbers[1:]:
            other = self.find(number)
            if other != root:
                self._above[other] = root
