"""Texts that a string must have to pass a test: which of many tests may be true of it.

``s LIKE '%PC%x'`` can be true only of a string that has ``PC`` in it. A string of ten characters
has few parts as long as the texts of filters, so the texts that it has are found by looking up its
parts, however many there are.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from tamis.language.ast import Node
from tamis.language.like_patterns import Piece, parse_like
from tamis.predicates.classification import LikeTest, RegexTest, StringTest, classify

START, END, ANYWHERE = "startswith", "endswith", "contains"
MOST_PARTS = 16  # of a string for each text; with more, texts are sought one by one

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
    """The longest text that is found in a predicate, None if there is none."""
    match classify(predicate):
        case StringTest(_, function, text):
            found = [NeededText(function, text)]
        case LikeTest(_, pattern, escape):
            found = _of_like(parse_like(pattern, escape).pieces)
        case RegexTest(_, pattern) if not _INVOLVED.search(pattern):
            plain = _REPEATED.sub("*", _CLASS.sub(".", pattern))
            found = [NeededText(ANYWHERE, text) for text in _RUN.findall(plain)]
        case _:
            return None
    longest = max(found, key=lambda one: len(one.text), default=None)
    return longest if longest is not None and longest.text else None


def _of_like(pieces: tuple[Piece, ...]) -> list[NeededText]:
    found = []
    for number, piece in enumerate(pieces):
        # Between two characters that may be any one.
        runs = "".join("\0" if one is None else one for one in piece).split("\0")
        found += [NeededText(ANYWHERE, run) for run in runs]
        if number == 0:
            found.insert(0, NeededText(START, runs[0]))
        if number == len(pieces) - 1:
            found.insert(0, NeededText(END, runs[-1]))
    return found


class NeededTexts:
    """The texts that tests need, by the numbers of the tests; None if nothing is known of one."""

    def __init__(self, texts: Mapping[int, NeededText | None]) -> None:
        self._tests: dict[str, dict[str, list[int]]] = {START: {}, END: {}, ANYWHERE: {}}
        self._others: list[int] = []
        for number, needed in texts.items():
            if needed is None:
                self._others.append(number)
            else:
                self._tests[needed.place].setdefault(needed.text, []).append(number)
        self._lengths = {place: sorted(set(map(len, own))) for place, own in self._tests.items()}

    def candidates(self, value: str) -> list[int]:
        """The tests whose texts a string has where they need them, and those that need none."""
        found = [*self._others]
        size = len(value)
        for length in self._lengths[START]:
            if length <= size:
                found += self._tests[START].get(value[:length], ())
        for length in self._lengths[END]:
            if length <= size:
                found += self._tests[END].get(value[size - length :], ())
        texts, lengths = self._tests[ANYWHERE], self._lengths[ANYWHERE]
        if size * len(lengths) > MOST_PARTS * len(texts):
            for text in texts:
                if text in value:
                    found += texts[text]
            return found
        for length in lengths:
            parts = {value[start : start + length] for start in range(size - length + 1)}
            for text in parts & texts.keys():
                found += texts[text]
        return found
