"""The config file of a workload: TOML whose keys are checked one by one."""

import tomllib
from pathlib import Path
from typing import Any

from tamis.errors import FileError, OptionError, choose, did_you_mean
from tamis.types import INT64_MAX, INT64_MIN

MOST_WORDS = 100_000  # that are made up for one key
_SYLLABLES = [consonant + vowel for consonant in "bdfgklmnprstvz" for vowel in "aeiou"]


class Config:
    """The keys of one file, or of one table in it.

    Each method reads a key that must be there, or raises an `OptionError` that names the file, the
    key and what was expected. `finish` refuses keys that were never read.
    """

    def __init__(self, path: Path, table: dict[str, Any], prefix: str = "") -> None:
        self.path = path
        self._table = table
        self._prefix = prefix
        self._known: list[str] = []  # the keys that were read

    def has(self, key: str) -> bool:
        """Whether an optional key is there."""
        self._known.append(key)
        return key in self._table

    def bad(self, key: str, expected: str) -> OptionError:
        """The error about a key whose value is not what was expected."""
        if key not in self._table:
            return OptionError(f"{self.path}: {self._prefix}{key} is missing: {expected}")
        shown = repr(self._table[key])
        shown = shown if len(shown) <= 60 else shown[:57] + "..."
        return OptionError(
            f"{self.path}: {self._prefix}{key} must be {expected}, and it is {shown}"
        )

    def text(self, key: str) -> str:
        value = self._take(key)
        if not isinstance(value, str) or not value.strip():
            raise self.bad(key, "a text")
        return value.strip()

    def choice(self, key: str, choices: tuple[str, ...]) -> str:
        value = self._take(key)
        if not isinstance(value, str):
            raise self.bad(key, f"one of {', '.join(choices)}")
        return choose(f"{self._prefix}{key} in {self.path}", value, choices)

    def whole(self, key: str, low: int, high: int) -> int:
        value = self._take(key)
        if type(value) is not int or not low <= value <= high:
            raise self.bad(key, f"a whole number from {low:,} to {high:,}")
        return value

    def number(self, key: str, low: float, high: float) -> float:
        value = self._take(key)
        if type(value) not in {int, float} or not low <= value <= high:
            raise self.bad(key, f"a number from {low:g} to {high:g}")
        return float(value)

    def interval(self, key: str, low: int = INT64_MIN, high: int = INT64_MAX) -> tuple[int, int]:
        """Two whole numbers in ascending order."""
        value = self._take(key)
        if not _is_interval(value, low, high):
            raise self.bad(key, _interval_text(low, high))
        return value[0], value[1]

    def intervals(self, key: str) -> tuple[tuple[int, int], ...]:
        """One or more intervals."""
        value = self._take(key)
        if not isinstance(value, list) or not value or not all(map(_is_interval, value)):
            raise self.bad(key, "a list of intervals: [[1, 250], [250, 10000]]")
        return tuple((low, high) for low, high in value)

    def texts(self, key: str) -> tuple[str, ...]:
        """One or more texts, no two alike."""
        value = self._take(key)
        if (
            not isinstance(value, list)
            or not value
            or not all(isinstance(item, str) for item in value)
            or len(set(value)) < len(value)
        ):
            raise self.bad(key, "a list of texts, no two alike")
        return tuple(value)

    def words(self, key: str) -> tuple[str, ...]:
        """One or more texts; a number stands for as many made-up words."""
        if type(self._table.get(key)) is not int:
            return self.texts(key)
        count = self.whole(key, 1, MOST_WORDS)
        return tuple(made_up_word(number) for number in range(count))

    def tables(self, key: str) -> list["Config"]:
        """One or more tables, ``[[key]]`` in the file."""
        value = self._take(key)
        if (
            not isinstance(value, list)
            or not value
            or not all(isinstance(item, dict) for item in value)
        ):
            raise self.bad(key, f"one or more tables [[{key}]]")
        return [
            Config(self.path, table, f"{self._prefix}{key}[{position}].")
            for position, table in enumerate(value)
        ]

    def finish(self) -> None:
        """Refuse keys that were never read."""
        for key in self._table:
            if key not in self._known:
                hint = did_you_mean(key, self._known)
                raise OptionError(f"{self.path}: unknown key {self._prefix}{key}; {hint}")

    def _take(self, key: str) -> Any:
        self._known.append(key)
        return self._table.get(key)


def read_text(path: Path) -> str:
    """The text of a file, or a `FileError`."""
    try:
        return path.read_text(encoding="utf-8")
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise FileError(
            f"{path} is not valid UTF-8: {error.reason} at byte {error.start}"
        ) from None


def read_config(path: Path) -> Config:
    """The keys of a TOML file."""
    try:
        return Config(path, tomllib.loads(read_text(path)))
    except tomllib.TOMLDecodeError as error:
        raise FileError(f"{path} is not valid TOML: {error}") from None


def made_up_word(number: int) -> str:
    """A word of two or more syllables, different for each number; some are parts of others."""
    number, last = divmod(number, len(_SYLLABLES))
    word = ""
    while number >= 0:
        number, syllable = divmod(number, len(_SYLLABLES))
        word, number = _SYLLABLES[syllable] + word, number - 1
    return word + _SYLLABLES[last]


def _is_interval(value: Any, low: int = INT64_MIN, high: int = INT64_MAX) -> bool:
    return (
        isinstance(value, list)
        and len(value) == 2
        and all(type(end) is int and low <= end <= high for end in value)
        and value[0] <= value[1]
    )


def _interval_text(low: int, high: int) -> str:
    text = "two whole numbers in ascending order: [1, 250]"
    return text if low == INT64_MIN else f"{text}, from {low:,} to {high:,}"
