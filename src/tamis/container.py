"""One file of named arrays, memory-mapped: what ``rules.tamis`` is on disk.

::

    magic     8 bytes   TAMIS, CR LF, Ctrl-Z: a transfer in text mode damages them visibly
    version   u4        of this format
    header    u8        bytes of the JSON below
    total     u8        bytes of the whole file
    crc32     u4        of the four above and of the JSON
    JSON                {"meta": ..., "sections": [{"name": ..., "dtype": ..., "shape": ...,
                        "offset": ..., "length": ..., "crc32": ...}]}
    sections            at multiples of 64 bytes; offsets count from the first such place

Numbers are little-endian. Only magic and version are sure to stay where they are, so the version is
checked before anything that another format might have moved.

A file is never written to, only replaced by another: processes that have mapped the old one keep
it, and all that map one file share its pages. The checksum of a section is verified when the
section is first used, so opening takes the same time for any size of file.
"""

import hashlib
import json
import math
import mmap
import os
import stat
import struct
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.atomic_files import replacing
from tamis.errors import FileError

Array = np.ndarray[Any, Any]

MAGIC = b"TAMIS\r\n\x1a"
VERSION = 1  # what `write` writes
OLDEST = 1  # the oldest that `open_container` reads
ALIGNMENT = 64  # bytes: a cache line, and what Arrow recommends
MAX_HEADER = 16_000_000  # bytes; a header names sections and holds none of their data
DTYPES = frozenset({"u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f8"})

_START = struct.Struct("<8sI")  # magic, version
_LENGTHS = struct.Struct("<QQ")  # header, total
_SUM = struct.Struct("<I")
_BEFORE_JSON = _START.size + _LENGTHS.size + _SUM.size
_AGAIN = "copy it again, or save it again"


