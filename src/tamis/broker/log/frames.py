r"""Frames: the records that were appended together, as bytes with a checksum.

::

    mark      8 bytes   FF "TAMIS" FE LF: never part of a text, so the next frame after a damaged
                        one is found by it
    length    u4        bytes of the payload
    count     u4        records; 0 for the first frame of a file, whose payload is a JSON object
    first     u8        offset of the first record
    crc32     u4        of the four above and of the payload
    payload             times i8[count]; lengths of ids, headers and bodies, u4[count] each; the
                        ids; the headers; the bodies, with a comma between two

Numbers are little-endian. The bodies, in brackets, are one JSON array: all events of a frame, or of
many, are decoded by one call.
"""

import json
import struct
import zlib
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any, NamedTuple

import numpy as np

from tamis.broker.log.disk import Bytes
from tamis.broker.records import Record

Array = np.ndarray[Any, Any]

MARK = b"\xffTAMIS\xfe\n"
MOST_PAYLOAD = 1 << 31  # bytes; a length beyond it is damage

_HEAD = struct.Struct("<8sIIQ")
_SUM = struct.Struct("<I")
HEAD_BYTES = _HEAD.size + _SUM.size


class NewRecord(NamedTuple):
    """A record that has no offset yet.

    `TopicLog.find_ids` finds an id that is not empty; the body is the text of one JSON object.
    """

    time: int  # microseconds since 1970
    id: str
    headers: bytes
    body: bytes


class Frame(NamedTuple):
    """An intact frame in some bytes."""

    start: int
    end: int
    first: int
    records: int  # how many


class Damaged(NamedTuple):
    """Bytes in which there is no intact frame."""

    start: int
    end: int


def encode(first: int, records: Sequence[NewRecord]) -> bytes:
    """The frame of some records, the first of which gets the offset `first`."""
    times, texts, headers, bodies = zip(*records, strict=True)
    ids = [text.encode() for text in texts]
    payload = b"".join(
        (
            np.array(times, "<i8").tobytes(),
            np.array([[len(one) for one in part] for part in (ids, headers, bodies)], "<u4").data,
            *ids,
            *headers,
            b",".join(bodies),
        )
    )
    return _frame(first, len(records), payload)


def encode_start(first: int, meta: Mapping[str, Any]) -> bytes:
    """The first frame of a file, which says what the file is."""
    return _frame(first, 0, json.dumps(meta, separators=(",", ":")).encode())


def _frame(first: int, count: int, payload: bytes) -> bytes:
    if len(payload) >= MOST_PAYLOAD:
        raise ValueError(f"a frame of {len(payload):,} bytes is too large; append fewer records")
    head = _HEAD.pack(MARK, len(payload), count, first)
    return b"".join((head, _SUM.pack(zlib.crc32(payload, zlib.crc32(head))), payload))


def find_frames(data: Bytes, position: int = 0) -> Iterator[Frame | Damaged]:
    """The frames of some bytes, and the places between them where there is none.

    A last frame that is not whole is damaged, too.
    """
    while position < len(data):
        frame = frame_at(data, position)
        if frame is None:
            start = position
            while frame is None and position < len(data):
                position = find_mark(data, position + 1)
                frame = frame_at(data, position)
            yield Damaged(start, position)
        if frame is not None:
            yield frame
            position = frame.end


def frame_at(data: Bytes, position: int) -> Frame | None:
    """The frame at a place, None if there is no whole and intact one."""
    start = position + HEAD_BYTES
    if start > len(data):
        return None
    mark, length, count, first = _HEAD.unpack_from(data, position)
    if mark != MARK or length > len(data) - start:
        return None
    view = memoryview(data)
    crc32 = zlib.crc32(view[start : start + length], zlib.crc32(view[position : start - 4]))
    if _SUM.unpack_from(data, start - 4)[0] != crc32:
        return None
    return Frame(position, start + length, first, count)


