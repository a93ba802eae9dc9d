"""`tamis.file_tables.dirty_columns` for a DataFrame."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from tamis.file_tables.dirty_columns import PATTERNS, DirtyColumn, dirty_column
from tamis.names import Path
from tamis.types import Type

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def dirty_texts(frame: "DataFrame", paths: Sequence[Path]) -> list[DirtyColumn]:
    """The dirty ones among columns of strings, found in one pass."""
    from pyspark.sql import functions as f

    sums = []
    for path in paths:
        text = f.col(".".join("`" + part.replace("`", "``") + "`" for part in path))
        sums.append(f.count(text))
        for pattern in PATTERNS.values():
            fits = text.rlike(pattern)
            sums += [f.count_if(fits), f.first(f.when(~fits, text), ignorenulls=True)]
    if not sums:
        return []
    row = list(frame.agg(*(one.alias(f"c{n}") for n, one in enumerate(sums))).collect()[0])
    found = []
    width = 1 + 2 * len(PATTERNS)
    for number, path in enumerate(paths):
        values, *rest = row[number * width : (number + 1) * width]
        fitting: dict[Type, int] = dict(zip(PATTERNS, rest[::2], strict=True))
        examples: dict[Type, str | None] = dict(zip(PATTERNS, rest[1::2], strict=True))
        found.append(dirty_column(path, values, fitting, examples))
    return [one for one in found if one is not None]
