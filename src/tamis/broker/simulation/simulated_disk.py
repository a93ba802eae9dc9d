"""A disk in memory that does the worst that `Disk` allows.

What was written and not synced is, after a power failure, there, not there, or there in part, byte
by byte; a part that is missing before one that is there reads as zeros. A name that was not synced
is found as it was before or as it became, each for itself. A sync can fail; what it was called for
is then as after a power failure, and a later sync does not help: the system has forgotten that it
was to be written. The disk can be full, and a call can be interrupted by the end of the process.

All chance comes from the generator that is passed in, so that a seed repeats a run.
"""

import errno
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from tamis.broker.log.disk import Bytes


class Stopped(BaseException):
    """The process ends here. It is not an `Exception`, since nobody can handle it."""


@dataclass
class _File:
    """The bytes of a file as the process sees them, and as they are safe."""

    seen: bytearray = field(default_factory=bytearray)
    safe: bytearray = field(default_factory=bytearray)
    unsafe: list[tuple[int, bytes | None]] = field(default_factory=list)  # None: cut off there


class SimulatedDisk:
    """A disk that is torn, full, or failing, as it is told to."""

    def __init__(self, random: Random, capacity: int | None = None) -> None:
        self.random = random
        self.capacity = capacity  # bytes of all files
        self.failing_syncs = 0.0  # the probability that a sync fails
        self.operations = 0  # calls that change something
        self._stop_at: int | None = None
        self._seen: dict[Path, _File] = {}
        self._safe: dict[Path, _File] = {}
        self._folders: set[Path] = set()

    # --- what can happen to it

    def stop_after(self, operations: int) -> None:
        """End the process during one of the next calls that change something."""
        self._stop_at = self.operations + operations

    def restart(self, *, power_failed: bool) -> None:
        """Let the process start again, after a power failure with what is left."""
        self._stop_at = None
        if power_failed:
            self._lose()

    def _lose(self) -> None:
        paths = sorted({*self._seen, *self._safe})
        found = {p: self.random.choice((self._seen, self._safe)).get(p) for p in paths}
        self._safe = {path: file for path, file in found.items() if file is not None}
        self._seen = dict(self._safe)
        for path in sorted(self._safe):
            file = self._safe[path]
            self._settle(file)
            file.seen = bytearray(file.safe)

    def _settle(self, file: _File) -> None:
        """Make some of what is unsafe safe, and forget the rest."""
        for position, data in file.unsafe:
            if data is None:
                if self.random.random() < 0.5:
                    _cut(file.safe, position)
                continue
            for start, end in self._kept(len(data)):
                _write(file.safe, position + start, data[start:end])
        file.unsafe = []

    def _kept(self, size: int) -> list[tuple[int, int]]:
        """The parts of a write that arrive."""
        fate = self.random.random()
        if fate < 0.3:
            return []
        if fate < 0.6:
            return [(0, size)]
        cuts = sorted(self.random.randint(0, size) for _ in range(self.random.randint(1, 4)))
        parts = list(zip([0, *cuts], [*cuts, size], strict=True))
        return [part for part in parts if self.random.random() < 0.5]

    def flip(self, path: Path, position: int, bit: int) -> None:
        """Change one bit of a file, as ageing hardware does."""
        file = self._seen[path]
        for content in (file.seen, file.safe):
            if position < len(content):
                content[position] ^= 1 << bit

    @property
    def used(self) -> int:
        """The bytes of all files."""
        return sum(len(file.seen) for file in self._seen.values())

    # --- what a log does with it

    def make_folder(self, folder: Path) -> None:
        self._folders.update((folder, *folder.parents))

    def names(self, folder: Path) -> list[str]:
        if folder not in self._folders:
            raise FileNotFoundError(errno.ENOENT, "no such folder", str(folder))
        return [path.name for path in self._seen if path.parent == folder]

    def size(self, path: Path) -> int:
        return len(self._file(path).seen)

    def read(self, path: Path, start: int, length: int) -> bytes:
        return bytes(self._file(path).seen[start : start + length])

    def view(self, path: Path) -> Bytes:
        return bytes(self._file(path).seen)

    def create(self, path: Path) -> None:
        self._step()
        if path in self._seen:
            raise FileExistsError(errno.EEXIST, "the file exists", str(path))
        self._seen[path] = _File()

    def write(self, path: Path, position: int, data: Bytes) -> None:
        file, data = self._file(path), bytes(data)
        is_last = self._is_last()
        growth = max(0, position + len(data) - len(file.seen))
        is_full = self.capacity is not None and self.used + growth > self.capacity
        if is_last or is_full:
            data = data[: self.random.randint(0, len(data))]
        _write(file.seen, position, data)
        file.unsafe.append((position, data))
        self._step()
        if is_full:
            raise OSError(errno.ENOSPC, "no space left on the disk", str(path))

    def truncate(self, path: Path, size: int) -> None:
        self._step()
        file = self._file(path)
        _cut(file.seen, size)
        file.unsafe.append((size, None))

    def sync(self, path: Path) -> None:
        file = self._file(path)
        if self._is_last():
            self._settle(file)
        self._step()
        if self.random.random() < self.failing_syncs:
            self._settle(file)
            raise OSError(errno.EIO, "the disk does not answer", str(path))
        # Only what is known to be unsafe: what a failed sync has lost stays lost.
        for position, written in file.unsafe:
            if written is None:
                _cut(file.safe, position)
            else:
                _write(file.safe, position, written)
        file.unsafe = []

    def sync_folder(self, folder: Path) -> None:
        self._step()
        if self.random.random() < self.failing_syncs:
            raise OSError(errno.EIO, "the disk does not answer", str(folder))
        inside = {path for path in {*self._seen, *self._safe} if path.parent == folder}
        for path in inside:
            if path in self._seen:
                self._safe[path] = self._seen[path]
            else:
                del self._safe[path]

    def rename(self, old: Path, new: Path) -> None:
        self._step()
        self._seen[new] = self._file(old)
        del self._seen[old]

    def remove(self, path: Path) -> None:
        self._step()
        self._file(path)
        del self._seen[path]

    # --- inside

    def _file(self, path: Path) -> _File:
        file = self._seen.get(path)
        if file is None:
            raise FileNotFoundError(errno.ENOENT, "no such file", str(path))
        return file

    def _is_last(self) -> bool:
        return self._stop_at is not None and self.operations + 1 >= self._stop_at

    def _step(self) -> None:
        is_last = self._is_last()
        self.operations += 1
        if is_last:
            raise Stopped


def _write(content: bytearray, position: int, data: bytes) -> None:
    if len(content) < position:
        content += bytes(position - len(content))
    content[position : position + len(data)] = data


def _cut(content: bytearray, size: int) -> None:
    if len(content) > size:
        del content[size:]
    else:
        content += bytes(size - len(content))
