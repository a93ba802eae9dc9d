"""The neighbours of a broker: how they are reached, lost, and told of filters."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tamis.routing.announcements import Announcer
from tamis.routing.counters import Counters
from tamis.routing.kinds import ADDING, REMOVING, FilterKind
from tamis.routing.links import Link
from tamis.routing.messages import Hello, LinkMessage, Payload, Receipt
from tamis.routing.outbox import Outbox


@dataclass(slots=True)
class Neighbour:
    """A broker next to this one: the link to it, and what is announced over that link."""

    link: Link
    announcers: dict[FilterKind, Announcer]

    @property
    def name(self) -> str:
        return self.link.neighbour

    @property
    def is_up(self) -> bool:
        """Whether it can be reached."""
        return self.link.is_up

    @property
    def is_settled(self) -> bool:
        """Whether it has received and acknowledged everything that it has to know."""
        announcers = self.announcers.values()
        return not self.link.waits_for_control and all(one.is_settled for one in announcers)

    def next_times(self) -> Iterator[float | None]:
        """When its link, or a merging policy, needs a Tick; None where no time is set."""
        yield self.link.next_time()
        for announcer in self.announcers.values():
            yield announcer.reduction.next_time()


class Neighbours:
    """The neighbours of a broker by name.

    `forget` is called with the name of a neighbour whose filters do not count any more, because it
    has failed or has started a new session.
    """

    def __init__(self, outbox: Outbox, counters: Counters, forget: Callable[[str], None]) -> None:
        self._outbox = outbox
        self._counters = counters
        self._forget = forget
        self._by_name: dict[str, Neighbour] = {}

    def __contains__(self, name: str) -> bool:
        return name in self._by_name

    def __getitem__(self, name: str) -> Neighbour:
        return self._by_name[name]

    def __iter__(self) -> Iterator[Neighbour]:
        return iter(self._by_name.values())

    def add(self, neighbour: Neighbour) -> None:
        """Know one more neighbour."""
        self._by_name[neighbour.name] = neighbour

    def others(self, hop: str) -> list[Neighbour]:
        """All neighbours, except `hop` if it is one."""
        return [neighbour for neighbour in self if neighbour.name != hop]

    # --- links

    def open(self, neighbour: Neighbour) -> None:
        """Start to reach a neighbour, unless that is under way."""
        if not neighbour.link.is_open:
            self._reopen(neighbour)

    def close(self, neighbour: Neighbour) -> None:
        """Stop trying to reach a neighbour."""
        self._lose(neighbour)
        neighbour.link.close()

    def _reopen(self, neighbour: Neighbour) -> None:
        self._send_on_link(neighbour, neighbour.link.reopen(self._outbox.now))

    def _lose(self, neighbour: Neighbour) -> None:
        """Forget what came from a neighbour, and what it was told: both sides start again."""
        self._forget(neighbour.name)
        for announcer in neighbour.announcers.values():
            announcer.forget()

    def _fail(self, neighbour: Neighbour) -> None:
        self._counters.failures += 1
        self._lose(neighbour)
        self._reopen(neighbour)

    def resend(self) -> None:
        """Send again what has no receipt; a neighbour that has sent none for t2 has failed."""
        now = self._outbox.now
        for neighbour in self:
            deadline = neighbour.link.deadline
            if deadline is not None and now >= deadline:
                self._fail(neighbour)
                continue
            again = neighbour.link.resend(now)
            self._counters.sent[neighbour.name, "again"] += len(again)
            for message in again:
                self._outbox.put(neighbour.name, message)

    # --- messages

    def receive(self, neighbour: Neighbour, message: LinkMessage) -> Iterator[Payload]:
        """Take a message from a link, and answer it; yields what a packet carries, in order."""
        link = neighbour.link
        if isinstance(message, Hello):
            answer, is_new = link.take_hello(message, self._outbox.now)
            if is_new:
                self._lose(neighbour)
            self._send_on_link(neighbour, answer)
        elif not link.is_current(message):
            self._counters.ignored += 1
        elif isinstance(message, Receipt):
            link.take_receipt(message, self._outbox.now)
        else:
            yield from link.take_packet(message)
            self._send_on_link(neighbour, [link.receipt()])

    def _send_on_link(self, neighbour: Neighbour, messages: list[LinkMessage]) -> None:
        for message in messages:
            self._counters.sent[neighbour.name, type(message).__name__] += 1
            self._outbox.put(neighbour.name, message)

    def send(self, neighbour: Neighbour, message: Payload) -> None:
        """Send a message in a packet, if the neighbour can be reached."""
        if neighbour.link.is_up:
            self._counters.sent[neighbour.name, type(message).__name__] += 1
            self._outbox.put(neighbour.name, neighbour.link.send(message, self._outbox.now))

    # --- after each message

    def fail_overfull(self) -> None:
        """Give up neighbours for which too many packets wait."""
        while overfull := [neighbour for neighbour in self if neighbour.link.is_full]:
            for neighbour in overfull:
                self._fail(neighbour)

    def announce(self, *, passed: bool) -> None:
        """Tell each neighbour which filters have changed, by a message or because time `passed`."""
        for neighbour in self:
            for announcer in neighbour.announcers.values():
                announcer.consider()
                announcer.reduce(self._outbox.now, passed=passed)
            if neighbour.link.is_up:
                for kind in neighbour.announcers:
                    self._announce(neighbour, kind)
            self._counters.lost += neighbour.link.take_lost()

    def _announce(self, neighbour: Neighbour, kind: FilterKind) -> None:
        for update in neighbour.announcers[kind].take_updates():
            if update.filter is None:
                self.send(neighbour, REMOVING[kind](neighbour.link.name, update.id))
            else:
                self.send(neighbour, ADDING[kind](neighbour.link.name, update.id, update.filter))
