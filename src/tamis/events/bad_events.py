"""Which rows of a table are not valid events, and why: for callers that go on without them."""

from typing import Any

import numpy as np
import pyarrow as pa

from tamis.errors import EventError
from tamis.events.column_values import values_of
from tamis.events.columns import check_names, find_column
from tamis.semantics import Semantics


def faults_of(table: pa.Table, semantics: Semantics) -> dict[int, str]:
    """The rows that matching would refuse, with the reasons, in ascending order.

    A column of a type that does not fit is the fault of every row.
    """
    attributes = semantics.schema.attributes
    try:
        check_names(table, semantics.schema, refuse_unknown=False)
        columns = [find_column(table, attribute) for attribute in attributes]
    except EventError as error:
        return dict.fromkeys(range(table.num_rows), error.problem)
    found: dict[int, str] = {}
    for attribute, column in zip(attributes, columns, strict=True):
        if column is not None:
            read = values_of(column, attribute)
            for row in read.bad.tolist():
                if row not in found:
                    found[row] = read.reason(row)
    if semantics.name == "total" and table.num_rows:
        _find_missing(columns, table.num_rows, semantics, found)
    return dict(sorted(found.items()))


def _find_missing(
    columns: list[pa.ChunkedArray | None], size: int, semantics: Semantics, found: dict[int, str]
) -> None:
    present = [
        np.zeros(size, bool) if column is None else np.asarray(column.is_valid())
        for column in columns
    ]
    for row in np.flatnonzero(~np.logical_and.reduce(present)).tolist():
        try:
            semantics.prepare(tuple(True if mask[row] else None for mask in present))
        except EventError as error:
            found.setdefault(row, error.problem)


def python_value(value: pa.Scalar) -> Any:
    """A value in Python's types; a text about it if they cannot hold it."""
    if pa.types.is_struct(value.type) and value.is_valid:
        return {name: python_value(inner) for name, inner in value.items()}
    try:
        return value.as_py()
    except UnicodeDecodeError:
        is_text = pa.types.is_string(value.type) or pa.types.is_large_string(value.type)
        if is_text:
            return value.as_buffer().to_pybytes().decode(errors="replace")
    except (OverflowError, ValueError):  # a date beyond Python's calendar
        if hasattr(value, "value"):
            return f"{value.type} {value.value}"
    return f"a value of type {value.type}"
