"""What a client asks for, read from its frames."""

from typing import NamedTuple

from tamis.errors import TamisError

AUTO, CLIENT, INDIVIDUAL = "auto", "client", "client-individual"
ACK_MODES = (AUTO, CLIENT, INDIVIDUAL)


BEFORE_ALL = -(1 << 62)  # an offset


class Subscription:
    """A subscription of one connection, from its SUBSCRIBE to its UNSUBSCRIBE."""

    __slots__ = ("ack", "highest", "key", "number", "opening", "topic")

    def __init__(self, number: int, key: str, topic: str, ack: str) -> None:
        self.number = number  # in this connection; never given twice
        self.key = key  # the client's id for it, or, in 1.0, the destination
        self.topic = topic
        self.ack = ack  # one of `ACK_MODES`
        self.highest = BEFORE_ALL  # the highest offset that was sent
        self.opening = b"MESSAGE"  # how its MESSAGE frames begin


class Connect(NamedTuple):
    """CONNECT: a client says who it is."""

    login: str | None
    passcode: str | None
    authorization: str | None  # as in HTTP: Bearer TOKEN, or Basic


class Send(NamedTuple):
    """SEND: an event for a topic."""

    topic: str
    headers: dict[str, str]
    body: bytes
    receipt: str | None


class Publish(NamedTuple):
    """Events that came one after the other, to be published together."""

    sends: list[Send]


class Subscribe(NamedTuple):
    """SUBSCRIBE."""

    subscription: Subscription
    filter: str
    durable: str | None  # the name of the durable subscription
    start: str | int
    window: int | None
    slow: str | None
    receipt: str | None


class Unsubscribe(NamedTuple):
    """UNSUBSCRIBE; with the name of a durable subscription, that one is deleted."""

    subscription: Subscription | None
    durable: str | None
    topic: str | None
    receipt: str | None


class Ack(NamedTuple):
    """ACK or NACK of one offset, or of all up to it (with the ack mode `client`)."""

    subscription: Subscription
    offset: int
    accepted: bool


class Quench(NamedTuple):
    """SUBSCRIBE to what anybody wants of a topic."""

    subscription: Subscription
    topic: str
    receipt: str | None


class Acknowledge(NamedTuple):
    """Acknowledgements that came one after the other."""

    acks: list[Ack]
    receipts: list[str]


class Commit(NamedTuple):
    """COMMIT: all that was sent and acknowledged in a transaction."""

    sends: list[Send]
    acks: list[Ack]
    receipt: str | None


class Confirm(NamedTuple):
    """A frame after which nothing is to be done but to confirm it."""

    receipt: str


class Disconnect(NamedTuple):
    """DISCONNECT: the last frame of a client."""

    receipt: str | None


class Failure(NamedTuple):
    """A frame that cannot be processed; the connection ends with it."""

    error: TamisError
    receipt: str | None = None


Request = (
    Connect
    | Publish
    | Subscribe
    | Quench
    | Unsubscribe
    | Acknowledge
    | Commit
    | Confirm
    | Disconnect
    | Failure
)
