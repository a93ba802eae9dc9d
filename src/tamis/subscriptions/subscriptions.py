"""Who is subscribed to what: ids, handles and filters, without an object for each of millions.

Every subscription has an id and a handle. Handles are given out in ascending order, none of them
twice; a subscription keeps its handle when its filter is replaced. It is in one of two places:

* A *page* (`pages`) is for subscriptions that came in bulk. Rows that are removed are
  marked; when most of a page is gone it is written again without them. Small pages are joined once
  there are many, so an id is never sought in more than a few.
* The *live part* is for subscriptions that came one by one: dicts. A filter that replaces one in a
  page is there too, by its handle.

Threads: a caller that changes something holds its own lock. Looking up needs none: in a page only
the marks ever change, the tuple of pages is replaced as a whole, and a dict is copied, which is one
step for other threads, before anyone iterates over it.
"""

import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.container import checked_array, misfit, text_array, text_sections
from tamis.id_columns import Array, IdColumn, Places
from tamis.language.expression import Expression
from tamis.subscriptions.pages import (
    CHUNK,
    Columns,
    Id,
    SubscriptionPage,
    check_order,
    id_array,
    is_ascending,
    is_text,
    joined,
    page_of,
    rows_among,
    some,
    with_page,
)

SMALL = 64  # subscriptions; fewer of them make no page


class BulkSplit(NamedTuple):
    """The rows of a bulk that count: of each id the last row, in the order of the first ones."""

    new: Array  # rows of ids that are not subscribed
    known: Array  # rows of ids that are
    handles: Array  # of the known ones


class StoredSubscriptions(NamedTuple):
    """Subscriptions for a file, under handles from 0 on."""

    meta: dict[str, Any]
    sections: dict[str, Array]
    handles: Array  # those that they have here, ascending


