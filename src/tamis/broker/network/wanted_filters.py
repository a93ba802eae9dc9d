"""What each side of a broker wants, to count the events that came although nobody wants them.

Only a broker that announces more than is wanted, by flooding or by imperfect mergers, gets such
events; others need not look.
"""

from collections.abc import Callable, Sequence

import numpy as np

from tamis.events.event_reader import Row
from tamis.matcher import Matcher
from tamis.routing.hop_filters import HopFilters

PRETENDED = ""  # the id of a filter that nobody has, such as the TRUE of a broker that floods


class WantedFilters(HopFilters):
    """The filters of each hop, ready to be matched with events."""

    def __init__(self, new_matcher: Callable[[], Matcher]) -> None:
        super().__init__()
        self._new_matcher = new_matcher
        self._matchers: dict[str, Matcher] = {}

    def put(self, hop: str, id_: str, text: str) -> None:
        super().put(hop, id_, text)
        if id_ != PRETENDED:
            if hop not in self._matchers:
                self._matchers[hop] = self._new_matcher()
            self._matchers[hop].subscribe(id_, text)

    def take(self, hop: str, id_: str) -> str:
        text = super().take(hop, id_)
        if id_ != PRETENDED:
            self._matchers[hop].unsubscribe(id_)
        return text

    def unwanted(self, peer: str, rows: Sequence[Row]) -> int:
        """In a thread: how many events of a peer no other hop wants."""
        left = list(rows)
        for hop, matcher in list(self._matchers.items()):
            if hop != peer and left and len(matcher):
                counts = matcher.match_rows(left, "counts")["count"].to_numpy()
                left = [left[row] for row in np.flatnonzero(counts == 0).tolist()]
        return len(left)
