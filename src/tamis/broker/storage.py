"""Where a broker keeps what it has: a folder of this machine, or whatever a simulation gives it."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from tamis.broker.catalogue import Catalogue
from tamis.broker.folder_lock import FolderLock
from tamis.broker.log.disk import Disk, LocalDisk


class Storage(Protocol):
    """A catalogue and a disk for logs, which one broker has for itself."""

    @property
    def disk(self) -> Disk:
        """The disk that logs are written to."""

    def open_catalogue(self) -> Catalogue:
        """The catalogue; it is opened once."""

    def release(self) -> None:
        """Let others have it; the catalogue is closed."""


class LocalStorage:
    """A data folder, which is made if it is not there."""

    def __init__(self, folder: Path, disk: Disk | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.disk: Disk = LocalDisk() if disk is None else disk
        self._folder = folder
        self._lock = FolderLock(folder)

    def open_catalogue(self) -> Catalogue:
        """The catalogue of the folder; it has the filters of all accounts, so nobody else reads it.

        SQLite gives the files beside it the same permissions.
        """
        path = self._folder / "catalogue.sqlite"
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
        for known in self._folder.glob(f"{path.name}*"):
            with suppress(PermissionError):  # it belongs to somebody else, who lets us use it
                known.chmod(0o600)
        return Catalogue(path)

    def release(self) -> None:
        """Let others have the folder."""
        self._lock.release()
