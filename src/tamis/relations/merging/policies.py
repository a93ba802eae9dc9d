"""When to merge: looking for mergers at every subscription would cost too much (MBD, section 5.1).

==================== ===============================================================================
text                 it is time to merge
==================== ===============================================================================
``every 10s``        10 seconds after the last time (``ms``, ``s``, ``m`` and ``h``)
``size 1000``        when the table has grown by 1,000 filters since it was merged
``outputs 3``        when MBDs have 3 output nodes on average, as in the paper
``every 1m, size 5`` when one of the two says so
``never``            not at all
==================== ===============================================================================

A policy has no state: the caller says what the table was like at which time.
"""

import re
from dataclasses import dataclass
from typing import Protocol

from tamis.errors import OptionError

_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_NUMBER = r"([0-9]+(?:\.[0-9]+)?)"
_FORMS = {
    "every": re.compile(rf"every\s+{_NUMBER}\s*(ms|s|m|h)"),
    "size": re.compile(r"size\s+([0-9]+)"),
    "outputs": re.compile(rf"outputs\s+{_NUMBER}"),
}


@dataclass(frozen=True, slots=True)
class Statistics:
    """What a policy knows about a table."""

    size: int = 0  # filters that are forwarded
    merged_at: float = float("-inf")  # the last time
    merged_size: int = 0  # the size that it had then, after merging
    diagrams: int = 0  # MBDs, and the filters in them
    outputs: int = 0


class Policy(Protocol):
    """When to merge, such as `Periodic`, `TableSize`, `MeanOutputs` and `AnyOf`."""

    def due(self, now: float, statistics: Statistics) -> bool:
        """Whether it is time to merge."""
        ...

    def next_time(self, statistics: Statistics) -> float | None:
        """When it will be time if nothing changes but the time; None if it never will."""
        ...


@dataclass(frozen=True, slots=True)
class Periodic:
    """Once in an interval of seconds."""

    interval: float

    def __post_init__(self) -> None:
        if not self.interval > 0:
            raise OptionError(f"the merge interval must be above 0 seconds, not {self.interval!r}")

    def due(self, now: float, statistics: Statistics) -> bool:
        return now >= statistics.merged_at + self.interval

    def next_time(self, statistics: Statistics) -> float | None:
        return statistics.merged_at + self.interval

    def __str__(self) -> str:
        return f"every {self.interval:g}s"


@dataclass(frozen=True, slots=True)
class TableSize:
    """When a table has grown by some number of filters since it was merged.

    A table that stays above the threshold after merging is not merged again at once.
    """

    threshold: int

    def __post_init__(self) -> None:
        if self.threshold < 1:
            raise OptionError(f"the size to merge at must be 1 or more, not {self.threshold!r}")

    def due(self, now: float, statistics: Statistics) -> bool:  # noqa: ARG002 - as in all policies
        return statistics.size - statistics.merged_size >= self.threshold

    def next_time(self, statistics: Statistics) -> float | None:  # noqa: ARG002 - as in all policies
        return None

    def __str__(self) -> str:
        return f"size {self.threshold}"


@dataclass(frozen=True, slots=True)
class MeanOutputs:
    """When MBDs have some number of output nodes on average (section 6 of the paper)."""

    outputs: float

    def __post_init__(self) -> None:
        if not self.outputs >= 1:
            raise OptionError(f"the mean of output nodes must be 1 or more, not {self.outputs!r}")

    def due(self, now: float, statistics: Statistics) -> bool:  # noqa: ARG002 - as in all policies
        has_grown = statistics.size > statistics.merged_size
        return has_grown and statistics.outputs >= self.outputs * max(1, statistics.diagrams)

    def next_time(self, statistics: Statistics) -> float | None:  # noqa: ARG002 - as in all policies
        return None

    def __str__(self) -> str:
        return f"outputs {self.outputs:g}"


@dataclass(frozen=True, slots=True)
class AnyOf:
    """When one of several policies says so; never, if there are none."""

    policies: tuple[Policy, ...] = ()

    def due(self, now: float, statistics: Statistics) -> bool:
        return any(policy.due(now, statistics) for policy in self.policies)

    def next_time(self, statistics: Statistics) -> float | None:
        times = [policy.next_time(statistics) for policy in self.policies]
        return min((time for time in times if time is not None), default=None)

    def __str__(self) -> str:
        return ", ".join(map(str, self.policies)) or "never"


NEVER = AnyOf()


def read_policy(text: str) -> Policy:
    """The policy that a text describes.

    >>> str(read_policy("every 500ms, size 1000"))
    'every 0.5s, size 1000'
    """
    if text.strip().lower() == "never":
        return NEVER
    policies = tuple(_read(part.strip().lower(), text) for part in text.split(","))
    return policies[0] if len(policies) == 1 else AnyOf(policies)


def _read(part: str, text: str) -> Policy:
    if found := _FORMS["every"].fullmatch(part):
        return Periodic(float(found[1]) * _UNITS[found[2]])
    if found := _FORMS["size"].fullmatch(part):
        return TableSize(int(found[1]))
    if found := _FORMS["outputs"].fullmatch(part):
        return MeanOutputs(float(found[1]))
    raise OptionError(
        f"cannot read {part!r} of {text!r} as a merge policy; "
        "write 'every 10s', 'size 1000', 'outputs 3', several with commas, or 'never'"
    )
