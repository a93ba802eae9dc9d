"""What anybody wants, as a publisher knows it: whether an event may be dropped at the source.

It is pure: answers of the broker and the time in. An event may be dropped only while a *lease* is
valid: the broker has said that it knows that this publisher has the last version of the filter. The
lease is counted from the moment before that version was confirmed, so it ends here before it ends
at the broker (docs/decisions/0024). Without one, everything is published.
"""

import time
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tamis.matcher import Matcher

WANTED = "wanted"  # the only subscription of the matcher


def now() -> float:
    """Seconds on a clock that is never set, and goes on while the machine sleeps."""
    clock = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if clock is None else time.clock_gettime(clock)


class QuenchFilter:
    """The filter of what is wanted, and until when it may be used."""

    def __init__(self) -> None:
        self.version: str | None = None  # to be confirmed with the next request
        self.filter: str | None = None
        self.valid_until = float("-inf")
        self._matcher: Matcher | None = None

    def answered(self, answer: Mapping[str, Any], confirmed_at: float) -> None:
        """Take the answer to a request that was begun at a moment."""
        if answer["version"] != self.version:
            self._matcher = _matcher(answer)
            self.version, self.filter = answer["version"], answer["filter"]
        if answer["granted"]:
            self.valid_until = confirmed_at + answer["lease"]

    def forget(self) -> None:
        """Drop nothing any more."""
        self.version, self.valid_until = None, float("-inf")

    def is_valid(self, moment: float) -> bool:
        """Whether events may be dropped."""
        return moment < self.valid_until

    def wants(self, bodies: Sequence[bytes], moment: float) -> list[bool]:
        """Which events are to be published: what is wanted, and what the broker refuses.

        An event that is not valid is sent, so that the broker can say why.
        """
        if self._matcher is None or not self.is_valid(moment):
            return [True] * len(bodies)
        from tamis.broker.event_rows import EventRows, PublishRequirements
        from tamis.broker.records import NewEvent

        # Read as the broker would read them.
        events = [NewEvent(body) for body in bodies]
        read = EventRows(self._matcher).read(events, PublishRequirements())
        refused = {row for row, _ in read.refused}
        counts = iter(())
        if read.rows:
            counts = iter(self._matcher.match_rows(read.rows, "counts")["count"].to_pylist())
        return [row in refused or bool(next(counts)) for row in range(len(bodies))]


def _matcher(answer: Mapping[str, Any]) -> "Matcher":
    from tamis.matcher import Matcher
    from tamis.schema import Schema

    made = Matcher(
        Schema(answer["schema"]), semantics=answer["semantics"], defaults=answer["defaults"]
    )
    made.subscribe(WANTED, answer["filter"])
    return made
