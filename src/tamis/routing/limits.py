"""What a broker may hold, what it holds, and what it has done."""

from collections import Counter
from dataclasses import dataclass, field
from typing import NamedTuple

from tamis.errors import OptionError


@dataclass(frozen=True, slots=True)
class Limits:
    """What a broker may hold."""

    waiting: int = 100_000  # packets to one neighbour without a receipt
    early: int = 10_000  # packets of one neighbour that came before others
    filters: int = 10_000_000  # subscriptions and advertisements of one hop

    def __post_init__(self) -> None:
        if min(self.waiting, self.early, self.filters) < 1:
            raise OptionError("limits of a broker are numbers from 1")


@dataclass(slots=True)
class Counters:
    """What a broker has done."""

    sent: Counter[tuple[str, str]] = field(default_factory=Counter)  # by receiver and kind
    publications: Counter[str] = field(default_factory=Counter)  # by neighbour that they went to
    false_positives: int = 0  # publications of a neighbour that went to nobody
    delivered: int = 0
    lost: int = 0  # publications dropped because a neighbour had failed
    ignored: int = 0  # messages that were late, doubled or about nothing
    failures: int = 0  # of neighbours


class Tables(NamedTuple):
    """The filters that a broker holds of its hops, and that its neighbours hold of it."""

    subscriptions: dict[str, tuple[str, ...]]
    advertisements: dict[str, tuple[str, ...]]
    sent_subscriptions: dict[str, tuple[str, ...]]
    sent_advertisements: dict[str, tuple[str, ...]]

    @property
    def size(self) -> int:
        """The entries of the routing tables."""
        return sum(len(texts) for texts in self.subscriptions.values())
