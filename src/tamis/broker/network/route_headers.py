"""Where an event came from: headers that brokers add on its way, and an id if it had none.

``tamis-origin`` is the broker that it was published to, ``tamis-via`` the peer that sent it here.
They belong to brokers: what a client gives under these names is left out.
"""

from collections.abc import Mapping, Sequence

import msgspec

from tamis.broker.network.messages import SentEvent
from tamis.broker.records import NewEvent, Record

ORIGIN, VIA = "tamis-origin", "tamis-via"
_VIA_BYTES = VIA.encode()
_decode = msgspec.json.Decoder(dict[str, str]).decode


def without_route(events: Sequence[NewEvent]) -> Sequence[NewEvent]:
    """Events of a client, without what only brokers may say."""
    if not any(VIA in event.headers or ORIGIN in event.headers for event in events):
        return events
    return [
        event._replace(headers={n: v for n, v in event.headers.items() if n not in {ORIGIN, VIA}})
        for event in events
    ]


def came_from(headers: bytes) -> str | None:
    """The peer that sent an event with these headers here; None if a client did."""
    if _VIA_BYTES not in headers:
        return None
    return _decode(headers).get(VIA)


def sent(record: Record, prefix: str) -> SentEvent:
    """An event as it is sent to a peer; it is named by its offset here if it has no id."""
    return SentEvent(record.id or f"{prefix}{record.offset}", record.headers, record.body)


def arrived(event: SentEvent, peer: str) -> NewEvent:
    """An event as it is stored when a peer has sent it."""
    headers: Mapping[str, str] = _decode(event.headers) if event.headers else {}
    return NewEvent(event.body, event.id, {**headers, ORIGIN: headers.get(ORIGIN, peer), VIA: peer})
