"""Dead letters of a broker: events that were sent as often as they may be, and never acknowledged.

A dead letter goes to the topic ``dead.NAME``, which has the schema of the topic NAME: its body is
the event as it came, and its headers say which subscription gave up on it, and why. Its id is made
of subscription and offset, so that a crash in the middle leaves one letter, not two. (The dead
letters of files and tables, rows that could not be used, are in `tamis.dead_letters`.)
"""

from collections.abc import Mapping

import msgspec

from tamis.broker.attachment import Interest
from tamis.broker.records import Delivery, NewEvent
from tamis.errors import counted

_headers = msgspec.json.Decoder(dict[str, str]).decode


def dead_letter(topic: str, interest: Interest, delivery: Delivery) -> NewEvent:
    """The event for the dead-letter topic."""
    record, attempts = delivery
    subscription = interest.id or ""
    attempted = counted(attempts, "attempt")
    headers: Mapping[str, str] = {
        **(_headers(record.headers) if record.headers else {}),
        "tamis-reason": f"it was not acknowledged after {attempted}",
        "tamis-topic": topic,
        "tamis-offset": str(record.offset),
        "tamis-event-id": record.id,
        "tamis-account": interest.account,
        "tamis-subscription": subscription,
        "tamis-attempts": str(attempts),
    }
    # Offsets below 0 are of events that came with a moved subscription, and are used again.
    place = record.offset if record.offset >= 0 else record.id
    return NewEvent(record.body, f"{interest.account}/{subscription}/{place}", headers)
