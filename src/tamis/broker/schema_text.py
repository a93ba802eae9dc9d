"""Schemas as one line of text, as people write them: ``symbol string, price double``."""

import re
from collections.abc import Mapping

from tamis.errors import SchemaError
from tamis.schema import Schema

# A comma separates attributes unless it is inside parentheses, brackets, quotes or backticks.
_PART = re.compile(r"(?:[^,(<'`]|'(?:[^']|'')*'|`[^`]*`|\((?:[^()']|'(?:[^']|'')*')*\)|<[^<>]*>)+")
_ATTRIBUTE = re.compile(r"\s*((?:`[^`]*`|[^\s`])+)\s+(.+?)\s*", re.DOTALL)


def schema_of(schema: Mapping[str, str] | str) -> Schema:
    """A schema, from names and types or from one line of text."""
    if not isinstance(schema, str):
        return Schema(schema)
    pairs: list[tuple[str, str]] = []
    place = 0
    while place < len(schema) or not pairs:
        part = _PART.match(schema, place)
        found = None if part is None else _ATTRIBUTE.fullmatch(part[0])
        if part is None or found is None:
            rest = schema[place:].strip() or schema
            raise SchemaError(
                "expected a name and a type, as in 'symbol string, price double', got "
                f"{rest[:60]!r}"
            )
        pairs.append((found[1], found[2]))
        place = part.end()
        if place < len(schema):
            if schema[place] != ",":
                raise SchemaError(f"expected a comma before {schema[place:][:60]!r}")
            place += 1
            if not schema[place:].strip():
                raise SchemaError("the schema ends with a comma")
    return Schema(pairs)
