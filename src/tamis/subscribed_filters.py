"""Subscriptions and the engine that holds their filters, always in step.

A change is done as a whole or not at all: everything that can fail comes before anything is
changed. `changing` is held by a change from its beginning to its end, `lock` only while ids and
engine differ; matches take `lock` too, if the engine is not made for threads.
"""

import threading
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.deep_stack import called_deeply, with_deep_stack
from tamis.engines.base import BatchEngine, Engine
from tamis.errors import SubscriptionError, TamisError, UnknownSubscription, did_you_mean
from tamis.filter_warnings import FilterWarnings
from tamis.language.ast import is_deep
from tamis.language.expression import Expression, parse_with
from tamis.language.parameters import read_with
from tamis.language.shape_cache import ShapeCache, WrittenExpression, later_reader
from tamis.schema import Schema
from tamis.semantics import Semantics
from tamis.subscriptions.bulk import (
    BulkRows,
    Id,
    Progress,
    check_ids,
    checked_id,
    id_column,
    ids_of,
    plain_id,
    read_all,
    text_column,
)
from tamis.subscriptions.subscriptions import Subscriptions

FEWEST_AT_ONCE = 64  # subscriptions from which a bulk is kept in columns
SUGGESTED = 10_000  # ids; among more, none is suggested for an unknown one
SHOWN = 10  # unknown ids in a message


