"""Committing the files that workers have written, on the driver."""

import uuid
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, NamedTuple

import pyarrow as pa

from tamis.errors import FileError
from tamis.match_file import MatchFile
from tamis.spark.files.folders import Folder
from tamis.spark.parquet.worker import REPORT, FoundMatches, WriteTask, required

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

SUCCESS = "_SUCCESS"  # as Spark marks a folder that is complete
MOVES = 16  # at once, where moving a file means to copy it


class WrittenCounts(NamedTuple):
    """How many events were read, how many of them could not be used, and how many matched."""

    events: int
    bad: int
    matches: int


def write_matches(
    frame: "DataFrame", matches: Callable[[Iterable[pa.RecordBatch]], Iterable[FoundMatches]],
    output: str, schema: "StructType", place: str, name: str,
) -> WrittenCounts:  # fmt: skip
    """Let workers write what `matches` finds in a frame to the folder `name` of a place.

    The folder replaces one that is there, and has `_SUCCESS` when it is complete. `schema` is that
    of the matches; its first column names the ids of events.
    """
    folder = Folder(place)
    folder.make()
    mark = f"_attempts-{name.replace('/', '-')}-"
    for left in folder.entries():
        if left.startswith(mark):  # by a driver that died
            folder.delete_folder(left)
    aside = mark + uuid.uuid4().hex
    folder.make(aside)
    try:
        task = WriteTask(matches, output, f"{place}/{aside}", schema.names[0])
        reports = frame.mapInArrow(task, REPORT).toArrow()
        files = [file for file in reports["file"].to_pylist() if file is not None]
        if not files:
            files = [_write_empty(folder, aside, schema)]
        _move(folder, aside, name, files)
    finally:
        folder.delete_folder(aside)
    totals = (sum(reports[column].to_pylist()) for column in WrittenCounts._fields)
    return WrittenCounts(*totals)


def _move(folder: Folder, aside: str, name: str, files: list[str]) -> None:
    """Bring files to their place, in place of what is there."""
    folder.delete_folder(name)
    folder.make(name)

    def move(file: str) -> None:
        if not folder.exists(f"{aside}/{file}"):
            raise FileError(
                f"{folder.path} has not the files that the executors have written; name a folder "
                "that all machines share"
            )
        folder.move(f"{aside}/{file}", f"{name}/{file}")

    with ThreadPoolExecutor(1 if folder.is_local else MOVES) as threads:
        list(threads.map(move, files))
    folder.write(f"{name}/{SUCCESS}", b"")


def _write_empty(folder: Folder, aside: str, schema: "StructType") -> str:
    """A file without matches, so that readers know the columns."""
    from pyspark.sql.pandas.types import to_arrow_schema

    file = f"part-00000-{uuid.uuid4().hex}.parquet"
    with folder.create(f"{aside}/{file}") as opened:
        MatchFile(opened, required(to_arrow_schema(schema, timezone="UTC"))).close()
    return file
