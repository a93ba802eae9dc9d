"""Subscriptions of a DataFrame, compiled by the executors and published to them as one file.

Reading the filters is what takes time, so each task reads and compiles some of them, all of an id
in the same task. The driver joins the compiled parts, which is quick, into one file, and gives it
to Spark, which brings it to every executor that runs a task: no shared folder is needed, and no
broadcast variable, which Spark Connect does not have.
"""

import atexit
import json
import logging
import shutil
import tempfile
import uuid
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from tamis.engines.resources import loaded
from tamis.errors import BulkError, OptionError, SubscriptionError, choose, counted
from tamis.matcher import Matcher
from tamis.schema import Schema
from tamis.spark.batch.event_frames import column_at
from tamis.spark.dead_letters.letters import Letter, filter_letter, listing, texts_of

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

DUPLICATES = ("last", "error")
FILTERS_AT_ONCE = 50_000  # that are compiled together: one bad filter makes them be read again
FILTERS_PER_TASK = 25_000
MOST_TASKS = 512
CHUNK = 8 << 20  # bytes of a file in one row
EXAMPLES = 20  # letters that a task reports; `dead_letters` has them all
FILE_BYTES = 64  # about, that a compiled subscription takes beside its text
OUTCOME = "task int, kind string, number bigint, text string, data binary"

logger = logging.getLogger("tamis")


@dataclass(frozen=True)
class Meaning:
    """What filters mean: all that a worker needs to read one."""

    schema: Schema
    semantics: str = "sql"
    defaults: Mapping[str, Any] | None = None
    skipped: Mapping[str, str] | None = None  # columns that no filter can use, and their types
    profile: Any = None

    def __post_init__(self) -> None:
        # Workers elsewhere have no such file: they get what is in it.
        object.__setattr__(self, "profile", loaded(self.profile))

    def matcher(self) -> Matcher:
        """A matcher without subscriptions."""
        options = {"threads": 1} | ({} if self.profile is None else {"profile": self.profile})
        return Matcher(
            self.schema, semantics=self.semantics, defaults=self.defaults, options=options
        )


class Size(NamedTuple):
    """How much there is to compile."""

    rows: int
    text: int  # bytes of all filters

    @property
    def compiled(self) -> int:
        """About so many bytes when it is compiled."""
        return self.text + FILE_BYTES * self.rows


class Counts(NamedTuple):
    """What became of the rows of a table of subscriptions."""

    rows: int = 0
    good: int = 0
    bad: int = 0
    replaced: int = 0  # rows whose id comes again later

    def __add__(self, other: "tuple[int, ...]") -> "Counts":  # type: ignore[override]  # sums, no longer tuple
        return Counts(*(a + b for a, b in zip(self, other, strict=True)))


# --- the table


class Subscriptions:
    """A table of subscriptions, checked; `order` is the column that says which row is later."""

    def __init__(self, frame: "DataFrame", order: str | None = None) -> None:
        self.frame = frame
        names = frame.columns
        wanted = ("id", "filter") if order is None else ("id", "filter", order)
        for name in wanted:
            if names.count(name) != 1:
                raise OptionError(
                    f"the subscriptions have no column {name!r}, or two of them; "
                    f"there is {', '.join(names) or 'none'}"
                )
        kind = frame.schema["id"].dataType.typeName()
        if kind not in {"string", "varchar", "char", "byte", "short", "integer", "long"}:
            raise OptionError(f"ids of subscriptions are strings or integers, not {kind}")
        self.id_type = "string" if kind in {"string", "varchar", "char"} else "bigint"
        if frame.schema["filter"].dataType.typeName() not in {"string", "varchar", "char"}:
            found = frame.schema["filter"].dataType.simpleString()
            raise OptionError(f"filters are strings, and the column filter is of type {found}")
        self._order = order

    @cached_property
    def size(self) -> Size:
        """Asks Spark."""
        from pyspark.sql import functions as f

        row = self.frame.agg(f.count(f.lit(1)), f.sum(f.octet_length(f.col("filter")))).collect()[0]
        return Size(row[0], row[1] or 0)

    def spread(self, tasks: int) -> "DataFrame":
        """(id, filter, row), all of an id in one partition, in the order in which they count."""
        from pyspark.sql import functions as f

        row = f.monotonically_increasing_id().alias("row")
        later = [] if self._order is None else [column_at((self._order,)).alias("later")]
        columns = [f.col("id").cast(self.id_type).alias("id"), f.col("filter"), row, *later]
        ordered = ["row"] if self._order is None else ["later", "row"]
        spread: DataFrame = self.frame.select(*columns).repartition(tasks, "id")
        return spread.sortWithinPartitions(*ordered).select("id", "filter", "row")


