"""Files that are replaced as a whole: afterwards the old or the new one is there, never a part.

A new file is written beside the old one, under a name of its own, and then renamed. A process that
is killed meanwhile leaves that file behind, and the next one that writes to the folder removes it.
It must not remove a file that another process is still writing. So a writer holds a lock, which the
system releases when the process ends; whoever can take the lock knows that the writer is gone.
Locks do not always reach from one machine to another: a file of another machine is removed only if
nothing was written to it for a day.
"""

import hashlib
import os
import platform
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows, where nothing is locked and nothing removed
    fcntl = None  # type: ignore[assignment]  # a module elsewhere

ABANDONED = 24 * 3600.0  # seconds after which a file of another machine counts as left behind


@contextmanager
def replacing(target: Path) -> Iterator[BinaryIO]:
    """A file to write to, which replaces `target` at the end; after an error nothing is left."""
    remove_leftovers(target.parent)
    temporary, file = _new_file(target.parent)
    try:
        with file:
            with suppress(FileNotFoundError):  # the permissions of the old file stay
                temporary.chmod(stat.S_IMODE(target.stat().st_mode))
            yield file
            file.flush()
            os.fsync(file.fileno())
            temporary.replace(target)  # while the file is locked
    except BaseException:  # whatever ends it, nothing is left behind
        temporary.unlink(missing_ok=True)
        raise
    # So that the new name survives a power failure. Not every system can do it; the file is in
    # its place anyway.
    with suppress(OSError):
        folder = os.open(target.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def remove_leftovers(folder: Path) -> None:
    """Remove the files of a folder that were being written by processes that are gone."""
    with suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(".tamis-") and entry.name.endswith(".tmp"):
                with suppress(OSError):  # another process may remove it, or own it
                    _remove_if_left(Path(entry.path))


def _remove_if_left(path: Path) -> None:
    if not stat.S_ISREG(path.lstat().st_mode):
        return
    with path.open("r+b") as file:
        is_near = path.name.startswith(f".tamis-{_machine()}-")
        is_old = time.time() - os.fstat(file.fileno()).st_mtime > ABANDONED
        if (is_near or is_old) and _lock(file):
            path.unlink()


def _new_file(folder: Path) -> tuple[Path, BinaryIO]:
    """A new file, locked."""
    while True:
        # The name is short, since that of the target may already be as long as names can be. The
        # module `tempfile` would make the file unreadable for all other users.
        path = folder / f".tamis-{_machine()}-{secrets.token_hex(8)}.tmp"
        file = path.open("xb")
        # Between these two lines it has no lock yet, and may be taken for one that was left.
        _lock(file)
        if path.exists():
            return path, file
        file.close()


def _lock(file: BinaryIO) -> bool:
    """Lock a file until it is closed; False if that is not possible."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except (OSError, AttributeError):
        return False
    return True


def _machine() -> str:
    """A short name for this machine."""
    return hashlib.sha256(platform.node().encode()).hexdigest()[:8]