class Subscriptions:
    """Ids, handles and filters of subscriptions.

    `parse` reads the text of a filter when its expression is needed. Ids are all strings or all
    integers, which the caller checks. In bulk, ids are Arrow arrays of int64 or string, and filters
    are arrays of string or large_string, without nulls.
    """

    def __init__(self, parse: Callable[[str], Expression]) -> None:
        self._parse = parse
        self._pages: tuple[SubscriptionPage, ...] = ()
        self._handles: dict[Id, int] = {}  # of the live part
        self._ids: dict[int, Id] = {}  # of the live part; ascending, since no handle comes twice
        # Of the live part, and of rows in pages whose filters were replaced.
        self._filters: dict[int, Expression | str] = {}
        self._kind: type | None = None
        self._count = 0
        self._next = 0
        self._version = 0  # counts the changes of ids, each after it is done
        self._column: tuple[int, IdColumn] | None = None  # with its version

    @property
    def kind(self) -> type | None:
        """The type of the ids: str, int, or None while there are none."""
        return self._kind if self._count else None

    @property
    def next_handle(self) -> int:
        """The handle that the next new subscription will get."""
        return self._next

    def __len__(self) -> int:
        return self._count

    def __contains__(self, subscription: object) -> bool:
        return isinstance(subscription, str | int) and self.find(subscription) is not None

    def __iter__(self) -> Iterator[Id]:
        """The ids as they are now, in ascending order of their handles."""
        return (subscription for _, subscription in self.items())

    def items(self) -> Iterable[tuple[int, Id]]:
        """The handles and ids as they are now, in ascending order of the handles."""
        parts: list[Iterable[tuple[int, Id]]] = [page.items() for page in self._pages]
        if self._ids:
            parts.append(self._ids.copy().items())
        return parts[0] if len(parts) == 1 else heapq.merge(*parts)

    def filters(self) -> Iterator[tuple[Id, Expression | str]]:
        """The ids and filters, oldest first; what is removed meanwhile is left out.

        A filter may be its text. The texts of many rows are taken from the pages at once, and those
        rows are looked up again if anything has changed since.
        """
        items = iter(self.items())
        while some := list(itertools.islice(items, CHUNK)):
            pages, version = self._pages, self._version
            texts = self._texts([handle for handle, _ in some])
            for (handle, subscription), text in zip(some, texts, strict=True):
                found = self._filters.get(handle, text)
                if pages is not self._pages or version != self._version:
                    try:
                        found = self.filter(handle)
                    except KeyError:
                        continue
                if found is not None:
                    yield subscription, found

    def _texts(self, handles: list[int]) -> list[str | None]:
        """The texts of those handles that are in pages."""
        found: list[str | None] = [None] * len(handles)
        every = np.array(handles, np.int64)
        for page in self._pages:
            rows, known = page.rows(every)
            places = np.arange(len(every)) if known is None else known.nonzero()[0]
            texts = page.texts().take(pa.array(rows[places])).to_pylist()
            for place, text in zip(places.tolist(), texts, strict=True):
                found[place] = text
        return found

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

    def expression(self, handle: int) -> Expression:
        """The filter of a handle; a KeyError if no subscription has the handle any more."""
        found = self.filter(handle)
        return self._parse(found) if isinstance(found, str) else found

    def filter(self, handle: int) -> Expression | str:
        """The filter of a handle as it is kept, which may be its text; else a KeyError."""
        # The dict first: a filter leaves it only after a page has got a newer one.
        found = self._filters.get(handle)
        if found is None:
            page, row = self._place(handle)
            if page is None:
                raise KeyError(handle)
            text: str = page.texts()[row].as_py()
            return text
        return found

    def ids_of(self, handles: Array) -> list[Id]:
        """The ids of handles, without those whose subscriptions are gone meanwhile."""
        pages, live = self._pages, self._ids
        found: Any = None
        left: Any = None
        if not pages:
            return [found for h in handles.tolist() if (found := live.get(h)) is not None]
        if not len(handles):
            return []
        for page in pages:
            rows, known = page.rows(handles)
            if known is None:
                return page.ids_at(rows).tolist()  # type: ignore[no-any-return]  # numpy's tolist
            if left is None:
                left = np.ones(len(handles), bool)
                found = np.empty(len(handles), object if is_text(page.ids) else np.int64)
            found[known] = page.ids_at(rows[known])
            left &= ~known
        for place in left.nonzero()[0].tolist() if live else ():
            subscription = live.get(int(handles[place]))
            if subscription is not None:
                found[place] = subscription
                left[place] = False
        return found[~left].tolist()  # type: ignore[no-any-return]  # numpy's tolist

    def column(self) -> IdColumn:
        """The ids by handle, for tables; rebuilt after ids have come or gone."""
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

    def _place(self, handle: int) -> tuple[SubscriptionPage | None, int]:
        """The page and the row of a handle."""
        for page in self._pages:
            rows, known = page.rows(np.array([handle]))
            if known is None or known[0]:
                return page, int(rows[0])
        return None, -1

    def handles(self) -> Array:
        """All handles, in ascending order."""
        found = [page.handles(page.mask()) for page in self._pages]
        every: Array = np.concatenate([*found, np.array(list(self._ids), np.int64)])
        return np.sort(every)

    # --- one by one

    def add(self, subscription: Id, expression: Expression) -> int:
        """Add an id that is not subscribed, with its filter; returns its handle."""
        self._add_live(self._next, subscription, expression)
        self._grow(type(subscription), 1)
        return self._next - 1

    def replace(self, handle: int, expression: Expression) -> None:
        """Replace the filter of a handle."""
        self._filters[handle] = expression

    def remove(self, subscription: Id) -> int:
        """Remove an id and its filter; returns its handle, or raises a KeyError."""
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
        # After the mark: otherwise the text in the page would be taken for the filter.
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

    def split(self, ids: pa.Array) -> BulkSplit:
        """Which rows of a bulk add a subscription, and which replace the filter of one.

        Of rows with the same id the last one counts. It takes the place of the first one, as if the
        rows had come one by one: subscribing again replaces a filter and keeps its place.
        """
        distinct, last = ids, np.arange(len(ids))
        if not is_ascending(ids):
            encoded = ids.dictionary_encode()
            distinct = encoded.dictionary  # in the order of the first ones
            if len(distinct) < len(ids):
                rows, last = last, np.zeros(len(distinct), np.int64)
                np.maximum.at(last, encoded.indices.to_numpy(), rows)
        handles = self.find_all(distinct)
        known = handles >= 0
        return BulkSplit(last[~known], last[known], handles[known])

    def find_all(self, ids: pa.Array) -> Array:
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
        """Add distinct ids that are not subscribed, with their filters; returns their handles."""
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
        """Replace the filters of handles, whose ids are `ids`."""
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

    def remove_handles(self, handles: Array) -> None:
        """Remove the ids and filters of distinct handles that are in use."""
        if len(handles) == 0:
            return
        gone = set(handles.tolist())
        left = [page.without(handles) for page in self._pages]
        live = {h: one for h, one in self._ids.items() if h not in gone}
        self._pages = tuple(page.rewritten() for page in left if page.size)
        if len(live) < len(self._ids):
            self._ids, self._handles = live, {one: h for h, one in live.items()}
        # After the pages: otherwise the text in one would be taken for the filter.
        for handle in gone if self._filters else ():
            self._filters.pop(handle, None)
        self._count -= len(gone)
        self._version += 1

    def clear(self) -> None:
        """Remove all ids and filters; handles are not given out again."""
        self._pages, self._ids, self._handles, self._filters = (), {}, {}, {}
        self._count = 0
        self._version += 1

    def columns(self) -> Columns | None:
        """All subscriptions, oldest first; None if there is none."""
        if self._count == 0:
            return None
        page = self._as_one_page()
        return page.columns(page.mask())

    # --- files

    def to_sections(self) -> StoredSubscriptions:
        """All subscriptions as the arrays of a file, under handles from 0 on in their order."""
        if self._count == 0:
            return StoredSubscriptions({"count": 0}, {}, np.empty(0, np.int64))
        page = self._as_one_page()
        sections = text_sections("subscriptions.filters", page.texts())
        sections["subscriptions.order"] = page.order
        if is_text(page.ids):
            sections |= text_sections("subscriptions.ids", page.ids)
        else:
            sections["subscriptions.ids"] = page.ids.to_numpy()
        meta = {"count": self._count, "ids": "string" if is_text(page.ids) else "int"}
        return StoredSubscriptions(meta, sections, page.handles(None))

    def _as_one_page(self) -> SubscriptionPage:
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
        cls, meta: Mapping[str, Any], get: Callable[[str], Array], texts: Callable[[], pa.Array],
        parse: Callable[[str], Expression], *, is_trusted: bool,
    ) -> "Subscriptions":  # fmt: skip
        """The subscriptions of `to_sections`; the arrays that `get` returns are not copied.

        `texts` gives those of the filters, and is not called before one is needed. Ids that are not
        trusted are checked: they are texts in the order that is said.
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
            if not is_trusted:
                check_order(ids, order)
            found._pages = (SubscriptionPage(Places(0, count), ids, texts, order),)
            found._grow(str if kind == "string" else int, count)
        return found


def _column(
    pages: tuple[SubscriptionPage, ...], masks: list[Array | None], live: dict[int, Id]
) -> IdColumn:
    if len(pages) == 1 and masks[0] is None and not live:
        return IdColumn(pages[0].ids, pages[0].places)
    handles = [page.handles(mask) for page, mask in zip(pages, masks, strict=True)]
    ids = [some(page.ids, mask) for page, mask in zip(pages, masks, strict=True)]
    if live or not pages:
        handles.append(np.fromiter(live, np.int64, len(live)))
        ids.append(id_array(live.values()))
    return IdColumn(joined(ids), Places.of(np.concatenate(handles)))
