"""What a broker may hold."""

from dataclasses import dataclass

from tamis.errors import OptionError


@dataclass(frozen=True, slots=True)
class RouterLimits:
    """The most that a broker holds of each thing."""

    waiting: int = 100_000  # packets to one neighbour that wait for a receipt
    early: int = 10_000  # packets from one neighbour that came before an earlier one
    filters: int = 10_000_000  # subscriptions, and advertisements, of one client

    def __post_init__(self) -> None:
        if min(self.waiting, self.early, self.filters) < 1:
            raise OptionError("each limit of a broker must be at least 1")
