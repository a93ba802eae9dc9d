"""The tokens of a filter.

A token knows its place, so that every later error can point at it. Keywords are upper-cased;
everything else keeps its spelling.
"""

import re
from enum import Enum
from typing import NamedTuple

from tamis.errors import LimitError, ParseError
from tamis.language.limits import MAX_TEXT
from tamis.names import RESERVED


class TokenKind(Enum):
    """The kinds of token."""

    KEYWORD = "keyword"
    NAME = "name"
    QUOTED = "name in backticks"
    STRING = "string"
    NUMBER = "number"
    OPERATOR = "operator"
    ATOM = "atom"  # stands for a whole comparison; made by the shape cache, never by text
    END = "end"


class Token(NamedTuple):
    """A word, constant or sign of a filter, and where it is in the text."""

    kind: TokenKind
    text: str
    start: int
    end: int


STRING = r"""[rR]'[^']*'|[rR]"[^"]*"|'(?:[^'\\]++|\\.|'')*'|"(?:[^"\\]++|\\.|"")*\""""
NUMBER = r"(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?:[bB][dD]|[lLdD])?"
NAME = r"[^\W\d]\w*"
QUOTED = r"`(?:[^`]|``)*`"
COMPARISON = r"<=>|<=|>=|<>|!=|==|[=<>]"

_TOKEN = re.compile(
    rf"(?P<STRING>{STRING})|(?P<NAME>{NAME})|(?P<NUMBER>{NUMBER})|(?P<QUOTED>{QUOTED})"
    rf"|(?P<COMMENT>--|/\*)|(?P<OPERATOR>->|{COMPARISON}|\|\||[-+*/%!(),.\[\]{{}}])|(?P<SPACE>\s+)",
    re.DOTALL,
)
_KINDS: dict[str | None, TokenKind] = {kind.name: kind for kind in TokenKind}  # of its groups
_WORD = re.compile(r"\w")
_PARAMETER = re.compile(rf":{NAME}")


def tokenize(text: str) -> list[Token]:
    """All tokens of a filter, the last one of kind END."""
    check_text(text)
    tokens: list[Token] = []
    position = 0
    for found in _TOKEN.finditer(text):
        start, end = found.span()
        if start != position:
            raise _unreadable(text, position)
        position = end
        word, kind = found[0], found.lastgroup
        if kind == "SPACE":
            continue
        if kind == "NAME" and (upper := word.upper()) in RESERVED:
            tokens.append(Token(TokenKind.KEYWORD, upper, start, end))
            continue
        if kind == "COMMENT":
            raise ParseError(
                f"{word} starts a comment in SQL",
                text, start, end, "comments are not part of a filter; write - -x for --x",
            )  # fmt: skip
        if kind == "NUMBER" and _WORD.match(text, end):
            raise ParseError(
                "a number runs into a word", text, start, end + 1,
                "put a space between them, or backticks around a name that begins with a digit",
            )  # fmt: skip
        tokens.append(Token(_KINDS[kind], word, start, end))
    if position < len(text):
        raise _unreadable(text, position)
    tokens.append(Token(TokenKind.END, "", position, position))
    return tokens


def check_text(text: object) -> None:
    """Raise an error for what cannot be a filter, before it is split into tokens."""
    if not isinstance(text, str):
        raise ParseError(f"a filter is a string, not {type(text).__name__}", str(text)[:100], 0)
    if len(text) > MAX_TEXT:
        raise LimitError(
            f"the filter has {len(text):,} characters, the limit is {MAX_TEXT:,}",
            text, MAX_TEXT, MAX_TEXT + 1, "split it into several subscriptions",
        )  # fmt: skip
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ParseError(
            "the filter is not valid Unicode text", text, error.start, error.end
        ) from None


def _unreadable(text: str, position: int) -> ParseError:
    character = text[position]
    if character in "'\"":
        return ParseError(
            "a string is not closed", text, position, len(text), f"expected another {character}"
        )
    if character == "`":
        return ParseError("a name in backticks is not closed", text, position, len(text))
    hints = {
        "&": "write AND", "|": "write OR", "~": "write RLIKE for a regular expression",
        ";": "a filter is one expression, without a semicolon at its end",
        "“": "write a straight quote '", "”": "write a straight quote '",
        "‘": "write a straight quote '", "’": "write a straight quote '",
        ":": "write CAST(x AS DOUBLE) for x::double",
        "≤": "write <=", "≥": "write >=", "≠": "write <>",
    }  # fmt: skip
    if found := _PARAMETER.match(text, position):
        return ParseError(
            f"there is no value for the parameter {found[0]}", text, position, found.end(),
            f"give one beside the filter: {{{found[0][1:]!r}: ...}}",
        )  # fmt: skip
    return ParseError(
        f"unexpected character {character!r}", text, position, position + 1, hints.get(character)
    )
