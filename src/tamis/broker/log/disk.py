"""The disk under a log: the few things that a log does to files, by path.

Everything that is written goes through a `Disk`, so that the same code runs on a real disk and on
a simulated one, which tears, loses and refuses (`tamis.broker.simulation.simulated_disk`). A log
relies on this, and on nothing else:

* what was written to a file survives a power failure after `sync` of that file,
* a file that was created, renamed or removed is so after a power failure once `sync_folder` of its
  folder has returned; before that, either may be found,
* of what was written and not synced, any bytes may be found, or none,
* a call that raises an `OSError` may have been done in part.
"""

import mmap
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol

MOST_OPEN = 200  # files that a `LocalDisk` keeps open when nobody uses them

Bytes = bytes | bytearray | memoryview


class Disk(Protocol):
    """What a log needs of a disk; `LocalDisk` and `SimulatedDisk` are two."""

    def make_folder(self, folder: Path) -> None:
        """Make a folder and those above it, if they are not there, and see that they stay."""

    def names(self, folder: Path) -> list[str]:
        """The names of the files of a folder."""

    def size(self, path: Path) -> int:
        """The bytes of a file."""

    def read(self, path: Path, start: int, length: int) -> bytes:
        """Some bytes of a file; fewer where it ends."""

    def view(self, path: Path) -> Bytes:
        """All bytes of a file that is not written any more; they are read when they are used."""

    def create(self, path: Path) -> None:
        """Make an empty file; `FileExistsError` if there is one."""

    def write(self, path: Path, position: int, data: Bytes) -> None:
        """Write into a file, which grows if need be."""

    def truncate(self, path: Path, size: int) -> None:
        """Cut a file off."""

    def sync(self, path: Path) -> None:
        """Wait until everything that was written to a file is safe."""

    def sync_folder(self, folder: Path) -> None:
        """Wait until the names of a folder are safe."""

    def rename(self, old: Path, new: Path) -> None:
        """Give a file another name, in place of a file that has it."""

    def remove(self, path: Path) -> None:
        """Remove a file."""


class LocalDisk:
    """The disk of this machine.

    Files stay open between calls, at most `most_open` of them: those that were used last. So ten
    thousand topics need no more descriptors than two hundred.
    """

    def __init__(self, most_open: int = MOST_OPEN) -> None:
        self._most_open = most_open
        self._lock = threading.Lock()
        self._idle: OrderedDict[Path, int] = OrderedDict()  # descriptors that nobody uses now

    def make_folder(self, folder: Path) -> None:
        if folder.is_dir():
            return
        self.make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        self.sync_folder(folder.parent)

    def names(self, folder: Path) -> list[str]:
        return [path.name for path in folder.iterdir()]

    def size(self, path: Path) -> int:
        return path.stat().st_size

    def read(self, path: Path, start: int, length: int) -> bytes:
        with self._opened(path) as descriptor:
            data = os.pread(descriptor, length, start)
            while len(data) < length:  # the system may give less at a time
                more = os.pread(descriptor, length - len(data), start + len(data))
                if not more:
                    break
                data += more
            return data

    def view(self, path: Path) -> Bytes:
        with self._opened(path) as descriptor:
            if os.fstat(descriptor).st_size == 0:
                return b""
            return memoryview(mmap.mmap(descriptor, 0, access=mmap.ACCESS_READ))

    def create(self, path: Path) -> None:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o640)
        self._keep(path, descriptor)

    def write(self, path: Path, position: int, data: Bytes) -> None:
        with self._opened(path) as descriptor:
            rest = memoryview(data)
            while rest:
                written = os.pwrite(descriptor, rest, position)
                rest, position = rest[written:], position + written

    def truncate(self, path: Path, size: int) -> None:
        with self._opened(path) as descriptor:
            os.ftruncate(descriptor, size)

    def sync(self, path: Path) -> None:
        with self._opened(path) as descriptor:
            os.fdatasync(descriptor)  # the size of a file is part of what it waits for

    def sync_folder(self, folder: Path) -> None:
        descriptor = os.open(folder, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def rename(self, old: Path, new: Path) -> None:
        self._close(old)
        self._close(new)
        old.replace(new)

    def remove(self, path: Path) -> None:
        path.unlink()
        self._close(path)

    def close(self) -> None:
        """Close all files; they are opened again when they are used."""
        with self._lock:
            idle, self._idle = self._idle, OrderedDict()
        for descriptor in idle.values():
            os.close(descriptor)

    @contextmanager
    def _opened(self, path: Path) -> Iterator[int]:
        """A descriptor of a file, which nobody closes meanwhile."""
        with self._lock:
            descriptor = self._idle.pop(path, None)
        if descriptor is None:
            descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
        try:
            yield descriptor
        finally:
            self._keep(path, descriptor)

    def _keep(self, path: Path, descriptor: int) -> None:
        unneeded = descriptor
        # Another file may get the name of one that was removed while this one was in use.
        if os.fstat(descriptor).st_nlink:
            with self._lock:
                unneeded = self._idle.pop(path, -1)
                self._idle[path] = descriptor
                if unneeded < 0 and len(self._idle) > self._most_open:
                    _, unneeded = self._idle.popitem(last=False)
        if unneeded >= 0:
            os.close(unneeded)

    def _close(self, path: Path) -> None:
        with self._lock:
            descriptor = self._idle.pop(path, None)
        if descriptor is not None:
            with suppress(OSError):
                os.close(descriptor)
