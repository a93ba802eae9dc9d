"""The ways of publications: who must get one, how far it has come, and where it stopped.

A broker that takes a publication passes it on in the same step. So it is known at once where one
stops, and whether an edge that is not trusted excuses it (`trust`).
"""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from tamis.events import Row
from tamis.routing.messages import Message, Packet, Publish, Receipt, Sends
from tamis.routing.simulation.clients import Member, Standing
from tamis.routing.simulation.topology import Topology
from tamis.routing.simulation.trusted_links import Trust


@dataclass(slots=True, eq=False)
class Obligation:
    """A client that must get a publication, for subscriptions of which one has to last."""

    standings: list[Standing]
    path: tuple[str, ...]  # from the publisher's broker to the client's
    place: int = -1  # how far on the path it has come
    step: int = 0  # when it came there

    @property
    def lasts(self) -> bool:
        return any(not (one.ended or one.ending) for one in self.standings)


@dataclass(slots=True, eq=False)
class Publication:
    """An event on its way."""

    key: str
    event: dict[str, Any]
    row: Row | None
    step: int
    refused: bool = False
    due: dict[str, Obligation] = field(default_factory=dict)
    reached: set[str] = field(default_factory=set)


class Journeys:
    """All publications of a simulation.

    If `may_fail` is false, no link may ever fail, and nothing is excused.
    """

    def __init__(
        self,
        topology: Topology,
        trust: Trust,
        counts: Counter[str],
        complain: Callable[[str, str], None],
        *,
        may_fail: bool,
    ) -> None:
        self.known: dict[str, Publication] = {}
        self._topology = topology
        self._trust = trust
        self._counts = counts
        self._complain = complain
        self._may_fail = may_fail
        self._open: dict[str, Publication] = {}  # those that somebody must still get
        # Packets of a stream that carry publications and may not have been taken yet.
        self._arrived: dict[tuple[str, str, int, int], dict[int, str]] = {}

    def owe(
        self, publication: Publication, row: Row, source: str, members: Iterable[Member]
    ) -> None:
        """Note who must get a publication."""
        for member in members:
            standings = [
                one
                for one in member.subscriptions.values()
                if one.established is not None and not one.ending and one.matches(row)
            ]
            if standings:
                path = self._topology.path(source, member.client.broker)
                publication.due[member.client.name] = Obligation(standings, path)
        if publication.due:
            self._open[publication.key] = publication

    def handled(self, broker: str, message: Message, sends: Sends, step: int) -> None:
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
        for name, duty in list(publication.due.items()):
            if broker in duty.path:
                duty.place, duty.step = duty.path.index(broker), step
                is_last = duty.place + 1 == len(duty.path)
                if is_last or duty.path[duty.place + 1] not in passed:
                    self._stopped(publication, name, duty, on_the_way=False)
        if not publication.due:
            del self._open[key]

    def _stopped(
        self, publication: Publication, name: str, duty: Obligation, *, on_the_way: bool
    ) -> None:
        """A publication does not get any further to a client; complain unless it is excused."""
        del publication.due[name]
        if not duty.lasts:
            self._counts["waived"] += 1
            return
        here = duty.path[duty.place]
        ahead = duty.path[duty.place + 1] if duty.place + 1 < len(duty.path) else None
        trust = self._trust
        excused = trust.doubtful_path(duty.path, publication.step, duty.step) is not None
        if ahead is not None and on_the_way:
            excused = excused or trust.doubtful(here, ahead, duty.step)
        if excused and self._may_fail:
            self._counts["excused"] += 1
            return
        ids = ", ".join(f"{one.id} {one.text!r}" for one in duty.standings)
        where = f"stopped at {here}" if ahead is None else f"stopped at {here} before {ahead}"
        if on_the_way:
            where = f"was sent by {here} to {ahead} and never got there"
        self._complain(
            "lost",
            f"{name} did not get {publication.key} {publication.event} for {ids}: it {where} "
            f"on the path {' '.join(duty.path)}",
        )

    def finish(self) -> None:
        """Nothing is on its way any more."""
        for publication in self._open.values():
            for name, duty in list(publication.due.items()):
                self._stopped(publication, name, duty, on_the_way=True)
        self._open.clear()
        self._arrived.clear()
