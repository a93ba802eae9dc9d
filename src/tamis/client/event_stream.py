"""Server-sent events, from bytes to messages, without I/O.

https://html.spec.whatwg.org/multipage/server-sent-events.html: lines of ``field: value``, an empty
line after each message, comments that begin with a colon.
"""

from typing import NamedTuple

from tamis.errors import BrokerError

MOST_WAITING = 64_000_000  # bytes of a message that has not ended


class Message(NamedTuple):
    """One message: its kind ("message" if the sender does not say), its id and its data."""

    kind: str
    id: str | None
    data: bytes


class EventStream:
    """Messages out of bytes that come in pieces of any size."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, piece: bytes) -> list[Message]:
        """The messages that end in this piece."""
        text = self._rest + piece
        held = b""
        if b"\r" in text:
            if text.endswith(b"\r"):  # the line feed after it may be in the next piece
                text, held = text[:-1], b"\r"
            text = text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        *blocks, rest = text.split(b"\n\n")
        self._rest = rest + held
        if len(self._rest) > MOST_WAITING:
            raise BrokerError(f"the broker sent a message of more than {MOST_WAITING:,} bytes")
        found = (_message(block) for block in blocks)
        return [message for message in found if message is not None]


def _message(block: bytes) -> Message | None:
    """The message of these lines; None if they are only comments."""
    kind, key, data = b"message", None, []
    for line in block.split(b"\n"):
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            data.append(value)
        elif field == b"id":
            key = value.decode("utf-8", "replace")
        elif field == b"event":
            kind = value
    return Message(kind.decode("utf-8", "replace"), key, b"\n".join(data)) if data else None
