"""One broker per data folder."""

import fcntl
import os
from pathlib import Path

from tamis.errors import FileError


class FolderLock:
    """Holds a data folder until `release`, or the end of the process."""

    def __init__(self, folder: Path) -> None:
        path = folder / "lock"
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(self._file)
            raise FileError(
                f"another broker uses the data folder {folder}; stop it, or choose another folder "
                "with --data"
            ) from None

    def release(self) -> None:
        """Let others have the folder."""
        os.close(self._file)
