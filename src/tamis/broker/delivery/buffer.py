"""The deliveries of a subscription that is not durable: at most once, in order, in bounded memory.

What is taken is gone. While it reads old events from the log it takes no more than there is room
for. Once it follows the stream, nobody waits for it: what does not fit pushes out the oldest, which
are counted, or ends the connection, as its options say.
"""

from collections import deque
from collections.abc import Sequence

from tamis.broker.delivery.progress import Progress, starting_at
from tamis.broker.records import Delivery, DeliveryOptions


class Buffer:
    """Events that wait for a subscriber that is not durable."""

    durable = False

    def __init__(self, options: DeliveryOptions) -> None:
        self.options = options
        self.dropped = 0  # since somebody asked
        self.too_slow = False  # it is to be disconnected
        self._waiting: deque[Delivery] = deque()
        self._bytes = 0

    @property
    def room(self) -> int:
        """How many more events may wait."""
        if self._bytes >= self.options.buffer_bytes:
            return 0
        return max(0, self.options.buffer - len(self._waiting))

    @property
    def wants_more(self) -> bool:
        """Whether it is worthwhile to look for more in the log."""
        half = self.options.buffer // 2, self.options.buffer_bytes // 2
        return len(self._waiting) <= half[0] and self._bytes <= half[1]

    @property
    def ready(self) -> int:
        """How many events can be taken now."""
        return len(self._waiting)

    def fill(self, deliveries: Sequence[Delivery]) -> int:
        """Take over events as long as there is room; returns how many."""
        taken = deliveries[: self.room]
        self._extend(taken)
        return len(taken)

    def push(self, deliveries: Sequence[Delivery]) -> None:
        """Take over all events; the oldest are dropped if they do not fit."""
        self._extend(deliveries)
        most, most_bytes = self.options.buffer, self.options.buffer_bytes
        if len(self._waiting) <= most and self._bytes <= most_bytes:
            return
        if self.options.slow == "disconnect":
            self.too_slow = True
        while len(self._waiting) > most or (self._bytes > most_bytes and len(self._waiting) > 1):
            self._bytes -= len(self._waiting.popleft().record.body)
            self.dropped += 1

    def take(self, most: int) -> list[Delivery]:
        """At most `most` events, oldest first."""
        count = min(most, len(self._waiting))
        taken = [self._waiting.popleft() for _ in range(count)]
        for delivery in taken:
            self._bytes -= len(delivery.record.body)
        return taken

    def forget_waiting(self) -> int | None:
        """Forget the events that wait; returns the offset of the first of them."""
        if not self._waiting:
            return None
        first = self._waiting[0].record.offset
        self._waiting.clear()
        self._bytes = 0
        return first

    def progress(self, position: int) -> Progress:
        """How far it has come; `position` is the first offset that was not offered yet."""
        return starting_at(self._waiting[0].record.offset if self._waiting else position)

    def _extend(self, deliveries: Sequence[Delivery]) -> None:
        self._waiting.extend(deliveries)
        self._bytes += sum([len(one.record.body) for one in deliveries])
