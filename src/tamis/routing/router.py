"""A broker as a pure state machine: a message and the time in, messages out.

::

    router = Router("b1", schema, neighbours=["b2"])
    sends = router.start(now=0.0)
    sends = router.handle(message, now)        # [(receiver, message), ...]

It opens no sockets, has no clock and starts no threads: its host, a service or a simulator, carries
the messages, and calls `handle` with a Tick at `next_time` at the latest.

A *hop* is a client of the broker or a neighbour: another broker. A message goes this way:

* From a client: `admission.py` says whether its request is granted, or why it is refused.
* From a neighbour: `links.py` makes a reliable stream out of an unreliable network, and notices
  when the neighbour fails or returns; `neighbours.py` keeps all of them.
* A filter that comes or goes: `forwarding.py` keeps it in the table of its hop (`hop_filters.py`)
  and decides which neighbours it concerns. `reductions.py` says how few filters stand for those
  that concern a neighbour, by covering and merging. `announcements.py` tells the neighbour of the
  difference, and never withdraws a filter before its replacement is established.
* A publication: `Router._route` matches it with the table of subscriptions and sends it on.

A request gets its Ack (`requests.py`) when everything that was announced because of it is
established. The algorithms are those of Li, Hou and Jacobsen, "A Unified Approach to Routing,
Covering and Merging in Publish/Subscribe Systems based on Modified Binary Decision Diagrams"
(ICDCS 2005), called MBD in this package.
"""

from collections.abc import Iterable, Mapping
from itertools import count
from typing import Any

from tamis.errors import RoutingError, TamisError
from tamis.routing.admission import admitted_filter, check_advertised, check_removal
from tamis.routing.counters import Counters
from tamis.routing.filter_cache import shared_cache
from tamis.routing.forwarding import Forwarding, Tables
from tamis.routing.hop_filters import HopSubscriptions
from tamis.routing.kinds import kind_of
from tamis.routing.limits import RouterLimits
from tamis.routing.links import Link, Timing
from tamis.routing.messages import (
    Ack,
    Advertise,
    Connect,
    Deliver,
    Disconnect,
    FilterMessage,
    Hello,
    LinkDown,
    LinkUp,
    Message,
    Packet,
    Payload,
    Publish,
    Receipt,
    Refused,
    Sends,
    Subscribe,
    Tick,
    Unadvertise,
    Unsubscribe,
)
from tamis.routing.neighbours import Neighbour, Neighbours
from tamis.routing.outbox import Outbox
from tamis.routing.requests import Request
from tamis.routing.strategies import Merging, strategy_of

SESSIONS = 2**32  # session numbers of one incarnation


