"""What a subscription brought along from another broker: delivered first, and then not again.

These events are not in the log here, and others who want them got them where they are; so they have
no offsets of this broker. They are numbered downwards from -1, the last one, so that every one of
them comes before the log, and an acknowledgement "up to" an offset means what it says.
"""

import logging
from collections.abc import Sequence
from typing import NamedTuple

from tamis.broker.delivery.progress import Progress, starting_at
from tamis.broker.move_rows import MovedRow, MoveRow, SubscriptionKey, moved_events, moved_ids
from tamis.broker.peer_rows import RowSource
from tamis.broker.records import Delivery, Record

AT_ONCE = 500  # events that are read together

logger = logging.getLogger("tamis.broker")


class BacklogPart(NamedTuple):
    """Some of the events, and the offset to go on at."""

    records: list[Record]
    stop: int
    lost: int  # that are damaged


class MovedBacklog:
    """The events that came with one subscription."""

    def __init__(self, tables: RowSource, move: MoveRow, prefix: str) -> None:
        """`prefix` begins the ids of events that were published here without one."""
        self.resume = move.resume  # the offset at which the log goes on
        self._tables = tables
        self._key = move.key
        self._events = move.events
        ids = moved_ids(tables, move.key)
        self._ids = frozenset(ids)
        self._offsets = frozenset(
            int(id_.removeprefix(prefix)) for id_ in ids if prefix and id_.startswith(prefix)
        )

    def read(self, offset: int) -> BacklogPart:
        """The next events from an offset below 0 on."""
        first = max(0, offset + self._events)
        found = moved_events(self._tables, self._key, first, AT_ONCE)
        stop = self.resume if len(found) < AT_ONCE else found[-1][0] + 1 - self._events
        records = [self._record(number, row) for number, row in found if row is not None]
        lost = len(found) - len(records)
        if lost:
            logger.error("%d events that came with subscription %r are damaged", lost, self._key.id)
        return BacklogPart(records, stop, lost)

    def _record(self, number: int, row: MovedRow) -> Record:
        return Record(number - self._events, row.time, row.event_id, row.headers, row.body)

    def unknown(self, deliveries: Sequence[Delivery]) -> list[Delivery]:
        """Events of the log without those that came with the subscription."""
        return [one for one in deliveries if self.is_new(one.record)]

    def is_new(self, record: Record) -> bool:
        """Whether an event of the log did not come with the subscription."""
        if record.offset in self._offsets:
            return False
        # An id that is the offset may stand for none (`Record.named`), and then for no other event.
        return record.id not in self._ids or record.id == str(record.offset)


def progress_after(tables: RowSource, key: SubscriptionKey, events: int, resume: int) -> Progress:
    """How far a subscription has come when everything that it had not got is here."""
    if not events:
        return starting_at(resume)
    sent: dict[int, int] = {}
    unsure = first = 0
    while first < events:
        part = moved_events(tables, key, first, AT_ONCE)
        if not part:
            break
        for number, row in part:
            if row is not None and row.attempts:
                sent[number - events] = row.attempts
            unsure += row is not None and row.is_unsure
        first = part[-1][0] + 1
    position = max(sent, default=-events - 1) + 1
    return Progress(position, position + unsure, sent)
