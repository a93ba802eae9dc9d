"""Where subscriptions that change come from.

A change is a row of ``id``, ``filter`` and, if there is such a column, ``op`` (see `changes`).
"""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from tamis.errors import FileError, OptionError
from tamis.file_tables.input_files import CORRUPT, TABLE
from tamis.spark.files.folders import Folder
from tamis.spark.stream.changes import UNREADABLE

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_TEXTS = "id string, filter string, op string"


class ChangelogNews(NamedTuple):
    """What is new in a changelog."""

    position: Any  # how far it was read; anything that JSON can hold, None is the beginning
    changes: "DataFrame | None" = None  # with the columns of a change, and `place`, their order
    problems: tuple[str, ...] = ()  # with the source itself, for people
    is_text: bool = False  # the ids were read from text files, and may be integers


class Changelog(Protocol):
    """A source of changes that can be read from a position on.

    Implementers: `FolderLog`, `TableLog`, `FixedTable`.
    """

    def news(self, spark: "SparkSession", position: Any) -> ChangelogNews:
        """What is new since a position."""


def changelog_of(subscriptions: Any, version: str = "version") -> Changelog:
    """The changelog that a user names: a folder, ``table:NAME``, or a DataFrame that stays."""
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
    """A folder to which files of changes are moved; they must not be changed afterwards.

    New files count in the order of their names. Names that begin with a dot or an underscore are
    ignored, so a file can be written under such a name and then renamed.

    The position has the size and the time of each file when it was read. What is written to a file
    later is not read: it may be half of a change, and a part of the file has counted already. A
    warning says so.
    """

    folder: str

    def news(self, spark: "SparkSession", position: Any) -> ChangelogNews:
        seen = dict(position or {})
        there = Folder(self.folder).stamps()  # before they are read: what comes later is noticed
        new = [name for name in there if name not in seen]
        changed = [name for name in there if name in seen and there[name] != seen[name]]
        if not new and not changed:
            return ChangelogNews(position)
        problems = tuple(
            f"the file {name} was changed after it was read"
            f"{_sizes(seen[name][0], there[name][0])}; "
            "what it says now does not count. Put changes into a file with a new name, and write a "
            "file under a hidden name before you rename it"
            for name in changed
        )
        frames = [
            change_file(spark, f"{self.folder}/{name}", number) for number, name in enumerate(new)
        ]
        if len({frame.schema["id"].dataType.typeName() for frame in frames}) > 1:
            frames = [frame.withColumn("id", frame["id"].cast("string")) for frame in frames]
        whole = frames[0] if frames else None
        for frame in frames[1:]:
            whole = whole.unionByName(frame) if whole is not None else frame
        is_text = not any(name.endswith(".parquet") for name in new)
        return ChangelogNews({**seen, **there}, whole, problems, is_text)


def _sizes(then: int, now: int) -> str:
    return "" if then == now else f": {then:,} bytes then, {now:,} now"


def change_file(spark: "SparkSession", path: str, number: int) -> "DataFrame":
    """The changes of one file, with its number among the new ones; ids of text files are texts."""
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
                f"{path} has an unknown format; changes are .parquet .json .jsonl .csv .xml files"
            )
    return _columns(frame, place)


def type_of_ids(news: ChangelogNews) -> str:
    """The type of the ids of changes, for Spark; texts are integers if all of them are."""
    from pyspark.sql import functions as f

    assert news.changes is not None  # noqa: S101 - whoever asks has looked
    kind = news.changes.schema["id"].dataType.typeName()
    if kind in {"byte", "short", "integer", "long"}:
        return "bigint"
    if not news.is_text:
        return "string"
    numbers = f.col("id").rlike("^-?[0-9]{1,18}$")
    row = news.changes.agg(f.bool_and(numbers).alias("all")).collect()[0]
    return "bigint" if row["all"] else "string"


@dataclass(frozen=True)
class TableLog:
    """A table to which changes are appended, each with a greater version than those before it."""

    name: str
    version: str

    def news(self, spark: "SparkSession", position: Any) -> ChangelogNews:
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
            return ChangelogNews(position)
        some = frame.where(number <= newest)
        some = some if position is None else some.where(number > position)
        place = f.struct(number.alias("version"), f.monotonically_increasing_id().alias("row"))
        return ChangelogNews(newest, _columns(some, place))


@dataclass(frozen=True)
class FixedTable:
    """Subscriptions that do not change."""

    frame: "DataFrame"

    def news(self, spark: "SparkSession", position: Any) -> ChangelogNews:  # noqa: ARG002 - the frame has its own
        from pyspark.sql import functions as f

        if position is not None:
            return ChangelogNews(position)
        place = f.struct(f.monotonically_increasing_id().alias("row"))
        return ChangelogNews("fixed", _columns(self.frame, place))


def _columns(frame: "DataFrame", place: "Column") -> "DataFrame":
    """id, filter, op, place; a row that could not be read has the `op` UNREADABLE."""
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
