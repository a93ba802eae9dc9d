"""Events that wait for a subscriber, bounded in number and in bytes."""

from collections import deque
from collections.abc import Sequence

from tamis.broker.records import Delivery, DeliveryOptions


class WaitingDeliveries:
    """What `Buffer` and `Window` have in common: events that were not sent yet, by offset."""

    def __init__(self, options: DeliveryOptions) -> None:
        self.options = options
        self._waiting: deque[Delivery] = deque()
        self._waiting_bytes = 0

    @property
    def room(self) -> int:
        """How many more events may wait."""
        if self._waiting_bytes >= self.options.buffer_bytes:
            return 0
        return max(0, self.options.buffer - len(self._waiting))

    @property
    def wants_more(self) -> bool:
        """Whether it is worthwhile to look for more in the log."""
        half = self.options.buffer // 2, self.options.buffer_bytes // 2
        return len(self._waiting) <= half[0] and self._waiting_bytes <= half[1]

    def forget_waiting(self) -> int | None:
        """Forget the events that wait; returns the offset of the first of them."""
        if not self._waiting:
            return None
        first = self._waiting[0].record.offset
        self._waiting.clear()
        self._waiting_bytes = 0
        return first

    def _append(self, deliveries: Sequence[Delivery]) -> None:
        self._waiting.extend(deliveries)
        self._waiting_bytes += sum([len(one.record.body) for one in deliveries])

    def _take_first(self, count: int) -> list[Delivery]:
        waiting = self._waiting
        if count == len(waiting):
            taken = list(waiting)
            waiting.clear()
            self._waiting_bytes = 0
        else:
            taken = [waiting.popleft() for _ in range(count)]
            self._waiting_bytes -= sum([len(one.record.body) for one in taken])
        return taken
