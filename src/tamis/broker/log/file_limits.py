"""When a file of a log is full, when files are sealed together, and when they go."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from tamis.broker.log.active_file import ActiveFile
from tamis.broker.log.recovery import LogFile
from tamis.broker.log.sealed_segment import RowGroups

SECOND = 1_000_000  # microseconds
SHARE = 16  # a file has about this part of what is kept; eight of them are sealed together


@dataclass(frozen=True)
class LogOptions:
    """When files are sealed, and what is kept in memory. Logs may share one `row_groups`."""

    segment_bytes: int = 32_000_000
    segment_events: int = 250_000
    segment_age: float = 3600.0  # seconds after which a file is sealed although it is small
    most_active_files: int = 8  # small ones, after restarts: they are sealed together
    row_groups: RowGroups = field(default_factory=lambda: RowGroups(64_000_000))

    def is_full(self, files: Sequence[ActiveFile]) -> bool:
        """Whether files are large enough for a segment."""
        return (
            sum(file.size for file in files) >= self.segment_bytes
            or sum(file.events for file in files) >= self.segment_events
        )

    def is_due(self, files: Sequence[ActiveFile], now: int | None) -> bool:
        """Whether files are to be sealed: they are large, or have waited long enough."""
        if now is not None:
            oldest = now - self.segment_age * SECOND
            if any(one.first_time is not None and one.first_time <= oldest for one in files):
                return True
        return self.is_full(files)


def due_files(
    files: Sequence[LogFile], end: int, now: int | None, options: LogOptions
) -> list[ActiveFile]:
    """The oldest files of frames that are sealed together, if it is time; they end before `end`."""
    found: list[ActiveFile] = []
    for file in files:
        if not isinstance(file, ActiveFile):
            if found:  # one that was sealed without them; a segment has all between its ends
                return found
            continue
        if found and file.decoder.schema != found[0].decoder.schema:
            return found
        if file.end > end or file.first >= end:  # also one that is still empty
            break
        found.append(file)
        if options.is_due(found, now) or len(found) >= options.most_active_files:
            return found
    return []


class LogLimits(NamedTuple):
    """How much of a log is kept at a time."""

    now: int  # in microseconds
    max_age: float | None  # in seconds
    max_bytes: int | None
    max_events: int | None

    def are_near(self, file: ActiveFile) -> bool:
        """Whether a file has a good part of what is kept; files go as a whole."""
        if file.first_time is None:
            return False
        age = (self.now - file.first_time) / SECOND
        return (
            (self.max_age is not None and age * SHARE >= self.max_age)
            or (self.max_bytes is not None and file.size * SHARE >= self.max_bytes)
            or (self.max_events is not None and file.events * SHARE >= self.max_events)
        )

    def files_beyond(self, files: Sequence[LogFile], end: int, unsafe: int) -> list[LogFile]:
        """The oldest files with no event within all limits; `unsafe` events do not count."""
        size = sum(file.size for file in files)
        events = sum(file.events for file in files) - unsafe
        gone: list[LogFile] = []
        for file in files:
            size, events = size - file.size, events - file.events
            is_beyond = (
                (self.max_age is not None and file.last_time < self.now - self.max_age * SECOND)
                or (self.max_bytes is not None and size >= self.max_bytes)
                or (self.max_events is not None and events >= self.max_events)
            )
            if not is_beyond or file.end > end or file.first >= end:
                break
            gone.append(file)
        return gone
