"""What the headers of frames say: destinations, versions, heart-beats, where to start."""

import re
from collections.abc import Mapping

from tamis.broker.protocols.stomp.frames import VERSIONS, FrameError
from tamis.broker.protocols.stomp.requests import ACK_MODES, AUTO

TOPIC, WANTED = "/topic/", "/wanted/"
# What different brokers call the same thing; of several, the first one counts.
DURABLE_NAMES = (
    "durable-subscription-name",
    "activemq.subscriptionName",
    "durable-subscriber-name",
)
WINDOW_NAMES = ("prefetch-count", "activemq.prefetchSize")

_BEATS = re.compile(r"\s*([0-9]{1,9})\s*,\s*([0-9]{1,9})\s*")
_WHOLE = re.compile(r"[0-9]{1,18}")
_OFFSET = re.compile(r"-?[0-9]{1,18}")  # below 0: it came with a subscription that moved
_ACK_ID = re.compile(r"([0-9]{1,18})-(-?[0-9]{1,18})")


class VersionError(FrameError):
    """A client that speaks no version of STOMP that the server speaks."""


def topic(headers: Mapping[str, str]) -> str:
    """The topic that a frame is about."""
    destination = headers.get("destination", "")
    if not destination.startswith(TOPIC) or len(destination) == len(TOPIC):
        given = repr(destination[:60]) if destination else "missing"
        raise FrameError(f"the header destination is {given}, expected {TOPIC}NAME")
    return destination[len(TOPIC) :]


def wanted_topic(headers: Mapping[str, str]) -> str | None:
    """The topic of which a publisher asks what anybody wants; None: it asks for events."""
    destination = headers.get("destination", "")
    return destination[len(WANTED) :] if destination.startswith(WANTED) else None


def version(headers: Mapping[str, str]) -> str:
    """The highest version that both sides speak; a client that names none speaks 1.0."""
    offered = [one.strip() for one in headers.get("accept-version", "1.0").split(",")]
    common = [one for one in VERSIONS if one in offered]
    if not common:
        raise VersionError(
            f"no common version of STOMP: the client offers {', '.join(offered)[:60]}, the server "
            f"speaks {', '.join(VERSIONS)}"
        )
    return common[-1]


def heart_beats(headers: Mapping[str, str]) -> tuple[float, float]:
    """How often, in seconds, a client can send heart-beats, and how often it wants some."""
    text = headers.get("heart-beat", "0,0")
    found = _BEATS.fullmatch(text)
    if found is None:
        raise FrameError(
            f"heart-beat is two numbers of milliseconds, like 10000,10000, not {text[:60]!r}"
        )
    return int(found[1]) / 1000, int(found[2]) / 1000


def ack_mode(headers: Mapping[str, str]) -> str:
    """How messages of a subscription are acknowledged."""
    mode = headers.get("ack", AUTO)
    if mode not in ACK_MODES:
        raise FrameError(f"the header ack is one of {', '.join(ACK_MODES)}, not {mode[:60]!r}")
    return mode


def durable_name(headers: Mapping[str, str], client_id: str | None) -> str | None:
    """The id of a durable subscription, CLIENT.NAME or NAME alone; None if it is not durable."""
    names = [headers[name] for name in DURABLE_NAMES if headers.get(name)]
    if not names:
        return None
    return f"{client_id}.{names[0]}" if client_id else names[0]


def start(headers: Mapping[str, str]) -> str | int:
    """Where a subscription starts: ``new``, ``earliest``, an offset, a time."""
    text = headers.get("from", "new")
    return int(text) if _WHOLE.fullmatch(text) else text


def window(headers: Mapping[str, str]) -> int | None:
    """How many messages a client takes before it acknowledges; None: as the server thinks best."""
    for name in WINDOW_NAMES:
        text = headers.get(name)
        if text is not None:
            if not _WHOLE.fullmatch(text) or not int(text):
                raise FrameError(f"the header {name} is a number from 1, not {text[:60]!r}")
            return int(text)
    return None


def ack_id(headers: Mapping[str, str]) -> tuple[int, int]:
    """The number of the subscription and the offset that an ACK of 1.2 names."""
    text = headers.get("id", "")
    found = _ACK_ID.fullmatch(text)
    if found is None:
        raise unknown_ack(text)
    return int(found[1]), int(found[2])


def message_id(headers: Mapping[str, str]) -> tuple[str, int]:
    """The topic and the offset that an ACK of 1.0 or 1.1 names."""
    text = headers.get("message-id", "")
    name, _, offset = text.rpartition("@")
    if not _OFFSET.fullmatch(offset):
        raise FrameError(f"message-id {text[:60]!r} is not the message-id of a MESSAGE")
    return name, int(offset)


def unknown_ack(text: str) -> FrameError:
    """The error about an ACK of something that was never sent."""
    return FrameError(f"id {text[:60]!r} is not the ack header of a MESSAGE on this connection")
