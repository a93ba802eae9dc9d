"""Writing the matches of a task to a file, in the workers."""

import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from tamis.errors import FileError
from tamis.match_file import MatchFile
from tamis.spark.files.folders import Folder
from tamis.spark.tables.arrow_batches import task_number

# What `WriteTask` returns; `file` is null if there was nothing to write.
REPORT = "file string, events bigint, bad bigint, matches bigint"


class FoundMatches(Protocol):
    """The matches of some events: `tables`, of `events` events and `bad` others."""

    @property
    def events(self) -> int: ...
    @property
    def bad(self) -> int: ...
    @property
    def tables(self) -> Iterator[pa.Table]: ...


class TableMatches(NamedTuple):
    """Matches of which it is not known how many events they are of."""

    tables: Iterator[pa.Table]
    events: int = 0
    bad: int = 0


def plain_matches(batches: Iterable[pa.RecordBatch]) -> Iterator[FoundMatches]:
    """Matches that Spark has."""
    yield TableMatches(pa.Table.from_batches([batch]) for batch in batches)


@dataclass(frozen=True)
class WriteTask:
    """The function of `mapInArrow` that writes what `matches` finds, and reports on it.

    `output` is the form of the matches, `id_name` the name of their first column. The file has a
    name of its own for each attempt.
    """

    matches: Callable[[Iterable[pa.RecordBatch]], Iterable[FoundMatches]]
    output: str
    folder: str
    id_name: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        name = f"part-{task_number():05}-{uuid.uuid4().hex}.parquet"
        folder = Folder(self.folder)
        try:
            with ExitStack() as opened:
                found = self._write(batches, lambda: folder.create(name), opened)
        except BaseException:  # whatever ends the attempt, its file goes
            with suppress(FileError):  # the driver will remove all of the folder
                folder.delete(name)
            raise
        is_written, *numbers = found
        columns = [pa.array([name if is_written else None], pa.string())]
        columns += [pa.array([number], pa.int64()) for number in numbers]
        yield pa.RecordBatch.from_arrays(columns, names=["file", "events", "bad", "matches"])

    def _write(
        self,
        batches: Iterable[pa.RecordBatch],
        create: Callable[[], pa.NativeFile],
        opened: ExitStack,
    ) -> tuple[bool, int, int, int]:
        """Whether there was anything to write, and the numbers of events, bad ones and matches."""
        events = bad = matches = 0
        file: MatchFile | None = None
        for found in self.matches(batches):
            events, bad = events + found.events, bad + found.bad
            for unnamed in found.tables:
                table = unnamed.rename_columns([self.id_name, *unnamed.column_names[1:]])
                if file is None:
                    stream = opened.enter_context(create())
                    file = opened.enter_context(MatchFile(stream, required(table.schema)))
                file.write(table)
                matches += matches_of(table, self.output)
        return file is not None, events, bad, matches


def required(schema: pa.Schema) -> pa.Schema:
    """The columns of matches, of which neither ids nor counts are ever null."""
    never = {schema.names[0], "subscription", "count"}
    return pa.schema(
        [field.with_nullable(field.nullable and field.name not in never) for field in schema]
    )


def matches_of(table: pa.Table, output: str) -> int:
    """How many matches a table has."""
    if output == "pairs":
        return int(table.num_rows)
    column = table["count" if output == "counts" else "subscriptions"]
    counts = column if output == "counts" else pc.list_value_length(column)
    return int(pc.sum(counts).as_py() or 0)
