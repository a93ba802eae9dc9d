"""The budget: how many bytes of compiled subscriptions an executor may hold."""

from tamis.errors import OptionError

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
