"""Numbers for events that have no ids: 0, 1, 2, ... in the order of the files, as in one long file.

Spark reads blocks of files in any order, and numbers of its own (`monotonically_increasing_id`)
have gaps and depend on how many cores there are. So the rows of each block are counted first, which
gives the number of its first row.
"""

from pathlib import PurePosixPath
from typing import TYPE_CHECKING
from urllib.parse import unquote

from tamis.errors import OptionError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

_FILE, _START, _PLACE, _FIRST = "tamis_file", "tamis_start", "tamis_place", "tamis_first"


def with_row_numbers(events: "DataFrame") -> "tuple[DataFrame, str]":
    """The events of files with a column of numbers, and its name."""
    from pyspark.errors import AnalysisException
    from pyspark.sql import functions as f

    name = "row"
    while name in events.columns:
        name += "_"
    try:
        placed = events.select(
            f.col("_metadata.file_path").alias(_FILE),
            f.col("_metadata.file_block_start").alias(_START),
            f.monotonically_increasing_id().alias(_PLACE),
            "*",
        )
        placed.schema  # noqa: B018 - Spark resolves the columns now
    except AnalysisException:
        raise OptionError(
            "the events have no column id, and rows that are not read from files alone cannot be "
            f"numbered; name the column that identifies them (--event-id), one of "
            f"{', '.join(events.columns)}"
        ) from None
    # A column of the events is read as well: an array in one line of JSON is several rows.
    some = f.count(f.col("`" + events.columns[0].replace("`", "``") + "`"))
    blocks = placed.groupBy(_FILE, _START).agg(
        f.count(f.lit(1)).alias("rows"), f.min(_PLACE).alias("first"), some.alias("some")
    )
    firsts: list[tuple[str, int, int]] = []
    number = 0
    for block in sorted(blocks.collect(), key=lambda row: (_order(row[_FILE]), row[_START])):
        # The rows of a block follow each other in one partition.
        firsts.append((block[_FILE], block[_START], number - block["first"]))
        number += block["rows"]
    known = events.sparkSession.createDataFrame(
        firsts, f"{_FILE} string, {_START} bigint, {_FIRST} bigint"
    )
    numbered = placed.join(f.broadcast(known), [_FILE, _START])
    numbered = numbered.withColumn(name, f.col(_PLACE) + f.col(_FIRST))
    return numbered.drop(_FILE, _START, _PLACE, _FIRST), name


def _order(file: str) -> tuple[str, ...]:
    """Files are in the order of their names, folder by folder."""
    return PurePosixPath(unquote(file)).parts
