"""Where subscriptions that change come from.

A change is a row of ``id``, ``filter`` and, if there is such a column, ``op``: ``delete`` removes
the subscription, ``upsert`` (or ``insert``, ``update``, or nothing) adds or replaces it. Without an
``op``, a row without a filter removes. Changes count in their order; one that cannot be used
changes nothing.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tamis.errors import FileError, OptionError, TamisError
from tamis.matcher import Matcher
from tamis.spark.batch.event_frames import CORRUPT
from tamis.spark.compile.compilation import bulks, explained, file_of, outcome, subscribe_good
from tamis.spark.dead_letters.letters import Letter, filter_letter
from tamis.spark.files.folders import Folder

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import Column, DataFrame, SparkSession

    from tamis.spark.compile.compilation import Meaning
    from tamis.spark.stream.versions import Changes

UPSERTS, DELETES = ("upsert", "insert", "update"), ("delete", "remove")
UNREADABLE = "unreadable row"
TABLE = "table:"
_TEXTS = "id string, filter string, op string"
LETTERS = 1000  # that one task keeps of a large change; all of them are counted


class Changelog(Protocol):
    """Something that can tell what changed since a position.

    Implementers: `FolderLog`, `TableLog`, `FixedTable`.
    """

    def news(self, spark: "SparkSession", position: Any) -> "tuple[Any, DataFrame | None]":
        """The position now, and the changes since another one, None if there are none.

        A position is what JSON can hold; None is the beginning. The frame has the columns of a
        change, and ``place``, by which its rows are in order.
        """


def changelog_of(subscriptions: Any, version: str = "version") -> Changelog:
    """The changelog that a user names: a folder, ``table:NAME``, or a DataFrame that is fixed."""
    if hasattr(subscriptions, "news"):
        log: Changelog = subscriptions
        return log
    if isinstance(subscriptions, str) and subscriptions.startswith(TABLE):
        return TableLog(subscriptions.removeprefix(TABLE), version)
    if isinstance(subscriptions, str | Path):
        return FolderLog(str(subscriptions))
    if hasattr(subscriptions, "mapInArrow"):
        return FixedTable(subscriptions)
    raise OptionError(
        "subscriptions are the folder of a changelog, 'table:NAME' or a DataFrame, not "
        f"{type(subscriptions).__name__}"
    )


@dataclass(frozen=True)
class FolderLog:
    """A folder to which files of changes are moved; they are never changed afterwards.

    Files that are found together count in the order of their names. Names that begin with a dot or
    an underscore are ignored, so a file can be written under one and renamed.
    """

    folder: str

    def news(self, spark: "SparkSession", position: Any) -> "tuple[Any, DataFrame | None]":
        seen = set(position or ())
        new = [name for name in Folder(self.folder).names() if name not in seen]
        if not new:
            return position, None
        frames = [
            change_file(spark, f"{self.folder}/{name}", number) for number, name in enumerate(new)
        ]
        if position is None:
            frames = [_typed(frame) for frame in frames]
            if len({frame.schema["id"].dataType.typeName() for frame in frames}) > 1:
                frames = [_with_text_ids(frame) for frame in frames]
        whole = frames[0]
        for frame in frames[1:]:
            whole = whole.unionByName(_like(frame, whole))
        return sorted(seen | set(new)), whole


def change_file(spark: "SparkSession", path: str, number: int) -> "DataFrame":
    """The changes of one file, the `number`-th of some; ids of text files are texts."""
    from pyspark.sql import functions as f

    suffix = next((one for one in Path(path).suffixes[::-1] if one != ".gz"), "")
    place = f.struct(
        f.lit(number).alias("file"), f.col("_metadata.file_block_start").alias("block"),
        f.monotonically_increasing_id().alias("row"),
    )  # fmt: skip
    reader = spark.read
    match suffix:
        case ".parquet":
            return _columns(reader.parquet(path), place)
        case ".json" | ".jsonl":
            frame = reader.schema(f"{_TEXTS}, {CORRUPT} string").json(path)
        case ".csv":
            reader = reader.options(header=True, escape='"', multiLine=True, columnPruning=False)
            names = reader.csv(path).columns
            columns = ", ".join(f"`{name.replace('`', '``')}` string" for name in names)
            frame = reader.schema(f"{columns}, {CORRUPT} string").csv(path)
        case ".xml":
            reader = reader.options(rowTag="subscription")
            frame = reader.schema(f"{_TEXTS}, {CORRUPT} string").xml(path)
        case _:
            raise FileError(
                f"{path} is of no known format; changes are .parquet .json .jsonl .csv .xml files"
            )
    return _columns(frame, place)


def _typed(frame: "DataFrame") -> "DataFrame":
    """Whole numbers for ids, if all of them are."""
    from pyspark.sql import functions as f

    if frame.schema["id"].dataType.typeName() != "string":
        return frame
    numbers = f.col("id").rlike("^-?[0-9]{1,18}$")
    row = frame.agg(f.bool_and(numbers).alias("all")).collect()[0]
    return frame.withColumn("id", f.col("id").cast("bigint")) if row["all"] else frame


def _with_text_ids(frame: "DataFrame") -> "DataFrame":
    from pyspark.sql import functions as f

    return frame.withColumn("id", f.col("id").cast("string"))


def _like(frame: "DataFrame", other: "DataFrame") -> "DataFrame":
    """With ids of the type that another frame has; null where they cannot be."""
    from pyspark.sql import functions as f

    kind = other.schema["id"].dataType.simpleString()
    return frame.withColumn("id", f.col("id").try_cast(kind))


@dataclass(frozen=True)
class TableLog:
    """A table to which changes are appended, each with a version greater than all before."""

    name: str
    version: str

    def news(self, spark: "SparkSession", position: Any) -> "tuple[Any, DataFrame | None]":
        from pyspark.sql import functions as f

        spark.catalog.refreshTable(self.name)
        frame = spark.read.table(self.name)
        if self.version not in frame.columns:
            raise OptionError(
                f"the table {self.name} has no column {self.version!r} that numbers its changes; "
                f"it has {', '.join(frame.columns)}"
            )
        number = f.col(f"`{self.version}`").cast("bigint")
        newest = frame.agg(f.max(number)).collect()[0][0]
        if newest is None or (position is not None and newest <= position):
            return position, None
        some = frame.where(number <= newest)
        some = some if position is None else some.where(number > position)
        place = f.struct(number.alias("version"), f.monotonically_increasing_id().alias("row"))
        return newest, _columns(some, place)


@dataclass(frozen=True)
class FixedTable:
    """Subscriptions that do not change."""

    frame: "DataFrame"

    def news(self, spark: "SparkSession", position: Any) -> "tuple[Any, DataFrame | None]":  # noqa: ARG002 - the frame has its own
        from pyspark.sql import functions as f

        if position is not None:
            return position, None
        place = f.struct(f.monotonically_increasing_id().alias("row"))
        return "fixed", _columns(self.frame, place)


def _columns(frame: "DataFrame", place: "Column") -> "DataFrame":
    """id, filter, op, place; a row that could not be read has an `op` that nobody knows."""
    from pyspark.sql import functions as f

    names = frame.columns
    if "id" not in names:
        raise OptionError(f"the changes have no column 'id'; they have {', '.join(names)}")
    text = f.col("filter").cast("string") if "filter" in names else f.lit(None).cast("string")
    op = f.lower(f.col("op").cast("string")) if "op" in names else f.lit(None).cast("string")
    if CORRUPT in names:
        op = f.when(f.col(CORRUPT).isNotNull(), f.lit(UNREADABLE)).otherwise(op)
        text = f.coalesce(text, f.col(CORRUPT))
    return frame.select("id", text.alias("filter"), op.alias("op"), place.alias("place"))


# --- what changes come to


def is_removal(text: Any, op: str | None) -> bool:
    """Whether a change removes its subscription."""
    return op in DELETES or (op is None and text is None)


def changes_of(
    rows: Iterable[tuple[Any, Any, str | None]], meaning: "Meaning"
) -> "tuple[Changes, list[Letter]]":
    """What some changes come to, one after the other, and those that cannot be used."""
    found: Changes = {}
    letters: list[Letter] = []
    matcher = meaning.matcher()
    for row, (subscription, text, op) in enumerate(rows):
        try:
            check_op(op)
            if is_removal(text, op):
                if subscription is None:
                    raise OptionError("the change has no id")
                found.pop(subscription, None)
                found[subscription] = None
                continue
            matcher.subscribe(subscription, text)
            found.pop(subscription, None)
            found[subscription] = text
        except TamisError as error:
            letters.append(
                explained(filter_letter(row, subscription, text, error), meaning.skipped)
            )
    return found, letters


def check_op(op: str | None) -> None:
    """Refuse an operation that nobody knows."""
    if op == UNREADABLE:
        raise OptionError("the row cannot be read")
    if op is not None and op not in UPSERTS + DELETES:
        raise OptionError(f"unknown op {op!r}; there is {', '.join(UPSERTS + DELETES)}")


@dataclass(frozen=True)
class ChangeCompiling:
    """The function of `mapInArrow` that compiles many changes; all of an id are in one task."""

    meaning: "Meaning"

    def __call__(self, batches: "Iterable[pa.RecordBatch]") -> "Iterator[pa.RecordBatch]":
        import json

        from pyspark import TaskContext

        context = TaskContext.get()
        task = 0 if context is None else context.partitionId()
        matcher = self.meaning.matcher()
        letters: list[Letter] = []
        removed: dict[Any, None] = {}
        rows = 0
        for ids, filters, places, ops in bulks(batches):
            rows += len(ids)
            letters += apply(matcher, ids, filters, places, ops, removed, self.meaning.skipped)
        yield outcome(task, "counts", text=json.dumps([rows, len(matcher), len(letters), 0]))
        yield outcome(task, "removed", text=json.dumps(list(removed)))
        for letter in letters[:LETTERS]:
            yield outcome(task, "letter", text=json.dumps(letter))
        if len(matcher):
            for number, data in enumerate(file_of(matcher)):
                yield outcome(task, "rules", number, data=data)


def apply(
    matcher: Matcher, ids: list[Any], filters: list[Any], places: list[int], ops: list[str | None],
    removed: dict[Any, None], skipped: Mapping[str, str] | None,
) -> list[Letter]:  # fmt: skip
    """Some changes in their order, to what a task has so far; ids that went at any time are noted.

    What stands before the last removal of its id does not matter any more.
    """
    letters: list[Letter] = []
    gone: dict[Any, int] = {}
    for row, (subscription, text, op) in enumerate(zip(ids, filters, ops, strict=True)):
        try:
            check_op(op)
            if is_removal(text, op):
                if subscription is None:
                    raise OptionError("the change has no id")
                gone[subscription] = row
        except TamisError as error:
            letters.append(filter_letter(places[row], subscription, text, error))
    bad = {letter.row for letter in letters}
    for subscription in gone:
        removed[subscription] = None
        if subscription in matcher:
            matcher.unsubscribe(subscription)
    kept = [
        row
        for row, subscription in enumerate(ids)
        if row > gone.get(subscription, -1) and places[row] not in bad
    ]
    return letters + subscribe_good(
        matcher, [ids[row] for row in kept], [filters[row] for row in kept],
        [places[row] for row in kept], skipped,
    )  # fmt: skip
