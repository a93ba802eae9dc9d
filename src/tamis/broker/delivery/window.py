"""The deliveries of a durable subscription that somebody listens to: at least once, in order.

::

                 fill                take                 ack
    (the log) ---------> waiting ------------> sent ---------------> done
                            ^                   |
                            +-------------------+  nack, or no ack in time: `again`, sent first
                                                |
                                                +--> exhausted, after the last attempt: wait for
                                                     their dead letter, then `ack`

Rules:

* First attempts are sent in the order of their offsets.
* What was sent and not acknowledged is at most `options.window`; `take` sees to it.
* What waits is a part of the log that was read ahead, bounded in events and bytes. It can be
  forgotten at any time: `progress` names the first of it as the position.
* An offset that was sent is in exactly one of `again`, `sent`, `exhausted`, `returning` until it is
  acknowledged. `returning` are those of an earlier connection that the log has not brought again.
"""

from collections.abc import Callable, Sequence

from tamis.broker.delivery.progress import Progress
from tamis.broker.delivery.waiting_deliveries import WaitingDeliveries
from tamis.broker.records import Delivery, DeliveryOptions, Record


class Window(WaitingDeliveries):
    """What a durable subscriber gets, has got, and has acknowledged."""

    durable = True

    def __init__(self, options: DeliveryOptions, progress: Progress) -> None:
        super().__init__(options)
        self.exhausted: dict[int, Delivery] = {}
        self._floor = progress.position  # below it, only what is in `returning` is sent
        self._maybe_sent = progress.maybe_sent
        self._returning = dict(progress.unacknowledged)
        self._again: dict[int, Delivery] = {}
        self._sent: dict[int, tuple[Delivery, float]] = {}  # with deadline, in the order of sending

    # --- from the log

    def fill(self, deliveries: Sequence[Delivery]) -> int:
        """Take over matching events, by offset, as long as there is room; returns how many."""
        if not deliveries:
            return 0
        low = deliveries[0].record.offset
        if low < self._floor or low < self._maybe_sent:
            return self._fill_returning(deliveries)
        taken = deliveries if len(deliveries) <= self.room else deliveries[: self.room]
        self._append(taken)
        return len(taken)

    def _fill_returning(self, deliveries: Sequence[Delivery]) -> int:
        for number, (record, _) in enumerate(deliveries):
            if not self.room:
                return number
            if record.offset >= self._floor:
                attempt = 2 if record.offset < self._maybe_sent else 1
                self._waiting.append(Delivery(record, attempt))
                self._waiting_bytes += len(record.body)
            elif record.offset in self._returning:
                self._send_again(record, self._returning.pop(record.offset))
        return len(deliveries)

    def passed(self, position: int) -> None:
        """Note that everything before a position was offered: what did not return never will."""
        if self._returning and position >= self._floor:
            self._returning.clear()

    # --- to the subscriber

    @property
    def ready(self) -> int:
        """How many events can be taken now."""
        there = len(self._again) + len(self._waiting)
        if not there:
            return 0
        free = self.options.window - len(self._sent) - len(self.exhausted)
        return max(0, min(free, there))

    def take(self, most: int, now: float) -> list[Delivery]:
        """At most `most` events, which are sent now."""
        count = min(most, self.ready)
        taken: list[Delivery] = []
        while self._again and len(taken) < count:
            taken.append(self._again.pop(next(iter(self._again))))
        taken += self._take_first(count - len(taken))
        if taken and not self.options.auto_ack:
            deadline = now + self.options.ack_timeout
            self._sent |= {one.record.offset: (one, deadline) for one in taken}
        if taken:
            self._floor = max(self._floor, taken[-1].record.offset + 1)
        return taken

    def ack(self, offset: int) -> bool:
        """Whether an offset was sent, and not acknowledged before; now it is done."""
        return (
            self._sent.pop(offset, None) is not None
            or self._again.pop(offset, None) is not None
            or self.exhausted.pop(offset, None) is not None
            or self._returning.pop(offset, None) is not None
        )

    def ack_up_to(self, offset: int) -> int:
        """Acknowledge everything up to an offset, sent or not; returns how many were sent."""
        done = 0
        for kept in (self._sent, self._again, self.exhausted, self._returning):
            if not kept:
                continue
            if offset >= self._floor - 1:  # nothing was sent from the floor on
                done += len(kept)
                kept.clear()
                continue
            found = [n for n in kept if n <= offset]  # redeliveries are not in order
            for n in found:
                del kept[n]
            done += len(found)
        while self._waiting and self._waiting[0].record.offset <= offset:
            self._waiting_bytes -= len(self._waiting.popleft().record.body)
        self._floor = max(self._floor, offset + 1)
        return done

    def nack(self, offset: int) -> bool:
        """Whether an offset was sent and waits for its acknowledgement; now it is sent again."""
        found = self._sent.pop(offset, None)
        if found is None:
            return False
        self._send_again(found[0].record, found[0].attempt)
        return True

    def nack_up_to(self, offset: int) -> None:
        """Send again everything up to an offset that waits for its acknowledgement."""
        for sent in [n for n in self._sent if n <= offset]:
            self.nack(sent)

    @property
    def deadline(self) -> float | None:
        """When the next event is to be sent again, unless it is acknowledged before."""
        first = next(iter(self._sent.values()), None)
        return None if first is None else first[1]

    def time_out(self, now: float) -> int:
        """Send again what should have been acknowledged by now; returns how many."""
        late = []
        for delivery, deadline in self._sent.values():
            if deadline > now:
                break
            late.append(delivery)
        for delivery in late:
            del self._sent[delivery.record.offset]
            self._send_again(delivery.record, delivery.attempt)
        return len(late)

    def _send_again(self, record: Record, attempts: int) -> None:
        if attempts >= self.options.most_attempts:
            self.exhausted[record.offset] = Delivery(record, attempts)
        else:
            self._again[record.offset] = Delivery(record, attempts + 1)

    # --- what is stored, and changes

    def progress(self, position: int) -> Progress:
        """What is to be stored; `position` is the first offset that was not offered yet."""
        position = max(self._floor, position)
        if self._waiting:
            position = self._waiting[0].record.offset
        sent = dict(self._returning)
        sent |= {n: d.attempt for n, d in self.exhausted.items()}
        sent |= {n: d.attempt - 1 for n, d in self._again.items()}
        sent |= {n: d.attempt for n, (d, _) in self._sent.items()}
        return Progress(position, max(self._maybe_sent, position), sent)

    def keep_if(self, matches: Callable[[Record], bool]) -> None:
        """Forget what was sent and does not match the filter any more: nobody waits for it."""
        for n in [n for n, (d, _) in self._sent.items() if not matches(d.record)]:
            del self._sent[n]
        for kept in (self._again, self.exhausted):
            for n in [n for n, d in kept.items() if not matches(d.record)]:
                del kept[n]
