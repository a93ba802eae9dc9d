"""The output folder of a stream: one folder of matches for each micro-batch."""

import json
import shutil
import uuid
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from tamis.errors import FileError
from tamis.spark.files.atomic_folders import DEAD_LETTERS, MATCHES, move_into_place
from tamis.spark.files.folders import Folder

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

ASIDE = "_aside"  # the folder for micro-batches that are not complete
OWNER = "_tamis.json"  # says which checkpoint writes to a folder


class WrittenBatch(NamedTuple):
    """A micro-batch that is written, but not in its place yet."""

    aside: Path | None  # None if Spark has written it to its place
    target: Path | None

    def reveal(self) -> None:
        """Put it in its place, in one step, and delete what earlier attempts have left."""
        if self.aside is None or self.target is None:
            return
        move_into_place(self.aside, self.target)
        for left in self.aside.parent.glob(f"{self.aside.stem}.*"):
            shutil.rmtree(left, ignore_errors=True)


@dataclass(frozen=True)
class FileSink:
    """A folder with a folder of files for each micro-batch: ``matches/batch=17``.

    On a local file system a micro-batch appears as a whole, when all of it is written. Elsewhere
    Spark writes to the place itself, and its mark ``_SUCCESS`` says that a micro-batch is complete.
    """

    out: str
    format: str = "parquet"

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

    def write(
        self, frame: "DataFrame", kind: str, batch: int, *, is_typed: bool = True
    ) -> WrittenBatch:
        """Write a micro-batch aside; `WrittenBatch.reveal` puts it in its place.

        Each attempt has another place aside: executors of one that died may still be writing. A
        frame that is not typed has no rows, and its columns may get other types later: it becomes
        a folder without files.
        """
        folder = Folder(f"{self.out}/{kind}")
        if not folder.is_local:
            if not is_typed:
                frame.write.format("noop").mode("overwrite").save()
                return WrittenBatch(None, None)
            self._save(frame, kind, f"{self.out}/{kind}/batch={batch}")
            return WrittenBatch(None, None)
        aside = folder.local.parent / ASIDE / f"{kind}-{batch}.{uuid.uuid4().hex}"
        if not is_typed:
            frame.write.format("noop").mode("overwrite").save()
            aside.mkdir(parents=True)
            return WrittenBatch(aside, folder.local / f"batch={batch}")
        self._save(frame, kind, f"file:{aside}")  # Hadoop takes the rest as it is, unescaped
        return WrittenBatch(aside, folder.local / f"batch={batch}")

    def _save(self, frame: "DataFrame", kind: str, path: str) -> None:
        # Letters are for people, and lists cannot be written as CSV.
        chosen = "json" if kind == DEAD_LETTERS else self.format
        frame.write.format(chosen).mode("overwrite").save(path)