class Router:
    """One broker of an acyclic network.

    `neighbours` are the names of the brokers next to it. `incarnation` must be larger than that of
    any earlier broker with this name: use a time, or a number that is kept. `strategy` is one of
    `STRATEGIES`; `merging` says when to merge and what.
    """

    def __init__(  # noqa: PLR0913 - all but two by name
        self,
        name: str,
        schema: Any,
        *,
        neighbours: Iterable[str] = (),
        strategy: str = "advertisements+covering",
        semantics: str = "sql",
        defaults: Mapping[str, Any] | None = None,
        incarnation: int = 0,
        timing: Timing | None = None,
        limits: RouterLimits | None = None,
        merging: Merging | None = None,
    ) -> None:
        self.name = name
        self.strategy = strategy_of(strategy)
        self.counters = Counters()
        self._timing = timing or Timing()
        self._limits = limits or RouterLimits()
        self._sessions = count(incarnation * SESSIONS)
        self._cache = shared_cache(schema, semantics, defaults)
        self._outbox = Outbox()
        self._clients: dict[str, None] = {}
        self._neighbours = Neighbours(self._outbox, self.counters, self._forget)
        self._subscriptions = HopSubscriptions(self._cache)
        self._forwarding = Forwarding(
            self._neighbours, self.strategy, merging or Merging(), self._cache, self._acknowledge,
            self._subscriptions,
        )  # fmt: skip
        for neighbour in neighbours:
            self._meet(neighbour)

    # --- what the host calls

    def start(self, now: float) -> Sends:
        """Greet all neighbours."""
        self._outbox.now = now
        for neighbour in self._neighbours:
            self._neighbours.open(neighbour)
        return self._finish()

    def handle(self, message: Message, now: float) -> Sends:
        """Take a message; return what is to be sent to whom, in this order.

        Raises a `RoutingError`, and changes nothing, if the sender is unknown or does not send such
        messages. A client is told in a `Refused` what is wrong with its request.
        """
        self._outbox.now = now
        match message:
            case Tick():
                self._neighbours.resend()
            case Hello() | Packet() | Receipt():
                self._from_neighbour(self._neighbour(message), message)
            case LinkUp(sender):
                known = sender in self._neighbours
                self._neighbours.open(self._neighbours[sender] if known else self._meet(sender))
            case LinkDown():
                self._neighbours.close(self._neighbour(message))
            case Connect(sender):
                self._connect(sender)
            case Disconnect():
                self._disconnect(self._client(message))
            case Publish():
                self._publish(self._client(message), message)
            case Subscribe() | Advertise() | Unsubscribe() | Unadvertise():
                self._request(self._client(message), message)
            case _:
                raise RoutingError(
                    f"a broker takes {type(message).__name__} only from a neighbour, in a packet; "
                    f"this one came from {message.sender!r}"
                )
        return self._finish(passed=isinstance(message, Tick))

    def _finish(self, *, passed: bool = False) -> Sends:
        """Tell the neighbours what has changed for them; return everything that is to be sent."""
        self._neighbours.fail_overfull()
        self._neighbours.announce(passed=passed)
        return self._outbox.take_all()

    def next_time(self) -> float | None:
        """When a Tick is needed at the latest; None if nothing waits for a time."""
        times = (time for neighbour in self._neighbours for time in neighbour.next_times())
        return min((time for time in times if time is not None), default=None)

    @property
    def settled(self) -> bool:
        """Whether no request is open, and all neighbours that can be reached are up to date."""
        return not self._forwarding.requests and all(
            neighbour.is_settled for neighbour in self._neighbours if neighbour.link.is_up
        )

    def link(self, neighbour: str) -> Link:
        """The link to a neighbour."""
        return self._neighbours[neighbour].link

    @property
    def neighbours(self) -> tuple[str, ...]:
        """The names of the brokers next to this one."""
        return tuple(neighbour.name for neighbour in self._neighbours)

    def tables(self) -> Tables:
        """All filters that are held here, and by neighbours because of us."""
        return self._forwarding.tables()

    # --- hops

    def _neighbour(self, message: Message) -> Neighbour:
        if message.sender not in self._neighbours:
            raise RoutingError(
                f"{message.sender!r} is not a neighbour of {self.name!r}; a LinkUp makes it one"
            )
        return self._neighbours[message.sender]

    def _client(self, message: Message) -> str:
        if message.sender in self._neighbours:
            raise RoutingError(
                f"{message.sender!r} is a neighbour of {self.name!r}: its messages come in packets"
            )
        if message.sender not in self._clients:
            raise RoutingError(
                f"{message.sender!r} is not a client of {self.name!r}; a Connect makes it one"
            )
        return message.sender

    def _connect(self, client: str) -> None:
        if client in self._neighbours or client == self.name:
            raise RoutingError(f"{client!r} is the name of a broker")
        if client in self._clients:
            raise RoutingError(f"{client!r} is already a client of {self.name!r}")
        self._clients[client] = None

    def _disconnect(self, client: str) -> None:
        self._forget(client)
        del self._clients[client]

    def _meet(self, name: str) -> Neighbour:
        """Make a broker a neighbour."""
        if name == self.name or name in self._clients or name in self._neighbours:
            raise RoutingError(
                f"{name!r} cannot be a neighbour of {self.name!r}: the name is taken"
            )
        link = Link(
            self.name,
            name,
            self._timing,
            self._limits.waiting,
            self._limits.early,
            lambda: next(self._sessions),
        )
        neighbour = Neighbour(link, self._forwarding.announcers_for(name))
        self._neighbours.add(neighbour)
        return neighbour

    def _forget(self, hop: str) -> None:
        """Remove everything that a hop had."""
        self._forwarding.forget(hop)

    def _send(self, hop: str, message: Payload) -> None:
        """Send to a client, or in a packet to a neighbour."""
        if hop in self._neighbours:
            self._neighbours.send(self._neighbours[hop], message)
        else:
            self._outbox.put(hop, message)

    # --- requests

    def _request(self, client: str, message: FilterMessage) -> None:
        """Grant a client's request, or refuse it."""
        held = self._forwarding.table(kind_of(message)).of(client)
        text = None
        try:
            if isinstance(message, Subscribe | Advertise):
                text = admitted_filter(message, held, self._limits.filters, self._cache)
            else:
                check_removal(message, held)
        except TamisError as error:
            self._refuse(client, message, error)
        else:
            self._forwarding.accept(client, message, text)

    def _from_neighbour(self, neighbour: Neighbour, message: Hello | Packet | Receipt) -> None:
        for content in self._neighbours.receive(neighbour, message):
            match content:
                case Publish():
                    self._route(neighbour.name, content)
                case Ack() | Refused():
                    announcers = neighbour.announcers.values()
                    known = [announcer.acknowledge(content.id) for announcer in announcers]
                    self.counters.ignored += not any(known)
                case _:
                    self._request_of_neighbour(neighbour.name, content)

    def _request_of_neighbour(self, name: str, message: FilterMessage) -> None:
        """Do what a neighbour says; it has checked its filters, but its schema may differ."""
        if isinstance(message, Subscribe | Advertise):
            try:
                text = str(self._cache.parse(message.filter))
            except TamisError as error:
                self._refuse(name, message, error)
            else:
                self._forwarding.accept(name, message, text)
        elif message.id in self._forwarding.table(kind_of(message)).of(name):
            self._forwarding.accept(name, message)
        else:
            self.counters.ignored += 1
            self._acknowledge(Request(name, message))

    def _acknowledge(self, request: Request) -> None:
        self._send(request.hop, Ack(self.name, request.id, request.what))

    def _refuse(self, hop: str, message: FilterMessage | Publish, error: TamisError) -> None:
        self._send(hop, Refused(self.name, message.id, str(error), type(message).__name__))

    # --- publications

    def _publish(self, client: str, message: Publish) -> None:
        """Route an event of a client, or refuse it."""
        try:
            row = self._subscriptions.row(message.event)
            if self.strategy.advertisements:
                advertised = self._forwarding.advertisements.of(client).values()
                check_advertised(client, row, advertised, self._cache)
        except TamisError as error:
            self._refuse(client, message, error)
            return
        self._send(client, Ack(self.name, message.id, "Publish"))
        self._route(client, Publish(client, f"{client}/{message.id}", message.event))

    def _route(self, hop: str, message: Publish) -> None:
        """Send a publication to all hops that want it, except the one it came from."""
        try:
            found = self._subscriptions.match(message.event)
        except TamisError:  # a neighbour has another schema
            self.counters.ignored += 1
            return
        is_wanted = False
        for client in self._clients:
            if client in found:
                is_wanted = True
                self.counters.delivered += 1
                ids = tuple(found[client])
                self._outbox.put(client, Deliver(self.name, message.id, message.event, ids))
        for neighbour in self._neighbours.others(hop):
            if not (self.strategy.flooding or neighbour.name in found):
                continue
            is_wanted = True
            if neighbour.link.is_up:
                self.counters.publications[neighbour.name] += 1
                passed_on = Publish(self.name, message.id, message.event)
                self._neighbours.send(neighbour, passed_on)
            else:
                self.counters.lost += 1
        self.counters.false_positives += not is_wanted and hop in self._neighbours
