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
from collections.abc import Iterator, Sequence
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
from tamis.broker.log.disk import Disk
from tamis.broker.log.event_ids import IdRun, hashes_of
from tamis.broker.records import Record
from tamis.errors import TamisError
from tamis.schema import Schema

FORMAT = 1
SUFFIX = ".parquet"
IDS_SUFFIX = ".ids"
KEY = b"tamis"
FOOTER_BYTES = 1 << 16  # that are read first; few footers are longer
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


def footer_start(data: bytes) -> int:
    """Where the footer of a Parquet file begins in its last bytes; negative if not in them."""
    if len(data) < _TAIL.size:
        return -1
    length, _ = _TAIL.unpack_from(data, len(data) - _TAIL.size)
    return len(data) - _TAIL.size - int(length)


class _Pieces:
    """Parts of a file at their places, to be read like the file."""

    closed = False

    def __init__(self, size: int, pieces: dict[int, bytes]) -> None:
        self._size = size
        self._pieces = pieces
        self._position = 0

    def read(self, length: int) -> bytes:
        """Some bytes; those of no part are zeros."""
        at = self._position
        found = bytearray(max(0, min(length, self._size - at)))
        for start, data in self._pieces.items():
            low, high = max(at, start), min(at + len(found), start + len(data))
            if low < high:
                found[low - at : high - at] = memoryview(data)[low - start : high - start]
        self._position += len(found)
        return bytes(found)

    def seek(self, offset: int, whence: int = 0) -> int:
        self._position = offset + (0, self._position, self._size)[whence]
        return self._position

    def tell(self) -> int:
        return self._position

    def close(self) -> None:
        pass

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True


