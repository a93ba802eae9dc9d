"""The topology of a network: its brokers, and which are neighbours. Always one tree."""

import itertools
import random
from collections.abc import Iterable, Sequence

from tamis.errors import RoutingError, choose, counted, did_you_mean

Edge = tuple[str, str]

SHAPES = ("line", "star", "tree", "random")


def edge(a: str, b: str) -> Edge:
    """The edge between two brokers, in either order."""
    return (a, b) if a < b else (b, a)


class Topology:
    """Brokers and the edges between them: acyclic and connected, or it is refused."""

    def __init__(self, brokers: Iterable[str], edges: Iterable[Sequence[str]]) -> None:
        self.brokers = tuple(brokers)
        self.edges = tuple(edge(a, b) for a, b in edges)
        _check_names(self.brokers, self.edges)
        self.neighbours: dict[str, list[str]] = {name: [] for name in self.brokers}
        for a, b in self.edges:
            self._join(a, b)
        first = self.brokers[0]
        for name in self.brokers:
            if _path(self.neighbours, first, name) is None:
                raise RoutingError(
                    f"the topology is in pieces: no path between {first} and {name}; "
                    "add an edge that joins them"
                )
        self._paths: dict[tuple[str, str], tuple[str, ...]] = {}

    def _join(self, a: str, b: str) -> None:
        cycle = _path(self.neighbours, a, b)
        if cycle is not None:
            raise RoutingError(
                f"the topology has a cycle: {' - '.join([*cycle, a])}; "
                "events would circulate in it forever; remove one of its edges"
            )
        self.neighbours[a].append(b)
        self.neighbours[b].append(a)

    def path(self, start: str, end: str) -> tuple[str, ...]:
        """The brokers from one to another, both included."""
        known = self._paths.get((start, end))
        if known is None:
            for name in (start, end):
                if name not in self.neighbours:
                    raise RoutingError(_unknown(name, self.brokers))
            known = tuple(_path(self.neighbours, start, end) or ())
            self._paths[start, end] = known
        return known

    def without(self, broker: str) -> "Topology":
        """One broker fewer; its neighbours become neighbours of the first of them."""
        near = self.neighbours[broker]
        kept = [e for e in self.edges if broker not in e]
        joined = [edge(near[0], other) for other in near[1:]]
        return Topology((b for b in self.brokers if b != broker), [*kept, *joined])


def _check_names(names: Sequence[str], pairs: Sequence[Edge]) -> None:
    if not names:
        raise RoutingError("a topology needs a broker")
    for name in names:
        if names.count(name) > 1:
            raise RoutingError(f"the topology lists the broker {name!r} twice")
    for a, b in pairs:
        for name in (a, b):
            if name not in names:
                raise RoutingError(f"edge {a} - {b}: {_unknown(name, names)}")


def _unknown(name: str, names: Sequence[str]) -> str:
    return f"unknown broker {name!r}; {did_you_mean(name, names)}"


def _path(near: dict[str, list[str]], start: str, end: str) -> list[str] | None:
    """The one path between two brokers, or None if they are in different pieces."""
    came_from = {start: start}
    reached = [start]
    for here in reached:
        if here == end:
            path = [end]
            while path[-1] != start:
                path.append(came_from[path[-1]])
            return path[::-1]
        for there in near[here]:
            if there not in came_from:
                came_from[there] = here
                reached.append(there)
    return None


def names_of(count: int) -> list[str]:
    """B1, B2, ..."""
    if count < 1:
        raise RoutingError(f"a topology needs at least 1 broker, not {counted(count, 'broker')}")
    return [f"B{number}" for number in range(1, count + 1)]


def line(count: int) -> Topology:
    """B1 - B2 - B3 - ..."""
    names = names_of(count)
    return Topology(names, itertools.pairwise(names))


def star(count: int) -> Topology:
    """B1 is the only neighbour of all others."""
    names = names_of(count)
    return Topology(names, ((names[0], other) for other in names[1:]))


def random_tree(count: int, chance: random.Random) -> Topology:
    """Each broker is a neighbour of one of those before it."""
    names = names_of(count)
    return Topology(names, ((chance.choice(names[:n]), names[n]) for n in range(1, count)))


def shaped(shape: str, count: int, chance: random.Random) -> Topology:
    """A topology with a shape; "random" is one of the other shapes."""
    choose("topology", shape, SHAPES)
    if shape == "random":
        shape = chance.choice(SHAPES[:-1])
    if shape == "tree":
        return random_tree(count, chance)
    return line(count) if shape == "line" else star(count)
