"""Clients: what they want, and what they have at their broker."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tamis.events import Row
from tamis.routing.messages import (
    Advertise,
    Connect,
    Disconnect,
    Message,
    Publish,
    Subscribe,
    Unadvertise,
    Unsubscribe,
)
from tamis.routing.simulation.scenario import Action, Client

Request = Advertise | Subscribe | Unadvertise | Unsubscribe | Publish


@dataclass(slots=True, eq=False)
class Standing:
    """A subscription or an advertisement at the client's broker."""

    id: str
    text: str
    matches: Callable[[Row], bool]
    established: int | None = None  # the step of its Ack
    ending: bool = False  # taken back, without an Ack yet
    ended: bool = False


@dataclass(slots=True, eq=False)
class Member:
    """A client. What it wants outlives its broker; what it has there does not."""

    client: Client
    present: bool = False  # it wants to be connected
    wanted: dict[str, Subscribe | Advertise] = field(default_factory=dict)
    subscriptions: dict[str, Standing] = field(default_factory=dict)
    advertisements: dict[str, Standing] = field(default_factory=dict)
    pending: dict[str, Request] = field(default_factory=dict)  # the last request of an id
    got: set[str] = field(default_factory=set)  # ids of publications

    def act(self, action: Action) -> Message | None:
        """The message of an action, or None if it makes no sense for a client that is not there."""
        if action.verb == "connect":
            fresh, self.present = not self.present, True
            return Connect(action.client) if fresh else None
        if not self.present:
            return None
        if action.verb == "disconnect":
            self.present = False
            self.wanted.clear()
            return Disconnect(action.client)
        return self._request(action)

    def _request(self, action: Action) -> Message:
        name, number = action.client, action.id
        if action.verb == "subscribe":
            self.wanted[number] = Subscribe(name, number, action.filter)
            return self.wanted[number]
        if action.verb == "advertise":
            self.wanted[number] = Advertise(name, number, action.filter)
            return self.wanted[number]
        if action.verb == "publish":
            return Publish(name, number, dict(action.event))
        self.wanted.pop(number, None)
        taken_back = Unsubscribe if action.verb == "unsubscribe" else Unadvertise
        return taken_back(name, number)

    def again(self) -> list[Message]:
        """What a client says to a broker that has returned."""
        return [Connect(self.client.name), *self.wanted.values()] if self.present else []

    def farewell(self) -> list[Message]:
        """What a client says at the end."""
        if not self.present:
            return []
        polite: list[Message] = []
        if self.client.polite:
            for asked in self.wanted.values():
                gone = Unsubscribe if isinstance(asked, Subscribe) else Unadvertise
                polite.append(gone(self.client.name, asked.id))
        self.present = False
        self.wanted.clear()
        return [*polite, Disconnect(self.client.name)]

    def standings(self, request: Request) -> dict[str, Standing]:
        """Those that a request is about."""
        is_subscription = isinstance(request, Subscribe | Unsubscribe)
        return self.subscriptions if is_subscription else self.advertisements

    def leave(self) -> None:
        """All that the client has at its broker goes."""
        for standing in (*self.subscriptions.values(), *self.advertisements.values()):
            standing.ended = True
        self.subscriptions.clear()
        self.advertisements.clear()
        self.pending.clear()
