"""The budget: how many bytes of compiled subscriptions an executor may hold, and what follows."""

from collections.abc import Callable
from typing import Any, NamedTuple

from tamis.errors import OptionError, choose

MODES = ("auto", "whole", "sharded")
BUDGET = "512m"
_UNITS = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30, "t": 1 << 40}


def as_bytes(budget: int | str) -> int:
    """A number of bytes: ``1000000``, ``"512m"``, ``"2g"``."""
    if isinstance(budget, str):
        text = budget.strip().lower()
        text = text[:-1] if text[-2:-1] in {"k", "m", "g", "t"} and text.endswith("b") else text
        number, unit = text.rstrip("bkmgt"), text.lstrip("0123456789 ")
        found = int(number) * _UNITS[unit] if number.strip().isdigit() and unit in _UNITS else 0
    else:
        found = budget if type(budget) is int else 0
    if found <= 0:
        raise OptionError(
            f"budget is a number of bytes like 1000000, '512m' or '2g', not {budget!r}"
        )
    return found


class Sharding(NamedTuple):
    """Whether subscriptions are divided into shards, and into how many."""

    mode: str
    budget: int
    shards: int | None

    @classmethod
    def checked(cls, mode: str, budget: int | str, shards: Any) -> "Sharding":
        """The settings that a user gives; an error if they make no sense."""
        choose("mode", mode, MODES)
        if shards is not None and (type(shards) is not int or shards < 1):
            raise OptionError(f"shards is a number of at least 1, not {shards!r}")
        if shards is not None and mode == "whole":
            raise OptionError("shards and mode='whole' exclude each other; leave one of them out")
        return cls(mode, as_bytes(budget), shards)

    def choice(self, size: Callable[[], int]) -> tuple[bool, str]:
        """Whether there are shards, and why; `size` is that of the compiled subscriptions."""
        if self.mode != "auto":
            return self.mode == "sharded", "as the mode says"
        if self.shards is not None:
            return True, "as the number of shards was given"
        found = size()
        is_sharded = found > self.budget
        word = "more" if is_sharded else "not more"
        return is_sharded, f"about {found:,} bytes are {word} than the budget of {self.budget:,}"
