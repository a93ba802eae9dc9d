"""The JSON of requests and answers, as types: what they check is what the OpenAPI page says."""

from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from tamis.broker.move_rows import ASKING, MoveRow
from tamis.broker.quenching import LONGEST_WAIT
from tamis.broker.quenching import Wanted as WantedFilter
from tamis.broker.records import (
    CheckAnswer,
    DeliveryOptions,
    Published,
    Retention,
    SubscriptionInfo,
    TopicInfo,
)
from tamis.errors import OptionError

Offset = Annotated[int, Meta(ge=0, le=2**63 - 1)]
# Below 0: it came with a subscription from another broker.
DeliveredOffset = Annotated[int, Meta(ge=-(2**62), le=2**63 - 1)]
Count = Annotated[int, Meta(ge=1, le=2**63 - 1)]
Above0 = Annotated[float, Meta(gt=0)]
# That a filter is empty is found by reading it, with its place; here it is only said.
Filter = Annotated[str, Meta(extra_json_schema={"minLength": 1})]


class Request(msgspec.Struct, forbid_unknown_fields=True):
    """The body of a request. A name that is not known is refused: it may be misspelt."""


class RetentionLimits(Request):
    """How much of a topic is kept; what is left out is not limited."""

    max_age: Annotated[float, Meta(gt=0, description="seconds")] | None = None
    max_bytes: Count | None = None
    max_events: Count | None = None

    def retention(self) -> Retention:
        """The same for the broker."""
        return Retention(self.max_age, self.max_bytes, self.max_events)


class TopicRequest(Request):
    """A topic: its attributes and their types, and what a missing attribute means."""

    schema: dict[str, str] | str
    semantics: Literal["sql", "strict", "default", "total"] = "sql"
    defaults: dict[str, Any] | None = None
    retention: RetentionLimits | None = None


class Delivering(Request):
    """How events are delivered; what a request leaves out is as usual."""

    window: Count | UnsetType = UNSET
    ack_timeout: Above0 | UnsetType = UNSET
    most_attempts: Count | UnsetType = UNSET
    buffer: Count | UnsetType = UNSET
    buffer_bytes: Count | UnsetType = UNSET
    slow: Literal["drop-oldest", "disconnect"] | UnsetType = UNSET
    auto_ack: bool | UnsetType = UNSET

    def given(self) -> dict[str, Any]:
        """What the request names."""
        named = {name: getattr(self, name) for name in DeliveryOptions.__dataclass_fields__}
        return {name: value for name, value in named.items() if value is not UNSET}

    def options(self) -> DeliveryOptions:
        """How it is delivered; what the request leaves out is as usual."""
        return DeliveryOptions(**self.given())


class SubscriptionRequest(Delivering, kw_only=True):
    """A subscription: a filter, and how what matches it is delivered."""

    filter: Filter
    durable: bool = True
    start: Annotated[
        str | Offset,
        Meta(description='"new", "earliest", an offset, or a time in ISO 8601'),
    ] = "new"


class MoveRequest(Delivering, kw_only=True):
    """The broker that a durable subscription comes from; the rest is as it is there."""

    origin: Annotated[str, Meta(min_length=1)] = msgspec.field(name="from")
    filter: Filter | UnsetType = UNSET
    wait: Annotated[float, Meta(ge=0, le=30, description="seconds")] = 10


class AckRequest(Request):
    """An acknowledgement of everything up to an offset."""

    offset: DeliveredOffset


class QuenchRequest(Request):
    """Which version of what is wanted a publisher drops by, and how long it waits for another."""

    version: str | None = None
    wait: Annotated[float, Meta(ge=0, le=LONGEST_WAIT, description="seconds")] = 0


class CheckRequest(Request):
    """A filter that is to be checked."""

    filter: Filter


class WhyRequest(Request):
    """A question: why does this subscription or filter match this event or offset, or not?"""

    subscription: str | UnsetType = UNSET
    filter: Filter | UnsetType = UNSET
    event: dict[str, Any] | UnsetType = UNSET
    offset: Offset | UnsetType = UNSET

    def given(self) -> dict[str, Any]:
        """The two things that are asked about, by name."""
        asked = {name: getattr(self, name) for name in self.__struct_fields__}
        given = {name: value for name, value in asked.items() if value is not UNSET}
        if len(given.keys() & {"subscription", "filter"}) != 1:
            raise OptionError("why takes either a subscription or a filter")
        if len(given.keys() & {"event", "offset"}) != 1:
            raise OptionError("why takes either an event or an offset")
        return given


class SocketWord(Request):
    """What a WebSocket sends back: up to an offset, or a list of single ones."""

    ack: DeliveredOffset | list[DeliveredOffset] | None = None
    nack: DeliveredOffset | list[DeliveredOffset] | None = None


class Topic(msgspec.Struct):
    """What is known about a topic."""

    name: str
    schema: dict[str, str]
    semantics: str
    defaults: dict[str, Any] | None
    retention: RetentionLimits
    first_offset: int
    next_offset: int
    subscriptions: int
    expired: int
    damaged: int

    @classmethod
    def of(cls, info: TopicInfo) -> "Topic":
        """The same for JSON."""
        kept = info.retention
        return cls(
            info.name, dict(info.schema), info.semantics,
            None if info.defaults is None else dict(info.defaults),
            RetentionLimits(kept.max_age, kept.max_bytes, kept.max_events),
            info.first_offset, info.next_offset, info.subscriptions, info.expired, info.damaged,
        )  # fmt: skip


