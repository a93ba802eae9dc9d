"""Parts of a topic's log on their way to peers: each is read and prepared once for all of them.

What was handed out a moment ago is still in memory, as it was read from its publisher, so peers
that keep up need no reading of the log. What all peers have passed is let go, and so is what takes
too much memory: a peer that comes later reads the log.
"""

import threading
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

import numpy as np

from tamis.broker.log.frames import NewRecord
from tamis.broker.network.route_headers import came_from
from tamis.broker.records import Record
from tamis.broker.topic import Topic
from tamis.events.event_reader import Row

if TYPE_CHECKING:
    from tamis.given_events import GivenEvents
    from tamis.matcher import Matcher

MOST_EVENTS = 8192  # of a part
MOST_BYTES = 4_000_000  # of a part that is read from the log
FRESH_BYTES = 1_000_000  # of new events that are kept in memory
EVENT_BYTES = 100  # that an event takes beside its body, about


class Reader(Protocol):
    """Somebody who goes through the log."""

    @property
    def position(self) -> int:
        """The offset of the next event that is looked at."""

    def more_came(self) -> None:
        """Note that there is more."""


class Fresh(NamedTuple):
    """Events that were handed out together."""

    first: int
    records: Sequence[NewRecord]
    rows: Sequence[Row]
    size: int

    @property
    def stop(self) -> int:
        return self.first + len(self.records)


class LogPart(ABC):
    """Events of the log from `start` on; threads ask for them."""

    def __init__(self, start: int, stop: int, matcher: "Matcher") -> None:
        """`matcher` knows what events of the topic look like."""
        self.start, self.stop = start, stop
        self._matcher = matcher
        self._given: GivenEvents | None = None
        self._lock = threading.Lock()

    @abstractmethod
    def load(self) -> None:
        """Read the events; `stop` may come nearer, if they are too much for one part."""

    @abstractmethod
    def is_all_from(self, peer: str) -> bool:
        """Whether a peer has sent all of the events here, as far as that is known."""

    @abstractmethod
    def take(self, rows: Sequence[int]) -> list[Record]:
        """Some of the events."""

    def matching(self, filters: "Matcher | None", start: int) -> list[Record]:
        """The events from an offset on that match a filter; without `filters`, all of them."""
        if filters is None:
            rows = list(range(self._size))
        elif len(filters):
            with self._lock:
                if self._given is None:
                    self._given = self._prepared()
            counts = filters.match_given(self._given, "counts")["count"]
            rows = np.flatnonzero(counts.to_numpy()).tolist()
        else:
            return []
        found = self.take(rows)
        return found if start == self.start else [one for one in found if one.offset >= start]

    @property
    @abstractmethod
    def _size(self) -> int:
        """How many events there are."""

    @abstractmethod
    def _prepared(self) -> "GivenEvents":
        """The events, ready to be matched."""


class FreshPart(LogPart):
    """Events that are at hand."""

    def __init__(self, events: Sequence[Fresh], start: int, stop: int, matcher: "Matcher") -> None:
        super().__init__(start, stop, matcher)
        self._records: list[NewRecord] = []
        self._rows: list[Row] = []
        for first, records, rows, _ in events:
            within = slice(max(0, start - first), stop - first)
            self._records += records[within]
            self._rows += rows[within]
        distinct = {record.headers for record in self._records}
        self._via = {came_from(one) for one in distinct}

    def load(self) -> None:
        """Nothing is left to read."""

    def is_all_from(self, peer: str) -> bool:
        return self._via == {peer}

    def take(self, rows: Sequence[int]) -> list[Record]:
        return [Record(self.start + row, *self._records[row]) for row in rows]

    @property
    def _size(self) -> int:
        return len(self._records)

    def _prepared(self) -> "GivenEvents":
        return self._matcher.given_rows(self._rows)


class ReadPart(LogPart):
    """Events that are read from the log, by the first who asks."""

    def __init__(self, topic: Topic, start: int, stop: int, matcher: "Matcher") -> None:
        super().__init__(start, stop, matcher)
        self._topic = topic
        self._count: int | None = None

    def load(self) -> None:
        with self._lock:
            if self._count is None:
                chunk = self._topic.log.read(self.start, self.stop - self.start, MOST_BYTES)
                self.stop = max(self.start, min(self.stop, chunk.next_offset))
                self._chunk = chunk
                self._count = int(np.searchsorted(chunk.offsets, self.stop))

    def is_all_from(self, peer: str) -> bool:  # noqa: ARG002 - the headers were not read
        return False

    def take(self, rows: Sequence[int]) -> list[Record]:
        return self._chunk.take(rows)

    @property
    def _size(self) -> int:
        return self._count or 0

    def _prepared(self) -> "GivenEvents":
        return self._matcher.given(self._chunk.table.slice(0, self._size))


class LogParts:
    """The parts of one topic's log; all calls come from the event loop."""

    def __init__(self, topic: Topic) -> None:
        self._topic = topic
        self._matcher = topic.new_matcher()
        self._readers: list[Reader] = []
        self._fresh: deque[Fresh] = deque()
        self._bytes = 0
        self._last: LogPart | None = None

    def join(self, reader: Reader) -> None:
        """Tell somebody whenever more was handed out."""
        if not self._readers:
            self._topic.followers.append(self._handed_out)
        self._readers.append(reader)

    def leave(self, reader: Reader) -> None:
        """Tell somebody no more."""
        self._readers.remove(reader)
        if not self._readers:
            self._topic.followers.remove(self._handed_out)
        self.let_go()

    def part(self, start: int) -> LogPart:
        """Events from an offset on, of which there are some."""
        last = self._last
        if last is not None and last.start <= start < last.stop:
            return last
        stop = min(start + MOST_EVENTS, self._topic.dispatched)
        if self._fresh and self._fresh[0].first <= start and stop <= self._fresh[-1].stop:
            some = [one for one in self._fresh if one.first < stop and one.stop > start]
            self._last = FreshPart(some, start, stop, self._matcher)
        else:
            self._last = ReadPart(self._topic, start, stop, self._matcher)
        return self._last

    def let_go(self) -> None:
        """Forget what all readers have passed."""
        passed = min((one.position for one in self._readers), default=self._topic.dispatched)
        while self._fresh and self._fresh[0].stop <= passed:
            self._bytes -= self._fresh.popleft().size
        if self._last is not None and self._last.stop <= passed:
            self._last = None

    def _handed_out(self, first: int, records: Sequence[NewRecord], rows: Sequence[Row]) -> None:
        if self._fresh and self._fresh[-1].stop != first:
            self._fresh.clear()
            self._bytes = 0
        size = sum(len(record.body) + EVENT_BYTES for record in records)
        self._fresh.append(Fresh(first, records, rows, size))
        self._bytes += size
        while self._bytes > FRESH_BYTES:
            self._bytes -= self._fresh.popleft().size
        for one in self._readers:
            one.more_came()
