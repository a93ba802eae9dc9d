"""What is wrong with the files of a log."""

from typing import NamedTuple


class Damage(NamedTuple):
    """Something that was found damaged or missing; what is intact is served nevertheless.

    `first` to before `end` are the offsets that cannot be read. There are none if only bytes that
    were never acknowledged are concerned, such as those of a frame that was being written when the
    power failed.
    """

    file: str
    first: int
    end: int
    reason: str

    @property
    def lost(self) -> int:
        """How many events cannot be read; some of them may never have been acknowledged."""
        return self.end - self.first

    def __str__(self) -> str:
        events = f"; offsets {self.first} to {self.end - 1} are lost" if self.lost else ""
        if self.lost == 1:
            events = f"; offset {self.first} is lost"
        return f"{self.file}: {self.reason}{events}"
