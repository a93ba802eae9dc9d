"""The links that the oracle relies on.

An edge of the network is *trusted* if both ends are up in the same sessions, and have been since a
moment at which the whole network was settled: then each side knows everything that it must know of
the other. Trust ends when a broker crashes, a link goes down or a session changes, and returns when
the network is settled again and the edge is up. A publication may get lost only where an edge was
not trusted.
"""

import itertools
import math
from dataclasses import dataclass, field
from typing import Any, Protocol

from tamis.routing.simulation.topology import Edge, Topology, edge


class LinkView(Protocol):
    """What the oracle reads of one end of a link."""

    @property
    def is_up(self) -> bool: ...

    @property
    def sessions(self) -> Any: ...

    @property
    def waiting(self) -> int: ...


@dataclass(slots=True)
class _EdgeHistory:
    """An edge, the last known states of its ends, and the steps between which it was doubtful."""

    ends: Edge
    states: dict[str, Any] = field(default_factory=dict)
    is_up: bool = False
    doubts: list[tuple[float, float]] = field(default_factory=lambda: [(-1, math.inf)])

    @property
    def trusted(self) -> bool:
        return self.doubts[-1][1] < math.inf

    def distrust(self, step: int) -> None:
        if self.trusted:
            self.doubts.append((step, math.inf))

    def trust(self, step: int) -> None:
        begin, _ = self.doubts[-1]
        self.doubts[-1] = (begin, step)

    def doubtful(self, begin: float, end: float) -> bool:
        """Whether it was not trusted at some step from `begin` to `end`."""
        return any(first <= end and last >= begin for first, last in self.doubts)


class TrustedLinks:
    """The edges of a topology, watched step by step."""

    def __init__(self, topology: Topology) -> None:
        self._topology = topology
        self._edges = {ends: _EdgeHistory(ends) for ends in topology.edges}
        self._near = {
            broker: [(other, self._edges[edge(broker, other)]) for other in others]
            for broker, others in topology.neighbours.items()
        }
        self._doubtful = len(self._edges)
        self.changes = 0  # how often an edge stopped being trusted
        self.longest_queue = 0  # packets that waited at one end of an edge

    @property
    def complete(self) -> bool:
        """Whether every edge is trusted."""
        return not self._doubtful

    @property
    def missing(self) -> list[Edge]:
        """The edges that are not trusted."""
        return [one.ends for one in self._edges.values() if not one.trusted]

    def observe(self, broker: str, router: Any, step: int) -> None:
        """A broker has handled a message."""
        for other, watched in self._near[broker]:
            link: LinkView = router.link(other)
            self.longest_queue = max(self.longest_queue, link.waiting)
            state = (link.is_up, link.sessions)
            if watched.states.get(broker) != state:
                watched.states[broker] = state
                self._changed(watched, step)

    def crashed(self, broker: str, step: int) -> None:
        """A broker has crashed."""
        for _, watched in self._near[broker]:
            watched.states.pop(broker, None)
            self._changed(watched, step)

    def settled(self, step: int) -> None:
        """The network is settled."""
        for watched in self._edges.values():
            if watched.is_up and not watched.trusted:
                watched.trust(step)
                self._doubtful -= 1

    def _changed(self, watched: _EdgeHistory, step: int) -> None:
        if watched.trusted:
            self.changes += 1
            self._doubtful += 1
        watched.distrust(step)
        one, other = (watched.states.get(end) for end in watched.ends)
        watched.is_up = bool(
            one and other and one[0] and other[0] and tuple(one[1]) == tuple(other[1])[::-1]
        )

    # --- the past

    def doubtful_path(self, path: tuple[str, ...], begin: float, end: float) -> Edge | None:
        """An edge of a path that was not trusted at some step between two."""
        for a, b in itertools.pairwise(path):
            if self.doubtful(a, b, begin, end):
                return edge(a, b)
        return None

    def doubtful(self, a: str, b: str, begin: float, end: float = math.inf) -> bool:
        """Whether the edge between two neighbours was not trusted at some step between two."""
        return self._edges[edge(a, b)].doubtful(begin, end)
