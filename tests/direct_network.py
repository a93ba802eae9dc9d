"""A network of routers whose messages arrive at once and in order."""

from collections import deque

from tamis.routing.messages import Ack, Connect, Deliver, Refused, Tick
from tamis.routing.router import Router

SCHEMA = {"price": "int", "symbol": "string", "urgent": "bool"}


class DirectNetwork:
    """Routers and the edges between them; a client is named after its broker: ``a.bob``."""

    def __init__(self, edges, strategy="advertisements+covering", **settings):
        names = dict.fromkeys(name for edge in edges for name in edge)
        self.routers = {
            name: Router(
                name,
                SCHEMA,
                neighbours=[x if y == name else y for x, y in edges if name in (x, y)],
                strategy=strategy,
                **settings,
            )
            for name in names
        }
        self.now = 0.0
        self.told = []  # (client, message), all that clients were sent
        self.carried = []  # (sender, receiver, message)
        self.cut = set()  # edges that lose everything
        self._queue = deque()
        for name, router in self.routers.items():
            self._send(name, router.start(self.now))
        self.carry()

    def _send(self, sender, sends):
        for receiver, message in sends:
            if receiver in self.routers:
                if frozenset((sender, receiver)) not in self.cut:
                    self._queue.append((sender, receiver, message))
            else:
                self.told.append((receiver, message))

    def carry(self):
        while self._queue:
            sender, receiver, message = self._queue.popleft()
            self.carried.append((sender, receiver, message))
            self._send(receiver, self.routers[receiver].handle(message, self.now))

    def say(self, client, kind, *arguments):
        """A client sends a message to its broker; returns when no message is on its way."""
        broker = client.split(".")[0]
        self._send(broker, self.routers[broker].handle(kind(client, *arguments), self.now))
        self.carry()

    def connect(self, *clients):
        for client in clients:
            self.say(client, Connect)

    def later(self, seconds, step=0.5):
        """Let time pass."""
        until = self.now + seconds
        while self.now < until:
            self.now += step
            for name, router in self.routers.items():
                self._send(name, router.handle(Tick(), self.now))
            self.carry()

    def acks(self, client):
        return [(m.what, m.id) for to, m in self.told if to == client and isinstance(m, Ack)]

    def refusals(self, client):
        return [m.reason for to, m in self.told if to == client and isinstance(m, Refused)]

    def events(self, client):
        return [
            (m.id, m.subscriptions)
            for to, m in self.told
            if to == client and isinstance(m, Deliver)
        ]

    def held(self, broker, hop):
        """The subscriptions of a hop that a broker holds."""
        return sorted(self.routers[broker].tables().subscriptions.get(hop, ()))

    def is_empty(self):
        return all(not any(router.tables()) for router in self.routers.values())
