"""Sealed segments: a part of a log that does not change any more, as a Parquet file.

``FIRST-END-CRC32.parquet``: the offsets from FIRST to before END, in 20 digits each, and the
checksum of its footer. The columns are those of `columns`; ``_offset`` ascends. Every reader of
Parquet reads it. What Parquet does not say is in its metadata under the key ``tamis``::

    {"format": 1, "schema": {"price": "double", ...},
     "groups": [{"first": N, "rows": N, "start": N, "end": N, "crc32": N, "time": N, "bytes": N}]}

with, for each row group, its first offset, where its bytes are in the file, their checksum, the
latest time up to its end, and the bytes of its bodies. So each byte of the file is under a
checksum: that of a row group, which is verified whenever the group is read, or that of the footer,
which is verified when a log is opened.

To match a chunk only the columns of attributes are decoded, and no JSON.
"""

import json
import re
import struct
import zlib
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tamis.bounded_caches import BoundedCache
from tamis.broker.log.chunk import Chunk, no_events
from tamis.broker.log.columns import column_names, own_names
from tamis.broker.log.damage import Damage
from tamis.broker.log.disk import Bytes, Disk
from tamis.broker.log.event_ids import IdRun, hashes_of
from tamis.broker.records import Record
from tamis.schema import Schema

FORMAT = 1
SUFFIX = ".parquet"
IDS_SUFFIX = ".ids"
KEY = b"tamis"
NAME = re.compile(r"(\d{20})-(\d{20})-([0-9a-f]{8})\.parquet")

_TAIL = struct.Struct("<I4s")  # bytes of the footer, PAR1

RowGroups = BoundedCache[tuple[Path, int, bool], pa.Table]


class RowGroup(NamedTuple):
    """A row group, as the metadata describes it."""

    first: int
    rows: int
    start: int
    end: int
    crc32: int
    time: int
    bytes: int


class DamagedSegment(Exception):
    """A segment of which nothing can be read."""


def segment_name(first: int, end: int, crc32: int) -> str:
    """The name of the file of a segment."""
    return f"{first:020d}-{end:020d}-{crc32:08x}{SUFFIX}"


def ids_name(first: int, end: int) -> str:
    """The name of the file of a segment's ids."""
    return f"{first:020d}-{end:020d}{IDS_SUFFIX}"


def footer_start(data: Bytes) -> int:
    """Where the footer of a Parquet file begins, if it looks like one."""
    if len(data) < _TAIL.size:
        raise DamagedSegment(f"it has {len(data):,} bytes only")
    length, magic = _TAIL.unpack_from(data, len(data) - _TAIL.size)
    start = len(data) - _TAIL.size - int(length)
    if magic != b"PAR1" or start < 0:
        raise DamagedSegment("it does not end like a Parquet file: it was cut off, or changed")
    return start


