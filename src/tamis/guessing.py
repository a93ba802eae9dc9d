"""A schema when nobody gave one: from the values of events, or from the text of a filter."""

from collections.abc import Iterable, Mapping
from datetime import date, datetime
from typing import Any

from tamis.errors import SchemaError
from tamis.language.tokens import Kind, Token, tokenize
from tamis.names import Path, path_text
from tamis.schema import Attribute, Schema
from tamis.timestamps import timestamp_from_text
from tamis.types import BOOL, DOUBLE, INT, INT64_MAX, INT64_MIN, STRING, TIMESTAMP, Type

_ALONE = {"AND", "OR", "NOT", "(", ")", "!", ""}  # around a name that is a condition by itself


def schema_of_records(records: Iterable[tuple[Mapping[str, Any], bool]]) -> Schema:
    """The schema of events; each comes with whether its values are text, as in CSV.

    An attribute with whole and other numbers is a double. One with values that have no type in
    common is an error that names it.
    """
    types: dict[Path, Type] = {}
    for record, is_text in records:
        for path, value in _leaves(record, ()):
            found = _type_of_text(value) if is_text and isinstance(value, str) else _type_of(value)
            if found is None:
                continue
            known = types.get(path)
            types[path] = found if known is None else _joined(path, known, found, is_text=is_text)
    return Schema.of_attributes(Attribute(path, found) for path, found in types.items())


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
    if text.lower() in {"true", "false"}:
        return BOOL
    try:
        return INT if INT64_MIN <= int(text[:40]) <= INT64_MAX else DOUBLE
    except ValueError:
        pass
    try:
        float(text)
    except ValueError:
        return TIMESTAMP if timestamp_from_text(text) is not None else STRING
    return DOUBLE


def _joined(path: Path, known: Type, found: Type, *, is_text: bool) -> Type:
    if known == found:
        return known
    if {known, found} == {INT, DOUBLE}:
        return DOUBLE
    if is_text:
        return STRING
    raise SchemaError(
        f"attribute {path_text(path)} has values of type {known} and of type {found}; "
        "say which it is with a schema"
    )


def schema_of_filter(text: str) -> Schema:
    """The schema that a filter seems to be about, guessed from what stands beside each name."""
    tokens = tokenize(text)
    types: dict[Path, Type] = {}
    position = 0
    while position < len(tokens):
        token = tokens[position]
        start = position
        position += 1
        if token.kind not in {Kind.NAME, Kind.QUOTED}:
            continue
        parts = [_part(token)]
        while tokens[position].text == "." and position + 1 < len(tokens):
            parts.append(_part(tokens[position + 1]))
            position += 2
        following = tokens[position]
        if following.text == "(" or following.kind is Kind.STRING or _is_word(token, following):
            continue  # a function, TIMESTAMP '...', SUBSTRING OF, ESCAPE '...'
        guess = _guess(tokens[max(0, start - 3) : start], tokens[position : position + 3])
        if guess is not None or tuple(parts) not in types:
            types[tuple(parts)] = guess or types.get(tuple(parts), DOUBLE)
    return Schema.of_attributes(Attribute(path, found) for path, found in types.items())


def _part(token: Token) -> str:
    return token.text[1:-1].replace("``", "`") if token.kind is Kind.QUOTED else token.text


def _is_word(token: Token, following: Token) -> bool:
    word = token.text.upper()
    return (word == "SUBSTRING" and following.text.upper() == "OF") or word in {"OF", "UNKNOWN"}


def _guess(before: list[Token], behind: list[Token]) -> Type | None:
    text = {token.text.upper() for token in (*before, *behind)}
    if text & {"LIKE", "RLIKE", "REGEXP", "SUBSTRING", "CONTAINS", "STARTSWITH", "ENDSWITH",
               "LOWER", "UPPER", "LENGTH"}:  # fmt: skip
        return STRING
    if text & {"TIMESTAMP", "DATE"}:
        return TIMESTAMP
    beside: list[Token] = []
    if behind[0].text in {"IN", "NOT", "BETWEEN"}:
        beside = behind
    elif behind[0].kind is Kind.OPERATOR and behind[0].text not in _ALONE:
        beside = behind[1:2]
    elif before and before[-1].kind is Kind.OPERATOR and before[-1].text not in _ALONE:
        beside = before[-2:-1]
    for token in beside:
        if token.kind is Kind.STRING:
            return STRING
        if token.kind is Kind.NUMBER:
            return DOUBLE
        if token.text in {"TRUE", "FALSE"}:
            return BOOL
    if (not before or before[-1].text in _ALONE) and behind[0].text in _ALONE:
        return BOOL
    return None
