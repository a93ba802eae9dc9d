"""A file of frames: what was appended since the last segment was sealed.

``NNN.frames``, with the offset of its first record in 20 digits. Its first frame is a JSON object::

    {"format": 1, "after": N, "schema": {"price": "double", ...}}

All events of a file were published with its schema. `after` is where the file before it ended when
this one was begun. Frames of that file from there on do not count: they were written and could not
be synced. Where it ends earlier, something was lost.

Only the process that has made a file appends to it. After a restart a new one is begun, so nothing
that was found damaged is ever overwritten.
"""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.broker.log.chunk import Chunk, no_events
from tamis.broker.log.columns import own_names
from tamis.broker.log.damage import Damage
from tamis.broker.log.disk import Disk
from tamis.broker.log.event_decoder import EventDecoder
from tamis.broker.log.frames import (
    HEAD_BYTES,
    MARK,
    Damaged,
    Frame,
    FrameRecords,
    NewRecord,
    encode,
    encode_start,
    find_frames,
    find_mark,
    meta_of,
    payload_length,
    times_of,
)
from tamis.broker.records import Record
from tamis.errors import SchemaError
from tamis.schema import Schema

FORMAT = 1
SUFFIX = ".frames"
INDEX_STEP = 1 << 16  # bytes between two entries of the index in memory
BLOCK = 1 << 18  # bytes that are read at once


class IndexEntry(NamedTuple):
    """A frame that reading can begin at."""

    offset: int
    position: int
    before: int  # the latest time of all records before it


class Span(NamedTuple):
    """Some records of one frame."""

    records: FrameRecords
    start: int
    stop: int