class Section(NamedTuple):
    """A section, as the header describes it."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    length: int
    crc32: int


# --- writing


def write(path: str | Path, meta: Mapping[str, Any], sections: Mapping[str, Any]) -> None:
    """Write a file, or replace one: afterwards the old or the new one is there, never a part.

    `meta` is anything that JSON can hold. A section is an array of one of the `DTYPES`, or anything
    with Python's buffer protocol (bytes, an Arrow buffer), which is kept as an array of u1.
    """
    arrays = {name: _plain(name, content) for name, content in sections.items()}
    start = _start(path, meta, arrays)
    try:
        target = Path(os.path.realpath(path))  # not a symbolic link, but the file that it points to
        with suppress(FileNotFoundError):
            _check_regular(f"{path} cannot be written: it", target.stat().st_mode)
        with replacing(target) as file:
            file.write(start)
            for array in arrays.values():
                file.write(b"\0" * _padding(file.tell()))
                file.write(array.data)
    except FileNotFoundError:
        raise FileError(f"{path} cannot be written: its folder does not exist") from None
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        raise _unusable(path, "written", error) from None
    trust(_fingerprint(start))


def _plain(name: str, content: Any) -> Array:
    """A section as an array that has the same bytes in memory as in the file."""
    array = content if isinstance(content, np.ndarray) else np.frombuffer(content, np.uint8)
    kind = array.dtype.str[1:]
    if kind not in DTYPES:
        raise TypeError(f"section {name!r} is an array of {array.dtype}, which cannot be stored")
    return np.asarray(array, f"<{kind}", order="C")


def _start(path: str | Path, meta: Mapping[str, Any], arrays: Mapping[str, Array]) -> bytes:
    """The bytes before the first section."""
    listed: list[Section] = []
    end = 0
    for name, array in arrays.items():
        offset = end + _padding(end)
        end = offset + array.nbytes
        kind, crc32 = array.dtype.str[1:], zlib.crc32(array.data)
        listed.append(Section(name, kind, array.shape, offset, array.nbytes, crc32))
    content = {"meta": dict(meta), "sections": [section._asdict() for section in listed]}
    header = json.dumps(content, separators=(",", ":")).encode()
    if len(header) > MAX_HEADER:
        raise FileError(
            f"{path} cannot be written: its header would have {len(header):,} bytes, "
            f"and at most {MAX_HEADER:,} are allowed"
        )
    base = _BEFORE_JSON + len(header)
    base += _padding(base)
    start = _START.pack(MAGIC, VERSION) + _LENGTHS.pack(len(header), base + end)
    start += _SUM.pack(zlib.crc32(header, zlib.crc32(start))) + header
    return start + b"\0" * (base - len(start))


def _padding(place: int) -> int:
    return -place % ALIGNMENT


# --- reading


class Container:
    """An open file: its `meta`, and its sections as arrays.

    The arrays lie in the mapped file and keep it mapped. If a program shortens the file in place,
    the system kills every process that touches an array; `write` never does that.
    """

    def __init__(
        self, path: Path, meta: Mapping[str, Any], sections: Mapping[str, Section], base: int,
        mapped: mmap.mmap, fingerprint: str,
    ) -> None:  # fmt: skip
        self.path = path
        self.fingerprint = fingerprint
        self.meta = meta
        self._sections = sections
        self._base = base  # where offsets count from
        self._mapped = mapped
        self._checked: dict[str, Array] = {}

    def array(self, name: str) -> Array:
        """A section; nothing is copied.

        Writing to it copies a page, and leaves the file as it is. (Read-only arrays would be
        another type for compiled kernels.)
        """
        known = self._checked.get(name)
        if known is not None:
            return known
        section = self._sections.get(name)
        if section is None:
            raise FileError(f"{self.path} has no section {name!r}")
        kind = np.dtype(f"<{section.dtype}")
        count = section.length // kind.itemsize
        array: Array = np.frombuffer(self._mapped, kind, count, self._base + section.offset)
        if zlib.crc32(array.data) != section.crc32:
            raise FileError(f"{self.path} is damaged in its section {name!r}; {_AGAIN}")
        self._checked[name] = array = array.reshape(section.shape)
        return array

    @property
    def is_trusted(self) -> bool:
        """Whether this process, or the job it belongs to, wrote the file."""
        return self.fingerprint in _trusted

    def __contains__(self, name: object) -> bool:
        return name in self._sections

    def __iter__(self) -> Iterator[str]:
        """The names of the sections."""
        return iter(self._sections)


def open_container(path: str | Path) -> Container:
    """Open a file that `write` has written; a `FileError` says what is wrong with it."""
    path = Path(path)
    try:
        _check_regular(
            str(path), path.stat().st_mode
        )  # before opening: a pipe would wait for a writer
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            start, base = _read_start(path, file, size)
            meta, sections = _read_sections(path, start[_BEFORE_JSON:], size - base)
            mapped = mmap.mmap(file.fileno(), size, access=mmap.ACCESS_COPY)
    except FileNotFoundError:
        raise FileError(f"{path} does not exist") from None
    except (OSError, ValueError) as error:  # ValueError: a null character, a file cut just now
        raise _unusable(path, "read", error) from None
    return Container(path, meta, sections, base, mapped, _fingerprint(start))


def _check_regular(what: str, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise FileError(f"{what} is a folder, expected a file")
    if not stat.S_ISREG(mode):
        raise FileError(f"{what} is not a regular file")


def _unusable(path: str | Path, done: str, error: OSError | ValueError) -> FileError:
    reason = getattr(error, "strerror", None) or error
    return FileError(f"{path} cannot be {done}: {reason}")


def _read_start(path: Path, file: BinaryIO, size: int) -> tuple[bytes, int]:
    """All up to the end of the JSON, and where the sections begin."""
    start = file.read(_BEFORE_JSON)
    if not start:
        raise FileError(f"{path} is empty")
    if not start.startswith(MAGIC[: len(start)]):
        if start.startswith(MAGIC[:5]):
            raise FileError(f"{path} was damaged by a transfer in text mode; {_AGAIN}")
        raise FileError(f"{path} is not a tamis rules file")
    if len(start) >= _START.size:
        _check_version(path, _START.unpack_from(start)[1])
    if len(start) < _BEFORE_JSON:
        raise FileError(f"{path}: the file ends after {size:,} bytes, in its header; {_AGAIN}")
    length, total = _LENGTHS.unpack_from(start, _START.size)
    base = _BEFORE_JSON + length
    base += _padding(base)
    if length > MAX_HEADER or total < base:
        raise _damaged(path)
    if size < total:
        raise FileError(f"{path}: the file ends after {size:,} of {total:,} bytes; {_AGAIN}")
    if size > total:
        raise FileError(f"{path} has {size:,} bytes, {total:,} were written; {_AGAIN}")
    header = file.read(length)
    (crc32,) = _SUM.unpack_from(start, _BEFORE_JSON - _SUM.size)
    if zlib.crc32(header, zlib.crc32(start[: -_SUM.size])) != crc32:
        raise _damaged(path)
    return start + header, base


def _check_version(path: Path, version: int) -> None:
    if version > VERSION:
        raise FileError(
            f"{path} was written by a newer tamis; format {version}, this one reads up to {VERSION}"
        )
    if version < OLDEST:
        raise FileError(
            f"{path} was written by an older tamis; format {version}, this one reads from {OLDEST} "
            "on; save it again from its subscriptions"
        )


def _damaged(path: Path) -> FileError:
    return FileError(f"{path} is damaged in its header; {_AGAIN}")


def _read_sections(
    path: Path, header: bytes, room: int
) -> tuple[dict[str, Any], dict[str, Section]]:
    """The contents of the header, checked: anyone can forge one whose checksum is right."""
    try:
        content = json.loads(header)
        meta, sections = content["meta"], [_section(entry) for entry in content["sections"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        raise _damaged(path) from None
    end = 0
    for section in sections:
        if section.offset < end:
            raise _damaged(path)
        end = section.offset + section.length
    found = {section.name: section for section in sections}
    if end > room or len(found) < len(sections) or not isinstance(meta, dict):
        raise _damaged(path)
    return meta, found


def _section(entry: Any) -> Section:
    """The section of an entry; a ValueError, KeyError or TypeError if it makes no sense."""
    name, dtype, shape = entry["name"], entry["dtype"], entry["shape"]
    numbers = [entry["offset"], entry["length"], entry["crc32"]]
    if not isinstance(name, str) or dtype not in DTYPES or len(shape) > 8:
        raise ValueError
    if not all(type(number) is int and number >= 0 for number in (*shape, *numbers)):
        raise ValueError
    section = Section(name, dtype, tuple(shape), *numbers)
    width = int(dtype[1])
    if section.offset % ALIGNMENT or math.prod(section.shape) * width != section.length:
        raise ValueError
    # numpy multiplies the sides of an array even if one of them is 0.
    if math.prod(max(side, 1) for side in section.shape) * width >= 2**63:
        raise ValueError
    return section


# --- files that this process or its job wrote

# The newest fingerprints last. A fingerprint stands for the whole content: it is made of the
# header, which has the checksums of all sections.
_trusted: dict[str, None] = {}
MOST_TRUSTED = 10_000


def trust(fingerprint: str) -> None:
    """Take files with this fingerprint for what `write` wrote: their arrays need no check."""
    _trusted[fingerprint] = None
    while len(_trusted) > MOST_TRUSTED:
        del _trusted[next(iter(_trusted))]


def fingerprint_of(path: str | Path) -> str:
    """The fingerprint of a file, for a process that is to trust it."""
    return open_container(path).fingerprint


def _fingerprint(start: bytes) -> str:
    """The fingerprint of a file, from all its bytes up to the end of the JSON."""
    length, _ = _LENGTHS.unpack_from(start, _START.size)
    return hashlib.sha256(start[: _BEFORE_JSON + length]).hexdigest()


# --- arrays that belong together

Get = Callable[[str], Array]  # a section by its name, as `Container.array` gives it


def text_buffers(column: pa.Array) -> tuple[Array, Array]:
    """The offsets of a column of strings and their bytes; the first offset need not be 0."""
    kind = np.dtype(np.int64 if column.type == pa.large_string() else np.int32)
    _, offsets, data = column.buffers()
    if len(column) == 0:  # Arrow may leave out even the one offset
        return np.zeros(1, kind), np.empty(0, np.uint8)
    found = np.frombuffer(offsets, kind, len(column) + 1, column.offset * kind.itemsize)
    return found, np.frombuffer(b"" if data is None else data, np.uint8)


def text_sections(name: str, column: pa.Array) -> dict[str, Array]:
    """A column of strings, without nulls, as two sections."""
    offsets, data = text_buffers(column)
    return {name: data[offsets[0] : offsets[-1]], f"{name}.offsets": offsets - offsets[0]}


def text_array(get: Get, name: str, count: int) -> pa.Array:
    """The column that `text_sections` was given; nothing is copied, and no text is read."""
    data = checked_array(get, name, ("u1",))
    offsets = checked_array(get, f"{name}.offsets", ("i4", "i8"), count + 1)
    if offsets[0] != 0 or offsets[-1] > len(data) or not (offsets[:-1] <= offsets[1:]).all():
        raise misfit(name)
    kind = pa.string() if offsets.dtype.itemsize == 4 else pa.large_string()
    return pa.Array.from_buffers(kind, count, [None, pa.py_buffer(offsets), pa.py_buffer(data)])


def checked_array(get: Get, name: str, dtypes: Iterable[str], size: int | None = None) -> Array:
    """A section with one dimension, one of some types and, if given, a size."""
    array = get(name)
    if array.dtype.str[1:] not in dtypes or array.ndim != 1 or size not in {None, len(array)}:
        raise misfit(name)
    return array


def misfit(name: str) -> FileError:
    """The error about sections that contradict each other, though their checksums are right."""
    return FileError(f"the parts of {name!r} do not fit together; save the file again")
