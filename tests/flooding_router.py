"""A router that only floods, in a few lines: the simulator is tested with it, sound and broken."""

import itertools

from tamis.errors import TamisError
from tamis.language.expression import parse_with
from tamis.routing.links import Link
from tamis.routing.messages import (
    Ack,
    Connect,
    Deliver,
    Disconnect,
    Hello,
    LinkDown,
    LinkUp,
    Packet,
    Publish,
    Receipt,
    Refused,
    Tick,
    Unadvertise,
    Unsubscribe,
)
from tamis.routing.simulation.filters import condition, row_of, some_event_matches


class Tables:
    def __init__(self, held):
        self.subscriptions = held
        self.advertisements = self.sent_subscriptions = self.sent_advertisements = {}

    def __eq__(self, other):
        return self.subscriptions == other.subscriptions

    __hash__ = None


class FloodingRouter:
    """Publications go everywhere, subscriptions nowhere; advertisements do not matter."""

    settled = True

    def __init__(self, name, schema, *, neighbours, semantics, incarnation, timing, **_):
        self.name, self.schema, self.semantics = name, schema, semantics
        sessions = itertools.count(incarnation * 1_000_000)
        self.links = {
            n: Link(name, n, timing, 1000, 1000, lambda: next(sessions)) for n in neighbours
        }
        self.held = {}

    def link(self, neighbour):
        return self.links[neighbour]

    def tables(self):
        return Tables({c: tuple(sorted(held.items())) for c, held in self.held.items() if held})

    def next_time(self):
        times = [link.next_time() for link in self.links.values()]
        return min((time for time in times if time is not None), default=None)

    def start(self, now):
        return [(n, sent) for n, link in self.links.items() for sent in link.reopen(now)]

    def handle(self, message, now):
        match message:
            case Tick():
                return self.tick(now)
            case LinkDown(sender):
                self.links[sender].close()
            case LinkUp(sender):
                link = self.links[sender]
                return [] if link.is_open else [(sender, sent) for sent in link.reopen(now)]
            case Hello(sender):
                return [(sender, sent) for sent in self.links[sender].take_hello(message, now)[0]]
            case Receipt(sender):
                if self.links[sender].is_current(message):
                    self.links[sender].take_receipt(message, now)
            case Packet(sender):
                return self.packet(self.links[sender], message, now)
            case Connect(sender):
                self.held[sender] = {}
            case Disconnect(sender):
                del self.held[sender]
            case _:
                return self.client(message, now)
        return []

    def tick(self, now):
        sends = []
        for name, link in self.links.items():
            deadline = link.deadline
            failed = deadline is not None and now >= deadline
            sends += [(name, sent) for sent in (link.reopen if failed else link.resend)(now)]
        return sends

    def packet(self, link, message, now):
        if not link.is_current(message):
            return []
        sends = []
        for carried in link.take_packet(message):
            sends += self.route(carried, link.neighbour, now)
        return [*sends, (link.neighbour, link.receipt())]

    def client(self, message, now):
        client, what = message.sender, type(message).__name__
        answer = [(client, Ack(self.name, message.id, what))]
        try:
            if isinstance(message, Unsubscribe | Unadvertise):
                self.held[client].pop(message.id)
            elif isinstance(message, Publish):
                if row_of(message.event, self.semantics) is None:
                    raise KeyError(message.id)
                sent = Publish(client, f"{client}/{message.id}", message.event)
                answer += self.route(sent, client, now)
            else:
                text = str(parse_with(message.filter, self.schema))
                if not some_event_matches(text, self.semantics):
                    raise KeyError(text)
                self.held[client][message.id] = text
        except (TamisError, KeyError) as error:
            return [(client, Refused(self.name, message.id, str(error), what))]
        return answer

    def route(self, message, hop, now):
        row = row_of(message.event, self.semantics)
        sends = []
        for client, held in self.held.items():
            found = tuple(
                i for i, t in held.items() if i[0] == "s" and condition(t, self.semantics)(row)
            )
            if found:
                sends.append((client, Deliver(self.name, message.id, message.event, found)))
        for name, link in self.links.items():
            if name != hop and link.is_up:
                sends.append((name, link.send(message, now)))
        return sends
