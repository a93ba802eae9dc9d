"""LIKE patterns: ``%`` is any run of characters, ``_`` any one; an escape makes them plain.

A pattern is cut at its ``%`` signs. The first piece must stand at the start of a value, the last at
its end, and the others are looked for from left to right, each at its first place: no later place
could help the pieces behind it. So no pattern takes more than length × length steps, however
many ``%`` it has, where a backtracking regular expression would hang.
"""

from dataclasses import dataclass

Piece = tuple[str | None, ...]  # characters; None is any one character


class BadPattern(ValueError):
    """A pattern that cannot be used; the message says why."""


@dataclass(frozen=True, slots=True)
class LikePattern:
    """A pattern cut at its ``%`` signs; one piece means there is none."""

    pieces: tuple[Piece, ...]

    def matches(self, value: str) -> bool:
        """Whether the whole value fits the pattern."""
        head, *middle = self.pieces
        if not middle:
            return len(value) == len(head) and _fits(head, value, 0)
        tail = middle.pop()
        end = len(value) - len(tail)
        if end < len(head) or not _fits(head, value, 0) or not _fits(tail, value, end):
            return False
        start = len(head)
        for piece in middle:
            found = _find(piece, value, start, end)
            if found < 0:
                return False
            start = found + len(piece)
        return True

    def plain(self) -> tuple[str, ...] | None:
        """The pieces as strings, None if there is a ``_`` in them."""
        if any(character is None for piece in self.pieces for character in piece):
            return None
        return tuple("".join(character or "" for character in piece) for piece in self.pieces)


def parse_like(pattern: str, escape: str = "\\") -> LikePattern:
    """Read a pattern; the escape may stand only before ``%``, ``_`` or itself."""
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
                    f"the escape character {escape!r} stands before {following!r}; "
                    f"it may stand only before %, _ and itself"
                )
            piece.append(following)
        elif character == "%":
            pieces.append(tuple(piece))
            piece = []
        else:
            piece.append(None if character == "_" else character)
    pieces.append(tuple(piece))
    return LikePattern(tuple(pieces))


def _fits(piece: Piece, value: str, start: int) -> bool:
    return all(
        wanted is None or wanted == value[start + offset] for offset, wanted in enumerate(piece)
    )


def _find(piece: Piece, value: str, start: int, end: int) -> int:
    if None not in piece:
        return value.find("".join(character or "" for character in piece), start, end)
    for place in range(start, end - len(piece) + 1):
        if _fits(piece, value, place):
            return place
    return -1
