"""Two numbers beside the files of a log, each in a file of 20 bytes with a checksum.

``synced.mark`` is written after each sync, in place, and is not synced itself. So it is a lower
bound of what was acknowledged: after `kill -9` the exact one, after a power failure one that may be
some seconds old. A log that ends before it has lost something, even if it was cut off between two
frames.

``first.mark`` is the offset before which everything has expired. It is replaced and synced before
files are removed, so a file that is missing from it on is missing.
"""

import struct
import zlib
from contextlib import suppress
from pathlib import Path

from tamis.broker.log.disk import Disk

SYNCED = "synced.mark"
FIRST = "first.mark"
TEMPORARY = ".tmp"

_MAGIC = b"TAMIS-M\n"
_NUMBER = struct.Struct("<8sQ")
_SUM = struct.Struct("<I")


class DamagedMark(Exception):
    """A mark that cannot be read."""


def read_mark(disk: Disk, folder: Path, name: str) -> int | None:
    """The number of a mark, None if there is none."""
    try:
        data = disk.read(folder / name, 0, _NUMBER.size + _SUM.size)
    except FileNotFoundError:
        return None
    if len(data) < _NUMBER.size + _SUM.size:
        raise DamagedMark
    magic, number = _NUMBER.unpack_from(data)
    if magic != _MAGIC or _SUM.unpack_from(data, _NUMBER.size)[0] != _crc32(data):
        raise DamagedMark
    return int(number)


def _crc32(data: bytes) -> int:
    return zlib.crc32(data[: _NUMBER.size])


def _encoded(number: int) -> bytes:
    data = _NUMBER.pack(_MAGIC, number)
    return data + _SUM.pack(_crc32(data))


def write_synced_mark(disk: Disk, folder: Path, number: int) -> None:
    """Write ``synced.mark``, without waiting for the disk; that it fails does no harm."""
    path = folder / SYNCED
    with suppress(OSError):
        try:
            disk.write(path, 0, _encoded(number))
        except FileNotFoundError:
            disk.create(path)
            disk.write(path, 0, _encoded(number))


def write_first_mark(disk: Disk, folder: Path, number: int) -> None:
    """Replace ``first.mark``; it is safe afterwards."""
    temporary = folder / f"{FIRST}{TEMPORARY}"
    with suppress(FileNotFoundError):
        disk.remove(temporary)
    disk.create(temporary)
    disk.write(temporary, 0, _encoded(number))
    disk.sync(temporary)
    disk.rename(temporary, folder / FIRST)
    disk.sync_folder(folder)
