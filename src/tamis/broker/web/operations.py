"""The table of everything that is answered over HTTP: the router and the OpenAPI page read it."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from aiohttp import web

from tamis.broker.protocols import cloud_events, sse
from tamis.broker.protocols.event_bodies import ARROW, EVENT_ID, JSON, LINES
from tamis.broker.web import (
    events,
    monitoring,
    peers,
    quenching,
    questions,
    shapes,
    sockets,
    streams,
    subscriptions,
    topics,
)
from tamis.broker.web.calls import Call

Handler = Callable[[Call], Awaitable[web.StreamResponse]]


class Parameter(NamedTuple):
    """A parameter of the query, or a header."""

    name: str
    says: str
    schema: Mapping[str, Any]
    place: str = "query"


class Operation(NamedTuple):
    """One method of one path."""

    method: str
    path: str
    handler: Handler
    says: str
    parameters: tuple[Parameter, ...] = ()
    body: Mapping[str, Any] = {}  # by content type: a type of `shapes`, or a JSON schema
    status: int = 200
    answer: Mapping[str, Any] = {}  # likewise
    refusals: tuple[int, ...] = ()
    for_all: bool = False  # whether it is answered without asking who it is


TOPIC = "/topics/{topic}"
SUBSCRIPTION = TOPIC + "/subscriptions/{subscription}"

_TEXT: Mapping[str, Any] = {"type": "string"}
_OBJECT: Mapping[str, Any] = {"type": "object"}
_OBJECTS: Mapping[str, Any] = {"type": "array", "items": _OBJECT}
_CLOUD_EVENT: Mapping[str, Any] = {
    "type": "object",
    "required": ["specversion", "id", "source", "type", "data"],
    "properties": {
        "specversion": {"const": cloud_events.VERSION},
        "id": {"type": "string", "minLength": 1},
        "source": {"type": "string", "minLength": 1},
        "type": {"type": "string", "minLength": 1},
        "data": _OBJECT,
        "datacontenttype": {"const": JSON},
    },
    "patternProperties": {"^[a-ce-z0-9][a-z0-9]*$": {"type": ["string", "boolean", "integer"]}},
    "additionalProperties": False,
}
_EVENTS: Mapping[str, Any] = {
    JSON: {"anyOf": [_OBJECT, _OBJECTS]},
    LINES[0]: _TEXT,
    cloud_events.STRUCTURED: _CLOUD_EVENT,
    cloud_events.BATCH: {"type": "array", "items": _CLOUD_EVENT},
    ARROW: {"type": "string", "format": "binary"},
}
_FILTER = Parameter("filter", "what is written after WHERE; without it, everything", _TEXT)
_FROM = Parameter("from", '"new", "earliest", an offset, or a time in ISO 8601', _TEXT)
_LAST = Parameter(
    sse.LAST_EVENT_ID, "the offset after which to go on; it counts as acknowledged",
    {"type": "string", "pattern": "^-?[0-9]{1,18}$"}, "header",
)  # fmt: skip
_KEY = Parameter(
    EVENT_ID, "the id of the event, or what the ids of several begin with: the same id again "
    "stores nothing twice", {"type": "string", "minLength": 1}, "header",
)  # fmt: skip


_WHY: Mapping[str, Any] = {
    "type": "object",
    "properties": {
        "subscription": _TEXT,
        "filter": _TEXT,
        "event": _OBJECT,
        "offset": {"type": "integer", "minimum": 0, "maximum": 2**63 - 1},
    },
    "additionalProperties": False,
    "allOf": [
        {"oneOf": [{"required": ["subscription"]}, {"required": ["filter"]}]},
        {"oneOf": [{"required": ["event"]}, {"required": ["offset"]}]},
    ],
}


def _count(name: str, says: str, most: int) -> Parameter:
    return Parameter(name, says, {"type": "integer", "minimum": 1, "maximum": most})


def _json(shape: Any) -> Mapping[str, Any]:
    return {JSON: shape}


OPERATIONS = (
    Operation(
        "GET", "/topics", topics.list_topics, "The topics that the account may see",
        answer=_json(shapes.Topics),
    ),
    Operation(
        "PUT", TOPIC, topics.put_topic, "Make a topic, or add attributes to one",
        body=_json(shapes.TopicRequest), answer=_json(shapes.Topic), refusals=(409,),
    ),
    Operation(
        "GET", TOPIC, topics.get_topic, "What is known about a topic",
        answer=_json(shapes.Topic),
    ),
    Operation(
        "DELETE", TOPIC, topics.delete_topic, "Delete a topic with its events and subscriptions",
        status=204,
    ),
    Operation(
        "POST", TOPIC + "/events", events.publish,
        "Publish events; the answer comes when they are safe on disk",
        (_KEY,), _EVENTS, answer=_json(shapes.Publication), refusals=(415, 503),
    ),
    Operation(
        "GET", TOPIC + "/events", events.read_log, "Events of the log",
        (_FILTER, _FROM, _count("limit", "how many at most", events.MOST_READ)),
        answer=_json(shapes.LogEvents),
    ),
    Operation(
        "GET", TOPIC + "/live", streams.live_events, "What matches a filter, as it comes",
        (_FILTER, _FROM, _LAST), answer={sse.CONTENT_TYPE: _TEXT},
    ),
    Operation(
        "GET", TOPIC + "/wanted", quenching.get_wanted,
        "What anybody wants of a topic, as a filter", answer=_json(shapes.Wanted),
    ),
    Operation(
        "POST", TOPIC + "/wanted/{publisher}", quenching.quench,
        "Confirm what anybody wants, drop the rest at the source, and wait for news",
        body=_json(shapes.QuenchRequest), answer=_json(shapes.Wanted),
    ),
    Operation(
        "DELETE", TOPIC + "/wanted/{publisher}", quenching.quench_no_more,
        "Say that nothing is dropped at the source any more", status=204,
    ),
    Operation(
        "POST", TOPIC + "/check", questions.check, "Whether a filter is right, and where it is not",
        body=_json(shapes.CheckRequest), answer=_json(shapes.FilterReading),
    ),
    Operation(
        "POST", TOPIC + "/why", questions.why, "Why a filter matches an event, or not",
        body=_json(_WHY), answer=_json(shapes.Reason),
    ),
    Operation(
        "GET", TOPIC + "/subscriptions", subscriptions.list_subscriptions,
        "Subscriptions of the account, by id",
        (
            Parameter("after", "the id after which the list begins", _TEXT),
            _count("limit", "how many at most", subscriptions.MOST_LISTED),
        ),
        answer=_json(shapes.Subscriptions),
    ),
    Operation(
        "PUT", SUBSCRIPTION, subscriptions.put_subscription, "Subscribe, or change the filter",
        body=_json(shapes.SubscriptionRequest), answer=_json(shapes.Subscription), refusals=(409,),
    ),
    Operation(
        "GET", SUBSCRIPTION, subscriptions.get_subscription,
        "What is known about a subscription", answer=_json(shapes.Subscription),
    ),
    Operation("DELETE", SUBSCRIPTION, subscriptions.delete_subscription, "Unsubscribe", status=204),
    Operation(
        "GET", SUBSCRIPTION + "/events", streams.subscription_events,
        "The deliveries of a subscription, as server-sent events",
        (_LAST,), answer={sse.CONTENT_TYPE: _TEXT},
    ),
    Operation(
        "GET", SUBSCRIPTION + "/socket", sockets.subscription_socket,
        "The deliveries of a subscription, over a WebSocket",
        (_count("batch", "how many deliveries one message may have", streams.MOST_TAKEN),),
        status=101,
    ),
    Operation(
        "POST", SUBSCRIPTION + "/ack", subscriptions.acknowledge,
        "Acknowledge everything up to an offset", body=_json(shapes.AckRequest), status=204,
    ),
    Operation(
        "POST", SUBSCRIPTION + "/move", subscriptions.move_subscription,
        "Fetch a durable subscription from another broker of the network",
        body=_json(shapes.MoveRequest), answer=_json(shapes.MoveAnswer), refusals=(409, 503),
    ),
    Operation(
        "GET", "/peers", peers.list_peers, "The brokers that this one is linked with",
        answer=_json(shapes.Peers),
    ),
    Operation(
        "GET", "/peers/{peer}", peers.show_peer,
        "A broker that this one is linked with, and what covering and merging save",
        answer=_json(shapes.PeerSavings),
    ),
    Operation(
        "DELETE", "/peers/{peer}", peers.remove_peer, "Forget a broker that is gone for good",
        status=204, refusals=(409,),
    ),
    Operation(
        "GET", "/metrics", monitoring.metrics, "The metrics, for Prometheus",
        answer={monitoring.PROMETHEUS: _TEXT},
    ),
    Operation(
        "GET", "/healthz", monitoring.healthz, "Whether the broker runs",
        answer=_json(shapes.Health), for_all=True,
    ),
    Operation(
        "GET", "/readyz", monitoring.readyz, "Whether the broker accepts requests",
        answer=_json(shapes.Health), for_all=True,
    ),
)  # fmt: skip
