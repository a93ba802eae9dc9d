"""The tracker of publications: who must get one, how far it has come, and where it stopped.

A broker that takes a publication passes it on in the same step. So it is known at once where it
stops, and whether a link that was not trusted excuses the loss (`trusted_links.py`).
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from tamis.events.event_reader import Row
from tamis.routing.messages import Message, Packet, Publish, Receipt, Sends
from tamis.routing.simulation.clients import HeldFilter, SimulatedClient
from tamis.routing.simulation.topology import Topology
from tamis.routing.simulation.trusted_links import TrustedLinks


@dataclass(slots=True, eq=False)
class Obligation:
    """A client that must get a publication, unless all its matching subscriptions end before."""

    subscriptions: list[HeldFilter]
    path: tuple[str, ...]  # from the publisher's broker to the client's
    place: int = -1  # how far on the path it has come
    step: int = 0  # when it came there

    @property
    def here(self) -> str:
        """The last broker on the path that has handled the publication."""
        return self.path[self.place]

    @property
    def ahead(self) -> str | None:
        """The next broker on the path, None at its end."""
        return self.path[self.place + 1] if self.place + 1 < len(self.path) else None

    @property
    def lasts(self) -> bool:
        """Whether one of the subscriptions has not ended."""
        return any(not (one.ended or one.ending) for one in self.subscriptions)


@dataclass(slots=True, eq=False)
class TrackedPublication:
    """An event on its way."""

    key: str
    event: dict[str, Any]
    row: Row | None
    step: int
    refused: bool = False
    due: dict[str, Obligation] = field(default_factory=dict)
    reached: set[str] = field(default_factory=set)


class PublicationTracker:
    """All publications of a simulation.

    If `may_fail` is false, no link may ever fail, and no loss is excused.
    """

    def __init__(
        self,
        topology: Topology,
        links: TrustedLinks,
        counts: Counter[str],
        complain: Callable[[str, str], None],
        *,
        may_fail: bool,
    ) -> None:
        self.by_key: dict[str, TrackedPublication] = {}
        self._topology = topology
        self._links = links
        self._counts = counts
        self._complain = complain
        self._may_fail = may_fail
        self._open: dict[str, TrackedPublication] = {}  # those that a client must still get
        # Packets of a stream that carry publications and may not have been taken yet.
        self._arrived: dict[tuple[str, str, int, int], dict[int, str]] = {}

    def owe(
        self,
        publication: TrackedPublication,
        row: Row,
        source: str,
        clients: Iterable[SimulatedClient],
    ) -> None:
        """Note which clients must get a publication."""
        for client in clients:
            matching = [
                one
                for one in client.subscriptions.values()
                if one.established is not None and not one.ending and one.matches(row)
            ]
            if matching:
                path = self._topology.path(source, client.broker)
                publication.due[client.name] = Obligation(matching, path)
        if publication.due:
            self._open[publication.key] = publication

    def after_step(self, broker: str, message: Message, sends: Sends, step: int) -> None:
        """A broker has handled a message."""
        if isinstance(message, Publish):
            self._reach(broker, f"{message.sender}/{message.id}", sends, step)
        elif isinstance(message, Packet):
            stream = (broker, message.sender, message.session, message.echo)
            if isinstance(message.message, Publish):
                self._arrived.setdefault(stream, {})[message.number] = message.message.id
            if stream in self._arrived:
                self._take(stream, sends, step)

    def _take(self, stream: tuple[str, str, int, int], sends: Sends, step: int) -> None:
        """Find out by its receipt which publications a broker has taken from a stream."""
        broker, neighbour, session, echo = stream
        for to, sent in sends:
            if (
                isinstance(sent, Receipt)
                and to == neighbour
                and (sent.session, sent.echo) == (echo, session)
            ):
                arrived = self._arrived[stream]
                for number in [number for number in arrived if number < sent.number]:
                    self._reach(broker, arrived.pop(number), sends, step)

    def _reach(self, broker: str, key: str, sends: Sends, step: int) -> None:
        """A publication was handled by a broker, which must have passed it on."""
        publication = self._open.get(key)
        if publication is None or broker in publication.reached:
            return
        publication.reached.add(broker)
        passed = {
            to
            for to, sent in sends
            if isinstance(sent, Packet)
            and isinstance(sent.message, Publish)
            and sent.message.id == key
        }
        for name, obligation in list(publication.due.items()):
            if broker in obligation.path:
                obligation.place, obligation.step = obligation.path.index(broker), step
                if obligation.ahead not in passed:
                    self._stopped(publication, name, obligation, on_the_way=False)
        if not publication.due:
            del self._open[key]

    def _stopped(
        self,
        publication: TrackedPublication,
        name: str,
        obligation: Obligation,
        *,
        on_the_way: bool,
    ) -> None:
        """A publication does not get to a client; complain unless that is excused."""
        del publication.due[name]
        if not obligation.lasts:
            self._counts["waived"] += 1
            return
        here, ahead, path = obligation.here, obligation.ahead, obligation.path
        excused = self._links.doubtful_path(path, publication.step, obligation.step) is not None
        if ahead is not None and on_the_way:
            excused = excused or self._links.doubtful(here, ahead, obligation.step)
        if excused and self._may_fail:
            self._counts["excused"] += 1
            return
        ids = ", ".join(f"{one.id} {one.text!r}" for one in obligation.subscriptions)
        where = f"stopped at {here}" if ahead is None else f"stopped at {here} before {ahead}"
        if on_the_way:
            where = f"was sent by {here} to {ahead} and never got there"
        self._complain(
            "lost",
            f"{name} did not get {publication.key} {publication.event} for {ids}: it {where} "
            f"on the path {' '.join(path)}",
        )

    def finish(self) -> None:
        """Nothing is on its way any more."""
        for publication in self._open.values():
            for name, obligation in list(publication.due.items()):
                self._stopped(publication, name, obligation, on_the_way=True)
        self._open.clear()
        self._arrived.clear()
