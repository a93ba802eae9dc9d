"""Sets of strings that automata accept, and which of them a string can be in at once.

LIKE, ``startswith``, ``endswith`` and ``contains``, in both directions, are regular languages, and
so is every comparison with a constant. `explore` runs all automata side by side over strings of
growing length, made of the few characters that matter, until no new combination of states turns up.
What it then knows is exact: the combinations of answers that strings can give, each with a shortest
string that gives it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from typing import Protocol

from tamis.language.like_patterns import parse_like

MOST_TRANSITIONS = 100_000  # steps of automata
_SURROGATES = range(0xD800, 0xE000)
_READABLE = "xabcdefghijklmnopqrstuvwyzXABCDEFGHIJKLMNOPQRSTUVWYZ0123456789 -.!~"
_LAST = "\U0010ffff"


class TooManySteps(Exception):
    """Deciding would cost more than it may."""


class Language(Protocol):
    """A set of strings, as an automaton whose states are numbers."""

    start: int
    cost: int  # of one step, compared with the cheapest

    @property
    def letters(self) -> Iterable[str]:
        """The characters that it tells from others."""

    def step(self, state: int, letter: str) -> int:
        """The state after one more character."""

    def accepts(self, state: int) -> bool:
        """Whether a string that leads to a state is in the language."""


class Fits:
    """The strings that fit a pattern: states are sets of places in it, the bits of a number.

    A place is a number of characters of the pattern that fit so far. With the next character every
    place either fits and moves on by one, or is lost; the places of `loops` also stay.
    """

    def __init__(
        self, tokens: Sequence[str | None], *, loops: int, start: int, accepting: int
    ) -> None:
        """A token is a character, or None for any."""
        self.anything = sum(1 << place for place, token in enumerate(tokens) if token is None)
        self.places: dict[str, int] = {}
        for place, token in enumerate(tokens):
            if token is not None:
                self.places[token] = self.places.get(token, self.anything) | 1 << place
        self.loops = loops
        self.start = start
        self.accepting = accepting
        self.cost = 1 + (len(tokens) >> 9)

    @property
    def letters(self) -> Iterable[str]:
        return self.places.keys()

    def step(self, state: int, letter: str) -> int:
        stays = state & self.loops
        state = (state & self.places.get(letter, self.anything)) << 1 | stays
        looping = state & self.loops
        if looping:  # whatever a place before the last loop could still reach, the loop reaches
            last = looping.bit_length() - 1
            state = state >> last << last
        return state

    def accepts(self, state: int) -> bool:
        return bool(state & self.accepting)


def like_language(pattern: str, escape: str = "\\") -> Language:
    """The strings that fit a LIKE pattern."""
    pieces = parse_like(pattern, escape).pieces
    tokens = [token for piece in pieces for token in piece]
    loops = end = 0
    for piece in pieces[:-1]:
        end += len(piece)
        loops |= 1 << end
    return Fits(tokens, loops=loops, start=1, accepting=1 << len(tokens))


def text_language(name: str, text: str) -> Language:
    """The strings of ``startswith(s, text)``, ``endswith(s, text)`` or ``contains(s, text)``."""
    end = 1 << len(text)
    loops = int(name != "startswith") | (end if name != "endswith" else 0)
    return Fits(list(text), loops=loops, start=1, accepting=end)


def part_language(name: str, text: str) -> Language:
    """The strings of ``startswith(text, s)``, ``endswith(text, s)`` or ``contains(text, s)``."""
    end = 1 << len(text)
    everywhere = 2 * end - 1
    return Fits(
        list(text), loops=0,
        start=1 if name == "startswith" else everywhere,
        accepting=end if name == "endswith" else everywhere,
    )  # fmt: skip


# --- constants in their order
#
# The *place* of a string among sorted constants is 2k + 1 if it is constant k, and 2k if it is none
# of them and lies right before constant k. While a string is read, it is the beginning of a run of
# constants, or it has left them all and its place is known.

_Run = tuple[int, int, int]  # the first constant, the end of the run, the characters read


def _advance(constants: Sequence[str], at: _Run | int, letter: str) -> _Run | int:
    if isinstance(at, int):
        return at
    first, end, read = at

    def next_letter(constant: str) -> str:
        return constant[read : read + 1]

    low = bisect_left(constants, letter, first, end, key=next_letter)
    high = bisect_right(constants, letter, low, end, key=next_letter)
    return 2 * low if low == high else (low, high, read + 1)


def _place(constants: Sequence[str], at: _Run | int) -> int:
    if isinstance(at, int):
        return at
    first, _, read = at
    return 2 * first + (len(constants[first]) == read)


def explore(
    constants: Sequence[str], languages: Sequence[Language], *, ordered: bool
) -> dict[tuple[int, int], str]:
    """Every combination of a place and of languages (bits) that some string has, and such a string.

    The constants are sorted and different. Unless it is `ordered`, all places between constants are
    one, 0.
    """
    letters = _alphabet(constants, languages, ordered=ordered)
    at: _Run | int = (0, len(constants), 0) if constants else 0
    start = at, tuple(language.start for language in languages)
    seen = {start}
    line = [(start, "")]
    found: dict[tuple[int, int], str] = {}
    price = len(letters) * (1 + sum(language.cost for language in languages))
    transitions = 0
    for (at, states), text in line:  # the line grows while it is read: shorter strings first
        place = _place(constants, at)
        if not ordered and not place % 2:
            place = 0
        answers = 0
        for bit, (language, state) in enumerate(zip(languages, states, strict=True)):
            answers |= language.accepts(state) << bit
        found.setdefault((place, answers), text)
        transitions += price
        if transitions > MOST_TRANSITIONS:
            raise TooManySteps
        for letter in letters:
            after = _advance(constants, at, letter)
            if not ordered and isinstance(after, int):
                after = 0
            pairs = zip(languages, states, strict=True)
            following = after, tuple(language.step(state, letter) for language, state in pairs)
            if following not in seen:
                seen.add(following)
                line.append((following, text + letter))
    return found


def _alphabet(
    constants: Sequence[str], languages: Sequence[Language], *, ordered: bool
) -> list[str]:
    """Characters that stand for all: those that are named, and one of each kind that is not."""
    named = {letter for language in languages for letter in language.letters}
    named.update(*constants)
    if not ordered:
        other = next((letter for letter in _READABLE if letter not in named), None)
        code = 0x100
        while other is None:
            other = chr(code) if chr(code) not in named else None
            code += 1
        return [other, *sorted(named)]
    letters = sorted(named)
    gaps = zip([None, *letters], [*letters, None], strict=True)
    others = [_between(low, high) for low, high in gaps]
    return [*(other for other in others if other is not None), *letters]


def _between(low: str | None, high: str | None) -> str | None:
    """A character between two, None if there is none."""
    for letter in _READABLE:
        if (low is None or low < letter) and (high is None or letter < high):
            return letter
    code = 0 if low is None else ord(low) + 1
    if code in _SURROGATES:
        code = _SURROGATES.stop
    return chr(code) if code < (ord(_LAST) + 1 if high is None else ord(high)) else None


def places(constants: Sequence[str], *, ordered: bool) -> dict[int, str]:
    """The places among sorted constants that some string has, and such a string."""
    found = {2 * k + 1: constant for k, constant in enumerate(constants)}
    if not ordered:
        found[0] = _outside(constants)
        return found
    if not constants:
        return {0: ""}
    if constants[0]:
        found[0] = ""
    for k in range(1, len(constants)):
        low, high = constants[k - 1 : k + 1]
        if low + "\0" < high:
            nicer = next((low + c for c in _READABLE if low + c < high), None)
            found[2 * k] = nicer or low + "\0"
    found[2 * len(constants)] = constants[-1] + "x"
    return found


def _outside(constants: Sequence[str]) -> str:
    known = set(constants)
    plain = next((letter for letter in _READABLE if letter not in known), None)
    return plain or "x" * (1 + max(map(len, constants)))
