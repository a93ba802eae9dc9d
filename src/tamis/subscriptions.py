"""Who is subscribed to what: ids, handles and filters, without an object for each of millions.

Every subscription has an id and a handle. Handles are given out in ascending order, none of them
twice; a subscription keeps its own when its filter is replaced. All is in one of two places:

* A *page* is for what came in bulk: columns of ids and of the texts of filters. Its rows ascend by
  handle, and a permutation that sorts its ids finds one of them by bisection. Rows that are removed
  are marked; when most of a page is gone it is written anew. A new page is joined with small ones
  before it once there are many, so an id is never sought in more than a few.
* The *live part* is for what came one by one: dicts. A filter that replaces one in a page is there
  too, by its handle.

Threads: whoever changes something holds a lock, which is the caller's. Looking up needs none: in a
page nothing but the marks ever changes, the tuple of pages is replaced as a whole, and a dict is
copied, which is one step for other threads, before somebody goes through it.
"""

import heapq
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.container import checked_array, misfit, text_array, text_buffers, text_sections
from tamis.language.expression import Expression
from tamis.results import Array, IdColumn, Places

Id = str | int

SMALL = 64  # subscriptions; fewer of them make no page
PAGES = 8  # when there are more, the newest are joined
OBJECTS = 65_536  # strings; a larger page makes those of an answer anew rather than keep them all
CHUNK = 4096  # rows that are turned into objects at once
BISECTION = 400  # rows of a page that are passed over in the time of looking one id up
MAX_TEXT = 2**31 - 1  # bytes of a column of strings whose offsets have 32 bits


class Split(NamedTuple):
    """The rows of a bulk that count: of each id the last one, in the order of the first ones."""

    new: Array  # rows of ids that are not subscribed
    known: Array  # rows of ids that are
    handles: Array  # of the known ones


class Stored(NamedTuple):
    """Subscriptions for a file, under handles from 0 on."""

    meta: dict[str, Any]
    sections: dict[str, Array]
    handles: Array  # those that they had, ascending


class Columns(NamedTuple):
    """Subscriptions side by side."""

    handles: Array
    ids: pa.Array
    texts: pa.Array


class Page:
    """Subscriptions in columns, in ascending order of their handles.

    Nothing of it changes, but rows that are removed are marked in `gone`: from the first one on a
    byte for each row, which is less than an entry of a set from one row in fifty on.
    """

    def __init__(
        self, places: Places, ids: pa.Array, texts: Callable[[], pa.Array], order: Array,
        gone: Array | None = None,
    ) -> None:  # fmt: skip
        self.places = places
        self.ids = ids
        self.order = order  # sorts the ids
        self.texts = texts  # those of a file are read when somebody asks
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
        # What is no valid text passes too, and has bytes that no valid text has.
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

    # --- what is left

    def mask(self) -> Array | None:
        """Which rows are not gone; None if none is."""
        return None if self.gone is None else ~self.gone

    def handles(self, mask: Array | None) -> Array:
        """The handles of some rows, or of all."""
        return self.places.handles(np.arange(len(self.ids)) if mask is None else mask.nonzero()[0])

    def columns(self, mask: Array | None) -> Columns:
        """Some rows, or all."""
        return Columns(self.handles(mask), some(self.ids, mask), some(self.texts(), mask))

    def mark(self, row: int) -> None:
        """The row is gone."""
        if self.gone is None:
            self.gone = np.zeros(len(self.ids), bool)
        self.gone[row] = True
        self.size -= 1

    def without(self, handles: Array) -> "Page":
        """A page like this one, of which more is gone."""
        rows, known = self.rows(handles)
        rows = rows if known is None else rows[known]
        if len(rows) == 0:
            return self
        gone = np.zeros(len(self.ids), bool) if self.gone is None else self.gone.copy()
        gone[rows] = True
        return Page(self.places, self.ids, self.texts, self.order, gone)

    def rewritten(self) -> "Page":
        """A page of the rows that are not gone; this one while they are at least half of it."""
        if 2 * self.size >= len(self.ids) or (mask := self.mask()) is None:
            return self
        handles, ids, texts = self.columns(mask)
        order = (np.cumsum(mask) - 1)[self.order[mask[self.order]]]
        return Page(Places.of(handles), ids, lambda: texts, order.astype(np.int32))


