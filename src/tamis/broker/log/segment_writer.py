"""Sealing: files of frames become one Parquet file, or nothing has happened.

The new file is written under a temporary name and synced, gets its name, and the folder is synced;
only then may the files of frames be removed. A crash in between leaves a temporary file, or a
segment beside the files that it replaces; both are cleaned up when the log is opened.
"""

import json
import zlib
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tamis.broker.log.active_file import ActiveFile, Span
from tamis.broker.log.columns import arrow_schema
from tamis.broker.log.disk import Bytes, Disk
from tamis.broker.log.event_decoder import EventDecoder
from tamis.broker.log.event_ids import IdRun, hashes_of
from tamis.broker.log.marks import TEMPORARY
from tamis.broker.log.record_table import record_table
from tamis.broker.log.sealed_segment import (
    FORMAT,
    KEY,
    RowGroup,
    ids_name,
    segment_name,
)

GROUP_EVENTS = 16_384
GROUP_BYTES = 8_000_000  # of bodies


def seal(disk: Disk, folder: Path, files: Sequence[ActiveFile], first: int, end: int) -> Path:
    """Write the segment of the offsets from `first` to before `end`; returns its path.

    The files follow each other and have one schema.
    """
    temporary = folder / f"{first:020d}-{end:020d}{TEMPORARY}"
    with suppress(FileNotFoundError):
        disk.remove(temporary)
    disk.create(temporary)
    output = _Output(disk, temporary)
    writer = _SegmentWriter(output, files[0].decoder)
    try:
        for spans in _groups(files):
            writer.write(spans)
        crc32 = writer.finish()
        disk.sync(temporary)
        _write_ids(disk, folder / ids_name(first, end), writer.ids(first))
        path = folder / segment_name(first, end, crc32)
        disk.rename(temporary, path)
    except BaseException:  # whatever ends it, nothing is left behind
        output.is_abandoned = True
        writer.close()
        with suppress(OSError):
            disk.remove(temporary)
        raise
    try:
        disk.sync_folder(folder)
    except OSError:  # the files that it replaces stay
        with suppress(OSError):
            disk.remove(path)
        raise
    return path


def _write_ids(disk: Disk, path: Path, run: IdRun) -> None:
    with suppress(FileNotFoundError):
        disk.remove(path)
    disk.create(path)
    disk.write(path, 0, run.encode())
    disk.sync(path)


def _groups(files: Sequence[ActiveFile]) -> Iterator[list[Span]]:
    """The records of files in parts of the size of a row group."""
    group: list[Span] = []
    events = size = 0
    for records in (one for file in files for one in file.frames()):
        start = 0
        while start < records.count:
            stop = min(records.count, start + GROUP_EVENTS - events)
            group.append(Span(records, start, stop))
            events += stop - start
            size += records.body_bytes(start, stop)
            start = stop
            if events >= GROUP_EVENTS or size >= GROUP_BYTES:
                yield group
                group, events, size = [], 0, 0
    if group:
        yield group


class _SegmentWriter:
    """Writes row groups and remembers what the metadata says about them."""

    def __init__(self, output: "_Output", decoder: EventDecoder) -> None:
        self._output = output
        self._decoder = decoder
        self._writer = pq.ParquetWriter(
            pa.PythonFile(output, "w"),
            arrow_schema(decoder.schema),
            compression="zstd",
            compression_level=1,
        )
        self._groups: list[RowGroup] = []
        self._time = 0
        self._ids: list[str] = []
        self._offsets: list[int] = []

    def write(self, spans: Sequence[Span]) -> None:
        """Write a row group."""
        given = [record for s in spans for record in s.records.records(range(s.start, s.stop))]
        table, records = record_table(given, self._decoder)
        if not records:
            return
        start = self._groups[-1].end if self._groups else 0
        self._writer.write_table(table, row_group_size=len(records))
        self._time = max(self._time, *(record.time for record in records))
        size = sum(len(record.body) for record in records)
        crc32, end = self._output.take_crc32(), self._output.position
        first = records[0].offset
        self._groups.append(RowGroup(first, len(records), start, end, crc32, self._time, size))
        with_ids = [record for record in records if record.id]
        self._ids += [record.id for record in with_ids]
        self._offsets += [record.offset for record in with_ids]

    def finish(self) -> int:
        """Write the footer; returns its checksum."""
        meta = {
            "format": FORMAT,
            "schema": {a.name: str(a) for a in self._decoder.schema.attributes},
            "groups": [group._asdict() for group in self._groups],
        }
        self._output.take_crc32()  # of the first bytes, if there is no row group
        self._writer.add_key_value_metadata({KEY: json.dumps(meta, separators=(",", ":"))})
        self._writer.close()
        return self._output.take_crc32()

    def close(self) -> None:
        """Let go of what was not finished."""
        with suppress(pa.ArrowException, OSError):
            self._writer.close()

    def ids(self, first: int) -> IdRun:
        """The run of all ids."""
        return IdRun.of(first, hashes_of(self._ids), np.array(self._offsets, np.int64))


class _Output:
    """A file of a disk, as Parquet's writer wants one; knows the checksum of what was written."""

    closed = False

    def __init__(self, disk: Disk, path: Path) -> None:
        self._disk = disk
        self._path = path
        self.position = 0
        self.is_abandoned = False  # what is still written goes nowhere
        self._crc32 = 0

    def write(self, data: Bytes) -> int:
        data = bytes(data)
        if not self.is_abandoned:
            self._disk.write(self._path, self.position, data)
        self.position += len(data)
        self._crc32 = zlib.crc32(data, self._crc32)
        return len(data)

    def take_crc32(self) -> int:
        """The checksum of what was written since the last call."""
        found, self._crc32 = self._crc32, 0
        return found

    def tell(self) -> int:
        return self.position

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass

    def readable(self) -> bool:
        return False

    def writable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return False
