"""What goes over a link, counted since the broker started."""

from dataclasses import dataclass, fields


@dataclass
class LinkTraffic:
    """What went to one peer and came from it."""

    bytes_sent: int = 0
    bytes_received: int = 0
    frames_sent: int = 0
    frames_received: int = 0
    events_sent: int = 0
    events_received: int = 0
    filters_sent: int = 0  # that were announced to it, or withdrawn
    filters_received: int = 0
    false_positives: int = 0  # events of it that nobody here or beyond wanted

    def add(self, other: "LinkTraffic") -> None:
        """Count what was counted elsewhere."""
        for field in fields(self):
            setattr(self, field.name, getattr(self, field.name) + getattr(other, field.name))