def times_of(data: Bytes, frame: Frame) -> Array:
    """The times of the records of a frame."""
    found: Array = np.frombuffer(data, "<i8", frame.records, frame.start + HEAD_BYTES)
    return found


def payload_length(data: Bytes, position: int) -> int | None:
    """The bytes that a frame says its payload has, if there is the head of a frame."""
    if position + HEAD_BYTES > len(data):
        return None
    mark, length, _, _ = _HEAD.unpack_from(data, position)
    return length if mark == MARK and length < MOST_PAYLOAD else None


def find_mark(data: Bytes, position: int) -> int:
    """Where the next mark is, or the end."""
    step = 1 << 20
    while position < len(data):
        part = bytes(data[position : position + step + len(MARK) - 1])
        found = part.find(MARK)
        if found >= 0:
            return position + found
        position += step
    return len(data)


def meta_of(data: Bytes, frame: Frame) -> dict[str, Any] | None:
    """The JSON object in the first frame of a file; None if that has none."""
    try:
        found = json.loads(bytes(data[frame.start + HEAD_BYTES : frame.end]))
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


class FrameRecords:
    """The records of a frame: where they are in its payload."""

    def __init__(self, data: bytes, frame: Frame) -> None:
        self.first = frame.first
        self.count = frame.records
        self._data = data
        self._start = frame.start + HEAD_BYTES
        self._places: tuple[list[int], list[int], list[int]] | None = None

    @property
    def times(self) -> Array:
        """When the records came."""
        found: Array = np.frombuffer(self._data, "<i8", self.count, self._start)
        return found

    def _bounds(self) -> tuple[list[int], list[int], list[int]]:
        """Where each id, header and body begins, and at the end where the last one ends.

        A body is followed by a comma, the last one by where a comma would be.
        """
        # Not with numpy: frames of one record are many, and each would wait for ten calls of it.
        if self._places is None:
            count, start = self.count, self._start
            lengths = np.frombuffer(self._data, "<u4", 3 * count, start + 8 * count).tolist()
            ids = list(accumulate(lengths[:count], initial=start + 20 * count))
            headers = list(accumulate(lengths[count : 2 * count], initial=ids[-1]))
            with_commas = [length + 1 for length in lengths[2 * count :]]
            self._places = ids, headers, list(accumulate(with_commas, initial=headers[-1]))
        return self._places

    def ids(self) -> list[str]:
        """The ids, in the order of the records."""
        data = self._data
        return [data[a:b].decode() for a, b in pairwise(self._bounds()[0])]

    def bodies(self, start: int, stop: int) -> bytes:
        """The bodies of some records, with commas between them."""
        places = self._bounds()[2]
        return self._data[places[start] : places[stop] - 1]

    def body_bytes(self, start: int, stop: int) -> int:
        """How many bytes the bodies of some records have."""
        places = self._bounds()[2]
        return places[stop] - places[start] - (stop - start)

    def fitting(self, start: int, stop: int, most_bytes: int) -> int:
        """Where to stop so that the bodies from `start` on have no more bytes than that."""
        if self.body_bytes(start, stop) <= most_bytes:
            return stop
        ends = range(start + 1, stop + 1)
        return start + bisect_right(ends, most_bytes, key=lambda n: self.body_bytes(start, n))

    def records(self, rows: Sequence[int]) -> list[Record]:
        """Some records, by their numbers in the frame."""
        ids, headers, bodies = self._bounds()
        data, first, times = self._data, self.first, self.times
        some = times[rows.start : rows.stop] if isinstance(rows, range) else times[rows]
        return [
            Record(
                first + n,
                time,
                data[ids[n] : ids[n + 1]].decode(),
                data[headers[n] : headers[n + 1]],
                data[bodies[n] : bodies[n + 1] - 1],
            )
            for n, time in zip(rows, some.tolist(), strict=True)
        ]
