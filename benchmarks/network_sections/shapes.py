"""The shapes of the networks that are measured: seven brokers in a line, a star and a tree."""

from dataclasses import dataclass

from tamis.routing.simulation.topology import Topology

Link = tuple[str, str]


@dataclass(frozen=True)
class Shape:
    """A network: who is linked with whom, where clients are, and where one broker alone would be.

    `edges` have subscribers, and two of them have publishers, as far from each other as can be.
    """

    name: str
    links: tuple[Link, ...]
    edges: tuple[str, ...]
    publishers: tuple[str, str]
    centre: str

    @property
    def brokers(self) -> tuple[str, ...]:
        """All brokers, by their names."""
        return tuple(sorted({name for link in self.links for name in link}))

    def topology(self) -> Topology:
        """The shape as a graph."""
        return Topology(self.brokers, self.links)

    def distance(self, one: str, other: str) -> int:
        """How many links are between two brokers."""
        return len(self.topology().path(one, other)) - 1


def _names(*numbers: int) -> tuple[str, ...]:
    return tuple(f"b{number}" for number in numbers)


def _links(*pairs: tuple[int, int]) -> tuple[Link, ...]:
    return tuple((f"b{one}", f"b{other}") for one, other in pairs)


# Of each link the second broker is called by the first.
SHAPES = {
    shape.name: shape
    for shape in (
        Shape(
            "line", _links((2, 1), (3, 2), (4, 3), (5, 4), (6, 5), (7, 6)),
            _names(*range(1, 8)), ("b1", "b7"), "b4",
        ),
        Shape(
            "star", _links((2, 1), (3, 1), (4, 1), (5, 1), (6, 1), (7, 1)),
            _names(*range(2, 8)), ("b2", "b7"), "b1",
        ),
        Shape(
            "tree", _links((2, 1), (3, 1), (4, 2), (5, 2), (6, 3), (7, 3)),
            _names(4, 5, 6, 7), ("b4", "b7"), "b1",
        ),
    )
}  # fmt: skip
