"""Schema inference: from the values of events, or from the text of a filter."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from datetime import date, datetime
from typing import Any

from tamis.errors import EventError, ExpressionError, SchemaError
from tamis.events.values import text_reader
from tamis.language.interval_literals import UNITS
from tamis.language.parser import Parser, parse_tree
from tamis.language.tokens import Token, TokenKind, tokenize
from tamis.names import Path, path_text
from tamis.schema import Attribute, Schema
from tamis.types import (
    BOOL,
    DOUBLE,
    INT,
    INT64_MAX,
    INT64_MIN,
    NULL,
    STRING,
    TIMESTAMP,
    Type,
    array_of,
)

_GUESSES = (DOUBLE, STRING, BOOL, TIMESTAMP)
_MOST_GUESSES = 256  # combinations of types for one part


def schema_of_records(records: Iterable[tuple[Mapping[str, Any], bool]]) -> Schema:
    """The schema of events; each comes with whether its values are text, as in CSV.

    An attribute with whole and other numbers is a double, and one with lists an array; elements of
    XML that come several times in an event are a list. Values that have no type in common are an
    error that names their attribute.
    """
    types: dict[Path, Type] = {}
    for record, is_text in records:
        for path, value in _leaves(record, ()):
            if isinstance(value, list):
                found = _type_of_list(path, value, is_text=is_text)
            else:
                found = _type_of_one(value, is_text=is_text)
            if found is None:
                continue
            known = types.get(path)
            types[path] = found if known is None else _joined(path, known, found, is_text=is_text)
    return Schema.of_attributes(Attribute(path, _settled(of)) for path, of in types.items())


def _type_of_one(value: Any, *, is_text: bool) -> Type | None:
    return _type_of_text(value) if is_text and isinstance(value, str) else _type_of(value)


def _type_of_list(path: Path, values: list[Any], *, is_text: bool) -> Type | None:
    """The type of an array; None if no filter can use it, as lists of records or of lists."""
    element = NULL
    for value in values:
        found = NULL if value is None else _type_of_one(value, is_text=is_text)
        if found is None and not (is_text and value == ""):
            return None
        element = _joined(path, element, found or NULL, is_text=is_text)
    return array_of(element)


def _settled(of: Type) -> Type:
    """An array of which nothing is known has strings, as in Spark."""
    return array_of(STRING) if of == array_of(NULL) else of


def _leaves(record: Mapping[str, Any], path: Path) -> Iterable[tuple[Path, Any]]:
    for key, value in record.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, (*path, str(key)))
        else:
            yield (*path, str(key)), value


def _type_of(value: Any) -> Type | None:
    match value:
        case bool():
            return BOOL
        case int():
            return INT if INT64_MIN <= value <= INT64_MAX else DOUBLE
        case float():
            return DOUBLE
        case str():
            return STRING
        case datetime() | date():
            return TIMESTAMP
        case _:
            return DOUBLE if type(value).__name__ == "Decimal" else None


def _type_of_text(text: str) -> Type | None:
    if not text:
        return None
    for guess in (INT, DOUBLE, BOOL, TIMESTAMP):
        try:
            text_reader(Attribute(("it",), guess))(text)
        except EventError:
            continue
        if guess != BOOL or not text.strip().isdigit():
            return guess
    return STRING


def _joined(path: Path, known: Type, found: Type, *, is_text: bool) -> Type:
    if found in {known, NULL}:
        return known
    if known == NULL:
        return found
    if known.element is not None or found.element is not None:
        return _joined_arrays(path, known, found, is_text=is_text)
    if {known, found} == {INT, DOUBLE}:
        return DOUBLE
    if is_text:
        return STRING
    raise SchemaError(
        f"attribute {path_text(path)} has values of type {known} and of type {found}; "
        "give a schema (--schema on the command line)"
    )


def _joined_arrays(path: Path, known: Type, found: Type, *, is_text: bool) -> Type:
    """The type of arrays; an element of XML that comes once goes with those that come often."""
    if not is_text and (known.element is None or found.element is None):
        raise SchemaError(
            f"attribute {path_text(path)} has values of type {known} and of type {found}; "
            "give a schema (--schema on the command line)"
        )
    one, other = known.element or known, found.element or found
    return array_of(_joined(path, one, other, is_text=is_text))


def schema_of_filter(text: str) -> Schema:
    """The schema that fits a filter.

    The filter is split at AND, OR and NOT; the attributes of each part get the first types with
    which it can be parsed, numbers first. Where none fit, parsing the filter will say why.
    """
    parts = [(_names(part), text[part[0].start : part[-1].end]) for part in _parts(tokenize(text))]
    found = [_guesses(names, source) for names, source in parts]
    types: dict[Path, Type] = {}
    # Parts with the fewest possible types come first.
    for k in sorted(range(len(parts)), key=lambda k: len(found[k])):
        for guess in found[k]:
            if all(types.get(name, kind) == kind for name, kind in guess.items()):
                types.update(guess)
                break
    everything = dict.fromkeys(name for names, _ in parts for name in names)
    return Schema.of_attributes(Attribute(name, types.get(name, DOUBLE)) for name in everything)


def _guesses(names: list[Path], source: str) -> list[dict[Path, Type]]:
    """The types with which a part of a filter can be parsed."""
    kinds = itertools.product(_GUESSES, repeat=len(names))
    guesses = (dict(zip(names, guess, strict=True)) for guess in kinds)
    return [
        guess
        for guess in itertools.islice(guesses, _MOST_GUESSES)
        if _readable(source, [Attribute(name, kind) for name, kind in guess.items()])
    ]


def _readable(source: str, attributes: list[Attribute]) -> bool:
    try:
        parse_tree(source, Schema.of_attributes(attributes))
    except (ExpressionError, SchemaError, RecursionError):
        return False
    return True


def _parts(tokens: list[Token]) -> Iterator[list[Token]]:
    """The tokens between AND, OR and NOT, without parentheses that are not matched inside."""
    part: list[Token] = []
    in_between = False
    for token in tokens:
        word = token.text if token.kind is TokenKind.KEYWORD else ""
        leading_not = (word == "NOT" or token.text == "!") and not _balanced(part)
        ends_between = word == "AND" and in_between
        in_between = (in_between or word == "BETWEEN") and not ends_between
        splits = word in {"AND", "OR"} and not ends_between
        if splits or leading_not or token.kind is TokenKind.END:
            if _balanced(part):
                yield _balanced(part)
            part = []
        else:
            part.append(token)


def _balanced(part: list[Token]) -> list[Token]:
    depth = 0
    unopened = 0
    for token in part:
        depth += (token.text == "(") - (token.text == ")")
        unopened = min(unopened, depth)
    part = part[: len(part) + unopened]
    unclosed = depth - unopened
    return part[unclosed:] if unclosed > 0 else part


def _names(part: list[Token]) -> list[Path]:
    """The attributes in a part: names that are not functions and not words such as ESCAPE."""
    found: dict[Path, None] = {}
    position = 0
    while position < len(part):
        token, start = part[position], position
        position += 1
        if token.kind not in {TokenKind.NAME, TokenKind.QUOTED}:
            continue
        path = [Parser.name(token)]
        while position + 1 < len(part) and part[position].text == ".":
            path.append(Parser.name(part[position + 1]))
            position += 2
        following = part[position] if position < len(part) else None
        if not _is_word(part, start, following):
            found[tuple(path)] = None
    return list(found)


def _is_word(part: list[Token], start: int, following: Token | None) -> bool:
    word = part[start].text.upper()
    if part[start].kind is TokenKind.QUOTED:
        return False
    if following is not None and following.text == "(":
        return True
    if word in {"TIMESTAMP", "DATE", "ESCAPE"}:
        return following is not None and following.kind is TokenKind.STRING
    constants = {TokenKind.NUMBER, TokenKind.STRING}
    if word == "INTERVAL":
        return following is not None and following.kind in constants
    if word in UNITS and start and part[start - 1].kind in constants:
        return True
    if word == "SUBSTRING":
        return following is not None and following.text.upper() == "OF"
    before = part[start - 1].text.upper() if start else ""
    return (word == "OF" and before == "SUBSTRING") or (
        word == "UNKNOWN" and before in {"IS", "NOT"}
    )
