"""A DataFrame of events, on the driver: which columns are attributes, and which go to workers.

Workers get the columns that `event_chunks` describes. A record is cut down to the fields that
filters test.
"""

from collections.abc import Collection, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from tamis.column_types import arrow_of_spark, spark_attributes
from tamis.dead_letters import DeadLetter
from tamis.errors import OptionError, SchemaError, did_you_mean
from tamis.file_tables.dirty_columns import advice, suspects
from tamis.file_tables.input_files import CORRUPT
from tamis.file_tables.unreadable_rows import RowFormat
from tamis.given_events import kept_names
from tamis.language.arrival import present_moment
from tamis.names import Path, path_text
from tamis.schema import Attribute, Schema
from tamis.spark.files.dirty_texts import dirty_texts
from tamis.spark.tables.event_chunks import EventLayout
from tamis.spark.tables.match_schema import refuse_names_of_matches
from tamis.types import reads_as

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame
    from pyspark.sql.types import DataType, StructType


class EventTable:
    """A checked table of events.

    `schema` are its attributes, `skipped` the columns that no filter can use, with their types.
    All events arrive at one `moment`, in microseconds since 1970; if it is left out, now: the same
    in every task, however often and whenever it runs.
    """

    def __init__(
        self, frame: "DataFrame", event_id: str, schema: Schema | None, keep: Sequence[str],
        moment: int | None = None,
    ) -> None:  # fmt: skip
        self.moment = present_moment() if moment is None else moment
        self.frame = frame
        self.event_id = event_id
        self.keep = kept_names(keep)
        fields = _fields(frame)
        check_columns(fields, event_id, self.keep)
        self.has_corrupt = CORRUPT in fields and fields[CORRUPT].typeName() == "string"
        usable = frame.schema
        if self.has_corrupt:
            usable = type(usable)([field for field in usable if field.name != CORRUPT])
        self.skipped = unusable_columns(usable)
        found = Schema.of_attributes(spark_attributes(usable, "skip"))
        self.schema = found if schema is None else schema
        if not len(self.schema):
            raise SchemaError(
                "the events have no column that a filter can use; "
                f"they have {', '.join(map(_shown, usable.fields)) or 'no columns at all'}"
            )
        self._columns = found
        self._present = present_attributes(self.schema, found, self.skipped)

    def like(self, frame: "DataFrame") -> "EventTable":
        """A table of the same kind, of another frame with the same columns."""
        return EventTable(frame, self.event_id, self.schema, self.keep, self.moment)

    @property
    def missing(self) -> list[Attribute]:
        """The attributes that no column has."""
        return [a for a in self.schema.attributes if a.path not in self._present]

    @property
    def unused(self) -> list[Attribute]:
        """The columns that could be attributes, and are not."""
        used = {*self._present.values(), *self.schema.positions}
        return [column for column in self._columns.attributes if column.path not in used]

    @property
    def id_type(self) -> "DataType":
        """The type of the ids of the events."""
        return self.frame.schema[self.event_id].dataType

    def notes(self, letters: Iterable[DeadLetter] | None) -> list[str]:
        """Why filters cannot use columns of texts, and what to do; `letters` are about filters."""
        rows = self._row_format()
        if rows is None or not rows.is_inferred:
            return []
        found = dirty_texts(self.frame, suspects(self.schema, letters))
        return list(advice(self.schema, found))

    def kept_fields(self) -> "list[tuple[str, DataType]]":
        """Names and types of the columns to keep."""
        return [(name, self.frame.schema[name].dataType) for name in self.keep]

    def layout(self, attributes: Iterable[str]) -> EventLayout:
        """Which columns workers get to read some attributes."""
        tops = dict.fromkeys(path[0] for path in self._paths(attributes))
        return EventLayout(
            tuple(tops), self.keep, self.has_corrupt, self._row_format(), self.moment
        )

    def _row_format(self) -> RowFormat | None:
        """What rows of text were read with; None if we did not read them."""
        if not self.has_corrupt:
            return None
        known = self.frame.schema[CORRUPT].metadata
        if "format" not in known:
            return None
        fields = [self.frame.schema[n] for n in known["columns"] if n in self.frame.columns]
        schema = pa.schema([(field.name, arrow_of_spark(field.dataType)) for field in fields])
        return RowFormat(known["format"], schema, known["is_inferred"])

    def project(self, attributes: Iterable[str]) -> "DataFrame":
        """The columns of `layout`."""
        return self._select(attributes, [column_at((name,)) for name in self.keep])

    def numbered(self, attributes: Iterable[str]) -> "DataFrame":
        """The columns of `layout`, but with row numbers instead of the columns to keep."""
        from pyspark.sql import functions as f

        return self._select(attributes, [f.monotonically_increasing_id()])

    def _select(self, attributes: Iterable[str], kept: "list[Column]") -> "DataFrame":
        tree: dict[str, Any] = {}
        for path in self._paths(attributes):
            place = tree
            for part in path:
                place = place.setdefault(part, {})
        columns = [column_at((self.event_id,)).alias("id")]
        columns += [
            _cut((top,), inner).alias(f"e{n}") for n, (top, inner) in enumerate(tree.items())
        ]
        columns += [column.alias(f"k{n}") for n, column in enumerate(kept)]
        if self.has_corrupt:
            columns.append(column_at((CORRUPT,)).alias("corrupt"))
        return self.frame.select(*columns)

    def _paths(self, attributes: Iterable[str]) -> list[Path]:
        """Where some attributes are in the frame."""
        wanted = set(attributes)
        return [
            self._present[a.path]
            for a in self.schema.attributes
            if a.name in wanted and a.path in self._present
        ]


