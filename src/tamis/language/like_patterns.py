"""LIKE patterns: ``%`` is any run of characters, ``_`` any one; an escape makes them plain.

A pattern is split at its ``%`` signs. The first piece must be at the start of a value, the last at
its end, and the others are searched from left to right, each at its first occurrence: a later one
could not help the pieces after it. However many ``%`` there are, a value is read once, where a
backtracking regular expression would hang. A piece with ``_`` is searched by Shift-And, which keeps
all places where the piece may have begun as the bits of one number.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass

from tamis.bounded_caches import BoundedCache

BACKSLASH = "\\"  # escapes unless a filter says otherwise
PATTERN_BYTES = 1_000  # of a compiled pattern, besides what it has for each character

Piece = tuple[str | None, ...]  # characters; None is any one character
Finder = Callable[[str, int, int], int]  # value, start, end -> where the piece begins, or -1


class BadPattern(ValueError):
    """A pattern that cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class LikePattern:
    """A pattern split at its ``%`` signs; one without a ``%`` has one piece."""

    pieces: tuple[Piece, ...]

    def plain(self) -> tuple[str, ...] | None:
        """The pieces as strings, or None if one of them has a ``_``."""
        if any(None in piece for piece in self.pieces):
            return None
        return tuple(_text(piece) for piece in self.pieces)


def compile_like(pattern: str, escape: str = BACKSLASH) -> Callable[[str], bool]:
    """A function that says whether a whole value matches the pattern."""
    return _COMPILED[pattern, escape]


class _CompiledLikes(BoundedCache[tuple[str, str], Callable[[str], bool]]):
    """Patterns that were compiled, with their escape characters."""

    def make(self, key: tuple[str, str]) -> Callable[[str], bool]:
        head, *others = parse_like(*key).pieces
        if not others:
            return lambda value: len(value) == len(head) and _is_at(head, value, 0)
        tail = others.pop()
        finders = [(_finder(piece), len(piece)) for piece in others if piece]

        def matches(value: str) -> bool:
            start, end = len(head), len(value) - len(tail)
            if end < start or not _is_at(head, value, 0) or not _is_at(tail, value, end):
                return False
            for find, length in finders:
                found = find(value, start, end)
                if found < 0:
                    return False
                start = found + length
            return True

        return matches

    def size(self, key: tuple[str, str], _matches: Callable[[str], bool]) -> int:
        # A piece with a _ has a number of as many bits as characters for each of its letters.
        length = len(key[0])
        return PATTERN_BYTES + 100 * length + length * len({*key[0]}) // 8


_COMPILED = _CompiledLikes(32_000_000)


def parse_like(pattern: str, escape: str = BACKSLASH) -> LikePattern:
    """Read a pattern; the escape character is allowed only before ``%``, ``_`` or itself."""
    pieces: list[Piece] = []
    piece: list[str | None] = []
    characters = iter(pattern)
    for character in characters:
        if character == escape:
            following = next(characters, None)
            if following is None:
                raise BadPattern(f"the pattern ends with its escape character {escape!r}")
            if following not in {"%", "_", escape}:
                raise BadPattern(
                    f"the escape character {escape!r} is before {following!r}; "
                    "it is allowed only before %, _ and itself"
                )
            piece.append(following)
        elif character == "%":
            pieces.append(tuple(piece))
            piece = []
        else:
            piece.append(None if character == "_" else character)
    pieces.append(tuple(piece))
    return LikePattern(tuple(pieces))


def form_of_pattern(pattern: str) -> tuple[str, str] | None:
    """The form of a pattern without escapes, and the text in it.

    The form is ``=``, ``startswith``, ``endswith`` or ``contains`` with a text, or LIKE with the
    pattern itself. It is None for patterns without any text, as ``''`` and ``%``.
    """
    if "_" in pattern:
        return "LIKE", pattern
    texts = [piece for piece in pattern.split("%") if piece]
    if len(texts) != 1:
        return ("LIKE", pattern) if texts else None
    (text,) = texts
    return _FORMS[pattern[0] == "%", pattern[-1] == "%"], text


_FORMS = {
    (False, False): "=",
    (False, True): "startswith",
    (True, False): "endswith",
    (True, True): "contains",
}


def _text(piece: Piece) -> str:
    return "".join(character or "" for character in piece)


def _is_at(piece: Piece, value: str, start: int) -> bool:
    return all(
        wanted is None or wanted == value[start + offset] for offset, wanted in enumerate(piece)
    )


def _finder(piece: Piece) -> Finder:
    if None not in piece:
        return functools.partial(_find_text, _text(piece))
    anything = sum(1 << place for place, wanted in enumerate(piece) if wanted is None)
    places: dict[str, int] = {}
    for place, wanted in enumerate(piece):
        if wanted is not None:
            places[wanted] = places.get(wanted, anything) | 1 << place
    return functools.partial(_shift_and, places, anything, len(piece))


def _find_text(text: str, value: str, start: int, end: int) -> int:
    return value.find(text, start, end)


def _shift_and(
    places: dict[str, int], anything: int, length: int, value: str, start: int, end: int
) -> int:
    """Bit k of `begun` says that the piece may have begun k characters ago."""
    begun, last = 0, 1 << (length - 1)
    for position in range(start, end):
        begun = (begun << 1 | 1) & places.get(value[position], anything)
        if begun & last:
            return position - length + 1
    return -1
