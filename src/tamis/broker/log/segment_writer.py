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
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from tamis.broker.log.active_file import ActiveFile, Span
from tamis.broker.log.columns import MOMENT, arrow_schema, own_names
from tamis.broker.log.disk import Bytes, Disk
from tamis.broker.log.event_decoder import EventDecoder
from tamis.broker.log.event_ids import IdRun, hashes_of
from tamis.broker.log.marks import TEMPORARY
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
    """Write the segment of the offsets from `first` to before `end`; the path it has then.

    The files follow each other and have one schema.
    """
    temporary = folder / f"{first:020d}-{end:020d}{TEMPORARY}"
    with suppress(FileNotFoundError):
        disk.remove(temporary)
    try:
        writer = _SegmentWriter(_Output(disk, temporary), files[0].decoder)
        for spans in _groups(files):
            writer.write(spans)
        crc32 = writer.finish()
        disk.sync(temporary)
        _write_ids(disk, folder / ids_name(first, end), writer.ids(first))
        path = folder / segment_name(first, end, crc32)
        disk.rename(temporary, path)
    except BaseException:  # whatever ends it, nothing is left behind
        with suppress(OSError):
            disk.remove(temporary)
        raise
    disk.sync_folder(folder)
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
            size += int(records.body_lengths[start:stop].sum(dtype=np.int64))
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
        self._names = own_names(decoder.schema)
        self._schema = arrow_schema(decoder.schema)
        self._writer = pq.ParquetWriter(
            pa.PythonFile(output, "w"), self._schema, compression="zstd", compression_level=1
        )
        self._groups: list[RowGroup] = []
        self._time = 0
        self._ids: list[str] = []
        self._offsets: list[int] = []

    def write(self, spans: Sequence[Span]) -> None:
        """Write a row group."""
        records = [record for s in spans for record in s.records.records(s.start, s.stop)]
        decoded = self._decoder.decode(
            b",".join([r.body for r in records]), len(records), lambda: [r.body for r in records]
        )
        for row in reversed(decoded.bad):
            del records[row]
        if not records:
            return
        offsets, times, ids, headers, bodies = zip(*records, strict=True)
        own: dict[str, Any] = {
            self._names.offset: pa.array(offsets, pa.int64()),
            self._names.time: pa.array(times, pa.int64()).cast(MOMENT),
            self._names.id: pa.array(ids, pa.large_string()),
            self._names.headers: pa.array(headers, pa.large_binary()).cast(pa.large_string()),
            self._names.body: pa.array(bodies, pa.large_binary()).cast(pa.large_string()),
        }
        table = pa.table({**own, **decoded.columns}, schema=self._schema)
        start = self._groups[-1].end if self._groups else 0
        self._writer.write_table(table, row_group_size=len(records))
        self._time = max(self._time, *times)
        size = sum(map(len, bodies))
        crc32, end = self._output.take_crc32(), self._output.position
        self._groups.append(RowGroup(offsets[0], len(records), start, end, crc32, self._time, size))
        given = [record for record in records if record.id]
        self._ids += [record.id for record in given]
        self._offsets += [record.offset for record in given]

    def finish(self) -> int:
        """Write the footer; its checksum."""
        meta = {
            "format": FORMAT,
            "schema": {a.name: str(a) for a in self._decoder.schema.attributes},
            "groups": [group._asdict() for group in self._groups],
        }
        self._writer.add_key_value_metadata({KEY: json.dumps(meta, separators=(",", ":"))})
        self._writer.close()
        return self._output.take_crc32()

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
        self._crc32 = 0
        disk.create(path)

    def write(self, data: Bytes) -> int:
        data = bytes(data)
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
