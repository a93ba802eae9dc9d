"""Sizes and durations as people write them, such as ``64 MB`` and ``7 days``; and counts."""

import math
import re
from typing import TypeGuard

from tamis.errors import OptionError

_QUANTITY = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*")
_BYTES = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12,
          "kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}  # fmt: skip
_SECONDS = {"": 1.0, "ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0,
            "second": 1.0, "minute": 60.0, "hour": 3600.0, "day": 86400.0,
            "week": 604800.0}  # fmt: skip


def is_count(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number from 1."""
    return isinstance(value, int) and not isinstance(value, bool) and value > 0


def read_bytes(value: object) -> int:
    """A number of bytes: a whole number, or text such as ``64 MB`` or ``1 GiB``."""
    if is_count(value):
        return value
    found = _quantity(value, _BYTES)
    if found is None or found < 1:
        raise OptionError(
            f"expected a number of bytes, such as 1000000, '64 MB' or '1 GiB', got {value!r}"
        )
    return int(found)


def read_seconds(value: object) -> float:
    """A number of seconds: a number, or text such as ``90 s``, ``12 h`` or ``7 days``."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        found: float | None = float(value)
    else:
        found = _quantity(value, _SECONDS)
    if found is None or not 0 < found < math.inf:
        raise OptionError(
            f"expected a duration, such as 90 (seconds), '12 h' or '7 days', got {value!r}"
        )
    return found


def _quantity(value: object, units: dict[str, int] | dict[str, float]) -> float | None:
    found = _QUANTITY.fullmatch(value) if isinstance(value, str) else None
    if found is None:
        return None
    unit = found[2].lower()
    factor = units.get(unit, units.get(unit.removesuffix("s")))
    return None if factor is None or len(found[1]) > 30 else float(found[1]) * factor
