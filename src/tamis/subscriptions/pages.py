"""Pages: subscriptions that came in bulk, in columns, without an object for each of millions.

A page has a column of ids and one of the texts of filters. Its rows ascend by handle, and a
permutation that sorts its ids finds one of them by bisection.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator
from functools import cached_property
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.container import misfit, text_buffers
from tamis.id_columns import Array, Places

Id = str | int

PAGES = 8  # when there are more, the newest are joined
OBJECTS = 65_536  # ids; a page with more strings makes those of an answer each time, and keeps none
CHUNK = 4096  # rows that are turned into objects at once
BISECTION = 400  # rows of a page that can be passed over in the time that one bisection takes
MAX_TEXT = 2**31 - 1  # bytes of a column of strings whose offsets have 32 bits


class Columns(NamedTuple):
    """Subscriptions as columns, one row per subscription."""

    handles: Array
    ids: pa.Array
    texts: pa.Array


class SubscriptionPage:
    """Subscriptions in columns, in ascending order of their handles.

    Only `gone` ever changes, in which removed rows are marked: one byte per row once the first one
    is removed, which takes less than a set as soon as one row in fifty is gone.
    """

    def __init__(
        self, places: Places, ids: pa.Array, texts: Callable[[], pa.Array], order: Array,
        gone: Array | None = None,
    ) -> None:  # fmt: skip
        self.places = places
        self.ids = ids
        self.order = order  # sorts the ids
        self.texts = texts  # a function: those of a file are read when they are first needed
        self.gone = gone
        self.size = len(ids) - (0 if gone is None else int(np.count_nonzero(gone)))

    # --- looking up

    @cached_property
    def _keys(self) -> Callable[[int], int | bytes]:
        """The key of a row in `order`. Strings are compared as Arrow does it: by their UTF-8."""
        if not is_text(self.ids):
            return self._values.item
        offsets, data = (array.data for array in text_buffers(self.ids))
        return lambda row: data[offsets[row] : offsets[row + 1]].tobytes()

    @cached_property
    def _values(self) -> Array:
        values: Array = self.ids.to_numpy(zero_copy_only=not is_text(self.ids))
        return values

    def row(self, sought: Id) -> int:
        """The row of an id, -1 if it has none."""
        # A text that is not valid Unicode passes too: no valid text has the same bytes.
        key = sought if isinstance(sought, int) else sought.encode("utf-8", "surrogatepass")
        order, keys = self.order.data, self._keys
        place = bisect_left(order, key, key=keys)
        if place == len(order) or keys(order[place]) != key:
            return -1
        row: int = order[place]
        return -1 if self.gone is not None and self.gone[row] else row

    def rows_of_ids(self, ids: pa.Array) -> Array:
        """The row of each of many distinct ids, -1 if it has none."""
        if len(ids) * BISECTION < len(self.ids):
            return np.array([self.row(subscription) for subscription in ids.to_pylist()], np.int64)
        rows = rows_among(ids, self.ids)
        if self.gone is not None:
            rows[(rows >= 0) & self.gone[rows]] = -1
        return rows

    def rows(self, handles: Array) -> tuple[Array, Array | None]:
        """The row of each handle, and whether it has one; None if they all have."""
        rows, known = self.places.rows(handles)
        if self.gone is None:
            return rows, known
        known = np.ones(len(rows), bool) if known is None else known
        known[known] = ~self.gone[rows[known]]
        return rows, None if known.all() else known

    def ids_at(self, rows: Array) -> Array:
        """The ids of rows, as an array of integers or of objects."""
        if len(self.ids) <= OBJECTS or not is_text(self.ids):
            return self._values[rows]
        found: Array = self.ids.take(pa.array(rows)).to_numpy(zero_copy_only=False)
        return found

    def items(self) -> Iterator[tuple[int, Id]]:
        """Handles and ids."""
        for start in range(0, len(self.ids), CHUNK):
            ids = self.ids[start : start + CHUNK].to_pylist()
            handles = self.places.handles(np.arange(start, start + len(ids))).tolist()
            for row, item in enumerate(zip(handles, ids, strict=True), start):
                if self.gone is None or not self.gone[row]:
                    yield item

    # --- rows that are not gone

    def mask(self) -> Array | None:
        """Which rows are not gone; None if all are there."""
        return None if self.gone is None else ~self.gone

    def handles(self, mask: Array | None) -> Array:
        """The handles of some rows, or of all."""
        return self.places.handles(np.arange(len(self.ids)) if mask is None else mask.nonzero()[0])

    def columns(self, mask: Array | None) -> Columns:
        """Some rows, or all."""
        return Columns(self.handles(mask), some(self.ids, mask), some(self.texts(), mask))

    def mark(self, row: int) -> None:
        """Mark a row as gone."""
        if self.gone is None:
            self.gone = np.zeros(len(self.ids), bool)
        self.gone[row] = True
        self.size -= 1

    def without(self, handles: Array) -> "SubscriptionPage":
        """The same page, with the rows of these handles gone as well."""
        rows, known = self.rows(handles)
        rows = rows if known is None else rows[known]
        if len(rows) == 0:
            return self
        gone = np.zeros(len(self.ids), bool) if self.gone is None else self.gone.copy()
        gone[rows] = True
        return SubscriptionPage(self.places, self.ids, self.texts, self.order, gone)

    def rewritten(self) -> "SubscriptionPage":
        """A page of the rows that are there; this page while they are at least half of it."""
        if 2 * self.size >= len(self.ids) or (mask := self.mask()) is None:
            return self
        handles, ids, texts = self.columns(mask)
        order = (np.cumsum(mask) - 1)[self.order[mask[self.order]]]
        return SubscriptionPage(Places.of(handles), ids, lambda: texts, order.astype(np.int32))


# --- several pages


def with_page(
    pages: Iterable[SubscriptionPage], page: SubscriptionPage
) -> tuple[SubscriptionPage, ...]:
    """Pages and one more, which is joined with small ones before it once there are many.

    A page is joined when the pages after it have together at least half of its size. So a row is
    rewritten a few times at most, and there are about as many pages as the logarithm of all rows.
    """
    together = [*pages, page]
    if len(together) > PAGES:
        start, size = len(together) - 1, page.size
        while start > 0 and together[start - 1].size <= 2 * size:
            start -= 1
            size += together[start].size
        if start < len(together) - 1:
            together[start:] = [page_of([one.columns(one.mask()) for one in together[start:]])]
    return tuple(together)


def page_of(parts: list[Columns]) -> SubscriptionPage:
    """One page of all parts."""
    handles = np.concatenate([part.handles for part in parts])
    ids = joined([part.ids for part in parts])
    texts = joined([part.texts for part in parts])
    if not (handles[1:] > handles[:-1]).all():
        ascending = np.argsort(handles)
        rows = pa.array(ascending)
        handles, ids, texts = handles[ascending], ids.take(rows), texts.take(rows)
    return SubscriptionPage(Places.of(handles), ids, lambda: texts, order_of(ids))


# --- columns


def is_text(column: pa.Array) -> bool:
    """Whether a column of ids or filters holds strings; if not, it holds integers."""
    return bool(column.type != pa.int64())


def id_array(ids: Iterable[Id]) -> pa.Array:
    """Ids as a column."""
    listed = list(ids)
    return pa.array(listed, pa.int64() if listed and type(listed[0]) is int else pa.large_string())


def some(column: pa.Array, mask: Array | None) -> pa.Array:
    """The rows of a column that a mask selects; all rows if it is None."""
    return column if mask is None else column.filter(pa.array(mask))


def joined(columns: list[pa.Array]) -> pa.Array:
    """One column; its strings have offsets of 32 bits if those reach far enough."""
    if is_text(columns[0]):
        size = sum(int(offsets[-1] - offsets[0]) for offsets, _ in map(text_buffers, columns))
        kind = pa.string() if size <= MAX_TEXT else pa.large_string()
        columns = [column.cast(kind) for column in columns]
    return columns[0] if len(columns) == 1 else pa.concat_arrays(columns)


def is_ascending(column: pa.Array) -> bool:
    """Whether each value is greater than the one before it."""
    if is_text(column):
        return pc.all(pc.less(column[:-1], column[1:])).as_py() is not False
    values = column.to_numpy()
    return bool((values[:-1] < values[1:]).all())


def order_of(column: pa.Array) -> Array:
    """The rows in ascending order of their values."""
    if is_ascending(column):
        return np.arange(len(column), dtype=np.int32)
    if not is_text(column):
        return np.argsort(column.to_numpy()).astype(np.int32)
    order: Array = pc.array_sort_indices(column).to_numpy()
    return order.astype(np.int32)


def check_order(column: pa.Array, order: Array) -> None:
    """Refuse an order, from a file, that does not sort the values, or values that are not text."""
    column.validate(full=True)
    if order.min() < 0 or order.max() >= len(column):
        raise misfit("subscriptions.order")
    is_sorted = is_ascending(column)
    if is_sorted and bool((order == np.arange(len(order))).all()):
        return
    if is_sorted or not is_ascending(column.take(pa.array(order))):
        raise misfit("subscriptions.order")


def rows_among(wanted: pa.Array, column: pa.Array) -> Array:
    """The row of each value in a column, -1 if it is not there; both have distinct values."""
    if wanted.type != column.type:
        wanted, column = wanted.cast(pa.large_string()), column.cast(pa.large_string())
    # The smaller one becomes a hash table.
    if len(column) <= len(wanted):
        found: Array = pc.index_in(wanted, value_set=column).fill_null(-1).to_numpy()
        return found.astype(np.int64)
    rows: Array = np.full(len(wanted), -1, np.int64)
    places = pc.index_in(column, value_set=wanted).fill_null(-1).to_numpy()
    hits = (places >= 0).nonzero()[0]
    rows[places[hits]] = hits
    return rows
