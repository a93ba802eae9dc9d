"""Subscriptions of files, in the order that counts."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.errors import OptionError, did_you_mean
from tamis.file_tables.file_table import FileTable
from tamis.file_tables.input_files import CORRUPT
from tamis.file_tables.type_names import type_name
from tamis.spark.files.readers import check_subscription_types
from tamis.spark.tables.match_schema import ID_TYPES

_LATER = "later"  # the column that says which row is later


class SubscriptionRows:
    """Subscriptions of files: their ids, filters and positions, in the order that counts."""

    def __init__(self, path: str | Path, order: str | None, keep: Sequence[str]) -> None:
        self._table = FileTable(path, row_tag="subscription", multi_line=True, typed=_typed)
        types = {field.name: type_name(field.type) for field in self._table.schema}
        check_subscription_types(types, str(path))
        if order is not None and order not in types:
            raise OptionError(
                f"the subscriptions need exactly one column {order!r}; they have {', '.join(types)}"
            )
        for name in keep:
            if name not in types:
                hint = did_you_mean(name, [each for each in types if each != CORRUPT])
                raise OptionError(f"keep_rules: the subscriptions have no column {name!r}; {hint}")
        self._keep = keep
        self._order = order
        self.id_type = "string" if types["id"] == "string" else "bigint"

    def batches(self) -> Iterator[pa.RecordBatch]:
        """(id, filter, row), row by row in the order that counts."""
        return (batch.select([0, 1, 2]) for batch in self.rows())

    def kept_fields(self) -> list[pa.Field]:
        """The columns to keep."""
        return [self._table.schema.field(name) for name in self._keep]

    def rows(self) -> Iterator[pa.RecordBatch]:
        """(id, filter, row) and the columns to keep, row by row in the order that counts."""
        if self._order is None:
            yield from self._rows()
            return
        table = pa.Table.from_batches(list(self._rows()))
        # Rows without a value come first: false sorts before true.
        sortable = table.select([_LATER, "row"]).append_column("known", table[_LATER].is_valid())
        order = pc.sort_indices(
            sortable, sort_keys=[(name, "ascending") for name in ("known", _LATER, "row")]
        )
        yield from table.take(order).drop_columns([_LATER]).to_batches()

    def _rows(self) -> Iterator[pa.RecordBatch]:
        first = 0
        for batch in self._table.batches():
            texts = batch.column("filter")
            if CORRUPT in batch.schema.names:  # a row that cannot be read has no filter
                texts = pc.if_else(batch.column(CORRUPT).is_null(), texts, None)
            columns = {
                "id": batch.column("id").cast(ID_TYPES[self.id_type]), "filter": texts,
                "row": pa.array(np.arange(first, first + batch.num_rows)),
            }  # fmt: skip
            arrays = [*columns.values(), *(batch.column(name) for name in self._keep)]
            names = [*columns, *(f"kept {name}" for name in self._keep)]
            if self._order is not None:
                arrays.append(batch.column(self._order))
                names.append(_LATER)
            first += batch.num_rows
            yield pa.RecordBatch.from_arrays(arrays, names=names)


def _typed(found: pa.Schema, format: str) -> pa.Schema:
    """The types of a CSV file: a filter TRUE is not a boolean, and an id 1.5 is a text."""
    if format != "csv":
        return found
    return pa.schema(
        [
            (field.name, pa.string())
            if field.name == "filter"
            or (field.name == "id" and not pa.types.is_integer(field.type))
            else field
            for field in found
        ]
    )