class SealedSegment:
    """A segment that can be read. `first` and `end` bound its offsets."""

    def __init__(self, disk: Disk, path: Path, groups: RowGroups) -> None:
        found = NAME.fullmatch(path.name)
        if found is None:
            raise ValueError(f"{path.name} is not the name of a segment")
        self.path = path
        self.first, self.end = int(found[1]), int(found[2])
        self.damage: list[Damage] = []
        self._crc32 = int(found[3], 16)
        self._disk = disk
        self._tables = groups
        self._described: tuple[Schema, list[RowGroup]] | None = None
        self._ids: IdRun | None = None
        self.size = disk.size(path)
        self._check_footer()

    def _check_footer(self) -> None:
        tail = self._disk.read(self.path, max(0, self.size - (1 << 16)), 1 << 16)
        try:
            start = footer_start(tail)
        except DamagedSegment:
            if len(tail) == self.size:
                raise
            tail = bytes(self._disk.view(self.path))  # a footer that is longer
            start = footer_start(tail)
        if zlib.crc32(tail[start:]) != self._crc32:
            raise DamagedSegment("the checksum of its footer is wrong")

    # --- what it says about itself

    @property
    def schema(self) -> Schema:
        """The attributes with which its events were published."""
        return self._description()[0]

    @property
    def events(self) -> int:
        """How many events it has."""
        return sum(group.rows for group in self._description()[1])

    @property
    def last_time(self) -> int:
        """The latest time of its records."""
        groups = self._description()[1]
        return groups[-1].time if groups else 0

    def _description(self) -> tuple[Schema, list[RowGroup]]:
        if self._described is None:
            meta = json.loads(self._open().metadata.metadata[KEY])
            if meta["format"] != FORMAT:
                raise DamagedSegment(f"its format {meta['format']} is not known")
            groups = [RowGroup(**group) for group in meta["groups"]]
            self._described = Schema(meta["schema"]), groups
        return self._described

    def _open(self) -> pq.ParquetFile:
        return pq.ParquetFile(pa.BufferReader(pa.py_buffer(self._disk.view(self.path))))

    # --- reading

    def read(self, start: int, stop: int, most_events: int, most_bytes: int) -> Chunk:
        """The events from `start` to before `stop` that are in one row group, or the first."""
        groups = self._description()[1]
        number = max(0, bisect_right(groups, start, key=lambda group: group.first) - 1)
        while number < len(groups):
            end = groups[number + 1].first if number + 1 < len(groups) else self.end
            table = self._table(number, is_columns=True)
            if table is not None:
                chunk = self._chunk(number, table, start, min(stop, end), most_events, most_bytes)
                if len(chunk.offsets) or end >= stop:
                    return chunk
            elif end >= stop:
                break
            number += 1
        return no_events(stop)

    def _chunk(
        self, number: int, table: pa.Table, start: int, stop: int, most_events: int,
        most_bytes: int,
    ) -> Chunk:  # fmt: skip
        schema, groups = self._description()
        group = groups[number]
        all_offsets = table.column(own_names(schema).offset).to_numpy()
        low = int(np.searchsorted(all_offsets, start))
        high = int(np.searchsorted(all_offsets, stop))
        fits = max(1, most_bytes * group.rows // max(1, group.bytes))
        if high - low > min(fits, most_events):
            high = low + min(fits, most_events)
            stop = int(all_offsets[high])
        rows = table.slice(low, high - low)

        def take(wanted: Sequence[int]) -> list[Record]:
            return self._records(number, [low + row for row in wanted])

        return Chunk(all_offsets[low:high], rows, stop, take)

    def _records(self, number: int, rows: Sequence[int]) -> list[Record]:
        table = self._table(number, is_columns=False)
        if table is None:  # damaged since its columns were read
            raise DamagedSegment(f"{self.path.name}: {self.damage[-1].reason}")
        names = own_names(self._description()[0])
        taken = table.take(pa.array(rows, pa.int64()))
        columns = [taken.column(name).to_pylist() for name in names]
        return [
            Record(offset, time, text, headers.encode(), body.encode())
            for offset, time, text, headers, body in zip(*columns, strict=True)
        ]

    def _table(self, number: int, *, is_columns: bool) -> pa.Table | None:
        """A row group: its offsets and attributes, or its records; None if it is damaged."""
        key = (self.path, number, is_columns)
        found = self._tables.find(key)
        if found is None:
            schema, groups = self._description()
            found = self._read_group(number, groups[number], schema, is_columns=is_columns)
            if found is not None:
                self._tables.keep(key, found)
        return found

    def _read_group(
        self, number: int, group: RowGroup, schema: Schema, *, is_columns: bool
    ) -> pa.Table | None:
        data = memoryview(self._disk.view(self.path))
        names = own_names(schema)
        if zlib.crc32(data[group.start : group.end]) != group.crc32:
            groups = self._description()[1]
            end = groups[number + 1].first if number + 1 < len(groups) else self.end
            found = Damage(self.path.name, group.first, end, f"row group {number} is damaged")
            if found not in self.damage:
                self.damage.append(found)
            return None
        columns = [names.offset, *column_names(schema)] if is_columns else list(names)
        file = pq.ParquetFile(pa.BufferReader(pa.py_buffer(data)))
        table = file.read_row_group(number, columns=columns, use_threads=False)
        if not is_columns:  # microseconds are what a record has
            at = table.column_names.index(names.time)
            table = table.set_column(at, names.time, table.column(at).cast(pa.int64()))
        return table.combine_chunks()

    def offset_at(self, time: int) -> int | None:
        """The first offset whose record came at a time or later."""
        schema, groups = self._description()
        names = own_names(schema)
        for number, group in enumerate(groups):
            if group.time < time:
                continue
            table = self._table(number, is_columns=False)
            if table is None:
                continue
            late = np.flatnonzero(table.column(names.time).to_numpy() >= time)
            if len(late):
                return int(table.column(names.offset)[int(late[0])].as_py())
        return None

    # --- ids

    @property
    def ids_path(self) -> Path:
        return self.path.with_name(ids_name(self.first, self.end))

    def ids(self) -> IdRun:
        """The run of its ids; it is made again if its file is missing or damaged."""
        if self._ids is None:
            found = None
            with suppress(FileNotFoundError):
                found = IdRun.decode(self._disk.view(self.ids_path))
            self._ids = self._ids_of_records() if found is None else found
        return self._ids

    def _ids_of_records(self) -> IdRun:
        schema, groups = self._description()
        names = own_names(schema)
        ids: list[str] = []
        offsets: list[int] = []
        for number in range(len(groups)):
            table = self._table(number, is_columns=False)
            if table is not None:
                ids += table.column(names.id).to_pylist()
                offsets += table.column(names.offset).to_pylist()
        given = [(one, offset) for one, offset in zip(ids, offsets, strict=True) if one]
        hashes = hashes_of([one for one, _ in given])
        return IdRun.of(self.first, hashes, np.array([o for _, o in given], np.int64))
