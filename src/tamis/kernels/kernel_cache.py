"""Compiled kernels, kept in files so that a machine compiles them once.

A compiled kernel depends on what it was made of and on nothing else: the sources of all kernels,
the versions of Python, numba, llvmlite and numpy, and the processor. A hash of all this, the
*content key*, names the folder in which it is kept, so that it is found again wherever tamis is
installed. A folder is never changed, only added to: each file is written aside and then moved to
its place, so any number of processes may share one. Where a process makes a new folder, it removes
those beside it that no process has read from or written to for 30 days.

Kernels are read from the first of these places that has them, and written to the first one that can
be written:

* the folder that ``NUMBA_CACHE_DIR`` names, if it is set
* the user's folder for caches
* the package itself, where `tamis warm` writes them when an image is built
* a private folder for temporary files, if it belongs to this user and to nobody else

Reading has one more place, before all others: an archive that another process gave
(`take_archive`). Where nothing can be written, kernels are compiled in every process. A cache never
fails: what cannot be read or written, or is damaged, is compiled.
"""

import hashlib
import os
import pickle
import re
import shutil
import stat
import sys
import tempfile
import time
import uuid
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import llvmlite
import numba
import numpy as np
from numba.core import config as numba_config
from numba.core import sigutils
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.registry import cpu_target
from numba.core.serialize import dumps
from numba.misc.appdirs import AppDirs

FORMAT = 1  # of the files
DAY = 86_400.0  # seconds
UNUSED = 30 * DAY  # after which a folder is removed
config: Any = numba_config  # its settings are made when it is imported
SUFFIX = ".kernel"
# Modules of this package that have no part in what is compiled.
_OTHERS = {Path(__file__).with_name(f"{name}.py") for name in ("kernel_cache", "compilations")}
_KEY = re.compile("[0-9a-f]{32}")
_DIGEST = hashlib.sha256().digest_size


@cache
def content_key() -> str:
    """The hash of everything that compiled kernels depend on."""
    found = hashlib.sha256()
    for path in sorted(set(Path(__file__).parent.glob("*.py")) - _OTHERS):
        found.update(f"{path.name} {path.stat().st_size}\n".encode() + path.read_bytes())
    versions = (numba.__version__, llvmlite.__version__, np.__version__, sys.version)
    settings = (config.OPT, config.LOOP_VECTORIZE, config.SLP_VECTORIZE, config.BOUNDSCHECK)
    processor = cpu_target.target_context.codegen().magic_tuple()
    found.update(repr((FORMAT, versions, settings, processor)).encode())
    return found.hexdigest()[:32]  # as `_KEY` says


# --- places


def package_folder() -> Path:
    """The place inside the package."""
    return Path(__file__).parent / "__pycache__" / "compiled"


def _user_folder() -> Path | None:
    folder = Path(AppDirs("tamis", appauthor=False).user_cache_dir)  # type: ignore[no-untyped-call]  # numba's
    return folder / "compiled" if folder.is_absolute() else None  # not where there is no home


def _temporary_folder() -> Path | None:
    """A folder of this user among the temporary ones, None if it cannot be trusted.

    Everyone may make folders there, and what is read from this one is run.
    """
    if not hasattr(os, "geteuid"):  # such a system has a folder for temporary files per user
        return Path(tempfile.gettempdir()) / "tamis-compiled"
    folder = Path(tempfile.gettempdir()) / f"tamis-compiled-{os.geteuid()}"
    with suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    found = folder.lstat()
    is_private = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o077
    return folder if is_private and found.st_uid == os.geteuid() else None


def _given_folder() -> Path | None:
    return below(Path(config.CACHE_DIR)) if config.CACHE_DIR else None


def below(folder: Path) -> Path:
    """The place inside a folder that ``NUMBA_CACHE_DIR`` may name."""
    return folder.absolute() / "tamis"


_PLACES: tuple[Callable[[], Path | None], ...] = (
    _given_folder, _user_folder, package_folder, _temporary_folder,
)  # fmt: skip


def _folders() -> Iterator[Path]:
    """The folders for this content key, those that can be had, one after the other."""
    for place in _PLACES:
        try:
            folder = place()
        except OSError:
            continue
        if folder is not None:
            yield folder / content_key()


@cache
def usual_folder() -> Path | None:
    """The folder to which kernels are usually written, None if nothing can be written."""
    for folder in _folders():
        is_new = not folder.exists()
        if can_be_written(folder):
            if is_new and folder.parent != package_folder():  # that is the image's, not the user's
                _remove_unused(folder)
            return folder
    return None


def _remove_unused(new: Path) -> None:
    """Remove the folders beside a new one that have not been used for a long time.

    A process that still reads from one compiles what it misses.
    """
    latest = time.time() - UNUSED
    with suppress(OSError):
        for folder in new.parent.iterdir():
            is_ours = _KEY.fullmatch(folder.name) and folder != new and not folder.is_symlink()
            if is_ours and folder.is_dir() and folder.stat().st_mtime < latest:
                shutil.rmtree(folder, ignore_errors=True)


