"""A folder of small files, on this machine or wherever Arrow can read (s3://, gs://, hdfs://)."""

import uuid
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from pyarrow import fs

from tamis.errors import FileError

if TYPE_CHECKING:
    import pyarrow.dataset as ds

# Where Arrow finds the way and the credentials by itself, on executors as well. For others, such as
# hdfs:// and s3a://, Hadoop is configured, which only Spark's JVM knows.
_WRITTEN_BY_WORKERS = ("file", "s3", "gs", "gcs", "abfs", "abfss")


def workers_can_write(path: str) -> bool:
    """Whether Python workers can write to a folder; if not, Spark has to."""
    scheme, mark, _ = path.partition("://")
    return not mark or scheme in _WRITTEN_BY_WORKERS


class Folder:
    """A folder; files are written aside and renamed, so that each is complete or not there."""

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        try:
            if self.path.startswith("file:") and "://" not in self.path:  # as Hadoop writes it
                self._system, self._root = fs.LocalFileSystem(), self.path.removeprefix("file:")
            elif "://" in self.path:
                self._system, self._root = fs.FileSystem.from_uri(self.path)
            else:
                self._system, self._root = fs.LocalFileSystem(), str(Path(self.path).absolute())
        except (pa.ArrowException, OSError, ValueError) as error:
            raise FileError(f"{self.path} cannot be reached: {error}") from None

    @property
    def is_local(self) -> bool:
        """Whether it is a folder of this machine's file system."""
        return isinstance(self._system, fs.LocalFileSystem)

    @property
    def local(self) -> Path:
        """The path of a local folder."""
        return Path(self._root)

    def make(self, *names: str) -> None:
        """Make the folder and some folders in it, unless they are there."""
        try:
            for name in names or ("",):
                self._system.create_dir(self._at(name), recursive=True)
        except OSError as error:
            raise FileError(f"{self.path} cannot be made: {error}") from None

    def exists(self, name: str) -> bool:
        """Whether there is a file or folder of this name."""
        return bool(self._system.get_file_info(self._at(name)).type != fs.FileType.NotFound)

    def is_file(self, name: str) -> bool:
        """Whether there is a file of this name."""
        return bool(self._system.get_file_info(self._at(name)).type == fs.FileType.File)

    def entries(self) -> list[str]:
        """Everything in it, hidden or not."""
        found = self._system.get_file_info(fs.FileSelector(self._root))
        return sorted(info.base_name for info in found)

    def names(self, folder: str = "") -> list[str]:
        """The files in a folder of it, in ascending order, without hidden ones."""
        return list(self.stamps(folder))

    def stamps(self, folder: str = "") -> dict[str, list[int]]:
        """The size and the time of change of the files in a folder of it, in ascending order.

        Hidden ones are left out. The time is in nanoseconds, 0 if it is not known.
        """
        try:
            found = self._system.get_file_info(fs.FileSelector(self._at(folder)))
        except OSError as error:
            raise FileError(f"{self.path} cannot be read: {error}") from None
        files = [info for info in found if info.type == fs.FileType.File]
        files = [info for info in files if not info.base_name.startswith((".", "_"))]
        files.sort(key=lambda info: info.base_name)
        return {info.base_name: [info.size or 0, info.mtime_ns or 0] for info in files}

    def read(self, name: str) -> bytes:
        """The content of a file."""
        try:
            with self._system.open_input_stream(self._at(name), compression=None) as file:
                return bytes(file.read())
        except OSError as error:
            raise FileError(f"{self.path}/{name} cannot be read: {error}") from None

    def write(self, name: str, content: bytes) -> None:
        """Write a file, or replace one."""
        aside = self._aside(name)
        try:
            with self._system.open_output_stream(aside, compression=None) as file:
                file.write(content)
            self._system.move(aside, self._at(name))
        except OSError as error:
            raise FileError(f"{self.path}/{name} cannot be written: {error}") from None

    def dataset(self, name: str, format: str) -> "ds.Dataset":
        """A file of rows, to be read batch by batch."""
        import pyarrow.dataset as ds

        return ds.dataset(self._at(name), filesystem=self._system, format=format)

    def create(self, name: str) -> pa.NativeFile:
        """A new file, open to be written; its folder must be there."""
        try:
            return self._system.open_output_stream(self._at(name), compression=None)
        except OSError as error:
            raise FileError(f"{self.path}/{name} cannot be written: {error}") from None

    def move(self, name: str, new: str) -> None:
        """Give a file another name in this folder; object stores copy it for that."""
        try:
            self._system.move(self._at(name), self._at(new))
        except OSError as error:
            raise FileError(f"{self.path}/{new} cannot be written: {error}") from None

    def put(self, name: str, source: Path) -> None:
        """Copy a file of this machine into the folder."""
        self._copy(str(source), name, fs.LocalFileSystem(), self._system, self._at(name))

    def get(self, name: str, target: Path) -> None:
        """Copy a file of the folder to this machine."""
        self._copy(self._at(name), name, self._system, fs.LocalFileSystem(), str(target))

    def delete(self, name: str) -> None:
        """Delete a file, if it is there."""
        try:
            self._system.delete_file(self._at(name))
        except FileNotFoundError:
            return
        except OSError as error:
            raise FileError(f"{self.path}/{name} cannot be deleted: {error}") from None

    def delete_folder(self, name: str) -> None:
        """Delete a folder and all that is in it, if it is there."""
        try:
            self._system.delete_dir(self._at(name))
        except FileNotFoundError:
            return
        except OSError as error:
            raise FileError(f"{self.path}/{name} cannot be deleted: {error}") from None

    def _copy(
        self, source: str, name: str, here: fs.FileSystem, there: fs.FileSystem, target: str
    ) -> None:
        parent, _, last = target.rpartition("/")
        aside = f"{parent}/.{last}.{uuid.uuid4().hex}"
        try:
            fs.copy_files(source, aside, source_filesystem=here, destination_filesystem=there)
            there.move(aside, target)
        except OSError as error:
            raise FileError(f"{self.path}/{name} cannot be copied: {error}") from None

    def _aside(self, name: str) -> str:
        parent, _, last = self._at(name).rpartition("/")
        return f"{parent}/.{last}.{uuid.uuid4().hex}"

    def _at(self, name: str) -> str:
        return f"{self._root}/{name}" if name else self._root
