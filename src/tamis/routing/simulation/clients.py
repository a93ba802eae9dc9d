"""Simulated clients: what they want, and what they have at their broker."""

from collections.abc import Callable
from dataclasses import dataclass, field

from tamis.events.event_reader import Row
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
from tamis.routing.simulation.scenario import Action, ScenarioClient

Request = Advertise | Subscribe | Unadvertise | Unsubscribe | Publish


@dataclass(slots=True, eq=False)
class HeldFilter:
    """A subscription or an advertisement at the client's broker."""

    id: str
    text: str
    matches: Callable[[Row], bool]
    established: int | None = None  # the step of its Ack
    ending: bool = False  # withdrawn, without an Ack yet
    ended: bool = False


@dataclass(slots=True, eq=False)
class SimulatedClient:
    """A client. What it wants survives a crash of its broker; what it has there does not."""

    definition: ScenarioClient
    is_connected: bool = False  # or wants to be
    wanted: dict[str, Subscribe | Advertise] = field(default_factory=dict)
    subscriptions: dict[str, HeldFilter] = field(default_factory=dict)
    advertisements: dict[str, HeldFilter] = field(default_factory=dict)
    pending: dict[str, Request] = field(default_factory=dict)  # the last request by id
    received: set[str] = field(default_factory=set)  # ids of publications

    @property
    def name(self) -> str:
        return self.definition.name

    @property
    def broker(self) -> str:
        return self.definition.broker

    def act(self, action: Action) -> Message | None:
        """The message of an action; None if the action makes no sense for the client now."""
        if action.verb == "connect":
            fresh, self.is_connected = not self.is_connected, True
            return Connect(action.client) if fresh else None
        if not self.is_connected:
            return None
        if action.verb == "disconnect":
            self.is_connected = False
            self.wanted.clear()
            return Disconnect(action.client)
        return self._request(action)

    def _request(self, action: Action) -> Message:
        name, id_ = action.client, action.id
        if action.verb == "subscribe":
            self.wanted[id_] = Subscribe(name, id_, action.filter)
            return self.wanted[id_]
        if action.verb == "advertise":
            self.wanted[id_] = Advertise(name, id_, action.filter)
            return self.wanted[id_]
        if action.verb == "publish":
            return Publish(name, id_, dict(action.event))
        self.wanted.pop(id_, None)
        withdrawal = Unsubscribe if action.verb == "unsubscribe" else Unadvertise
        return withdrawal(name, id_)

    def reconnection(self) -> list[Message]:
        """What a client says to a broker that has returned after a crash."""
        return [Connect(self.name), *self.wanted.values()] if self.is_connected else []

    def farewell(self) -> list[Message]:
        """What a client says when it leaves at the end."""
        if not self.is_connected:
            return []
        withdrawals: list[Message] = []
        if self.definition.polite:
            for wanted in self.wanted.values():
                gone = Unsubscribe if isinstance(wanted, Subscribe) else Unadvertise
                withdrawals.append(gone(self.name, wanted.id))
        self.is_connected = False
        self.wanted.clear()
        return [*withdrawals, Disconnect(self.name)]

    def filters_of_kind(self, request: Request) -> dict[str, HeldFilter]:
        """The filters of the kind that a request is about, by their ids."""
        is_subscription = isinstance(request, Subscribe | Unsubscribe)
        return self.subscriptions if is_subscription else self.advertisements

    def leave(self) -> None:
        """The client loses everything that it has at its broker."""
        for one in (*self.subscriptions.values(), *self.advertisements.values()):
            one.ended = True
        self.subscriptions.clear()
        self.advertisements.clear()
        self.pending.clear()
