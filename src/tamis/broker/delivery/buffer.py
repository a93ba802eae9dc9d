"""The deliveries of a subscription that is not durable: at most once, in order, in bounded memory.

What is taken is gone. While it reads old events from the log it takes no more than there is room
for. Once it follows the stream, nobody waits for it: what does not fit pushes out the oldest, which
are counted, or ends the connection, as its options say.
"""

from collections.abc import Sequence

from tamis.broker.delivery.progress import Progress, starting_at
from tamis.broker.delivery.waiting_deliveries import WaitingDeliveries
from tamis.broker.records import Delivery, DeliveryOptions


class Buffer(WaitingDeliveries):
    """Events that wait for a subscriber that is not durable."""

    durable = False

    def __init__(self, options: DeliveryOptions) -> None:
        super().__init__(options)
        self.dropped = 0  # since somebody asked
        self.too_slow = False  # it is to be disconnected

    @property
    def ready(self) -> int:
        """How many events can be taken now."""
        return len(self._waiting)

    def fill(self, deliveries: Sequence[Delivery]) -> int:
        """Take over events as long as there is room; returns how many."""
        taken = deliveries[: self.room]
        self._append(taken)
        return len(taken)

    def push(self, deliveries: Sequence[Delivery]) -> None:
        """Take over all events; the oldest are dropped if they do not fit."""
        self._append(deliveries)
        waiting, most, most_bytes = self._waiting, self.options.buffer, self.options.buffer_bytes
        if len(waiting) <= most and self._waiting_bytes <= most_bytes:
            return
        if self.options.slow == "disconnect":
            self.too_slow = True
        while len(waiting) > most or (self._waiting_bytes > most_bytes and len(waiting) > 1):
            self._waiting_bytes -= len(waiting.popleft().record.body)
            self.dropped += 1

    def take(self, most: int) -> list[Delivery]:
        """At most `most` events, oldest first."""
        return self._take_first(min(most, len(self._waiting)))

    def progress(self, position: int) -> Progress:
        """How far it has come; `position` is the first offset that was not offered yet."""
        return starting_at(self._waiting[0].record.offset if self._waiting else position)