class SubscribedFilters:
    """The subscriptions of a matcher: their ids, and their filters in an engine."""

    def __init__(self, engine: Engine, semantics: Semantics) -> None:
        self.engine = engine
        # The same engine if it is one; to test for a protocol takes longer than to match an event.
        self.batching: BatchEngine | None = engine if isinstance(engine, BatchEngine) else None
        self.lock = threading.RLock() if self.batching is None else self.batching.lock
        self.changing = threading.RLock()
        self.subscriptions = Subscriptions(self.parse)
        self._schema = semantics.schema
        self._shapes = ShapeCache(semantics.schema)
        self._warnings = FilterWarnings(semantics)

    # --- looking up

    def find(self, subscription: object) -> int | None:
        """The handle of an id, None if it is not subscribed."""
        known = plain_id(subscription)
        return None if known is None else self.subscriptions.find(known)

    def get(self, subscription: object) -> Expression | None:
        """The filter of an id, None if it is not subscribed."""
        handle = self.find(subscription)
        try:
            return None if handle is None else self.subscriptions.expression(handle)
        except KeyError:  # it was removed meanwhile
            return None

    def items(self) -> Iterator[tuple[Id, Expression]]:
        """All ids and filters, oldest first; what is removed meanwhile is left out.

        A filter that came in bulk is read again when somebody looks into it.
        """
        later = later_reader(self._schema)
        for subscription, found in self.subscriptions.filters():
            yield subscription, later(found) if isinstance(found, str) else found

    def unknown(self, subscription: object) -> UnknownSubscription:
        """The error about an id that is not subscribed."""
        hint = None
        if isinstance(subscription, str) and len(self.subscriptions) < SUGGESTED:
            known = (one for one in self.subscriptions if isinstance(one, str))
            hint = did_you_mean(subscription, known)
        return UnknownSubscription(
            f"no subscription {subscription!r}" + (f"; {hint}" if hint else "")
        )

    def parse(self, text: str) -> Expression:
        """Read a filter again; from any thread, so without the cache."""
        return parse_with(text, self._schema)

    def expression(self, filter_: Any, parameters: Mapping[str, Any] | None = None) -> Expression:
        """The expression of a filter that a caller gave; `changing` is held."""
        if isinstance(filter_, Expression):
            if filter_.schema != self._schema:
                raise SubscriptionError(
                    "the expression was parsed with another schema than this matcher's"
                )
            if parameters:
                raise SubscriptionError("an expression has no parameters; give them to parse")
            if type(filter_) is not WrittenExpression:
                return filter_
            filter_ = filter_.text  # what is read by the cache is compiled fast
        return read_with(self._shapes.parse, filter_, parameters)

    # --- adding

    def put(
        self, subscription: Any, filter_: Any, parameters: Mapping[str, Any] | None = None
    ) -> None:
        """Add a subscription, or replace its filter."""
        with self.changing:
            subscription = checked_id(subscription, self.subscriptions.kind)
            expression, prepared = self._prepared(filter_, parameters)
            with self.lock:
                self._put(subscription, expression, prepared)

    def put_many(self, rows: BulkRows, progress: Progress | None = None) -> None:
        """Add or replace many: all of them, or an error that names every bad row."""
        with self.changing:
            check_ids(rows, self.subscriptions.kind)
            if len(rows.ids) < FEWEST_AT_ONCE or self.batching is None:
                ready: list[tuple[Id, Expression, Any]] = []

                def read(row: int, text: Any) -> None:
                    ready.append((rows.ids[row], *self._prepared(text)))

                read_all(rows, read, progress)
                with self.lock:
                    self._put_all(ready)
            else:
                self._put_columns(self.batching, rows, progress)

    @with_deep_stack
    def _prepared(
        self, filter_: Any, parameters: Mapping[str, Any] | None = None
    ) -> tuple[Expression, Any]:
        """A filter as an expression, and as the engine takes it."""
        expression = self.expression(filter_, parameters)
        if self._warnings.left:
            self._warnings.notice(expression)
        return expression, self.engine.prepare(expression)

    def _put(self, subscription: Id, expression: Expression, prepared: Any) -> None:
        held = self.subscriptions
        handle = held.find(subscription)
        if handle is None:
            self._add(held.next_handle, expression, prepared)
            held.add(subscription, expression)
            return
        self.engine.remove(handle)
        try:
            self._add(handle, expression, prepared)
        except TamisError:  # the old filter fitted, so it fits again
            old = held.expression(handle)
            self._add(handle, old, self.engine.prepare(old))
            raise
        held.replace(handle, expression)

    def _add(self, handle: int, expression: Expression, prepared: Any) -> None:
        """Let the engine hold a filter.

        An engine that holds diagrams goes through a deep tree by recursion, which must not end
        half-way. It takes no lock that is held here.
        """
        if self.batching is None and is_deep(expression.tree):
            called_deeply(self.engine.add, handle, prepared)
        else:
            self.engine.add(handle, prepared)

    def _put_all(self, ready: list[tuple[Id, Expression, Any]]) -> None:
        """All or none: if the engine has no room for one of them, those before it are undone."""
        done: list[tuple[Id, Expression | None]] = []
        try:
            for subscription, expression, prepared in ready:
                before = self.get(subscription)
                self._put(subscription, expression, prepared)
                done.append((subscription, before))
        except TamisError:
            for subscription, before in reversed(done):
                if before is None:
                    self.engine.remove(self.subscriptions.remove(subscription))
                else:
                    self._put(subscription, before, self.engine.prepare(before))
            raise

    def _put_columns(self, engine: BatchEngine, rows: BulkRows, progress: Progress | None) -> None:
        """Many subscriptions, compiled aside and then added all at once."""
        held, bulk = self.subscriptions, engine.bulk(len(rows.ids))
        good = [row for row in range(len(rows.ids)) if row not in rows.failures]
        ids = id_column([rows.ids[row] for row in good] if rows.failures else rows.ids)
        split = held.split(ids)
        handles = np.full(len(rows.ids), -1, np.int64)
        places = np.array(good, np.int64)
        handles[places[split.known]] = split.handles
        handles[places[split.new]] = held.next_handle + np.arange(len(split.new))
        handle_of = handles.tolist()

        def read(row: int, text: Any) -> None:
            _, prepared = self._prepared(text)
            if handle_of[row] >= 0:
                bulk.put(handle_of[row], prepared)

        read_all(rows, read, progress)
        bulk.finish()
        texts = text_column(rows.filters)
        known, new = pa.array(split.known), pa.array(split.new)
        with self.lock:
            bulk.commit(split.handles.tolist())
            held.replace_page(split.handles, ids.take(known), texts.take(known))
            held.add_page(ids.take(new), texts.take(new))

    # --- for another matcher

    def copy_to(self, wider: "SubscribedFilters", schema: Schema, wide: Schema) -> None:
        """Add all subscriptions to those of a new matcher whose schema has more attributes."""
        with self.changing:
            columns = self.subscriptions.columns()
            if columns is None:
                return
            if self.engine.name != "sliced":  # they are not compiled for batches
                wider.put_many(BulkRows(columns.ids.to_pylist(), columns.texts.to_pylist(), {}, {}))
                return
            from tamis.engines import compiled_filters  # numba is heavy

            filters = compiled_filters.held(self.engine).under(columns.handles)
        made = compiled_filters.in_schema(wider.engine, filters, schema, wide)
        with wider.changing, wider.lock:
            compiled_filters.hold(wider.engine, made)
            wider.subscriptions.add_page(columns.ids, columns.texts)

    # --- removing

    def remove(self, subscription: object) -> None:
        """Remove a subscription."""
        with self.changing, self.lock:
            handle, known = self.find(subscription), plain_id(subscription)
            if handle is None or known is None:
                raise self.unknown(subscription)
            self.engine.remove(handle)
            self.subscriptions.remove(known)

    def remove_many(self, subscriptions: Any) -> None:
        """Remove many subscriptions: all of them or, if one is unknown, none."""
        given = ids_of(subscriptions)
        with self.changing:
            handles = self._handles(given)
            with self.lock:
                self._drop(handles)
                self.subscriptions.remove_handles(handles)

    def clear(self) -> None:
        """Remove all subscriptions."""
        with self.changing, self.lock:
            self._drop(self.subscriptions.handles())
            self.subscriptions.clear()

    def _handles(self, given: list[Any]) -> "np.ndarray[Any, Any]":
        """The distinct handles of ids; an error names those that have none."""
        kind = self.subscriptions.kind
        known = [plain_id(subscription) for subscription in given]
        wanted = dict.fromkeys(one for one in known if kind is not None and type(one) is kind)
        found = self.subscriptions.find_all(id_column(list(wanted)))
        handle_of = dict(zip(wanted, found.tolist(), strict=True))
        lacking = [
            subscription
            for subscription, one in zip(given, known, strict=True)
            if one is None or type(one) is not kind or handle_of[one] < 0
        ]
        if lacking:
            raise self._unknown_among(lacking, len(given))
        return found

    def _unknown_among(self, lacking: list[Any], total: int) -> UnknownSubscription:
        if total == 1:
            return self.unknown(lacking[0])
        shown = ", ".join(repr(one) for one in lacking[:SHOWN])
        more = f" and {len(lacking) - SHOWN:,} more" if len(lacking) > SHOWN else ""
        return UnknownSubscription(
            f"{len(lacking):,} of {total:,} ids are not subscribed, none was removed: {shown}{more}"
        )

    def _drop(self, handles: Iterable[int]) -> None:
        """Let the engine drop the filters of handles that it holds; `lock` is held."""
        if self.batching is not None:
            self.batching.remove_many(np.asarray(handles, np.int64))
        else:
            for handle in np.asarray(handles, np.int64).tolist():
                self.engine.remove(handle)