# --- in the workers


@dataclass(frozen=True)
class Compiling:
    """The function of `mapInArrow` that compiles some subscriptions."""

    meaning: Meaning
    duplicates: str

    def __call__(self, batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        from pyspark import TaskContext

        context = TaskContext.get()
        task = 0 if context is None else context.partitionId()
        matcher = self.meaning.matcher()
        counts, letters = Counts(), list[Letter]()
        seen, twice = set[Any](), list[Any]()
        for ids, filters, rows in bulks(batches):
            before = len(matcher)
            if self.duplicates == "error":
                twice += [one for one in ids if one in seen or seen.add(one)]  # type: ignore[func-returns-value]  # None: not seen
            found = subscribe_good(matcher, ids, filters, rows, self.meaning.skipped)
            letters += found[: EXAMPLES - len(letters)]
            good = len(ids) - len(found)
            counts += (len(ids), len(matcher) - before, len(found), good + before - len(matcher))
        twice = [one for one in twice if one is not None]
        if twice:
            yield outcome(task, "twice", len(twice), json.dumps(twice[:EXAMPLES]))
            return
        yield outcome(task, "counts", text=json.dumps(counts))
        for letter in letters:
            yield outcome(task, "letter", text=json.dumps(letter))
        if len(matcher):
            for number, data in enumerate(file_of(matcher)):
                yield outcome(task, "rules", number, data=data)


def bulks(batches: "Iterable[pa.RecordBatch]") -> Iterator[tuple[list[Any], ...]]:
    """Ids, filters, positions and what else the columns hold, many rows at once."""
    from tamis.spark.batch.worker import gathered

    for table in gathered(batches, FILTERS_AT_ONCE):
        yield tuple(texts_of(column) for column in table.columns)


def subscribe_good(
    matcher: Matcher, ids: list[Any], filters: list[Any], rows: list[int],
    skipped: Mapping[str, str] | None,
) -> list[Letter]:  # fmt: skip
    """Subscribe all that can be; letters about the others."""
    letters: list[Letter] = []
    pairs = list(zip(ids, filters, strict=True))
    positions = rows
    while pairs:
        try:
            matcher.subscribe_many(pairs)
            break
        except BulkError as error:
            bad = {place: problem for place, _, problem in error.failures}
            letters += [
                explained(filter_letter(positions[place], *pairs[place], problem), skipped)
                for place, problem in bad.items()
            ]
            positions = [row for place, row in enumerate(positions) if place not in bad]
            pairs = [pair for place, pair in enumerate(pairs) if place not in bad]
    return letters


def explained(letter: Letter, skipped: Mapping[str, str] | None) -> Letter:
    """With the reason why an attribute is unknown, if it is a column that no filter can use."""
    if letter.reason.startswith("unknown attribute") and skipped:
        path = letter.reason.split("'")[1] + "."
        name = next((name for name in skipped if path.startswith(name + ".")), None)
        if name is not None:
            said = f"column {name} has the type {skipped[name]}, which no filter can use"
            where = letter.reason[letter.reason.index(" (line") :]
            return letter._replace(reason=said + where)
    return letter


def file_of(matcher: Matcher) -> Iterator[bytes]:
    """The file of a matcher, in chunks."""
    with tempfile.TemporaryDirectory(prefix="tamis-") as folder:
        path = Path(folder) / "part.tamis"
        matcher.save(path)
        yield from read_chunks(path)


def read_chunks(path: Path) -> Iterator[bytes]:
    """A file, in chunks."""
    with path.open("rb") as file:
        while data := file.read(CHUNK):
            yield data


def outcome(
    task: int, kind: str, number: int = 0, text: str | None = None, data: bytes | None = None
) -> "pa.RecordBatch":
    """One row of what a task says."""
    import pyarrow as pa

    return pa.record_batch(
        {
            "task": pa.array([task], pa.int32()), "kind": [kind],
            "number": pa.array([number], pa.int64()), "text": pa.array([text], pa.string()),
            "data": pa.array([data], pa.binary()),
        }
    )  # fmt: skip


# --- in the driver


class Compiled(NamedTuple):
    """Subscriptions in one file."""

    path: Path
    counts: Counts
    letters: list[Letter]  # the first ones


def compile_all(
    subscriptions: Subscriptions, meaning: Meaning, duplicates: str, folder: Path
) -> Compiled:
    """Compile a table of subscriptions on the executors."""
    choose("treatment of duplicates", duplicates, DUPLICATES)
    tasks = tasks_for(subscriptions.size)
    frame = subscriptions.spread(tasks).mapInArrow(Compiling(meaning, duplicates), OUTCOME)
    found = frame.toArrow()
    counts, letters = read_report(found)
    paths = write_parts(found, folder)
    del found
    return Compiled(join(paths, folder, meaning.profile), counts, letters)


def tasks_for(size: Size) -> int:
    """Among how many tasks the filters are divided."""
    return min(MOST_TASKS, 1 + size.rows // FILTERS_PER_TASK)


def read_report(found: "pa.Table") -> tuple[Counts, list[Letter]]:
    """What the tasks say of the rows; an error if nothing can be used."""
    twice, ids = 0, list[Any]()
    for kind, text, number in zip(
        *(found[name].to_pylist() for name in ("kind", "text", "number")), strict=True
    ):
        if kind == "twice":
            twice += number
            ids += json.loads(text)
    if twice:
        raise SubscriptionError(
            f"ids of subscriptions come again in {counted(twice, 'row')}, such as "
            f"{', '.join(map(repr, ids[:3]))}; make ids unique, or let the last row of an id count "
            "(duplicates='last')"
        )
    counts, letters = read_counts(found)
    if not counts.rows:
        raise SubscriptionError("the table of subscriptions has no rows")
    if not counts.good:
        raise SubscriptionError(f"no subscription can be used: {listing(letters, counts.bad)}")
    return counts, letters


def read_counts(found: "pa.Table") -> tuple[Counts, list[Letter]]:
    """The sums of what the tasks have counted, and their letters, in the order of the rows."""
    counts, letters = Counts(), list[Letter]()
    for kind, text in zip(found["kind"].to_pylist(), found["text"].to_pylist(), strict=True):
        if kind == "counts":
            counts += json.loads(text)
        elif kind == "letter":
            letters.append(Letter(*json.loads(text)))
    return counts, sorted(letters, key=lambda letter: letter.row)


def write_parts(found: "pa.Table", folder: Path) -> list[Path]:
    """The files that the tasks have compiled."""
    import numpy as np
    import pyarrow.compute as pc

    rows = np.flatnonzero(np.asarray(pc.equal(found["kind"], "rules")))
    keys = found.select(["task", "number"]).take(rows).to_pydict()
    paths: list[Path] = []
    # The order of rows, not of a sorted table: Arrow would join all data, and not beyond 2 GB.
    for task, _, row in sorted(zip(keys["task"], keys["number"], rows.tolist(), strict=True)):
        path = folder / f"part-{task}.tamis"
        if not paths or paths[-1] != path:
            paths.append(path)
        with path.open("ab") as file:
            file.write(found["data"][row].as_buffer())
    return paths


def join(parts: list[Path], folder: Path, profile: Any = None) -> Path:
    """One file of several, laid out for events like those of a profile; the parts go."""
    joined = folder / f"rules-{uuid.uuid4().hex}.tamis"
    if len(parts) == 1:
        parts[0].rename(joined)
        return joined
    matcher = Matcher.load(parts[0], options=None if profile is None else {"profile": profile})
    for part in parts[1:]:
        matcher.absorb(part)
    matcher.save(joined)
    for part in parts:
        part.unlink()
    return joined


def publish(spark: "SparkSession", path: Path) -> str:
    """Bring a file to all executors; the name under which workers find it."""
    spark.addArtifacts(str(path), file=True)
    return path.name


def folder_for_files() -> Path:
    """A folder that lives as long as the driver: executors may start late and ask for a file."""
    folder = Path(tempfile.mkdtemp(prefix="tamis-rules-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder
