"""A broker as a pure state machine: a message and the time in, messages out.

::

    router = Router("b1", schema, neighbours=["b2"])
    sends = router.start(now=0.0)
    sends = router.handle(message, now)        # [(receiver, message), ...]

It opens no sockets, has no clock and starts no threads: a service or a simulator carries messages
and calls `handle` with a Tick at `next_time` at the latest. What each file does:

* `links.py`: a reliable stream to each neighbour, failure and return of it.
* `announcing.py`: what each neighbour was told of subscriptions and advertisements; what is
  withdrawn and when; when something is established.
* `reducing.py`: how few filters stand for many: covering and merging.
* `holding.py`: what each hop (a client or a neighbour) asked for; which hops an event goes to.

A **subscription** of a hop is told to every other neighbour that it concerns: with advertisements,
one that has advertised something it may match. An **advertisement** is told to every other
neighbour, which then tells us what it concerns. Both get their Ack when all that was told because
of them is live. What hops have subscribed to is the paper's publication routing table (PRT), what
they have advertised its subscription routing table (SRT).
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

from tamis.errors import RoutingError, TamisError
from tamis.language.expression import Expression
from tamis.routing.announcements import Announcer, Request
from tamis.routing.filter_cache import reading_of
from tamis.routing.hop_filters import Filters, Subscriptions
from tamis.routing.limits import Counters, Limits, Tables
from tamis.routing.links import Link, Timing
from tamis.routing.messages import (
    Ack,
    Advertise,
    Carried,
    Connect,
    Deliver,
    Disconnect,
    Hello,
    LinkDown,
    LinkUp,
    Message,
    Packet,
    Publish,
    Receipt,
    Refused,
    Sends,
    Subscribe,
    Tick,
    Unadvertise,
    Unsubscribe,
    Wire,
)
from tamis.routing.reductions import Offers, reducer_of
from tamis.routing.strategies import Merging, strategy_of

SESSIONS = 2**32  # of one incarnation


@dataclass(slots=True)
class _Neighbour:
    """A link and what goes over it."""

    link: Link
    subscriptions: Announcer
    advertisements: Announcer

    @property
    def announcers(self) -> tuple[Announcer, Announcer]:
        return self.advertisements, self.subscriptions


class Router:
    """One broker of an acyclic network.

    `neighbours` are the names of the brokers next to it. `incarnation` must be larger than in any
    earlier life of a broker of this name: a time, or a number that is kept. `strategy` is one of
    `STRATEGIES`; `merging` says when and what to merge.
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
        limits: Limits | None = None,
        merging: Merging | None = None,
    ) -> None:
        self.name = name
        self.strategy = strategy_of(strategy)
        self._reading = reading_of(schema, semantics, defaults)
        self._timing = timing or Timing()
        self._limits = limits or Limits()
        self._merging = merging or Merging()
        self._sessions = count(incarnation * SESSIONS)
        self._ids = count(1)
        self.counters = Counters()
        self._clients: dict[str, None] = {}
        self._neighbours: dict[str, _Neighbour] = {}
        self._subscriptions = Subscriptions(self._reading)
        self._advertisements = Filters()
        self._requests: dict[tuple[str, str, bool], Request] = {}
        self._now = 0.0
        self._out: Sends = []
        for neighbour in neighbours:
            self._meet(neighbour)

    # --- from outside

    def start(self, now: float) -> Sends:
        """Greet all neighbours."""
        self._now = now
        for neighbour in self._neighbours.values():
            if not neighbour.link.open:
                self._wire(neighbour.link, neighbour.link.reopen(now))
        return self._finish()

    def handle(self, message: Message, now: float) -> Sends:
        """Take a message; what is to be sent to whom, in this order.

        Raises a `RoutingError`, and changes nothing, if the sender is unknown or does not send
        such messages. A client is told in a `Refused` what is wrong with its request.
        """
        self._now = now
        match message:
            case Tick():
                self._tick()
            case Packet() | Receipt() | Hello():
                self._from_wire(self._neighbour(message), message)
            case LinkUp(sender):
                self._link_up(sender)
            case LinkDown():
                self._link_down(self._neighbour(message))
            case Connect(sender):
                self._connect(sender)
            case Disconnect(sender):
                self._disconnect(self._client(message))
            case Publish():
                self._published_here(self._client(message), message)
            case Subscribe() | Advertise() | Unsubscribe() | Unadvertise():
                self._asked_by_client(self._client(message), message)
            case _:
                raise RoutingError(
                    f"a broker takes no {type(message).__name__} but in a packet of a neighbour; "
                    f"this one came from {message.sender!r}"
                )
        return self._finish(passed=isinstance(message, Tick))

    def next_time(self) -> float | None:
        """When a Tick is needed at the latest, None if there is nothing to wait for."""
        times = [n.link.next_time() for n in self._neighbours.values()]
        times += [a.reducer.next_time() for n in self._neighbours.values() for a in n.announcers]
        return min((time for time in times if time is not None), default=None)

    @property
    def settled(self) -> bool:
        """Whether nobody waits for anything, on the links that are up."""
        if self._requests:
            return False
        return all(
            not n.link.waits_for_control and all(a.is_settled for a in n.announcers)
            for n in self._neighbours.values()
            if n.link.up
        )

    def link(self, neighbour: str) -> Link:
        """The link to a neighbour."""
        return self._neighbours[neighbour].link

    @property
    def neighbours(self) -> tuple[str, ...]:
        """The names of the brokers next to this one."""
        return tuple(self._neighbours)

    def tables(self) -> Tables:
        """All filters that are held here, and by neighbours of us."""
        sides = self._neighbours.items()
        return Tables(
            self._subscriptions.texts(),
            self._advertisements.texts(),
            {name: held for name, n in sides if (held := n.subscriptions.announced())},
            {name: held for name, n in sides if (held := n.advertisements.announced())},
        )

    # --- hops

    def _neighbour(self, message: Message) -> _Neighbour:
        found = self._neighbours.get(message.sender)
        if found is None:
            raise RoutingError(
                f"{message.sender!r} is no neighbour of {self.name!r}; a LinkUp makes it one"
            )
        return found

    def _client(self, message: Message) -> str:
        if message.sender in self._neighbours:
            raise RoutingError(
                f"{message.sender!r} is a neighbour of {self.name!r}: its messages come in packets"
            )
        if message.sender not in self._clients:
            raise RoutingError(
                f"{message.sender!r} is no client of {self.name!r}; a Connect makes it one"
            )
        return message.sender

    def _connect(self, client: str) -> None:
        if client in self._neighbours or client == self.name:
            raise RoutingError(f"{client!r} is the name of a broker")
        if client in self._clients:
            raise RoutingError(f"{client!r} is a client of {self.name!r} already")
        self._clients[client] = None

    def _disconnect(self, client: str) -> None:
        self._forget(client)
        del self._clients[client]

    def _forget(self, hop: str) -> None:
        """A hop is not there any more, nor what it asked for."""
        for key in [key for key in self._requests if key[0] == hop]:
            del self._requests[key]
        for id_ in list(self._subscriptions.of(hop)):
            self._remove_subscription(hop, id_)
        for id_ in list(self._advertisements.of(hop)):
            self._remove_advertisement(hop, id_)

    # --- links

    def _meet(self, name: str) -> _Neighbour:
        """Know a neighbour, and what it may be told."""
        if name == self.name or name in self._clients or name in self._neighbours:
            raise RoutingError(
                f"{name!r} cannot be a neighbour of {self.name!r}: the name is taken"
            )
        limits = self._limits
        link = Link(
            self.name,
            name,
            self._timing,
            limits.waiting,
            limits.early,
            lambda: next(self._sessions),
        )
        found = _Neighbour(
            link,
            self._announcer(
                lambda text: self._concerns(name, text),
                lambda: self._advertisements.of(name).values(),
            ),
            self._announcer(lambda _text: self.strategy.advertisements),
        )
        for text in self._subscriptions.elsewhere(name):
            found.subscriptions.add(text)
        for text in self._advertisements.elsewhere(name):
            found.advertisements.add(text)
        self._neighbours[name] = found
        return found

    def _announcer(
        self, concerns: Callable[[str], bool], offers: Offers | None = None
    ) -> Announcer:
        reducer = reducer_of(self.strategy, self._merging, self._reading, offers)
        return Announcer(reducer, concerns, lambda: str(next(self._ids)), self._done)

    def _concerns(self, neighbour: str, text: str) -> bool:
        """Whether a subscription is of interest to a neighbour."""
        if self.strategy.flooding:
            return False
        if not self.strategy.advertisements:
            return True
        offers = set(self._advertisements.of(neighbour).values())
        return any(self._reading.intersects(text, offer) for offer in offers)

    def _link_up(self, name: str) -> None:
        neighbour = self._neighbours.get(name) or self._meet(name)
        if not neighbour.link.open:
            self._wire(neighbour.link, neighbour.link.reopen(self._now))

    def _link_down(self, neighbour: _Neighbour) -> None:
        self._lose(neighbour)
        neighbour.link.close()

    def _lose(self, neighbour: _Neighbour) -> None:
        """Both sides start anew: what came from the neighbour, and what it holds, is forgotten."""
        self._forget(neighbour.link.neighbour)
        for announcer in neighbour.announcers:
            announcer.forget()

    def _fail(self, neighbour: _Neighbour) -> None:
        self.counters.failures += 1
        self._lose(neighbour)
        self._wire(neighbour.link, neighbour.link.reopen(self._now))

    def _tick(self) -> None:
        for neighbour in self._neighbours.values():
            overdue = neighbour.link.overdue
            if overdue is not None and self._now >= overdue:
                self._fail(neighbour)
            else:
                again = neighbour.link.again(self._now)
                self.counters.sent[neighbour.link.neighbour, "again"] += len(again)
                self._out += [(neighbour.link.neighbour, wire) for wire in again]

    def _from_wire(self, neighbour: _Neighbour, message: Wire) -> None:
        link = neighbour.link
        if isinstance(message, Hello):
            answer, is_new = link.hello(message, self._now)
            if is_new:
                self._lose(neighbour)
            self._wire(link, answer)
        elif not link.is_current(message):
            self.counters.ignored += 1
        elif isinstance(message, Receipt):
            link.receipt(message, self._now)
        else:
            for carried in link.packet(message):
                self._carried(neighbour, carried)
            self._wire(link, [link.receipt_due()])

    def _wire(self, link: Link, messages: Iterable[Wire]) -> None:
        for message in messages:
            self.counters.sent[link.neighbour, type(message).__name__] += 1
            self._out.append((link.neighbour, message))

    def _tell(self, hop: str, message: Carried | Deliver) -> None:
        """Send to a client, or in a packet to a neighbour that can be reached."""
        neighbour = self._neighbours.get(hop)
        if neighbour is None:
            self._out.append((hop, message))
        elif neighbour.link.up and not isinstance(message, Deliver):
            self.counters.sent[hop, type(message).__name__] += 1
            self._out.append((hop, neighbour.link.send(message, self._now)))

    # --- what is asked for

    def _carried(self, neighbour: _Neighbour, message: Carried) -> None:
        """A message of a neighbour, in its order and once."""
        name = neighbour.link.neighbour
        match message:
            case Publish():
                self._route(name, message)
            case Ack(_, id_) | Refused(_, id_):
                known = [announcer.acknowledged(id_) for announcer in neighbour.announcers]
                self.counters.ignored += not any(known)
            case Subscribe() | Advertise():
                try:
                    expression = self._reading.read(message.filter)
                except TamisError as error:
                    what = type(message).__name__
                    self._tell(name, Refused(self.name, message.id, str(error), what))
                    return
                self._accept(name, message, str(expression))
            case Unsubscribe() | Unadvertise():
                if message.id in self._table(message).of(name):
                    self._accept(name, message)
                else:
                    self.counters.ignored += 1
                    self._tell(name, Ack(self.name, message.id, type(message).__name__))

    def _asked_by_client(
        self, client: str, message: Subscribe | Advertise | Unsubscribe | Unadvertise
    ) -> None:
        what = type(message).__name__
        text = None
        try:
            if isinstance(message, Subscribe | Advertise):
                text = str(self._checked(client, message))
            elif message.id not in self._table(message).of(client):
                noun = "subscription" if isinstance(message, Unsubscribe) else "advertisement"
                raise RoutingError(f"{client!r} has no {noun} {message.id!r}")
        except TamisError as error:
            self._tell(client, Refused(self.name, message.id, str(error), what))
            return
        self._accept(client, message, text)

    def _checked(self, client: str, message: Subscribe | Advertise) -> Expression:
        """The filter of a client's request."""
        expression = self._reading.read(message.filter)
        held = self._table(message).of(client)
        if len(held) >= self._limits.filters and message.id not in held:
            raise RoutingError(
                f"{client!r} has {len(held):,} of them already, which is the limit of the broker"
            )
        self._reading.check_possible(expression)
        return expression

    def _table(self, message: Subscribe | Advertise | Unsubscribe | Unadvertise) -> Filters:
        if isinstance(message, Subscribe | Unsubscribe):
            return self._subscriptions
        return self._advertisements

    def _accept(
        self,
        hop: str,
        message: Subscribe | Advertise | Unsubscribe | Unadvertise,
        text: str | None = None,
    ) -> None:
        """Do what is asked for; the Ack follows when it is established or gone everywhere."""
        is_subscription = isinstance(message, Subscribe | Unsubscribe)
        request = Request(hop, message.id, type(message).__name__)
        self._requests[hop, message.id, is_subscription] = request
        before = self._table(message).of(hop).get(message.id)
        if text is not None and before != text:
            add = self._add_subscription if is_subscription else self._add_advertisement
            add(hop, message.id, text)
        if text is None:
            remove = self._remove_subscription if is_subscription else self._remove_advertisement
            remove(hop, message.id)
        elif before is not None and before != text:
            self._dropped(hop, before, is_subscription=is_subscription)
        self._wait(hop, request, text, is_subscription=is_subscription)
        if not request.open:
            self._done(request)

    def _wait(self, hop: str, request: Request, text: str | None, *, is_subscription: bool) -> None:
        """Keep a request open until all that follows from it is done."""
        for name, neighbour in self._neighbours.items():
            if not neighbour.link.up:
                continue
            if name != hop:
                announcer = neighbour.subscriptions if is_subscription else neighbour.advertisements
                if text is not None:
                    announcer.when_live([text], request)
                else:
                    announcer.when_gone(request)
            elif not is_subscription:  # what concerns the one who advertises
                if text is not None:
                    neighbour.subscriptions.when_live(neighbour.subscriptions.wanted, request)
                else:
                    neighbour.subscriptions.when_gone(request)

    def _add_subscription(self, hop: str, id_: str, text: str) -> None:
        self._subscriptions.put(hop, id_, text)
        for neighbour in self._others(hop):
            neighbour.subscriptions.add(text)

    def _remove_subscription(self, hop: str, id_: str) -> None:
        self._dropped(hop, self._subscriptions.take(hop, id_), is_subscription=True)

    def _add_advertisement(self, hop: str, id_: str, text: str) -> None:
        self._advertisements.put(hop, id_, text)
        for neighbour in self._others(hop):
            neighbour.advertisements.add(text)
        if hop in self._neighbours:
            self._neighbours[hop].subscriptions.reconsider()

    def _remove_advertisement(self, hop: str, id_: str) -> None:
        self._dropped(hop, self._advertisements.take(hop, id_), is_subscription=False)

    def _dropped(self, hop: str, text: str, *, is_subscription: bool) -> None:
        for neighbour in self._others(hop):
            announcer = neighbour.subscriptions if is_subscription else neighbour.advertisements
            announcer.drop(text)
        if not is_subscription and hop in self._neighbours:
            self._neighbours[hop].subscriptions.reconsider()

    def _others(self, hop: str) -> list[_Neighbour]:
        return [n for name, n in self._neighbours.items() if name != hop]

    def _done(self, request: Request) -> None:
        """All that a request led to is done."""
        key = request.hop, request.id, request.what.endswith("ubscribe")
        if self._requests.get(key) is request:
            del self._requests[key]
            self._tell(request.hop, Ack(self.name, request.id, request.what))

    # --- publications

    def _published_here(self, client: str, message: Publish) -> None:
        try:
            row = self._subscriptions.row(message.event)
            if self.strategy.advertisements:
                offers = self._advertisements.of(client).values()
                self._reading.check_offer(client, row, offers)
        except TamisError as error:
            self._tell(client, Refused(self.name, message.id, str(error), "Publish"))
            return
        self._tell(client, Ack(self.name, message.id, "Publish"))
        self._route(client, Publish(client, f"{client}/{message.id}", message.event))

    def _route(self, hop: str, message: Publish) -> None:
        """Send a publication to all hops that want it but the one it came from."""
        try:
            found = self._subscriptions.match(message.event)
        except TamisError:  # of a neighbour with another schema
            self.counters.ignored += 1
            return
        wanted = False
        for client in self._clients:
            if client in found:
                wanted = True
                self.counters.delivered += 1
                ids = tuple(found[client])
                self._tell(client, Deliver(self.name, message.id, message.event, ids))
        for name, neighbour in self._neighbours.items():
            if name == hop or not (self.strategy.flooding or name in found):
                continue
            wanted = True
            if neighbour.link.up:
                self.counters.publications[name] += 1
                self._tell(name, Publish(self.name, message.id, message.event))
            else:
                self.counters.lost += 1
        self.counters.false_positives += not wanted and hop in self._neighbours

    # --- what follows

    def _finish(self, *, passed: bool = False) -> Sends:
        """Tell the neighbours what has changed for them, by a message or because time `passed`."""
        while full := [n for n in self._neighbours.values() if n.link.is_full]:
            for neighbour in full:
                self._fail(neighbour)
        for name, neighbour in self._neighbours.items():
            for announcer in neighbour.announcers:
                announcer.reduce(self._now, passed=passed)
            if neighbour.link.up:
                self._announce(name, neighbour.advertisements, Advertise, Unadvertise)
                self._announce(name, neighbour.subscriptions, Subscribe, Unsubscribe)
            self.counters.lost += neighbour.link.take_lost()
        sends, self._out = self._out, []
        return sends

    def _announce(
        self,
        name: str,
        announcer: Announcer,
        come: type[Advertise | Subscribe],
        go: type[Unadvertise | Unsubscribe],
    ) -> None:
        for step in announcer.steps():
            if step.filter is None:
                self._tell(name, go(self.name, step.id))
            else:
                self._tell(name, come(self.name, step.id, step.filter))
