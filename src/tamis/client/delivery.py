"""`Delivery`: an event that a subscriber gets, and its acknowledgement."""

from collections.abc import Callable, Coroutine, Generator, Mapping
from dataclasses import dataclass, field
from typing import Any


class Acknowledgement:
    """An acknowledgement on its way; awaiting it waits until the broker has it."""

    __slots__ = ("_offset", "_sent")

    def __init__(self, sent: Callable[[int], Coroutine[Any, Any, None]], offset: int) -> None:
        self._sent = sent
        self._offset = offset

    def __await__(self) -> Generator[Any, Any, None]:
        return self._sent(self._offset).__await__()


@dataclass(frozen=True, slots=True)
class Delivery:
    """An event that matches: its offset in the topic, and whether it may have come before.

    `id` is that of its publisher, or one that the broker gave, and `time` when it came there.
    """

    offset: int
    event: dict[str, Any]
    redelivered: bool
    id: str
    time: str
    headers: Mapping[str, str]
    _ack: Callable[[int], Acknowledgement] = field(repr=False, compare=False)

    def ack(self) -> Acknowledgement:
        """Acknowledge this event and all before it; it need not be awaited."""
        return self._ack(self.offset)

    def to_dict(self) -> dict[str, Any]:
        """The delivery as plain data, for JSON."""
        plain = {
            "offset": self.offset, "event": self.event, "redelivered": self.redelivered,
            "id": self.id, "time": self.time,
        }  # fmt: skip
        return plain | {"headers": dict(self.headers)} if self.headers else plain