def check_columns(names: Collection[str], event_id: str | None, keep: Sequence[str]) -> None:
    """Refuse columns that the events do not have, and names that only matches can have."""
    wanted = [] if event_id is None else [("event_id", event_id)]
    for what, name in (*wanted, *(("keep", name) for name in keep)):
        if name not in names:
            raise OptionError(
                f"{what}: the events have no column {name!r}; {did_you_mean(name, names)}"
            )
    refuse_names_of_matches("keep", keep)


def attributes_to_read(schema: Schema, tested: Iterable[str], semantics: str) -> set[str]:
    """The attributes that filters test, and those that decide whether an event is valid at all."""
    if semantics == "total":
        return set(schema)
    return {*tested, *(a.name for a in schema.attributes if a.domain is not None)}


def unusable_columns(schema: "StructType", path: Path = ()) -> dict[str, str]:
    """The columns that no filter can use, and their types."""
    found: dict[str, str] = {}
    for field in schema.fields:
        inner = (*path, field.name)
        if field.dataType.typeName() == "struct":
            found |= unusable_columns(field.dataType, inner)  # type: ignore[arg-type]  # it is a struct
        elif not list(spark_attributes(type(schema)([field]), "skip")):
            found[path_text(inner)] = field.dataType.simpleString()
    return found


def _fields(frame: "DataFrame") -> "dict[str, DataType]":
    names = frame.columns
    if len(set(names)) < len(names):
        twice = next(name for name in names if names.count(name) > 1)
        raise OptionError(f"the events have two columns named {twice!r}; rename one of them")
    return {field.name: field.dataType for field in frame.schema.fields}


def present_attributes(schema: Schema, found: Schema, skipped: dict[str, str]) -> dict[Path, Path]:
    """The attributes that the frame has, and their columns; others are missing in all events."""
    present: dict[Path, Path] = {}
    for attribute in schema.attributes:
        path = attribute.path
        for length in range(1, len(path) + 1):
            name = path_text(path[:length])
            if name in skipped:
                raise SchemaError(
                    f"column {name} has the type {skipped[name]}, which no filter can use; "
                    f"expected {_expected(attribute, length)}"
                )
            outer = found.find(path[:length])
            if outer is not None and length < len(path):
                raise SchemaError(
                    f"column {name} is of type {outer}, expected {_expected(attribute, length)}"
                )
        if any(other[: len(path)] == path != other for other in found.positions):
            raise SchemaError(f"column {attribute.name} is a record, expected {attribute}")
        column, flat = found.find(path), None
        if len(path) > 1:  # a frame may name a column address.city, as a table may
            flat = found.find((".".join(path),))
        if column is not None and flat is not None:
            raise SchemaError(
                f"the events have {attribute.name} twice: in the record {path_text(path[:1])} and "
                f"as a column named {'.'.join(path)!r}; rename one of them"
            )
        column = flat if column is None else column
        if column is None:
            continue
        if not reads_as(column.type, attribute.type):
            raise SchemaError(
                f"column {attribute.name} is of type {column}, expected {attribute}; "
                "convert the column, or change the schema"
            )
        present[path] = column.path
    if not present:
        raise SchemaError(
            f"the events have none of the attributes {', '.join(list(schema)[:10])}; "
            f"they have {', '.join(list(found)[:10])}"
        )
    return present


def _expected(attribute: Attribute, length: int) -> str:
    """What must be at the first parts of the path of an attribute."""
    rest = attribute.path[length:]
    return f"a record with {rest[0]!r}" if rest else str(attribute)


def column_at(path: Path) -> "Column":
    """The column of a path, whatever characters are in its names."""
    from pyspark.sql import functions as f

    return f.col(".".join("`" + part.replace("`", "``") + "`" for part in path))


def _cut(path: Path, inner: dict[str, Any]) -> "Column":
    """A column, or the record of those of its fields that are needed."""
    if not inner:
        return column_at(path)
    from pyspark.sql import functions as f

    return f.struct(*(_cut((*path, name), more).alias(name) for name, more in inner.items()))


def _shown(field: Any) -> str:
    return f"{field.name} ({field.dataType.simpleString()})"