@cache
def _notice_use(folder: Path) -> None:
    """Let the time of a folder say that it is in use: once per process, and at most once a day."""
    with suppress(OSError):  # it cannot be written, and so nobody will remove it
        if folder.stat().st_mtime < time.time() - DAY:
            os.utime(folder)


_chosen: Path | None = None


def written_folder() -> Path | None:
    """The folder to which kernels are written, None if nothing can be written."""
    return usual_folder() if _chosen is None else _chosen


@contextmanager
def writing_to(folder: Path) -> Iterator[Path]:
    """Write kernels below a folder, also those that are read from another one."""
    global _chosen  # noqa: PLW0603 - one for the whole process, as the kernels are
    _chosen = folder / content_key()
    try:
        yield _chosen
    finally:
        _chosen = None


def can_be_written(folder: Path) -> bool:
    """Whether a folder is there, or could be made, and takes new files."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        tempfile.TemporaryFile(dir=folder).close()
    except OSError:
        return False
    return True


# --- files

_archives: list[Path] = []


def take_archive(path: Path) -> bool:
    """Read kernels from an archive, too, from now on; False if they are not for this process."""
    if path in _archives:
        return True
    try:
        with zipfile.ZipFile(path) as archive:
            fits = archive.comment.decode(errors="replace") == content_key()
    except (OSError, zipfile.BadZipFile):
        return False
    if fits:
        _archives.append(path)
    return fits


def write_archive(path: Path) -> int:
    """Write all kernels that are kept to an archive for `take_archive`; returns how many."""
    kept: dict[str, Path] = {}
    for folder in _folders():
        kept = {file.name: file for file in folder.glob(f"*{SUFFIX}")} | kept
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        archive.comment = content_key().encode()
        for name, file in sorted(kept.items()):
            archive.write(file, name)
    return len(kept)


def read(name: str) -> bytes | None:
    """What was written under a name, None if nothing was or it is damaged."""
    for found in _contents(name):
        content = found[_DIGEST:]
        if hashlib.sha256(content).digest() == found[:_DIGEST]:
            if _chosen is not None:
                write(name, content, _chosen)
            return content
    return None


def _contents(name: str) -> Iterator[bytes]:
    """What the archives and folders have under a name."""
    for path in _archives:
        # Opened each time: processes that are forked would share the place in an open file.
        with (
            suppress(KeyError, OSError, zipfile.BadZipFile, zlib.error),
            zipfile.ZipFile(path) as archive,
        ):
            yield archive.read(name)
    for folder in (*([] if _chosen is None else [_chosen]), *_folders()):
        with suppress(OSError):
            found = (folder / name).read_bytes()
            _notice_use(folder)
            yield found


def write(name: str, content: bytes, folder: Path) -> bool:
    """Write a file as a whole; False if that failed, for which there may be many reasons."""
    aside = folder / f".{name}.{uuid.uuid4().hex}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        try:
            aside.write_bytes(hashlib.sha256(content).digest() + content)
            aside.replace(folder / name)
        finally:
            aside.unlink(missing_ok=True)
    except OSError:
        return False
    return True


def done(name: str) -> str:
    """The name of an empty file which says that all kernels for a purpose are kept."""
    return f"{name}.done"


# --- numba's side

_RESULT: Any = CompileResult


class KernelCache(_Cache):
    """The files of one kernel, as numba's dispatcher asks for them."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._name = f"{function.__module__.rpartition('.')[2]}.{function.__qualname__}"

    @property
    def cache_path(self) -> str | None:
        folder = written_folder()
        return None if folder is None else str(folder)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The kernel compiled for some types, None if it is not kept."""
        found = read(self._file(sig))
        if found is None:
            return None
        target_context.refresh()
        parts = pickle.loads(found)  # noqa: S301 - from places that only this user can write
        return _RESULT._rebuild(target_context, *parts)  # noqa: SLF001 - as numba's caches do

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep a kernel that was compiled for some types."""
        folder = written_folder()
        if folder is not None:
            content: bytes = dumps(data._reduce())  # type: ignore[no-untyped-call]  # noqa: SLF001 - as above
            write(self._file(sig), content, folder)

    def _file(self, sig: Any) -> str:
        types, _ = sigutils.normalize_signature(sig)  # type: ignore[no-untyped-call]  # numba's
        return f"{self._name}-{hashlib.sha256(repr(types).encode()).hexdigest()[:16]}{SUFFIX}"

    def enable(self) -> None:
        """Nothing to do: it always is."""

    def disable(self) -> None:
        """Nothing to do: see `jit`."""

    def flush(self) -> None:
        """Nothing to do: what is kept under a content key stays valid."""