class ActiveFile:
    """A file of frames: the one that is written, or one that waits to be sealed.

    `first` and `end` bound its offsets, `size` its intact bytes.
    """

    def __init__(self, disk: Disk, path: Path, first: int, decoder: EventDecoder) -> None:
        self.path = path
        self.first = self.end = first
        self.after = first
        self.events = 0
        self.size = 0
        self.torn = 0  # bytes after the last intact frame, when it was found
        self.first_time: int | None = None
        self.last_time = 0  # the latest one
        self.decoder = decoder
        self.damage: list[Damage] = []
        self.is_damaged = False  # something that it once had is lost
        self._disk = disk
        self._index: list[IndexEntry] = []

    @staticmethod
    def path_of(folder: Path, first: int) -> Path:
        return folder / f"{first:020d}{SUFFIX}"

    # --- writing

    @classmethod
    def begin(
        cls, disk: Disk, folder: Path, first: int, after: int, decoder: EventDecoder
    ) -> "ActiveFile":
        """A new file, with its first frame; after an error there is none.

        If it says that records before it do not count, that is made safe before it has any: a crash
        that spared these records and others in it, but not what it says, would show both.
        """
        path = cls.path_of(folder, first)
        file = cls(disk, path, first, decoder)
        schema = {a.name: str(a) for a in decoder.schema.attributes}
        start = encode_start(first, {"format": FORMAT, "after": after, "schema": schema})
        try:
            disk.create(path)
        except FileExistsError:  # it could not be removed after an error; nothing in it counts
            disk.remove(path)
            disk.create(path)
        try:
            disk.write(path, 0, start)
            if after < first:
                disk.sync(path)
        except OSError:
            with suppress(OSError):
                disk.remove(path)
            raise
        file.after, file.size = after, len(start)
        return file

    def append(self, records: Sequence[NewRecord]) -> None:
        """Write records as one frame; after an error nothing has changed."""
        data = encode(self.end, records)
        try:
            self._disk.write(self.path, self.size, data)
        except OSError:
            # What was written of it is not part of the file, whose size is known. It is given
            # back because the disk is probably full.
            with suppress(OSError):
                self._disk.truncate(self.path, self.size)
            raise
        times = [record.time for record in records]
        self._add(Frame(self.size, self.size + len(data), self.end, len(records)), times)

    def _add(self, frame: Frame, times: Sequence[int]) -> None:
        if not self._index or frame.start >= self._index[-1].position + INDEX_STEP:
            self._index.append(IndexEntry(frame.first, frame.start, self.last_time))
        if self.first_time is None:
            self.first_time = times[0]
        self.last_time = max((self.last_time, *times))
        self.events += frame.records
        self.end, self.size = frame.first + frame.records, frame.end

    def write_again(self, synced: int) -> None:
        """Write what was found from an offset on once more, and sync it.

        A sync alone would not do: after one that failed, the system shows what it has lost.
        """
        number = bisect_right(self._index, synced, key=lambda entry: entry.offset) - 1
        position = 0 if number < 1 else self._index[number].position
        data = self._disk.read(self.path, position, self.size - position)
        self._disk.write(self.path, position, data)
        self._disk.sync(self.path)

    def cut(self, end: int) -> None:
        """Leave out the records from an offset on: they could not be synced."""
        kept = [entry for entry in self._index if entry.offset < end]
        self.events -= max(0, self.end - max(end, self.first))
        self._index, self.end = kept, max(self.first, min(self.end, end))

    # --- recovering

    @classmethod
    def recover(cls, disk: Disk, path: Path, first: int, decoder: EventDecoder) -> "ActiveFile":
        """A file as it is found; `damage` says what could not be read in it."""
        file = cls(disk, path, first, decoder)
        data = disk.read(path, 0, disk.size(path))
        found = list(find_frames(data))
        if found and isinstance(found[0], Frame) and found[0].records == 0:
            file._take_start(meta_of(data, found[0]))
            file.size = found[0].end
        elif len(found) > 1:
            file._damaged(first, first, "its first frame, with its schema, is damaged")
        for one in found:
            if isinstance(one, Damaged):
                file.torn = one.end - one.start
            elif one.records and one.first >= file.end:
                if one.first > file.end:
                    reason = "a frame cannot be read" if file.torn else "frames are missing"
                    file._damaged(file.end, one.first, reason)
                file._add(one, times_of(data, one).tolist())
                file.torn = 0
        return file

    def _take_start(self, meta: dict[str, Any] | None) -> None:
        try:
            if meta is None or meta["format"] != FORMAT:
                raise KeyError
            schema = Schema(meta["schema"])
            self.after = min(int(meta["after"]), self.first)
        except (KeyError, TypeError, ValueError, SchemaError):
            self._damaged(self.first, self.first, "its first frame is of an unknown format")
            return
        if schema != self.decoder.schema:
            self.decoder = EventDecoder(schema)

    def _damaged(self, first: int, end: int, reason: str) -> None:
        self.damage.append(Damage(self.path.name, first, end, reason))
        self.is_damaged = True

    # --- reading

    def read(self, start: int, stop: int, most_events: int, most_bytes: int) -> Chunk:
        """The events from `start` to before `stop`, or the first of them."""
        spans: list[Span] = []
        events = size = 0
        next_offset = stop
        for records in self._frames(start):
            begin = max(0, start - records.first)
            end = min(records.count, stop - records.first, begin + most_events - events)
            if begin < end:
                fits = records.fitting(begin, end, most_bytes - size)
                end = max(fits, begin if spans else begin + 1)
            if begin < end:
                spans.append(Span(records, begin, end))
                events += end - begin
                size += records.body_bytes(begin, end)
            if end < records.count:
                next_offset = min(stop, records.first + max(begin, end))
                break
        return self._chunk(spans, next_offset)

    def _chunk(self, spans: list[Span], next_offset: int) -> Chunk:
        if not spans:
            return no_events(next_offset)
        offsets = np.concatenate(
            [np.arange(s.records.first + s.start, s.records.first + s.stop) for s in spans]
        )
        decoded = self.decoder.decode(
            b",".join([s.records.bodies(s.start, s.stop) for s in spans]),
            len(offsets),
            lambda: [r.body for s in spans for r in s.records.records(range(s.start, s.stop))],
        )
        if decoded.bad:
            for row in decoded.bad:
                offset = int(offsets[row])
                self._damaged(offset, offset + 1, "an event does not fit the schema")
            offsets = np.delete(offsets, decoded.bad)
        names = own_names(self.decoder.schema)
        table = pa.table({names.offset: pa.array(offsets), **decoded.columns})
        return Chunk(offsets, table, next_offset, _Taker(spans, offsets))

    def _frames(self, start: int) -> Iterator[FrameRecords]:
        """The frames from the one with an offset on."""
        number = bisect_right(self._index, start, key=lambda entry: entry.offset) - 1
        position = self._index[max(number, 0)].position if self._index else self.size
        size, end = self.size, self.end
        length = BLOCK
        while position < size:
            data = self._disk.read(self.path, position, min(length, size - position))
            length, done = BLOCK, 0
            is_last = position + len(data) >= size
            for one in find_frames(data):
                if isinstance(one, Damaged):
                    continue
                done = one.end
                if one.first >= end:
                    return
                if one.records and one.first + one.records > start:
                    yield FrameRecords(data, one)
            if is_last:
                return
            if done == 0:
                claimed = (payload_length(data, 0) or 0) + HEAD_BYTES
                if claimed > len(data):  # a frame that is larger than a block
                    length = claimed
                else:  # damage, and perhaps the beginning of a frame after it
                    done = min(find_mark(data, 1), len(data) - len(MARK) + 1)
            position += done

    def frames(self) -> Iterator[FrameRecords]:
        """All its frames with records."""
        return self._frames(self.first)

    def ids_at(self, offsets: Sequence[int]) -> Iterator[tuple[int, str]]:
        """The ids at some offsets, ascending; those that cannot be read are left out."""
        frame: FrameRecords | None = None
        for offset in offsets:
            if frame is None or offset >= frame.first + frame.count:
                frame = next(self._frames(offset), None)
            if frame is not None and offset >= frame.first:
                at = offset - frame.first
                yield offset, frame.records([at])[0].id

    def offset_at(self, time: int) -> int | None:
        """The first offset whose record came at a time or later."""
        if time > self.last_time:
            return None
        number = bisect_right(self._index, time - 1, key=lambda entry: entry.before) - 1
        for records in self._frames(self._index[max(number, 0)].offset):
            late = np.flatnonzero(records.times >= time)
            if len(late):
                return records.first + int(late[0])
        return None


class _Taker:
    """The records of rows of a chunk."""

    def __init__(self, spans: list[Span], offsets: Any) -> None:
        self._spans = spans
        self._offsets = offsets
        self._firsts = np.array([span.records.first for span in spans], np.int64)
        # Where an event did not fit the schema.
        self._has_gaps = sum(span.stop - span.start for span in spans) > len(offsets)

    def __call__(self, rows: Sequence[int]) -> list[Record]:
        if len(rows) == len(self._offsets) and rows == range(len(rows)) and not self._has_gaps:
            return [r for s in self._spans for r in s.records.records(range(s.start, s.stop))]
        offsets = self._offsets[np.asarray(rows, np.int64)]
        spans = np.searchsorted(self._firsts, offsets, "right") - 1
        numbers = (offsets - self._firsts[spans]).tolist()
        ends = [*(np.flatnonzero(np.diff(spans)) + 1).tolist(), len(numbers)]
        found: list[Record] = []
        begin = 0
        for end in ends if numbers else ():
            found += self._spans[spans[begin]].records.records(numbers[begin:end])
            begin = end
        return found
