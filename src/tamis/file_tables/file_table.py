"""`FileTable`: the rows of files as record batches."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa

from tamis.errors import FileError
from tamis.file_tables import csv_files, json_files, parquet_files, xml_files
from tamis.file_tables.input_files import CORRUPT, InputFiles, find_files
from tamis.file_tables.record_columns import text_column

Typed = Callable[[pa.Schema, str], pa.Schema]


class FileTable:
    """Files of one format as a table; nothing but a few batches is in memory at a time.

    `schema` has the columns of the files, then those of partitions, and last, for text formats,
    CORRUPT: the text of a row that cannot be read. `typed` replaces types that were inferred from
    texts by better ones; it gets the format, too. `is_inferred` says whether timestamps have the
    form that makes texts timestamps, or any that Spark SQL can cast. `row_tag` is the name of an
    XML element that is a row. With `multi_line`, a row of a CSV file may have line breaks inside
    quotes.
    """

    def __init__(
        self, path: str | Path, *, row_tag: str, typed: Typed | None = None,
        is_inferred: bool = True, multi_line: bool = False,
    ) -> None:  # fmt: skip
        self.files: InputFiles = find_files(str(path))
        self.is_inferred = is_inferred
        self._tag = row_tag
        self._multi_line = multi_line
        self._are_documents = False
        inner = self._inferred()
        if typed is not None and self.is_text:
            inner = typed(inner, self.files.format)
        self.inner = inner
        fields = [*inner, *self.files.columns]
        if self.is_text:
            fields.append(pa.field(CORRUPT, pa.string()))
        self.schema = pa.schema(fields)

    @property
    def is_text(self) -> bool:
        """Whether the files have no types of their own."""
        return self.files.format != "parquet"

    def _inferred(self) -> pa.Schema:
        name, files = self.files.name, self.files.files
        if not files:
            raise FileError(f"{name} has no files")
        match self.files.format:
            case "parquet":
                return parquet_files.inferred(name, files)
            case "csv":
                return self._checked(csv_files.inferred(files, multi_line=self._multi_line))
            case "xml":
                found, any_bad = xml_files.inferred(files, self._tag)
                if any_bad and not found.names:
                    raise FileError(f"{name} has nothing that can be read as xml")
                return self._checked(found)
        if self.files.format == "json":
            self._are_documents = json_files.are_documents(name, files)
        found, any_bad = json_files.inferred(files, are_documents=self._are_documents)
        if any_bad and not found.names:
            raise FileError(f"{name} has nothing that can be read as {self.files.format}")
        return self._checked(found)

    def _checked(self, found: pa.Schema) -> pa.Schema:
        name = self.files.name
        folded = [column.lower() for column in found.names]
        for column in found.names:
            if folded.count(column.lower()) > 1:
                raise FileError(f"{name} has two columns named {column!r}, in any case")
            if not column.isprintable() or "\N{REPLACEMENT CHARACTER}" in column:
                raise FileError(f"{name} is not text: {column[:40]!r} is not the name of a column")
        if CORRUPT in found.names:
            found = found.remove(found.get_field_index(CORRUPT))
        if found.names:
            return found
        row = f"element <{self._tag}>" if self.files.format == "xml" else "row"
        raise FileError(f"{name} has no {row} to infer columns from")

    def batches(self) -> Iterator[pa.RecordBatch]:
        """All rows, in the order of the files."""
        for number, path in enumerate(self.files.files):
            values = self.files.partition_values(number)
            for columns, corrupt in self._read(path):
                size = len(columns[0]) if columns else len(corrupt or ())
                for value, field in zip(values, self.files.columns, strict=True):
                    columns.append(_repeated(value, size, field.type))
                if corrupt is not None:
                    columns.append(text_column(corrupt))
                yield pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _read(self, path: Path) -> Iterator[tuple[list[pa.Array], list[str | None] | None]]:
        schema, is_inferred = self.inner, self.is_inferred
        match self.files.format:
            case "parquet":
                for columns in parquet_files.read(path, schema):
                    yield columns, None
            case "csv":
                yield from csv_files.read(
                    path, schema, is_inferred=is_inferred, multi_line=self._multi_line
                )
            case "xml":
                yield from xml_files.read(path, schema, self._tag, is_inferred=is_inferred)
            case _:
                yield from json_files.read(
                    path, schema, is_inferred=is_inferred, are_documents=self._are_documents
                )


def _repeated(value: Any, size: int, kind: pa.DataType) -> pa.Array:
    if value is None:
        return pa.nulls(size, kind)
    if pa.types.is_timestamp(kind):
        return pa.repeat(pa.scalar(value, pa.int64()), size).cast(kind)
    return pa.repeat(pa.scalar(value, kind), size)
