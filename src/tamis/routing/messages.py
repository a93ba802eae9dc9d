"""The messages between clients, brokers and the host: the program that runs a broker.

Every message names its sender. Everything else in it is plain (texts, numbers, an event as a dict),
so that a host can send it in any form.

======== ========================= =============================================================
from     to                        messages
======== ========================= =============================================================
client   its broker                Connect Disconnect Advertise Unadvertise Subscribe Unsubscribe
                                   Publish
broker   its client                Ack Refused Deliver
broker   a neighbour               Hello Packet Receipt
broker   a neighbour, in a Packet  Advertise Unadvertise Subscribe Unsubscribe Publish Ack Refused
host     broker                    LinkUp LinkDown Tick
======== ========================= =============================================================

Between brokers the `id` of a filter is a number, as text, that belongs to the link; a client's id
stays at its broker.
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Connect:
    """A client has come."""

    sender: str


@dataclass(frozen=True, slots=True)
class Disconnect:
    """A client has gone, and with it all its advertisements and subscriptions."""

    sender: str


@dataclass(frozen=True, slots=True)
class Advertise:
    """The sender is going to publish events that match a filter."""

    sender: str
    id: str
    filter: str


@dataclass(frozen=True, slots=True)
class Unadvertise:
    """The sender withdraws an advertisement; what it published before is still delivered."""

    sender: str
    id: str


@dataclass(frozen=True, slots=True)
class Subscribe:
    """The sender wants all events that match a filter."""

    sender: str
    id: str
    filter: str


@dataclass(frozen=True, slots=True)
class Unsubscribe:
    """The sender withdraws a subscription."""

    sender: str
    id: str


@dataclass(frozen=True, slots=True)
class Publish:
    """An event; between brokers `id` is ``client/id``."""

    sender: str
    id: str
    event: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Ack:
    """The request with this id is done, here and wherever it had to be passed on to.

    `what` is the kind of message that is answered: ``"Subscribe"``, ``"Publish"`` and so on.
    """

    sender: str
    id: str
    what: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """The request with this id cannot be granted; nothing was changed."""

    sender: str
    id: str
    reason: str
    what: str = ""


@dataclass(frozen=True, slots=True)
class Deliver:
    """An event for a client, and which of its subscriptions match; `id` is ``client/id``."""

    sender: str
    id: str
    event: dict[str, Any]
    subscriptions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Hello:
    """A broker offers a session; `echo` is the last session that the other side has offered."""

    sender: str
    session: int
    echo: int | None


@dataclass(frozen=True, slots=True)
class Packet:
    """A message with its number in the stream from one session to another."""

    sender: str
    session: int
    echo: int
    number: int
    message: "Payload"


@dataclass(frozen=True, slots=True)
class Receipt:
    """All packets below a number have arrived."""

    sender: str
    session: int
    echo: int
    number: int


@dataclass(frozen=True, slots=True)
class LinkUp:
    """The host says that a neighbour can be reached; an unknown sender becomes a neighbour."""

    sender: str


@dataclass(frozen=True, slots=True)
class LinkDown:
    """The host says that a neighbour cannot be reached."""

    sender: str


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""

    sender: str = ""


FilterMessage = Advertise | Unadvertise | Subscribe | Unsubscribe  # adds or removes a filter
Payload = FilterMessage | Publish | Ack | Refused  # what a packet carries
LinkMessage = Hello | Packet | Receipt
Message = Connect | Disconnect | Payload | Deliver | LinkMessage | LinkUp | LinkDown | Tick
Sends = list[tuple[str, Message]]  # receivers and messages, in order
