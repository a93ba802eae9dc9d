"""The text of files, line by line, compressed or not."""

import bz2
import gzip
import io
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

from tamis.errors import FileError

LINES = 16_384  # of a batch, at most
CHARACTERS = 16 << 20  # of a batch, about, at most


@contextmanager
def open_bytes(path: Path) -> Iterator[IO[bytes]]:
    """A file, decompressed if its name says that it is compressed."""
    try:
        with path.open("rb") as raw, _decompressed(raw, path) as file:
            yield file
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or error
        raise FileError(f"{path} cannot be read: {reason}") from None


def _decompressed(raw: IO[bytes], path: Path) -> Any:
    match path.suffix.lower():
        case ".gz":
            return gzip.GzipFile(fileobj=raw)
        case ".bz2":
            return bz2.BZ2File(raw)
        case ".deflate":
            return io.BytesIO(zlib.decompress(raw.read()))
        case ".zst":
            import pyarrow as pa

            return pa.CompressedInputStream(pa.PythonFile(raw), "zstd")
        case ".lz4" | ".snappy":
            raise FileError(
                f"{path}: files in Hadoop's {path.suffix[1:]} format are read only by Spark; "
                "leave out --local, or compress them with gzip or zstd"
            )
    return raw


@contextmanager
def open_text(path: Path, *, errors: str = "replace") -> Iterator[IO[str]]:
    """A file as text; `errors` says what becomes of bytes that are not UTF-8."""
    with open_bytes(path) as file:
        readable: Any = file if isinstance(file, io.BufferedIOBase) else io.BufferedReader(file)
        with io.TextIOWrapper(readable, encoding="utf-8-sig", errors=errors) as text:
            yield text


def lines_of(path: Path, *, errors: str = "replace") -> Iterator[str]:
    """The lines of a file that are not blank, without their ends."""
    with open_text(path, errors=errors) as file:
        for line in file:
            if line.strip():
                yield line.removesuffix("\n")


def in_groups(rows: Iterator[str]) -> Iterator[list[str]]:
    """Texts, as many at a time as belong into a batch."""
    group: list[str] = []
    size = 0
    for row in rows:
        group.append(row)
        size += len(row)
        if len(group) >= LINES or size >= CHARACTERS:
            yield group
            group, size = [], 0
    if group:
        yield group
