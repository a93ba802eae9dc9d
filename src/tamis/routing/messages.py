"""What clients, brokers and their surroundings say to each other.

Every message names its sender. All else in it is plain (texts, numbers, an event as a dict), so
that a service can send it in whatever form it likes.

=============== ======================= ==========================================================
from            to                      messages
=============== ======================= ==========================================================
client          its broker              Connect Disconnect Advertise Unadvertise Subscribe
                                        Unsubscribe Publish
broker          its client              Ack Refused Deliver
broker          a neighbour, in Packets Advertise Unadvertise Subscribe Unsubscribe Publish Ack
                                        Refused
broker          a neighbour             Hello Packet Receipt
surroundings    broker                  LinkUp LinkDown Tick
=============== ======================= ==========================================================

Between brokers an `id` is a number of the link's own, as text; a filter is known by its text.
"""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Connect:
    """A client is there."""

    sender: str


@dataclass(frozen=True, slots=True)
class Disconnect:
    """A client has gone, and with it all that it advertised and subscribed to."""

    sender: str


@dataclass(frozen=True, slots=True)
class Advertise:
    """The sender is going to publish events that match a filter."""

    sender: str
    id: str
    filter: str


@dataclass(frozen=True, slots=True)
class Unadvertise:
    """The sender takes an advertisement back; what it published before is still delivered."""

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
    """The sender takes a subscription back."""

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
    """What was asked for under an id is done, here and wherever it had to be passed on to.

    `what` is the kind of message that is answered: ``"Subscribe"``, ``"Publish"`` and so on.
    """

    sender: str
    id: str
    what: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """What a client asked for under an id cannot be; nothing was changed."""

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
    """A broker offers a session; `echo` is the session that it has heard of from the other side."""

    sender: str
    session: int
    echo: int | None


@dataclass(frozen=True, slots=True)
class Packet:
    """A message in its place of the stream from one session to another."""

    sender: str
    session: int
    echo: int
    number: int
    message: "Carried"


@dataclass(frozen=True, slots=True)
class Receipt:
    """All packets before a number have arrived."""

    sender: str
    session: int
    echo: int
    number: int


@dataclass(frozen=True, slots=True)
class LinkUp:
    """The surroundings say that a neighbour can be reached; an unknown one becomes known."""

    sender: str


@dataclass(frozen=True, slots=True)
class LinkDown:
    """The surroundings say that a neighbour cannot be reached."""

    sender: str


@dataclass(frozen=True, slots=True)
class Tick:
    """Time has passed."""

    sender: str = ""


Carried = Advertise | Unadvertise | Subscribe | Unsubscribe | Publish | Ack | Refused
Wire = Hello | Packet | Receipt
Message = Connect | Disconnect | Carried | Refused | Deliver | Wire | LinkUp | LinkDown | Tick
Sends = list[tuple[str, Message]]
