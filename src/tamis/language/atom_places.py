"""Where the atoms of a filter are, found by its tokens, whatever kind they are of.

An atom reaches from AND, OR, NOT or a parenthesis to the next one. It is not ended by the AND of
its BETWEEN, by NOT after a value, or by anything in brackets of its own or between CASE and END.
Parentheses are the atom's own if something other than AND, OR, a closing parenthesis or the end of
the filter follows them, as in ``(a + b) > 3``.

Whether an atom is correct is found when it is read by itself. The parser counts levels of nesting
from the outermost parentheses of a filter, so filters with an atom that may be too deep there are
left to the parser.
"""

from typing import NamedTuple

from tamis.language.limits import MAX_DEPTH
from tamis.language.structures import NoStructure
from tamis.language.tokens import Token, TokenKind, tokenize

LEVELS = 3  # of nesting that a parenthesis or NOT adds at most: itself, AND and OR

_CODES = {"AND": "&", "OR": "|"}
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")
_AFTER = frozenset({"AND", "OR", ")", ""})  # what may follow a part in parentheses
_NESTING = {TokenKind.OPERATOR, TokenKind.KEYWORD, TokenKind.NAME}
_VALUES = {TokenKind.NAME, TokenKind.QUOTED, TokenKind.NUMBER, TokenKind.STRING}


class AtomPlaces(NamedTuple):
    """The structure of a filter (`tamis.language.structures`), and the texts of its atoms."""

    structure: str
    atoms: list[str]


def atom_places(text: str) -> AtomPlaces:
    """Find the atoms of a filter; raises `NoStructure` for what only the parser can read."""
    tokens = tokenize(text)
    closing = _closing_places(tokens)
    codes: list[str] = []
    atoms: list[str] = []
    # `depth` counts the NOTs and parentheses around the next token, `starts` has this count just
    # inside each open parenthesis.
    place, starts, depth = 0, [0], 0
    while True:
        word = tokens[place].text
        if word in {"NOT", "!"}:
            codes.append("!")
            depth += 1
        elif word == "(" and tokens[closing[place] + 1].text in _AFTER:
            codes.append("(")
            depth += 1
            starts.append(depth)
        else:
            end = _end_of_atom(tokens, place, closing)
            if LEVELS * depth + _levels(tokens[place:end]) > MAX_DEPTH:
                raise NoStructure
            codes.append("a")
            atoms.append(text[tokens[place].start : tokens[end - 1].end])
            place = end
            while tokens[place].text == ")" and len(starts) > 1:
                codes.append(")")
                starts.pop()
                place += 1
            depth = starts[-1]
            code = _CODES.get(tokens[place].text)
            if code is None:
                break
            codes.append(code)
        place += 1
    if tokens[place].kind is not TokenKind.END:
        raise NoStructure
    return AtomPlaces("".join(codes), atoms)


def _end_of_atom(tokens: list[Token], start: int, closing: dict[int, int]) -> int:
    """The place after an atom."""
    place, betweens = start, 0
    while True:
        kind, word, _, _ = tokens[place]
        if kind is TokenKind.OPERATOR:
            if word in _CLOSING:
                break
            place = closing.get(place, place)
        elif kind is TokenKind.KEYWORD:
            if word == "OR" or (word == "AND" and not betweens):
                break
            betweens += (word == "BETWEEN") - (word == "AND")
        elif kind is TokenKind.END:
            break
        elif kind is TokenKind.NAME and len(word) == 4 and word.upper() == "CASE":
            place = _end_of_case(tokens, place, closing)
        place += 1
    if place == start:
        raise NoStructure
    return place


def _end_of_case(tokens: list[Token], start: int, closing: dict[int, int]) -> int:
    """The place of the END that closes a CASE; an attribute may have either name."""
    after = tokens[start + 1]
    if after.kind not in _VALUES or after.text.upper() in {"ILIKE", "SUBSTRING"}:
        raise NoStructure
    place, cases = start, 0
    while True:
        kind, word, _, _ = tokens[place]
        if kind is TokenKind.OPERATOR:
            place = closing.get(place, place)
        elif kind is TokenKind.END:
            raise NoStructure
        elif kind is TokenKind.NAME:
            upper = word.upper()
            cases += (upper == "CASE") - (upper == "END")
            if not cases:
                return place
        place += 1


def _levels(tokens: list[Token]) -> int:
    """An upper bound of the levels of nesting in an atom."""
    return sum([kind in _NESTING and word != "," for kind, word, _, _ in tokens])


def _closing_places(tokens: list[Token]) -> dict[int, int]:
    """The place of the bracket that closes each opening one."""
    found: dict[int, int] = {}
    waiting: list[int] = []
    for place, (kind, word, _, _) in enumerate(tokens):
        if kind is not TokenKind.OPERATOR:
            continue
        if word in _OPENING:
            waiting.append(place)
        elif word in _CLOSING:
            if not waiting:
                raise NoStructure
            found[waiting.pop()] = place
    if waiting:
        raise NoStructure
    return found
