"""Files of matches and of dead letters, written batch by batch: Parquet, JSON, CSV, ORC."""

import datetime as dt
import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from typing import Any

import pyarrow as pa

from tamis.match_file import MatchFile
from tamis.spark.files.folders import Folder

ROWS = 20_000_000  # of one file


class MatchFiles:
    """The files of one folder; there is at least one, even without rows."""

    def __init__(self, folder: Folder, schema: pa.Schema, format: str) -> None:
        self._folder = folder
        self._schema = schema
        self._format = format
        self._written = 0
        self._files = 0
        self._open: Any = None

    def write(self, batch: pa.RecordBatch) -> None:
        """Write some rows."""
        if self._open is None or self._written >= ROWS:
            self._next()
        self._open.write(batch)
        self._written += batch.num_rows

    def close(self) -> None:
        """Complete the files."""
        if self._open is None:
            self._next()
        self._open.close()

    def _next(self) -> None:
        if self._open is not None:
            self._open.close()
        name = f"part-{self._files:05}.{self._format}"
        self._open = _WRITERS[self._format](self._folder.create(name), self._schema)
        self._written = 0
        self._files += 1


class _Parquet:
    def __init__(self, sink: pa.NativeFile, schema: pa.Schema) -> None:
        self._sink = sink
        self._writer = MatchFile(sink, schema)

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write(pa.Table.from_batches([batch]))

    def close(self) -> None:
        self._writer.close()
        self._sink.close()


class _Orc:
    def __init__(self, sink: pa.NativeFile, schema: pa.Schema) -> None:
        from pyarrow import orc

        self._sink = sink
        self._writer = orc.ORCWriter(sink)
        self._writer.write(schema.empty_table())

    def write(self, batch: pa.RecordBatch) -> None:
        self._writer.write(pa.Table.from_batches([batch]))

    def close(self) -> None:
        self._writer.close()
        self._sink.close()


class _Text(ABC):
    """Lines of text."""

    def __init__(self, sink: pa.NativeFile, schema: pa.Schema) -> None:
        self._sink = sink
        self._names = schema.names
        self._begin()

    def _begin(self) -> None:  # noqa: B027 - most texts begin with nothing
        """Write what comes before the rows."""

    def write(self, batch: pa.RecordBatch) -> None:
        columns = [column.to_pylist() for column in batch.columns]
        lines = self._lines(zip(*columns, strict=True))
        self._sink.write("".join(lines).encode(errors="replace"))

    @abstractmethod
    def _lines(self, rows: Iterable[tuple[Any, ...]]) -> Iterable[str]:
        """The lines of some rows."""

    def close(self) -> None:
        self._sink.close()


class _Json(_Text):
    """One object per line, without what is missing."""

    def _lines(self, rows: Iterable[tuple[Any, ...]]) -> Iterable[str]:
        encode = json.JSONEncoder(
            ensure_ascii=False, separators=(",", ":"), default=_json_value
        ).encode
        for row in rows:
            named = zip(self._names, row, strict=True)
            yield encode({name: value for name, value in named if value is not None}) + "\n"


class _Csv(_Text):
    """RFC 4180, with a header; a missing value is empty, and an empty text is quoted."""

    def _begin(self) -> None:
        self._sink.write((",".join(map(_csv_field, self._names)) + "\n").encode())

    def _lines(self, rows: Iterable[tuple[Any, ...]]) -> Iterable[str]:
        for row in rows:
            yield ",".join(map(_csv_field, row)) + "\n"


def _csv_field(value: Any) -> str:
    if value is None:
        return ""
    if not isinstance(value, str):
        return str(value).lower() if isinstance(value, bool) else str(_json_value(value))
    if value and value == value.strip() and not any(mark in value for mark in ',"\n\r'):
        return value
    return '"' + value.replace('"', '""') + '"'


def _json_value(value: Any) -> Any:
    """A value that JSON has no form for, in the form in which Spark writes it."""
    if isinstance(value, dt.datetime):
        moment = value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)
        digits = "microseconds" if moment.microsecond % 1000 else "milliseconds"
        return moment.isoformat(timespec=digits) + ("" if value.tzinfo is None else "Z")
    if isinstance(value, dt.date):
        return value.isoformat()
    return value if isinstance(value, int | float) else str(value)


_WRITERS: dict[str, Callable[[pa.NativeFile, pa.Schema], Any]] = {
    "parquet": _Parquet,
    "orc": _Orc,
    "json": _Json,
    "csv": _Csv,
}
