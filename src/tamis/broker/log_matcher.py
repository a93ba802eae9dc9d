"""Matching the log: ``now()`` is when an event was stored, however often and whenever it is read.

Filters with ``now()`` are kept apart. They are matched with the events of one moment at a time,
which are those that were written together; all other filters are matched with all events at once.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from tamis.broker.log.chunk import Chunk
from tamis.broker.matches import Matched
from tamis.language.arrival import arriving
from tamis.language.expression import Expression
from tamis.matcher import Matcher


class LogMatcher:
    """Subscriptions that are matched with chunks of a log."""

    def __init__(self, new_matcher: Callable[[], Matcher]) -> None:
        self._timeless = new_matcher()
        self._timed = new_matcher()

    def subscribe(self, key: int, expression: Expression) -> None:
        """Add a subscription."""
        (self._timed if expression.has_clock else self._timeless).subscribe(key, expression)

    def unsubscribe(self, key: int) -> None:
        """Remove a subscription."""
        (self._timed if key in self._timed else self._timeless).unsubscribe(key)

    def __contains__(self, key: int) -> bool:
        return key in self._timeless or key in self._timed

    def widen(self, more: Mapping[str, str], defaults: Mapping[str, Any] | None) -> None:
        """Have more attributes, with these defaults."""
        self._timeless = self._timeless.with_attributes(more, defaults)
        self._timed = self._timed.with_attributes(more, defaults)

    def match(self, chunk: Chunk, count: int) -> Matched:
        """The matches of the first events of a chunk; those of each key in their order."""
        if not len(self._timed) or not count:
            return _matched(self._timeless, chunk, 0, count)
        found = [_matched(self._timeless, chunk, 0, count)] if len(self._timeless) else []
        found += self._matched_by_time(chunk, count)
        events, keys = zip(*found, strict=True)
        return Matched(np.concatenate(events), np.concatenate(keys))

    def _matched_by_time(self, chunk: Chunk, count: int) -> Iterator[Matched]:
        times = np.array([record.time for record in chunk.take(range(count))], np.int64)
        starts = np.flatnonzero(np.diff(times, prepend=times[0] - 1)).tolist()
        for start, end in zip(starts, [*starts[1:], count], strict=True):
            with arriving(int(times[start])):
                found = _matched(self._timed, chunk, start, end)
            yield found


def _matched(matcher: Matcher, chunk: Chunk, start: int, end: int) -> Matched:
    pairs = matcher.match_batch(chunk.table.slice(start, end - start))
    return Matched(pairs["event"].to_numpy() + start, pairs["subscription"].to_numpy())