class Subscriptions:
    """Ids, handles and filters of subscriptions.

    `parse` reads the text of a filter when somebody asks for the expression. Ids are of one kind,
    str or int; that they are is for the caller to check. In bulk, ids are Arrow arrays of int64 or
    of string, filters of string (or large_string), without nulls.
    """

    def __init__(self, parse: Callable[[str], Expression]) -> None:
        self._parse = parse
        self._pages: tuple[Page, ...] = ()
        self._handles: dict[Id, int] = {}  # of the live part
        self._ids: dict[int, Id] = {}  # of the live part; ascending, as no handle comes twice
        # Of the live part, and of rows of pages whose filters were replaced.
        self._filters: dict[int, Expression | str] = {}
        self._kind: type | None = None
        self._count = 0
        self._next = 0
        self._version = 0  # counts changes of the ids, each when it is done
        self._column: tuple[int, IdColumn] | None = None  # with its version

    @property
    def kind(self) -> type | None:
        """The type of the ids: str, int, or None while there are none."""
        return self._kind if self._count else None

    @property
    def next_handle(self) -> int:
        """The handle that the next new subscription will have."""
        return self._next

    def __len__(self) -> int:
        return self._count

    def __contains__(self, subscription: object) -> bool:
        return isinstance(subscription, str | int) and self.find(subscription) is not None

    def __iter__(self) -> Iterator[Id]:
        """The ids as they are now, in ascending order of their handles."""
        parts: list[Iterable[tuple[int, Id]]] = [page.items() for page in self._pages]
        if self._ids:
            parts.append(self._ids.copy().items())
        items = parts[0] if len(parts) == 1 else heapq.merge(*parts)
        return (subscription for _, subscription in items)

    # --- looking up

    def find(self, subscription: Id) -> int | None:
        """The handle of an id, None if it is not subscribed."""
        if type(subscription) is not self._kind:  # 1 and True are one key of a dict
            return None
        handle = self._handles.get(subscription)
        if handle is None:
            for page in self._pages:
                if (row := page.row(subscription)) >= 0:
                    return int(page.places.handles(np.array([row]))[0])
        return handle

    def id_of(self, handle: int) -> Id | None:
        """The id of a handle, None if it has none."""
        subscription = self._ids.get(handle)
        if subscription is None:
            page, row = self._place(handle)
            subscription = None if page is None else page.ids[row].as_py()
        return subscription

    def expression(self, handle: int) -> Expression:
        """The filter of a handle; a KeyError if it has none, or none any more."""
        # The dict comes first: a filter leaves it only when there is another one in a page.
        found = self._filters.get(handle)
        if found is None:
            page, row = self._place(handle)
            if page is None:
                raise KeyError(handle)
            found = page.texts()[row].as_py()
        return self._parse(found) if isinstance(found, str) else found

    def ids_of(self, handles: Array) -> list[Id]:
        """The ids of handles; those whose subscriptions went meanwhile are left out."""
        pages, live = self._pages, self._ids
        found: Any
        if not pages:
            return [found for h in handles.tolist() if (found := live.get(h)) is not None]
        left: Array = np.ones(len(handles), bool)
        found = np.empty(len(handles), object if is_text(pages[0].ids) else np.int64)
        for page in pages:
            rows, known = page.rows(handles)
            if known is None:
                return page.ids_at(rows).tolist()  # type: ignore[no-any-return]  # numpy's tolist
            found[known] = page.ids_at(rows[known])
            left &= ~known
        for place in left.nonzero()[0].tolist() if live else ():
            subscription = live.get(int(handles[place]))
            if subscription is not None:
                found[place] = subscription
                left[place] = False
        return found[~left].tolist()  # type: ignore[no-any-return]  # numpy's tolist

    def column(self) -> IdColumn:
        """The ids by handle, for tables; made anew when ids have come or gone."""
        while True:
            version, kept = self._version, self._column
            if kept is not None and kept[0] == version:
                return kept[1]
            pages, live = self._pages, self._ids.copy()
            masks = [page.mask() for page in pages]
            if version == self._version:  # nothing came or went between the two lines above
                column = _column(pages, masks, live)
                self._column = version, column
                return column

    def _place(self, handle: int) -> tuple[Page | None, int]:
        """The page and the row of a handle."""
        for page in self._pages:
            rows, known = page.rows(np.array([handle]))
            if known is None or known[0]:
                return page, int(rows[0])
        return None, -1

    # --- one by one

    def add(self, subscription: Id, expression: Expression) -> int:
        """Hold the filter of an id that is not subscribed; its handle."""
        self._add_live(self._next, subscription, expression)
        self._grow(type(subscription), 1)
        return self._next - 1

    def replace(self, handle: int, expression: Expression) -> None:
        """Hold another filter for a handle."""
        self._filters[handle] = expression

    def remove(self, subscription: Id) -> int:
        """Drop an id and its filter; the handle that it had, or a KeyError if it had none."""
        handle = self.find(subscription)
        if handle is None:
            raise KeyError(subscription)
        if self._handles.pop(subscription, None) is not None:
            del self._ids[handle]
        else:
            page, row = self._place(handle)
            if page is not None:
                page.mark(row)
            self._pages = tuple(one.rewritten() for one in self._pages if one.size)
        # After the mark: else the text in the page would be taken for the filter.
        self._filters.pop(handle, None)
        self._count -= 1
        self._version += 1
        return handle

    def _add_live(self, handle: int, subscription: Id, filter_: Expression | str) -> None:
        self._filters[handle] = filter_
        self._ids[handle] = subscription
        self._handles[subscription] = handle

    def _grow(self, kind: type, count: int) -> None:
        self._kind = kind
        self._next += count
        self._count += count
        self._version += 1

    # --- in bulk

    def split(self, ids: pa.Array) -> Split:
        """Which rows of a bulk are to be added, and which replace the filter of an id.

        Of rows with the same id the last one counts. It stands where the first one was, as if the
        rows had come one by one: subscribing again replaces a filter and keeps its place.
        """
        distinct, last = ids, np.arange(len(ids))
        if not is_ascending(ids):
            encoded = ids.dictionary_encode()
            distinct = encoded.dictionary  # in the order of the first ones
            if len(distinct) < len(ids):
                rows, last = last, np.zeros(len(distinct), np.int64)
                np.maximum.at(last, encoded.indices.to_numpy(), rows)
        handles = self._find_all(distinct)
        known = handles >= 0
        return Split(last[~known], last[known], handles[known])

    def _find_all(self, ids: pa.Array) -> Array:
        """The handles of distinct ids, -1 for those that are not subscribed."""
        handles: Array = np.full(len(ids), -1, np.int64)
        for page in self._pages:
            rows = page.rows_of_ids(ids)
            known = rows >= 0
            handles[known] = page.places.handles(rows[known])
        if 0 < len(self._handles) < len(ids):
            rows = rows_among(ids, id_array(self._handles))
            known = rows >= 0
            given = np.fromiter(self._handles.values(), np.int64, len(self._handles))
            handles[known] = given[rows[known]]
        elif self._handles:
            for place, subscription in enumerate(ids.to_pylist()):
                handles[place] = self._handles.get(subscription, handles[place])
        return handles

    def add_page(self, ids: pa.Array, texts: pa.Array) -> range:
        """Hold the filters of ids that are distinct and not subscribed; their handles."""
        first, count = self._next, len(ids)
        if count < SMALL:
            pairs = zip(ids.to_pylist(), texts.to_pylist(), strict=True)
            for handle, (subscription, text) in enumerate(pairs, first):
                self._add_live(handle, subscription, text)
        else:
            page = page_of([Columns(np.arange(first, first + count), ids, texts)])
            self._pages = with_page(self._pages, page)
        if count:
            self._grow(str if is_text(ids) else int, count)
        return range(first, first + count)

    def replace_page(self, handles: Array, ids: pa.Array, texts: pa.Array) -> None:
        """Hold other filters for handles, whose ids are `ids`."""
        live = np.fromiter(map(self._ids.__contains__, handles.tolist()), bool, len(handles))
        if len(handles) - np.count_nonzero(live) < SMALL:
            live[:] = True
        changed = some(texts, live).to_pylist()
        self._filters.update(zip(handles[live].tolist(), changed, strict=True))
        handles, ids, texts = handles[~live], some(ids, ~live), some(texts, ~live)
        if len(handles) == 0:
            return
        pages = [page.without(handles) for page in self._pages]
        left = [page.rewritten() for page in pages if page.size]
        self._pages = with_page(left, page_of([Columns(handles, ids, texts)]))
        for handle in handles.tolist() if self._filters else ():
            self._filters.pop(handle, None)

    def remove_handles(self, handles: Iterable[int]) -> None:
        """Drop the ids and filters of some handles."""
        for handle in handles:
            subscription = self.id_of(handle)
            if subscription is not None:
                self.remove(subscription)

    def columns(self) -> Columns | None:
        """All subscriptions, oldest first; None if there is none."""
        if self._count == 0:
            return None
        page = self._as_one_page()
        return page.columns(page.mask())

    # --- files

    def to_sections(self) -> Stored:
        """All subscriptions in the form of a file, under handles from 0 on in their order."""
        if self._count == 0:
            return Stored({"count": 0}, {}, np.empty(0, np.int64))
        page = self._as_one_page()
        sections = text_sections("subscriptions.filters", page.texts())
        sections["subscriptions.order"] = page.order
        if is_text(page.ids):
            sections |= text_sections("subscriptions.ids", page.ids)
        else:
            sections["subscriptions.ids"] = page.ids.to_numpy()
        meta = {"count": self._count, "ids": "string" if is_text(page.ids) else "int"}
        return Stored(meta, sections, page.handles(None))

    def _as_one_page(self) -> Page:
        if len(self._pages) == 1 and self._pages[0].gone is None and not self._filters:
            return self._pages[0]
        loose = np.array(sorted(self._filters), np.int64)
        pages = [page.without(loose) for page in self._pages]
        parts = [page.columns(page.mask()) for page in pages]
        if len(loose):
            texts = pa.array([str(self._filters[h]) for h in loose.tolist()], pa.large_string())
            parts.append(Columns(loose, id_array(self.ids_of(loose)), texts))
        return page_of(parts)

    @classmethod
    def from_sections(
        cls, meta: Mapping[str, Any], get: Callable[[str], Array],
        parse: Callable[[str], Expression],
    ) -> "Subscriptions":  # fmt: skip
        """What `to_sections` gave; the arrays that `get` gives are used as they are.

        The filters are not asked for before somebody needs one.
        """
        found = cls(parse)
        count, kind = meta.get("count"), meta.get("ids")
        if type(count) is not int or count < 0 or (count and kind not in ("int", "string")):
            raise misfit("subscriptions")
        if count:
            if kind == "string":
                ids = text_array(get, "subscriptions.ids", count)
            else:
                ids = pa.array(checked_array(get, "subscriptions.ids", ("i8",), count))
            order = checked_array(get, "subscriptions.order", ("i4",), count)
            if order.min() < 0 or order.max() >= count:
                raise misfit("subscriptions.order")
            texts = cache(lambda: text_array(get, "subscriptions.filters", count))
            found._pages = (Page(Places(0, count), ids, texts, order),)
            found._grow(str if kind == "string" else int, count)
        return found


