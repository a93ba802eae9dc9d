"""Folders for the output of a command, which replaces what it wrote before, and nothing else."""

import contextlib
import tempfile
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from tamis.errors import FileError


@contextlib.contextmanager
def output_folder(
    out: Path, command: str, files: Collection[str], is_ours: Callable[[Path], bool]
) -> Iterator[Path]:
    """The output folder, created at once to find out whether it can be written.

    `files` are those that the command writes; `is_ours` says of a folder that has only such files
    whether the command wrote them.
    """
    _check(out, command, files, is_ours)
    try:
        is_new = not out.exists()
        out.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=out):
            pass
    except OSError as error:
        raise FileError(f"{out} cannot be written: {error.strerror}") from None
    try:
        yield out
    finally:
        if is_new:
            with contextlib.suppress(OSError):  # not empty: something was written
                out.rmdir()


def _check(
    out: Path, command: str, files: Collection[str], is_ours: Callable[[Path], bool]
) -> None:
    """Raise an error for a folder with files that the command did not write."""
    try:
        names = {path.name for path in out.iterdir()} if out.exists() else set()
    except NotADirectoryError:
        raise FileError(
            f"{out} exists and is not a folder; choose another one with --out"
        ) from None
    except OSError as error:  # a name that is too long, missing permissions
        raise FileError(f"{out} cannot be written: {error.strerror}") from None
    foreign = sorted(names - set(files))
    if not foreign and names and not is_ours(out):
        foreign = sorted(names)
    if foreign:
        raise FileError(
            f"{out} contains files that {command} did not write ({', '.join(foreign[:3])}); "
            "choose another folder with --out"
        )
