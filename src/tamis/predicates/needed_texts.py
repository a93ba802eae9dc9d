"""Texts that a string must have to pass a test, so that of many tests only few need to be run.

``s LIKE '%PC%x'`` can be true only of a string that has ``PC`` in it. `text_index` finds the tests
whose texts a string has.
"""

import re
from typing import NamedTuple

from tamis.language.ast import Node
from tamis.language.like_patterns import Piece, parse_like
from tamis.predicates.classification import LikeTest, RegexTest, StringTest, classify

STARTSWITH, ENDSWITH, CONTAINS = "startswith", "endswith", "contains"

# What may mean that a text is not needed, a class of characters, a number of repetitions, and runs
# of characters that stand for themselves, none of them optional.
_INVOLVED = re.compile(r"[\\|()]")
_CLASS = re.compile(r"\[[^]]*]")
_REPEATED = re.compile(r"\{[^}]*}")
_RUN = re.compile(r"(?:[^].^$*+?{}\[](?![*?]))+")


class NeededText(NamedTuple):
    """A text that is somewhere in every string of which a test, without its negation, is true."""

    place: str
    text: str


def needed_text(predicate: Node) -> NeededText | None:
    """The longest text that a predicate needs; None if it needs none."""
    match classify(predicate):
        case StringTest(_, function, text):
            found = [NeededText(function, text)]
        case LikeTest(_, pattern, escape):
            found = _of_like(parse_like(pattern, escape).pieces)
        case RegexTest(_, pattern) if not _INVOLVED.search(pattern):
            plain = _REPEATED.sub("*", _CLASS.sub(".", pattern))
            found = [NeededText(CONTAINS, text) for text in _RUN.findall(plain)]
        case _:
            return None
    longest = max(found, key=lambda one: len(one.text), default=None)
    return longest if longest is not None and longest.text else None


def _of_like(pieces: tuple[Piece, ...]) -> list[NeededText]:
    found = []
    for number, piece in enumerate(pieces):
        # Between two characters that may be any one.
        runs = "".join("\0" if one is None else one for one in piece).split("\0")
        found += [NeededText(CONTAINS, run) for run in runs]
        if number == 0:
            found.insert(0, NeededText(STARTSWITH, runs[0]))
        if number == len(pieces) - 1:
            found.insert(0, NeededText(ENDSWITH, runs[-1]))
    return found
