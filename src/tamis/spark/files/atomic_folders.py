"""Folders that appear as a whole: written aside, and renamed when they are complete."""

import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tamis.errors import FileError, OptionError
from tamis.spark.files.folders import Folder
from tamis.spark.session.failures import spark_errors

# The parts of an output folder.
MATCHES, DEAD_LETTERS, SUMMARY = "matches", "dead_letters", "summary.json"
# How Spark writes them: RFC 4180, as files of events are read, and with the names of the columns.
WRITE_OPTIONS = {"csv": {"header": "true", "escape": '"'}}


def check_place(out: str) -> None:
    """Refuse a path that can never be a folder."""
    if not out.strip():
        raise OptionError("the name of the output folder is empty")
    folder = Folder(out)
    if folder.is_file(""):
        raise FileError(f"{out} exists and is not a folder")
    if folder.is_local and not (above := _nearest(folder.local)).is_dir():
        raise FileError(f"{out} cannot be written: {above} is not a folder")


@contextmanager
def whole_folder(out: str) -> Iterator[str]:
    """The address to which Spark writes a folder.

    On a local file system it is a folder aside, which is moved to `out` at the end, or deleted
    after an error. Elsewhere it is `out` itself, and the summary, which has to be written last,
    says that the folder is complete.
    """
    folder = Folder(out)
    if not folder.is_local:
        folder.make()
        yield out
        return
    target = folder.local.resolve()
    # Beside the first folder above that exists: those below it are not made if this fails.
    aside = _nearest(target) / f".{target.name}-{uuid.uuid4().hex}"
    try:
        aside.mkdir()
        with spark_errors():
            yield f"file:{aside}"
        move_into_place(aside, target)
    except OSError as error:
        raise FileError(f"{out} cannot be written: {error.strerror}") from None
    except FileError as error:  # users do not know the folder aside
        raise FileError(str(error).replace(str(aside), out)) from None
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def move_into_place(aside: Path, target: Path) -> None:
    """Rename a folder; one that is at the target is replaced, and stays if that fails."""
    target.parent.mkdir(parents=True, exist_ok=True)
    if not target.exists():
        aside.rename(target)
        return
    old = aside.with_name(f"{aside.name}-old")
    target.rename(old)
    try:
        aside.rename(target)
    except OSError:
        old.rename(target)
        raise
    shutil.rmtree(old, ignore_errors=True)


def write_summary(place: str, text: str) -> None:
    """Write the summary of a folder, the last file of it; `place` is that of `whole_folder`."""
    where = Path(place.removeprefix("file:")) if place.startswith("file:") else place
    Folder(where).write(SUMMARY, text.encode())


def _nearest(path: Path) -> Path:
    """The first folder above a path that exists."""
    return next(above for above in path.parents if above.exists())
