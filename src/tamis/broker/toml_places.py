"""Where in a TOML file each key and each value stands, which `tomllib` does not say.

The text must be valid: `tomllib` has read it before. So it is only cut, never checked.
"""

import re
import tomllib
from typing import NamedTuple

_KEY = re.compile(r"""[A-Za-z0-9_-]+|"(?:[^"\\\n]|\\.)*"|'[^'\n]*'""")
_STRING = re.compile(
    r'''"""(?:[^\\]|\\.)*?"{3,5}(?!")'''
    r"""|'{3}.*?'{3,5}(?!')"""
    r"""|"(?:[^"\\\n]|\\.)*"|'[^'\n]*\'""",
    re.DOTALL,
)
_BARE = re.compile(r"[^,\]}#\n]*")
_SPACE = re.compile(r"[ \t]*")
_EMPTY = re.compile(r"(?:[ \t\r\n]|#[^\n]*)*")

Key = tuple[str | int, ...]  # names of tables and keys, numbers of members of arrays


class KeyPlace(NamedTuple):
    """The places of a key and of its value, in characters of the text."""

    key: int
    start: int
    end: int


def places(text: str) -> dict[Key, KeyPlace]:
    """The place of every table, key and member of an array."""
    cut = _Cut(text)
    cut.document()
    return cut.places


class _Cut:
    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.places: dict[Key, KeyPlace] = {}
        self._lengths: dict[Key, int] = {}  # of arrays of tables

    def document(self) -> None:
        table: Key = ()
        while self._skip(_EMPTY) < len(self.text):
            start = self.at
            if self.text.startswith("[[", self.at):
                table = self._header(2)
                number = self._lengths.get(table, 0)
                self._lengths[table] = number + 1
                table = (*table, number)
            elif self.text[self.at] == "[":
                table = self._header(1)
            else:
                self._pair(table)
                continue
            for length in range(1, len(table) + 1):
                self.places.setdefault(table[:length], KeyPlace(start, start, self.at))

    def _header(self, brackets: int) -> Key:
        self.at += brackets
        self._skip(_SPACE)
        names = self._names()
        self.at += brackets
        path: Key = ()
        for name in names[:-1]:
            path = (*path, name)
            if path in self._lengths:
                path = (*path, self._lengths[path] - 1)
        return (*path, names[-1])

    def _names(self) -> list[str]:
        """The names of a dotted key, and the space after it."""
        names: list[str] = []
        while True:
            self._skip(_SPACE)
            start = self.at
            name = self.text[start : self._skip(_KEY)]
            names.append(tomllib.loads(f"key = {name}")["key"] if name[0] in "\"'" else name)
            self._skip(_SPACE)
            if not self.text.startswith(".", self.at):
                return names
            self.at += 1

    def _pair(self, table: Key) -> None:
        key = self.at
        path: Key = (*table, *self._names())
        self.at += 1  # the sign =
        self._skip(_SPACE)
        for length in range(len(table) + 1, len(path)):
            self.places.setdefault(path[:length], KeyPlace(key, key, self.at))
        self._value(path, key)

    def _value(self, path: Key, key: int) -> None:
        start = self.at
        match self.text[start]:
            case "[":
                self._members(path)
            case "{":
                self._inline_table(path)
            case '"' | "'":
                self._skip(_STRING)
            case _:
                self._skip(_BARE)
        end = start + len(self.text[start : self.at].rstrip())
        self.places[path] = KeyPlace(key, start, end)

    def _members(self, path: Key) -> None:
        self.at += 1
        number = 0
        while self.text[self._skip(_EMPTY)] != "]":
            if self.text[self.at] == ",":
                self.at += 1
                continue
            self._value((*path, number), self.at)
            number += 1
        self.at += 1

    def _inline_table(self, path: Key) -> None:
        self.at += 1
        while self.text[self._skip(_EMPTY)] != "}":
            if self.text[self.at] == ",":
                self.at += 1
                continue
            self._pair(path)
        self.at += 1

    def _skip(self, pattern: re.Pattern[str]) -> int:
        """Go to the end of what the pattern matches here."""
        found = pattern.match(self.text, self.at)
        if found is None:
            raise ValueError(f"character {self.at} is not where valid TOML has {pattern.pattern}")
        self.at = found.end()
        return self.at
