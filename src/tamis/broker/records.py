"""What goes through a broker: events as they come, as the log keeps them, as they are delivered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from tamis.broker.quantities import is_count
from tamis.errors import OptionError, choose

DEAD = "dead."  # before the name of a topic: the name of its dead-letter topic
SLOW = ("drop-oldest", "disconnect")
NO_HEADERS: Mapping[str, str] = {}

# Where a subscription begins: "new" (what comes from now on), "earliest", an offset, a time.
Start = str | int | datetime


class NewEvent(NamedTuple):
    """An event as a publisher gives it."""

    body: bytes  # the text of a JSON object; delivered as it came
    id: str | None = None  # the same id again is the same event; None: the broker gives one
    headers: Mapping[str, str] = NO_HEADERS  # what the sender wants carried along


class Record(NamedTuple):
    """An event as the log keeps it."""

    offset: int
    time: int  # when it arrived, in microseconds since 1970
    id: str
    headers: bytes  # the text of a JSON object, or empty
    body: bytes

    def named(self) -> "Record":
        """The record with an id: its offset, if its publisher gave none."""
        offset, time, id_, headers, body = self
        return self if id_ else Record(offset, time, str(offset), headers, body)


class Delivery(NamedTuple):
    """An event on its way to a subscriber."""

    record: Record
    attempt: int  # 1 the first time

    @property
    def redelivered(self) -> bool:
        """Whether the subscriber may have got it before."""
        return self.attempt > 1


class Refusal(NamedTuple):
    """An event that was not accepted: its number in the call, and why."""

    row: int
    reason: str


class Published(NamedTuple):
    """What became of events that were published; the accepted ones are safe on disk."""

    accepted: int  # with those that were there already, by their id
    offset: int | None  # of the last one accepted
    refused: Sequence[Refusal] = ()
    dropped: int = 0  # by the publisher itself, because nobody wants them


@dataclass(frozen=True)
class DeliveryOptions:
    """How events are delivered to one subscription."""

    window: int = 1000  # durable: at most this many are unacknowledged
    ack_timeout: float = 30.0  # durable: seconds until an unacknowledged event comes again
    most_attempts: int = 10  # durable: then the event goes to the dead-letter topic
    buffer: int = 10_000  # not durable: at most this many events wait for the subscriber
    buffer_bytes: int = 16_000_000  # not durable: and at most this many bytes of them
    slow: str = "drop-oldest"  # not durable: what happens when the buffer is full
    auto_ack: bool = False  # durable: what is taken counts as acknowledged

    def __post_init__(self) -> None:
        choose("treatment of slow subscribers", self.slow, SLOW)
        for name in ("window", "most_attempts", "buffer", "buffer_bytes"):
            value = getattr(self, name)
            if not is_count(value):
                raise OptionError(f"{name} is a whole number from 1, not {value!r}")
        timeout: Any = self.ack_timeout
        if isinstance(timeout, bool) or not isinstance(timeout, int | float) or not timeout > 0:
            raise OptionError(f"ack_timeout is a number of seconds above 0, not {timeout!r}")


@dataclass(frozen=True)
class Retention:
    """How much of a topic is kept; None keeps everything."""

    max_age: float | None = None  # seconds
    max_bytes: int | None = None
    max_events: int | None = None

    def __post_init__(self) -> None:
        for name in ("max_age", "max_bytes", "max_events"):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int | float) and value > 0):
                raise OptionError(f"{name} is a number above 0 or None, not {value!r}")


class TopicInfo(NamedTuple):
    """What is known about a topic."""

    name: str
    schema: Mapping[str, str]  # attributes and their types
    semantics: str
    defaults: Mapping[str, Any] | None
    retention: Retention
    first_offset: int  # of the oldest event that is kept
    next_offset: int  # of the next event to come
    subscriptions: int  # durable ones
    expired: int = 0  # events that retention has removed
    damaged: int = 0  # events that were lost to damage of files


class SubscriptionInfo(NamedTuple):
    """What is known about a subscription."""

    topic: str
    id: str
    account: str
    filter: str  # as the subscriber wrote it
    durable: bool
    cursor: int  # everything before this offset is acknowledged, or does not concern it
    options: DeliveryOptions
    attached: bool  # whether somebody listens
    expired: int = 0  # events of the log that were removed before the cursor came to them
    moving: str = ""  # "from b1" or "to b2" while it moves between brokers


class CheckAnswer(NamedTuple):
    """How a correct filter is understood."""

    filter: str  # as it is understood
    attributes: Sequence[str]  # that it tests
    narrowed: str | None = None  # what the grants of the account make of it, if something else
