"""MESSAGE frames.

Most of a MESSAGE is the same for everybody who gets the event: that part is made once
(`shared_part`), and put after the few bytes that belong to one subscription.
"""

import json
from collections.abc import Callable, Iterable

from tamis.broker.protocols.stomp.frames import escaped
from tamis.broker.protocols.stomp.header_events import EVENT_ID, carried_body
from tamis.broker.protocols.stomp.requests import AUTO, Subscription
from tamis.broker.records import Delivery, Record

# Of these names only the server's own headers are sent: another one's would be taken for them.
_OWN = frozenset({
    "subscription", "message-id", "ack", "redelivered", "attempt", "dropped",
    "content-length", "destination", "offset", "timestamp", EVENT_ID,
})  # fmt: skip


def opening(identifier: str | None, version: str | None) -> bytes:
    """How MESSAGE frames of a subscription with this id begin; in 1.0 it may have none."""
    if identifier is None:
        return b"MESSAGE"
    return f"MESSAGE\nsubscription:{escaped(identifier, version)}".encode()


def shared_part(topic: str, record: Record, version: str | None) -> bytes:
    """The headers and the body that a MESSAGE has for every subscriber, to the end of the frame."""
    body, content_type, more = record.body, "application/json", ""
    if record.headers:
        carried = json.loads(record.headers)
        other = carried_body(carried)
        if other is not None:
            body, content_type = other, carried.pop("content-type", "text/plain")
        more = "".join(
            f"\n{escaped(name, version)}:{escaped(value, version)}"
            for name, value in carried.items()
            if name not in _OWN
        )
    head = (
        f"\ndestination:/topic/{topic}\nmessage-id:{topic}@{record.offset}\noffset:{record.offset}"
        f"\n{EVENT_ID}:{escaped(record.id, version)}\ntimestamp:{record.time // 1000}"
        f"\ncontent-type:{escaped(content_type, version)}\ncontent-length:{len(body)}{more}\n\n"
    )
    return b"%b%b\0" % (head.encode(), body)


def messages(
    subscription: Subscription,
    deliveries: Iterable[Delivery],
    shared: Callable[[Record], bytes],
    dropped: int = 0,
) -> list[bytes]:
    """The pieces of the MESSAGE frames of deliveries, to be joined.

    `shared` gives the `shared_part` of a record; `dropped` is how many events a slow subscriber
    lost before these, which the first message tells.
    """
    pieces: list[bytes] = []
    begin, highest = subscription.opening, subscription.highest
    number = None if subscription.ack == AUTO else subscription.number
    for record, attempt in deliveries:
        pieces.append(begin)
        if number is not None:
            pieces.append(b"\nack:%d-%d" % (number, record.offset))
        if attempt > 1:
            pieces.append(b"\nredelivered:true\nattempt:%d" % attempt)
        if dropped:
            pieces.append(b"\ndropped:%d" % dropped)
            dropped = 0
        pieces.append(shared(record))
        highest = max(highest, record.offset)
    subscription.highest = highest
    return pieces
