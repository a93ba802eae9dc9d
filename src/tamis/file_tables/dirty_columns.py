"""Columns of text files that became strings because a few of their values are not like the others.

One value such as ``n/a`` among prices makes the column a string, and then no filter can compare it
with a number. The way out is to say the type: then such a value makes an event bad, and not the
column.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from tamis.dead_letters import DeadLetter
from tamis.errors import counted
from tamis.names import Path, path_text
from tamis.schema import Attribute, Schema
from tamis.types import BOOL, DOUBLE, INT, STRING, TIMESTAMP, Type

SHARE = 0.5  # of the values that have another type, at least

# For each type, what its values look like, for RE2 and for Java.
PATTERNS: dict[Type, str] = {
    INT: r"^[+-]?[0-9]{1,18}$",
    DOUBLE: r"^[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?$",
    BOOL: r"^([tT][rR][uU][eE]|[fF][aA][lL][sS][eE])$",
    TIMESTAMP: r"^[0-9]{4}-[0-9]{2}-[0-9]{2}([T ][0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?"
    r"(Z|[+-][0-9]{2}:[0-9]{2})?)?$",
}


class DirtyColumn(NamedTuple):
    """A column of strings whose values mostly look like those of another type."""

    path: Path
    kind: Type
    dirty: int  # values that do not look like it
    values: int
    example: str

    def __str__(self) -> str:
        share = f"{self.dirty:,} of {counted(self.values, 'value')}"
        return (
            f"column {path_text(self.path)} was read as text, because {share} cannot be read as "
            f"{self.kind}, such as {self.example[:60]!r}; so filters cannot use it as {self.kind}"
        )


def dirty_column(
    path: Path, values: int, fitting: dict[Type, int], examples: dict[Type, str | None]
) -> DirtyColumn | None:
    """What is wrong with a column of strings: from how many values look like each type."""
    kind = max(fitting, key=lambda one: fitting[one])  # a whole number is a double, too
    found, example = fitting[kind], examples[kind]
    if example is None or found < SHARE * values:
        return None
    return DirtyColumn(path, kind, values - found, values, example)


def dirty_columns(batches: Iterable[pa.RecordBatch], paths: Sequence[Path]) -> list[DirtyColumn]:
    """The dirty ones among columns of strings."""
    values = dict.fromkeys(paths, 0)
    fitting = {path: dict.fromkeys(PATTERNS, 0) for path in paths}
    examples: dict[Path, dict[Type, str | None]] = {path: dict.fromkeys(PATTERNS) for path in paths}
    for batch in batches:
        for path in paths:
            column = batch.column(path[0])
            for name in path[1:]:
                column = pc.struct_field(column, name)
            texts = column.drop_null()
            values[path] += len(texts)
            for kind, pattern in PATTERNS.items():
                fits = pc.match_substring_regex(texts, pattern)
                fitting[path][kind] += pc.sum(fits).as_py() or 0
                if examples[path][kind] is None:
                    others = texts.filter(pc.invert(fits))
                    examples[path][kind] = others[0].as_py() if len(others) else None
    found = (dirty_column(path, values[path], fitting[path], examples[path]) for path in paths)
    return [one for one in found if one is not None]


def suspects(schema: Schema, letters: Iterable[DeadLetter] | None) -> list[Path]:
    """The strings that bad filters test; all strings if it is not known which filters are bad."""
    strings = [a.path for a in schema.attributes if a.type == STRING]
    if letters is None:
        return strings
    filters = [one.value for one in letters if one.source == "subscriptions" and one.value]
    return [path for path in strings if any(path[-1] in text for text in filters)]


def advice(schema: Schema, dirty: Sequence[DirtyColumn]) -> Iterator[str]:
    """What to do about dirty columns: the types to give."""
    if not dirty:
        return
    yield from map(str, dirty)
    kinds = {column.path: column.kind for column in dirty}
    better = (Attribute(a.path, kinds.get(a.path, a.type), a.domain) for a in schema.attributes)
    listed = ",".join(f"{a.name}:{a}" for a in better)
    yield (
        f'give the types, and the events with such values become dead letters: --schema "{listed}"'
    )