class SealedSegment:
    """A segment that can be read. `first` and `end` bound its offsets."""

    def __init__(self, disk: Disk, path: Path, groups: RowGroups) -> None:
        found = NAME.fullmatch(path.name)
        if found is None:
            raise DamagedSegment("its name is not that of a segment")
        self.path = path
        self.first, self.end = int(found[1]), int(found[2])
        self.damage: list[Damage] = []
        self.size = disk.size(path)
        self._disk = disk
        self._tables = groups
        self._ids: IdRun | None = None
        self._footer = self._read_footer(int(found[3], 16))
        try:
            meta = json.loads(pq.read_metadata(self._pieces(0, b"")).metadata[KEY])
            if meta["format"] != FORMAT:
                raise DamagedSegment(f"its format {meta['format']} is not known")
            self.schema = Schema(meta["schema"])  # with which its events were published
            self._groups = [RowGroup(**group) for group in meta["groups"]]
        except (pa.ArrowException, KeyError, TypeError, ValueError, TamisError) as error:
            raise DamagedSegment(f"its footer cannot be understood: {error}") from None
        self._names = own_names(self.schema)
        self.events = sum(group.rows for group in self._groups)
        self.last_time = self._groups[-1].time if self._groups else 0  # the latest one

    def _read_footer(self, crc32: int) -> bytes:
        """The footer, in memory: every row group is read with it."""
        length = FOOTER_BYTES
        while True:
            tail = self._disk.read(self.path, max(0, self.size - length), length)
            start = footer_start(tail)
            if start >= 0 or len(tail) == self.size:
                break
            length = self.size
        if start < 0 or zlib.crc32(tail[start:]) != crc32:
            raise DamagedSegment("the checksum of its footer is wrong: it was cut off, or changed")
        return tail[start:]

    def _pieces(self, start: int, data: bytes) -> pa.PythonFile:
        """The file, as far as it was read and its checksums were right."""
        footer = self.size - len(self._footer)
        return pa.PythonFile(_Pieces(self.size, {start: data, footer: self._footer}), "r")

    def _end_of(self, number: int) -> int:
        """The end of the offsets of a row group, with those that are lost after it."""
        return self._groups[number + 1].first if number + 1 < len(self._groups) else self.end

    # --- reading

    def read(self, start: int, stop: int, most_events: int, most_bytes: int) -> Chunk:
        """The events from `start` to before `stop` that are in one row group, or the first."""
        at = bisect_right(self._groups, start, key=lambda group: group.first) - 1
        for number in range(max(0, at), len(self._groups)):
            end = min(stop, self._end_of(number))
            table = self._table(number, is_columns=True)
            if table is not None:
                chunk = self._chunk(number, table, start, end, most_events, most_bytes)
                if len(chunk.offsets):
                    return chunk
            if end == stop:
                break
        return no_events(stop)

    def _chunk(
        self, number: int, table: pa.Table, start: int, stop: int, most_events: int,
        most_bytes: int,
    ) -> Chunk:  # fmt: skip
        group = self._groups[number]
        offsets = table.column(self._names.offset).to_numpy()
        low, high = (int(n) for n in np.searchsorted(offsets, (start, stop)))
        most = min(most_events, max(1, most_bytes * group.rows // max(1, group.bytes)))
        if high - low > most:
            high = low + most
            stop = int(offsets[high])

        def take(rows: Sequence[int]) -> list[Record]:
            return self._records(number, [low + row for row in rows])

        return Chunk(offsets[low:high], table.slice(low, high - low), stop, take)

    def _records(self, number: int, rows: Sequence[int]) -> list[Record]:
        table = self._table(number, is_columns=False)
        if table is None:
            raise DamagedSegment(f"{self.path.name} was damaged since it was read for matching")
        taken = table.take(pa.array(rows, pa.int64()))
        columns = [taken.column(name).to_pylist() for name in self._names]
        return [
            Record(offset, time, text, headers.encode(), body.encode())
            for offset, time, text, headers, body in zip(*columns, strict=True)
        ]

    def _table(self, number: int, *, is_columns: bool) -> pa.Table | None:
        """A row group: its offsets and attributes, or its records; None if it is damaged."""
        key = (self.path, number, is_columns)
        found = self._tables.find(key)
        if found is None:
            found = self._read_group(number, is_columns=is_columns)
            if found is not None:
                self._tables.keep(key, found)
        return found

    def _read_group(self, number: int, *, is_columns: bool) -> pa.Table | None:
        group, names = self._groups[number], self._names
        data = self._disk.read(self.path, group.start, group.end - group.start)
        if zlib.crc32(data) != group.crc32:
            reason = f"row group {number} is damaged"
            self._say(Damage(self.path.name, group.first, self._end_of(number), reason))
            return None
        columns = [names.offset, *column_names(self.schema)] if is_columns else list(names)
        file = pq.ParquetFile(self._pieces(group.start, data))
        table = file.read_row_group(number, columns=columns, use_threads=False)
        if not is_columns:  # microseconds are what a record has
            at = table.column_names.index(names.time)
            table = table.set_column(at, names.time, table.column(at).cast(pa.int64()))
        return table.combine_chunks()

    def _say(self, damage: Damage) -> None:
        if damage not in self.damage:
            self.damage.append(damage)

    def offset_at(self, time: int) -> int | None:
        """The first offset whose record came at a time or later."""
        names = self._names
        for number, group in enumerate(self._groups):
            table = self._table(number, is_columns=False) if group.time >= time else None
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

    def ids_at(self, offsets: Sequence[int]) -> Iterator[tuple[int, str]]:
        """The ids at some offsets, ascending; those that cannot be read are left out."""
        for offset in offsets:
            number = bisect_right(self._groups, offset, key=lambda group: group.first) - 1
            table = self._table(number, is_columns=False) if number >= 0 else None
            if table is not None:
                known = table.column(self._names.offset).chunk(0)
                row = int(np.searchsorted(known.to_numpy(), offset))
                if row < len(known) and known[row].as_py() == offset:
                    yield offset, table.column(self._names.id)[row].as_py()

    def ids(self) -> IdRun:
        """The run of its ids; it is made again if its file is missing or damaged."""
        if self._ids is None:
            found = None
            with suppress(FileNotFoundError):
                found = IdRun.decode(self._disk.view(self.ids_path))
                if found is None:
                    reason = "it is damaged; the ids were read from the segment"
                    self._say(Damage(self.ids_path.name, self.first, self.first, reason))
            self._ids = self._ids_of_records() if found is None else found
        return self._ids

    def _ids_of_records(self) -> IdRun:
        ids: list[str] = []
        offsets: list[int] = []
        for number in range(len(self._groups)):
            table = self._table(number, is_columns=False)
            if table is not None:
                ids += table.column(self._names.id).to_pylist()
                offsets += table.column(self._names.offset).to_pylist()
        given = [(one, offset) for one, offset in zip(ids, offsets, strict=True) if one]
        hashes = hashes_of([one for one, _ in given])
        return IdRun.of(self.first, hashes, np.array([o for _, o in given], np.int64))
