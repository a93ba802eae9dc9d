"""Where in a log a subscription begins: now, at the earliest event, at an offset, at a time."""

from datetime import datetime
from typing import TYPE_CHECKING

from tamis.broker.records import Start
from tamis.errors import OptionError
from tamis.timestamps import timestamp_from_datetime, timestamp_from_text

if TYPE_CHECKING:
    from tamis.broker.log.topic_log import TopicLog

NEW, EARLIEST = "new", "earliest"


def offset_of(start: Start, log: "TopicLog", end: int) -> int:
    """The offset of the first event; `end` is the offset of the next event to come."""
    if start == NEW:
        return end
    if start == EARLIEST:
        return log.first_offset
    if isinstance(start, int) and not isinstance(start, bool):
        if not 0 <= start <= end:
            raise OptionError(f"offset {start} does not exist: the next event gets offset {end}")
        return start
    if isinstance(start, datetime):
        return log.offset_at(timestamp_from_datetime(start))
    if isinstance(start, str):
        if start.isascii() and start.isdecimal() and len(start) <= 18:
            return offset_of(int(start), log, end)
        moment = timestamp_from_text(start)
        if moment is not None:
            return log.offset_at(moment)
    raise OptionError(
        "a subscription starts at 'new', 'earliest', an offset or a time such as "
        f"'2024-01-31 12:30:00', not at {str(start)[:60]!r}"
    )
