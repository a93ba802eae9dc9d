"""The columns of the events of a stream, when it is started: compared with those of the checkpoint.

The checkpoint has, in ``events.json``, all columns that the events ever had, with their types in
Spark (``columns``), and those that the setting ``schema`` left out when the stream was started for
the first time (``left_out``). Whoever reads files uses them: files that have no such field yet, or
not any more, would not say that there is one.
"""

import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.file_tables.input_files import CORRUPT
from tamis.schema import Schema
from tamis.spark.files.known_columns import with_known
from tamis.spark.stream.stream_schema import StreamSchema, differences, merged
from tamis.spark.stream.versions import Versions, log_of
from tamis.spark.tables.event_table import EventTable

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

logger = logging.getLogger("tamis")


class StreamEvents:
    """The events of a stream that is started, and what filters can test of them."""

    def __init__(
        self, frame: "DataFrame", event_id: str, keep: Sequence[str], given: Schema | None,
        defaults: Mapping[str, Any] | None, versions: Versions,
    ) -> None:  # fmt: skip
        newest = versions.newest() if versions.owner() is not None else 0
        known = Schema(versions.get(newest).schema) if newest else None
        schema = given if known is None or given is None else merged(known, given)
        self.table = EventTable(frame, event_id, schema or known, keep)
        facts = versions.read_events() if newest else None
        self._before = (facts or {}).get("columns")
        if known is None:
            self._left_out = [column.name for column in self.table.unused]
        else:
            self._left_out = list((facts or {}).get("left_out", ()))
        columns = [column for column in self.table.unused if column.name not in self._left_out]
        if defaults is not None:  # without a default, a column cannot become an attribute
            columns = [column for column in columns if column.name in defaults]
        self.schema = StreamSchema(self.table.schema, tuple(columns))
        if known is not None:
            for said in differences(known, self.schema, self.table.missing):
                logger.warning("%s", said)

    def note(self, versions: Versions) -> None:
        """Write down the columns."""
        columns = self.table.frame.drop(CORRUPT).schema
        if self._before:
            columns = with_known(columns, _struct(self._before), "parquet")
        versions.write_events({"columns": columns.jsonValue(), "left_out": self._left_out})


def known_columns(checkpoint: str | Path) -> "StructType | None":
    """All columns that the events of a stream ever had, None if it has not been started yet."""
    versions = log_of(checkpoint)
    facts = versions.read_events() if versions.owner() is not None else None
    return _struct(facts["columns"]) if facts else None


def _struct(columns: dict[str, Any]) -> "StructType":
    from pyspark.sql.types import StructType

    return StructType.fromJson(columns)
