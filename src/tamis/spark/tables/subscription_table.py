"""A DataFrame of subscriptions, on the driver: checked, measured, and divided among tasks."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from tamis.errors import OptionError, did_you_mean
from tamis.spark.tables.arrow_batches import texts_of
from tamis.spark.tables.event_table import column_at

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DUPLICATES = ("last", "error")
FILTERS_PER_TASK = 25_000
MOST_TASKS = 512
COMPILED_BYTES = 64  # about, that a compiled subscription takes beside its text
_TEXTS = {"string", "varchar", "char"}
_WHOLE = {"byte", "short", "integer", "long"}


class CompileSize(NamedTuple):
    """How many subscriptions there are to compile."""

    rows: int
    text: int  # bytes of all filters

    @property
    def compiled(self) -> int:
        """About how many bytes they take when they are compiled."""
        return self.text + COMPILED_BYTES * self.rows

    @property
    def tasks(self) -> int:
        """Among how many tasks the filters are divided."""
        return min(MOST_TASKS, 1 + self.rows // FILTERS_PER_TASK)


class SubscriptionTable:
    """A checked table of subscriptions; `order` is the column that says which row is later."""

    def __init__(self, frame: "DataFrame", order: str | None = None) -> None:
        self.frame = frame
        names = frame.columns
        wanted = ("id", "filter") if order is None else ("id", "filter", order)
        for name in wanted:
            if names.count(name) != 1:
                raise OptionError(
                    f"the subscriptions need exactly one column {name!r}; "
                    f"they have {', '.join(names) or 'no columns'}"
                )
        kind = frame.schema["id"].dataType.typeName()
        if kind not in _TEXTS | _WHOLE:
            raise OptionError(f"ids of subscriptions are strings or integers, not {kind}")
        self.id_type = "string" if kind in _TEXTS else "bigint"
        if frame.schema["filter"].dataType.typeName() not in _TEXTS:
            found = frame.schema["filter"].dataType.simpleString()
            raise OptionError(f"filters are strings, but the column filter has the type {found}")
        self._order = order

    @cached_property
    def size(self) -> CompileSize:
        """How much there is to compile; Spark counts it once."""
        from pyspark.sql import functions as f

        row = self.frame.agg(f.count(f.lit(1)), f.sum(f.octet_length(f.col("filter")))).collect()[0]
        return CompileSize(row[0], row[1] or 0)

    def spread(self) -> "DataFrame":
        """(id, filter, row): all rows of an id in one partition, in the order that counts."""
        from pyspark.sql import functions as f

        row = f.monotonically_increasing_id().alias("row")
        later = [] if self._order is None else [column_at((self._order,)).alias("later")]
        columns = [f.col("id").cast(self.id_type).alias("id"), f.col("filter"), row, *later]
        ordered = ["row"] if self._order is None else ["later", "row"]
        spread: DataFrame = self.frame.select(*columns).repartition(self.size.tasks, "id")
        return spread.sortWithinPartitions(*ordered).select("id", "filter", "row")

    def check_kept(self, names: Sequence[str]) -> None:
        """Refuse columns to keep that the subscriptions do not have."""
        for name in names:
            if name not in self.frame.columns:
                hint = did_you_mean(name, self.frame.columns)
                raise OptionError(f"keep_rules: the subscriptions have no column {name!r}; {hint}")

    def last_rows(self, names: Sequence[str], bad: "DataFrame | None") -> "DataFrame":
        """(subscription, ...): columns of the row that counts for each id.

        `bad` has the positions (``row``) of rows that cannot be used; None if all can.
        """
        from pyspark.sql import functions as f

        later = [] if self._order is None else [column_at((self._order,))]
        row = f.monotonically_increasing_id()
        kept = f.struct(*(column_at((name,)).alias(name) for name in names))
        columns = [f.col("id").cast(self.id_type).alias("subscription"), kept.alias("kept")]
        rows: DataFrame = self.frame.select(*columns, row.alias("row"), *later)
        if bad is not None:
            rows = rows.join(bad.select("row"), "row", "left_anti")
        order = ["row"] if self._order is None else [self._order, "row"]
        newest = f.struct(*(column_at((name,)) for name in order))
        last = rows.groupBy("subscription").agg(f.max_by("kept", newest).alias("kept"))
        return last.select("subscription", "kept.*")

    def sample(self, most: int) -> list[str]:
        """At most this many filters, from all over the table."""
        from pyspark.sql import functions as f

        frame = self.frame.select(f.col("filter")).where("filter is not null")
        if self.size.rows > most:
            frame = frame.sample(fraction=min(1.0, 1.2 * most / self.size.rows), seed=0)
        return texts_of(frame.limit(most).toArrow()["filter"])
