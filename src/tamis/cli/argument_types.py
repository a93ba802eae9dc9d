"""Types of command-line arguments: numbers, sizes, settings."""

import argparse
from typing import TYPE_CHECKING

from tamis.errors import OptionError

if TYPE_CHECKING:
    from tamis.dead_letters import BadLimit


def positive(text: str) -> int:
    """A whole number above 0."""
    if not (text.isascii() and text.isdecimal()) or not 0 < int(text[:20]) < 10**9:
        raise argparse.ArgumentTypeError(f"expected a whole number above 0, got {text!r}")
    return int(text)


def seed(text: str) -> int:
    """A whole number, 0 or above."""
    if not (text.isascii() and text.isdecimal()) or not int(text[:20]) < 2**62:
        raise argparse.ArgumentTypeError(f"expected 0 or a positive whole number, got {text!r}")
    return int(text)


def size(text: str) -> int:
    """A number of bytes."""
    from tamis.spark.shards.budget import as_bytes

    try:
        return as_bytes(text)
    except OptionError:
        raise argparse.ArgumentTypeError(
            f"expected a number of bytes, such as 1000000, 64m or 2g, got {text!r}"
        ) from None


def duration(text: str) -> float:
    """A time in seconds: ``90s``, ``15m``, ``12h``, ``7d``."""
    seconds = {"s": 1, "m": 60, "h": 3600, "d": 86400}.get(text[-1:])
    number = text[:-1]
    if seconds is None or not (number.isascii() and number.isdecimal()) or not int(number[:12]):
        raise argparse.ArgumentTypeError(
            f"expected a time, such as 90s, 15m, 12h or 7d, got {text!r}"
        )
    return float(int(number[:12]) * seconds)


def moment(text: str) -> str:
    """A moment, as filters write it."""
    from tamis.events.values import moment_of_call

    try:
        moment_of_call(text)
    except OptionError:
        raise argparse.ArgumentTypeError(
            f"expected a time, such as 2024-01-31T12:30:00, got {text!r}"
        ) from None
    return text


def bad_limit(text: str) -> "BadLimit | None":
    """How many rows may be bad."""
    from tamis.dead_letters import BadLimit

    try:
        return BadLimit.of(text)
    except OptionError:
        raise argparse.ArgumentTypeError(
            f"expected a share or a number of rows, such as 1% or 20, got {text!r}"
        ) from None


def setting(text: str) -> tuple[str, str]:
    """``KEY=VALUE``."""
    key, sign, value = text.partition("=")
    if not sign or not key.strip():
        raise argparse.ArgumentTypeError(f"expected KEY=VALUE, got {text!r}")
    return key.strip(), value