# --- pages


def with_page(pages: Iterable[Page], page: Page) -> tuple[Page, ...]:
    """Pages and one more, which is joined with small ones before it once there are many.

    A page is joined when those behind it have together at least half of its size. So a row is
    written anew a few times at most, and pages are about as many as the logarithm of all rows.
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


def page_of(parts: list[Columns]) -> Page:
    """One page of all parts."""
    handles = np.concatenate([part.handles for part in parts])
    ids = joined([part.ids for part in parts])
    texts = joined([part.texts for part in parts])
    if not (handles[1:] > handles[:-1]).all():
        ascending = np.argsort(handles)
        rows = pa.array(ascending)
        handles, ids, texts = handles[ascending], ids.take(rows), texts.take(rows)
    return Page(Places.of(handles), ids, lambda: texts, order_of(ids))


def _column(pages: tuple[Page, ...], masks: list[Array | None], live: dict[int, Id]) -> IdColumn:
    if len(pages) == 1 and masks[0] is None and not live:
        return IdColumn(pages[0].ids, pages[0].places)
    handles = [page.handles(mask) for page, mask in zip(pages, masks, strict=True)]
    ids = [some(page.ids, mask) for page, mask in zip(pages, masks, strict=True)]
    if live or not pages:
        handles.append(np.fromiter(live, np.int64, len(live)))
        ids.append(id_array(live.values()))
    return IdColumn(joined(ids), Places.of(np.concatenate(handles)))


# --- columns


def is_text(column: pa.Array) -> bool:
    """Whether it holds strings; else integers."""
    return bool(column.type != pa.int64())


def id_array(ids: Iterable[Id]) -> pa.Array:
    """Ids as a column."""
    listed = list(ids)
    return pa.array(listed, pa.int64() if listed and type(listed[0]) is int else pa.large_string())


def some(column: pa.Array, mask: Array | None) -> pa.Array:
    """Some rows of a column, or all."""
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
