"""The output folder of a stream: one folder of matches for each micro-batch."""

import json
import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tamis.errors import FileError
from tamis.spark.files.atomic_folders import (
    DEAD_LETTERS,
    MATCHES,
    WRITE_OPTIONS,
    move_into_place,
)
from tamis.spark.files.folders import Folder, workers_can_write

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ASIDE = "_aside"  # the folder for micro-batches that are not complete
OWNER = "_tamis.json"  # says which checkpoint writes to a folder


class BatchFolder(NamedTuple):
    """Where a micro-batch is written: the folder `name` of a place."""

    place: str
    name: str
    target: Path | None  # where it belongs, None if it is written there

    def reveal(self) -> None:
        """Put it in its place, in one step, and delete what earlier attempts have left."""
        if self.target is None:
            return
        aside = Path(self.place.removeprefix("file:"))
        move_into_place(aside / self.name, self.target)
        for left in aside.glob(f"*{self.name.partition('.')[0]}.*"):
            shutil.rmtree(left, ignore_errors=True)

    def discard(self) -> None:
        """Delete it, because the micro-batch is not to be."""
        Folder(self.place).delete_folder(self.name)


@dataclass(frozen=True)
class FileSink:
    """A folder with a folder of files for each micro-batch: ``matches/batch=17``.

    On a local file system a micro-batch appears as a whole, when all of it is written. Elsewhere
    Spark writes to the place itself, and its mark ``_SUCCESS`` says that a micro-batch is complete.
    """

    out: str
    format: str = "parquet"

    @property
    def is_written_by_workers(self) -> bool:
        """Whether workers write the matches, and not Spark."""
        return self.format == "parquet" and workers_can_write(self.out)

    def check(self, owner: str | None, *, is_begun: bool) -> None:
        """Refuse a folder in which matches would be missing, or mixed with others.

        `owner` is the name of the checkpoint, None if it is new; `is_begun` says whether a query
        with the checkpoint has seen events.
        """
        folder = Folder(self.out)
        if folder.is_file(""):
            raise FileError(f"{self.out} exists and is not a folder")
        if folder.exists(OWNER):
            if owner is None or json.loads(folder.read(OWNER)).get("checkpoint") != owner:
                raise FileError(
                    f"{self.out} has the matches of another checkpoint; name another folder, or "
                    "the checkpoint that belongs to it"
                )
        elif folder.exists("") and folder.entries():
            raise FileError(f"{self.out} exists and is not empty; name another folder")
        elif is_begun:
            raise FileError(
                f"events were matched before with this checkpoint, but {self.out} does not have "
                "their matches; name the folder that has them, or delete the checkpoint to start "
                "again"
            )

    def claim(self, owner: str) -> None:
        """Write down which checkpoint owns the folder: others use the same batch numbers."""
        folder = Folder(self.out)
        folder.make("")
        folder.write(OWNER, json.dumps({"checkpoint": owner}).encode())

    def has(self, batch: int) -> bool:
        """Whether a micro-batch is there, which means that all of it is."""
        folder = Folder(f"{self.out}/{MATCHES}")
        return folder.is_local and folder.exists(f"batch={batch}")

    def folder(self, kind: str, batch: int) -> BatchFolder:
        """Where to write a micro-batch; `BatchFolder.reveal` then puts it in its place.

        Each attempt has another place aside: executors of one that died may still be writing.
        """
        folder = Folder(f"{self.out}/{kind}")
        if not folder.is_local:
            return BatchFolder(self.out, f"{kind}/batch={batch}", None)
        aside = folder.local.parent / ASIDE
        return BatchFolder(
            f"file:{aside}",  # Hadoop takes the rest as it is, unescaped
            f"{kind}-{batch}.{uuid.uuid4().hex}",
            folder.local / f"batch={batch}",
        )

    def write(self, frame: "DataFrame", kind: str, batch: int) -> BatchFolder:
        """Let Spark write a micro-batch."""
        found = self.folder(kind, batch)
        # Letters are for people, and lists cannot be written as CSV.
        chosen = "json" if kind == DEAD_LETTERS else self.format
        writer = frame.write.format(chosen).options(**WRITE_OPTIONS.get(chosen, {}))
        writer.mode("overwrite").save(f"{found.place}/{found.name}")
        return found

    def write_nothing(self, frame: "DataFrame", kind: str, batch: int) -> BatchFolder:
        """Let Spark compute a frame without rows, whose columns may get other types later.

        It becomes a folder without files.
        """
        found = self.folder(kind, batch)
        frame.write.format("noop").mode("overwrite").save()
        if found.target is not None:
            Folder(found.place).make(found.name)
        return found
