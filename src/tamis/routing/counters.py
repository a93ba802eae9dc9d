"""What a broker has done, in numbers."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(slots=True)
class Counters:
    """What a broker has done since it started."""

    sent: Counter[tuple[str, str]] = field(default_factory=Counter)  # by receiver and kind
    publications: Counter[str] = field(default_factory=Counter)  # sent, by neighbour
    false_positives: int = 0  # publications from a neighbour that no hop wanted
    delivered: int = 0
    lost: int = 0  # publications dropped because a neighbour had failed
    ignored: int = 0  # messages that were late, duplicated or about something unknown
    failures: int = 0  # of neighbours
