"""Which offset an event id has: hashes of ids, sorted, in runs.

A run has the hashes of many ids with their offsets, and one bit for each of many ranges of hashes
that says whether there is any in it: most ids that are not in the log are found not to be by that
bit alone. A hash that is found proves nothing; the log compares the id of the record. The ids of a
sealed segment are a run in a file of its own, ``NNN-NNN.ids``, which can be made again from the
segment::

    magic     8 bytes
    count     u8
    first     u8        the first offset of the segment
    crc32     u4        of everything after it, and of the three above
    padding   4 bytes   zeros
    bits      u1[]      2 ** k bits, with k so that there are from 16 to 32 per id
    hashes    u8[count] ascending
    places    u4[count] offsets after the first one
"""

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np

from tamis.broker.log.disk import Bytes

Array = np.ndarray[Any, Any]

MOST_LATEST = 4096  # ids in a dict before they become a run
MOST_RUNS = 6  # runs in memory before they become one

_MAGIC = b"TAMIS-I\n"
_HEAD = struct.Struct("<8sQQ")
_SUM = struct.Struct("<II")  # the second is the padding


def hashes_of(ids: Sequence[str]) -> Array:
    """64 bits for each id."""
    digests = b"".join([blake2b(one.encode(), digest_size=8).digest() for one in ids])
    found: Array = np.frombuffer(digests, "<u8")
    return found


class IdRun:
    """Hashes of ids with their offsets."""

    def __init__(self, first: int, bits: Array, hashes: Array, places: Array) -> None:
        self.first = first
        self._bits = bits
        self._hashes = hashes
        self._places = places
        self._shift = np.uint64(64 - (len(bits) * 8).bit_length() + 1)

    @classmethod
    def of(cls, first: int, hashes: Array, offsets: Array) -> "IdRun":
        """A run of hashes in any order."""
        order = np.argsort(hashes, kind="stable")
        size = max(3, (16 * len(hashes) - 1).bit_length())
        flags = np.zeros(1 << size, bool)
        hashes = hashes[order]
        flags[hashes >> np.uint64(64 - size)] = True
        bits = np.packbits(flags, bitorder="little")
        return cls(first, bits, hashes, (offsets[order] - first).astype("<u4"))

    def __len__(self) -> int:
        return len(self._hashes)

    @property
    def hashes(self) -> Array:
        return self._hashes

    @property
    def offsets(self) -> Array:
        return self._places.astype(np.int64) + self.first

    def candidates(self, hashes: Array) -> Iterator[tuple[int, int]]:
        """(number, offset) of each of these hashes that is in the run, once for each offset."""
        places = hashes >> self._shift
        flags = self._bits[places >> np.uint64(3)] >> (places & np.uint64(7)).astype(np.uint8)
        for number in np.flatnonzero(flags & np.uint8(1)).tolist():
            at = int(np.searchsorted(self._hashes, hashes[number]))
            while at < len(self._hashes) and self._hashes[at] == hashes[number]:
                yield number, int(self._places[at]) + self.first
                at += 1

    def encode(self) -> bytes:
        """The run as the bytes of a file."""
        head = _HEAD.pack(_MAGIC, len(self), self.first)
        body = self._bits.tobytes() + self._hashes.tobytes() + self._places.tobytes()
        return head + _SUM.pack(zlib.crc32(body, zlib.crc32(head)), 0) + body

    @classmethod
    def decode(cls, data: Bytes) -> "IdRun | None":
        """The run of a file, None if it is damaged."""
        start = _HEAD.size + _SUM.size
        if len(data) < start:
            return None
        magic, count, first = _HEAD.unpack_from(data)
        size = len(data) - start - 12 * count
        if magic != _MAGIC or size < 1 or size & (size - 1):
            return None
        head, body = memoryview(data)[: _HEAD.size], memoryview(data)[start:]
        if _SUM.unpack_from(data, _HEAD.size) != (zlib.crc32(body, zlib.crc32(head)), 0):
            return None
        bits = np.frombuffer(body, np.uint8, size)
        hashes = np.frombuffer(body[size:], "<u8", count)
        return cls(first, bits, hashes, np.frombuffer(body[size + 8 * count :], "<u4", count))


class RecentIds:
    """The ids of what is not sealed yet, in memory: 18 bytes each, and the last ones in a dict."""

    def __init__(self) -> None:
        self._latest: dict[str, list[int]] = {}  # of each id all offsets: one may go
        self._runs: list[IdRun] = []

    def add(self, first: int, ids: Iterable[str]) -> None:
        """Add the ids of records that follow each other; an empty text is not an id."""
        latest = self._latest
        for offset, one in enumerate(ids, first):
            if one:
                latest.setdefault(one, []).append(offset)
        if len(latest) > MOST_LATEST:
            self._latest = {}
            pairs = [(one, at) for one, offsets in latest.items() for at in offsets]
            hashes = hashes_of([one for one, _ in pairs])
            self._add_run(hashes, np.array([at for _, at in pairs], np.int64))

    def _add_run(self, hashes: Array, offsets: Array) -> None:
        if len(self._runs) >= MOST_RUNS:  # the younger half becomes one, as large as an older one
            small = sorted(self._runs, key=len)[: MOST_RUNS // 2 + 1]
            self._runs = [run for run in self._runs if not any(run is one for one in small)]
            hashes = np.concatenate([hashes, *(run.hashes for run in small)])
            offsets = np.concatenate([offsets, *(run.offsets for run in small)])
        if len(hashes):
            self._runs.append(IdRun.of(int(offsets.min()), hashes, offsets))

    def keep_between(self, first: int, end: int) -> None:
        """Forget the ids of other offsets: they were sealed, or could not be synced."""
        latest = self._latest.items()
        kept = {one: [at for at in offsets if first <= at < end] for one, offsets in latest}
        self._latest = {one: offsets for one, offsets in kept.items() if offsets}
        runs, self._runs = self._runs, []
        for run in runs:
            offsets = run.offsets
            inside = (offsets >= first) & (offsets < end)
            self._add_run(run.hashes[inside], offsets[inside])

    def latest(self, one: str) -> int | None:
        """The offset of an id, if it is one of the last."""
        offsets = self._latest.get(one)
        return offsets[0] if offsets else None

    def runs(self) -> Sequence[IdRun]:
        """The runs of all others."""
        return tuple(self._runs)
