"""How far a durable subscription has come: all that is stored of its deliveries.

An event was *passed* if it was sent, or was looked at and does not match. Events are passed by
offset, so one number says which: `position`. Those of them that were sent and are not acknowledged
are listed one by one, and a window bounds how many there are. Everything else before the position
is done, however it was acknowledged.
"""

from collections.abc import Mapping
from typing import NamedTuple

import msgspec

_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[list[int], list[int]]).decode


class Progress(NamedTuple):
    """How far a durable subscription has come."""

    position: int  # of the next event to pass
    maybe_sent: int  # from the position up to here, a crash leaves open what was sent
    unacknowledged: Mapping[int, int]  # offsets that were sent: how often

    @property
    def cursor(self) -> int:
        """The offset before which everything is done."""
        return min(self.unacknowledged, default=self.position)

    def acknowledged_up_to(self, offset: int) -> "Progress":
        """The progress after everything up to an offset is done, whether it was sent or not."""
        left = {n: sent for n, sent in self.unacknowledged.items() if n > offset}
        position = max(self.position, offset + 1)
        return Progress(position, max(self.maybe_sent, position), left)

    def after_crash(self, end: int) -> "Progress":
        """The progress of a subscription that was attached when the broker died."""
        return self._replace(maybe_sent=max(self.maybe_sent, end, self.position))


def starting_at(offset: int) -> Progress:
    """The progress of a subscription that begins at an offset."""
    return Progress(offset, offset, {})


def encoded(unacknowledged: Mapping[int, int]) -> bytes:
    """Unacknowledged offsets and how often each was sent, as bytes."""
    if not unacknowledged:
        return b""
    return _encode((list(unacknowledged), list(unacknowledged.values())))


def decoded(data: bytes) -> dict[int, int]:
    """What `encoded` wrote."""
    return dict(zip(*_decode(data), strict=True)) if data else {}
