"""Which rows of a table are not valid events, and why: for callers that go on without them."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.errors import EventError
from tamis.events.columns import checked_columns, find_column, outside_domain
from tamis.events.values import check_domain
from tamis.semantics import Semantics


def faults_of(table: pa.Table, semantics: Semantics) -> dict[int, str]:
    """The rows that matching would refuse, with the reasons, in ascending order.

    Values outside their domains and attributes that must not be missing are found in all rows at
    once; every other fault of a column is found by checking its halves, and the halves of those.
    """
    found: dict[int, str] = {}
    columns = {}
    for attribute in semantics.schema.attributes:
        try:
            columns[attribute] = find_column(table, attribute)
        except EventError:
            return dict(sorted(_halves(table, 0, semantics)))
    for attribute, column in columns.items():
        outside = None if column is None else outside_domain(column, attribute)
        if column is not None and outside is not None:
            for row in np.flatnonzero(np.asarray(pc.fill_null(outside, False))).tolist():
                try:
                    check_domain(attribute, column[row].as_py())
                except UnicodeDecodeError:
                    continue  # not text at all, which is found below
                except EventError as error:
                    found.setdefault(row, error.problem)
    if semantics.name == "total" and table.num_rows:
        _find_missing(list(columns.values()), table.num_rows, semantics, found)
    rows = np.setdiff1d(np.arange(table.num_rows), np.array(list(found), np.int64))
    left = table if not found else table.take(pa.array(rows))
    for row, reason in _halves(left, 0, semantics):
        found[int(rows[row])] = reason
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


def _halves(table: pa.Table, first: int, semantics: Semantics) -> Iterator[tuple[int, str]]:
    """The bad rows of a table whose first row has the number `first`."""
    if not table.num_rows:
        return
    try:
        columns = checked_columns(table, semantics.schema, refuse_unknown=False)
        if semantics.name == "total":
            missing: dict[int, str] = {}
            _find_missing(columns, table.num_rows, semantics, missing)
            yield from ((first + row, reason) for row, reason in missing.items())
    except EventError as error:
        if table.num_rows == 1:
            yield first, error.problem
            return
        middle = table.num_rows // 2
        yield from _halves(table.slice(0, middle), first, semantics)
        yield from _halves(table.slice(middle), first + middle, semantics)


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