class Topics(msgspec.Struct):
    """The topics that the account may see."""

    topics: list[Topic]


class Subscription(msgspec.Struct):
    """What is known about a subscription."""

    topic: str
    id: str
    filter: str
    durable: bool
    cursor: int
    attached: bool
    expired: int
    window: int
    ack_timeout: float
    most_attempts: int
    buffer: int
    buffer_bytes: int
    slow: str
    auto_ack: bool
    moving: str = ""  # "from b1", "to b2": between brokers

    @classmethod
    def of(cls, info: SubscriptionInfo) -> "Subscription":
        """The same for JSON."""
        options = {
            name: getattr(info.options, name) for name in DeliveryOptions.__dataclass_fields__
        }
        return cls(
            info.topic, info.id, info.filter, info.durable, info.cursor, info.attached,
            info.expired, **options, moving=info.moving,
        )  # fmt: skip


class MoveAnswer(msgspec.Struct):
    """How far a subscription has come; `events` came with it, and are delivered first."""

    state: Literal["pending", "here"]
    events: int
    problem: str

    @classmethod
    def of(cls, move: MoveRow) -> "MoveAnswer":
        """The same for JSON."""
        return cls("pending" if move.state == ASKING else "here", move.events, move.problem)


class Subscriptions(msgspec.Struct):
    """Subscriptions of the account, by id; `after` asks for those after the last one."""

    subscriptions: list[Subscription]


class RefusedEvent(msgspec.Struct):
    """An event that was not accepted: its number in the request, from 0, and why."""

    row: int
    reason: str


class Publication(msgspec.Struct):
    """What became of the events of a request; those that were accepted are safe on disk."""

    accepted: int
    offset: int | None
    refused: list[RefusedEvent]

    @classmethod
    def of(cls, published: Published) -> "Publication":
        """The same for JSON."""
        refused = [RefusedEvent(row, reason) for row, reason in published.refused]
        return cls(published.accepted, published.offset, refused)


class Wanted(msgspec.Struct):
    """What anybody wants of a topic; if `granted`, the rest may be dropped for `lease` seconds."""

    version: str
    filter: str
    schema: dict[str, str]
    semantics: str
    defaults: dict[str, Any] | None
    granted: bool
    lease: float

    @classmethod
    def of(cls, wanted: WantedFilter) -> "Wanted":
        """The same for JSON."""
        defaults = None if wanted.defaults is None else dict(wanted.defaults)
        return cls(
            wanted.version, wanted.filter, dict(wanted.schema), wanted.semantics, defaults,
            wanted.granted, wanted.lease,
        )  # fmt: skip


class LogEvent(msgspec.Struct):
    """An event of the log."""

    offset: int
    event: dict[str, Any]
    id: str
    time: str
    headers: dict[str, str] | UnsetType = UNSET


class LogEvents(msgspec.Struct):
    """Events of the log; `next` is where to go on reading."""

    events: list[LogEvent]
    next: int


class FilterReading(msgspec.Struct):
    """How a filter is understood."""

    filter: str
    attributes: list[str]
    narrowed: str | None

    @classmethod
    def of(cls, answer: CheckAnswer) -> "FilterReading":
        """The same for JSON."""
        return cls(answer.filter, list(answer.attributes), answer.narrowed)


class Reason(msgspec.Struct, tag=False):
    """Why an event matches a filter or not: the truth of each part, with the values it tests."""

    subscription: str | int
    matched: bool
    filter: str
    semantics: str
    notes: list[str]
    root: dict[str, Any]


class Problem(msgspec.Struct, omit_defaults=True):
    """Why a request was refused; a filter's error has its place, counted from 1."""

    error: str
    message: str
    line: int | None = None
    column: int | None = None
    accepted: int | None = None
    offset: int | None = None
    refused: list[RefusedEvent] | None = None


class Health(msgspec.Struct):
    """Whether the broker lives, or is ready."""

    status: str


class Peer(msgspec.Struct):
    """A broker next to this one."""

    name: str
    linked: bool
    lag: int  # events that it may still have to get, of all topics
    lost: int  # events that expired before it got them
    filters_held: int  # of it, here
    filters_announced: int  # that it was told
    # Since the broker started:
    bytes_sent: int
    bytes_received: int
    frames_sent: int
    frames_received: int
    events_sent: int
    events_received: int
    filters_sent: int  # that were announced to it, or withdrawn
    filters_received: int
    false_positives: int  # events of it that nobody here or beyond wanted


class Amount(msgspec.Struct):
    """Filters, and the bytes that announcing them takes."""

    entries: int
    bytes: int


class TopicSavings(msgspec.Struct):
    """What a peer would be told of the subscriptions to a topic, and what it was told."""

    topic: str
    all: Amount  # every subscription that concerns it
    covering: Amount  # only those that no other one covers
    announced: Amount  # what it was told in fact
    mergers: int  # among them


class PeerSavings(msgspec.Struct):
    """A broker next to this one, and what covering and merging save of what it is told."""

    peer: Peer
    topics: list[TopicSavings]


class Peers(msgspec.Struct):
    """The brokers next to this one, by their names."""

    peers: list[Peer]
