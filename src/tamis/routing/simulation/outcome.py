"""The outcome of a simulation."""

from collections import Counter
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Violation:
    """A promise that was broken."""

    time: float
    kind: str
    explanation: str

    def __str__(self) -> str:
        return f"{self.kind} at {self.time:.3f}: {self.explanation}"


@dataclass(slots=True)
class Outcome:
    """The violations of one simulation, in order, and counts of what happened in it."""

    violations: list[Violation] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    faults: Counter[str] = field(default_factory=Counter)
    longest_queue: int = 0  # packets that waited for a receipt of one neighbour

    def has(self, kind: str) -> bool:
        """Whether a promise of this kind was broken."""
        return any(violation.kind == kind for violation in self.violations)
