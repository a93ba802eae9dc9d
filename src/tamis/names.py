"""Names of attributes: paths into an event, and how they are written.

A name is a path of parts. In text, the parts are joined by dots (``address.city``); a part that is
not a plain word is put in backticks, with a backtick inside doubled (`` `a.b` ``, `` `a``b` ``).
"""

import re

from tamis.errors import SchemaError

Path = tuple[str, ...]

# Words that a filter must put in backticks to use them as names.
RESERVED = frozenset(
    [
        "AND",
        "OR",
        "NOT",
        "IN",
        "LIKE",
        "RLIKE",
        "REGEXP",
        "BETWEEN",
        "IS",
        "NULL",
        "TRUE",
        "FALSE",
        "DIV",
    ]
)

_PLAIN = re.compile(r"[^\W\d]\w*", re.ASCII)
_PART = re.compile(r"`((?:[^`]|``)*)`|([^.`]*)", re.DOTALL)


def path_text(path: Path) -> str:
    """How a filter writes the path.

    >>> path_text(("address", "zip code"))
    'address.`zip code`'
    """
    return ".".join(
        part
        if _PLAIN.fullmatch(part) and part.upper() not in RESERVED
        else "`" + part.replace("`", "``") + "`"
        for part in path
    )


def split_path(name: str) -> Path:
    """The path of a name in a schema: dots separate its parts, except inside backticks.

    >>> split_path("address.zip code"), split_path("`a.b`")
    (('address', 'zip code'), ('a.b',))
    """
    parts: list[str] = []
    position = 0
    while True:
        found = _PART.match(name, position)
        if found is None:  # pragma: no cover - the second alternative matches anywhere
            raise AssertionError(name)
        quoted, plain = found.groups()
        position = found.end()
        if position < len(name) and name[position] != ".":
            raise SchemaError(
                f"attribute name {name!r}: a backtick at position {position} does not enclose "
                "a whole part; write `a.b` for a name with a dot and `` for a backtick"
            )
        parts.append(quoted.replace("``", "`") if quoted is not None else plain)
        if position == len(name):
            return tuple(parts)
        position += 1
