"""CSV files (RFC 4180, with a header), as Spark reads them.

A row of events is a line. A filter may have several lines inside quotes, so files of subscriptions
are read with ``multi_line``. An empty field is a missing value.
"""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from tamis.errors import FileError
from tamis.file_tables.lines import in_groups, lines_of, open_text
from tamis.file_tables.record_columns import (
    QUICK,
    Faults,
    TextLeafReader,
    ValueFault,
    column_of,
    text_column,
)
from tamis.file_tables.text_types import NULL, STRING, settled, type_of_texts

_CLOSED = re.compile(r"[ \t]*(?=,|$)")


def fields_of(row: str) -> list[str | None]:
    """The fields of a row."""
    if '"' not in row:
        return [field or None for field in row.split(",")]
    fields: list[str | None] = []
    place = 0
    while True:
        if row[place : place + 1] == '"':
            value, end = _quoted(row, place)
        else:
            end = row.find(",", place)
            end = len(row) if end < 0 else end
            value = row[place:end]
        fields.append(value or None)
        if end >= len(row):
            return fields
        place = end + 1


def _quoted(row: str, start: int) -> tuple[str, int]:
    """The field that begins with a quote, and its end."""
    place = start + 1
    while True:
        quote = row.find('"', place)
        if quote < 0:  # it is not closed: all that follows belongs to it
            return row[start + 1 :].replace('""', '"'), len(row)
        if row[quote + 1 : quote + 2] == '"':
            place = quote + 2
            continue
        found = _CLOSED.match(row, quote + 1)
        if found is not None:
            return row[start + 1 : quote].replace('""', '"'), found.end()
        # It is not at the end of the field: then quotes are plain characters.
        end = row.find(",", quote)
        end = len(row) if end < 0 else end
        return row[start:end], end


def rows_of(path: Path, *, multi_line: bool) -> Iterator[str]:
    """The rows of a file, the header first."""
    if not multi_line:
        yield from lines_of(path)
        return
    with open_text(path) as file:
        waiting = ""
        for line in file:
            waiting += line
            if waiting.count('"') % 2 == 0:  # quotes inside quotes are doubled
                if waiting.strip():
                    yield waiting.removesuffix("\n")
                waiting = ""
        if waiting.strip():
            yield waiting


def header_of(path: Path, *, multi_line: bool = False) -> list[str]:
    """The names of the columns."""
    header = next(rows_of(path, multi_line=multi_line), None)
    if header is None:
        return []
    names = [field or "" for field in fields_of(header)]
    folded = [name.lower() for name in names]
    for name in names:
        if not name or folded.count(name.lower()) > 1:
            problem = f"two columns named {name!r}" if name else "a column without a name"
            raise FileError(f"{path} cannot be read: its header has {problem}")
    return names


def inferred(files: Sequence[Path], *, multi_line: bool = False) -> pa.Schema:
    """The columns of files and their types."""
    names: list[str] = []
    types: list[pa.DataType] = []
    for path in files:
        header = header_of(path, multi_line=multi_line)
        if not names:
            names, types = header, [NULL] * len(header)
        rows = rows_of(path, multi_line=multi_line)
        next(rows, None)
        for group in in_groups(rows):
            columns = zip(*(_filled(fields_of(row), len(names)) for row in group), strict=True)
            types = [
                _common_type(column, kind) for column, kind in zip(columns, types, strict=True)
            ]
    return pa.schema([(name, settled(kind)) for name, kind in zip(names, types, strict=True)])


def _common_type(texts: Sequence[str | None], known: pa.DataType) -> pa.DataType:
    """The type that texts have in common with the type of those before them."""
    if known == STRING:
        return known
    pattern = QUICK.get(known)
    if pattern is not None:  # most of them are alike
        column = text_column(texts)
        fits = pc.fill_null(pc.match_substring_regex(column, f"^(?:{pattern.pattern})$"), True)
        texts = column.filter(pc.invert(fits)).to_pylist()
    return type_of_texts(dict.fromkeys(texts), known)


def _filled(fields: list[str | None], size: int) -> list[str | None]:
    return fields[:size] if len(fields) >= size else fields + [None] * (size - len(fields))


def read(
    path: Path, schema: pa.Schema, *, is_inferred: bool, multi_line: bool = False
) -> Iterator[tuple[list[pa.Array], list[str | None]]]:
    """Columns of some rows, and the text of each row that cannot be read."""
    _check_header(path, schema.names, multi_line=multi_line)
    rows = rows_of(path, multi_line=multi_line)
    next(rows, None)
    for group in in_groups(rows):
        columns, faults = columns_of(group, schema, is_inferred=is_inferred)
        yield columns, [text if row in faults else None for row, text in enumerate(group)]


def columns_of(
    rows: Sequence[str], schema: pa.Schema, *, is_inferred: bool
) -> tuple[list[pa.Array], Faults]:
    """The columns of rows, and the first fault of each; a wrong number of fields is one, too."""
    faults: Faults = {}
    size = len(schema)
    table = []
    for number, row in enumerate(rows):
        fields = fields_of(row)
        if len(fields) != size:
            faults[number] = ValueFault((), len(fields), pa.null())
        table.append(_filled(fields, size))
    leaf_reader = TextLeafReader(is_inferred=is_inferred)
    columns = [
        column_of(list(values), field.type, (field.name,), leaf_reader, faults)
        for values, field in zip(zip(*table, strict=True), schema, strict=True)
    ]
    return columns, faults


def _check_header(path: Path, names: Sequence[str], *, multi_line: bool) -> None:
    header = header_of(path, multi_line=multi_line)
    if header and [name.lower() for name in header] != [name.lower() for name in names]:
        raise FileError(
            f"{path} cannot be read: CSV header does not conform to the schema. "
            f"Header: {', '.join(header)} Schema: {', '.join(names)}"
        )
