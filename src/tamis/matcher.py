"""The library's front door: subscriptions in, events in, matches out."""

import gc
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Integral
from typing import TYPE_CHECKING, Any, TypeVar

from tamis.engines import make_engine
from tamis.engines.base import BatchEngine
from tamis.errors import (
    BulkError,
    EventError,
    ExpressionError,
    OptionError,
    SubscriptionError,
    TamisError,
    choose,
    did_you_mean,
)
from tamis.events import EventReader, Row
from tamis.explanation import Explanation, explain
from tamis.language.expression import Expression
from tamis.language.shapes import ShapeCache
from tamis.schema import Schema, as_schema
from tamis.semantics import Semantics
from tamis.types import INT64_MAX, INT64_MIN

if TYPE_CHECKING:
    import pyarrow as pa

    from tamis.predicates.batches import Batch
    from tamis.results import IdColumn

Id = str | int
T = TypeVar("T")

OUTPUTS = ("pairs", "lists", "counts")


class Matcher:
    """Holds subscriptions and finds those that an event satisfies.

    >>> import tamis
    >>> m = tamis.Matcher({"company": "string", "price": "double"})
    >>> m.subscribe("alice", "company IN ('IBM', 'Dell') AND price <= 1000")
    >>> m.match({"company": "IBM", "price": 900})
    ['alice']

    `schema` is a `Schema`, a dict of names and types, or an Arrow or Spark schema. `engine` names
    the algorithm; ``"auto"`` leaves the choice to tamis. `semantics` is what a missing attribute
    means: ``"sql"``, ``"strict"``, ``"default"`` (with `defaults`, a value for each attribute) or
    ``"total"``. `unknown` says what to do with attributes of an event that the schema does not
    have: ``"ignore"`` them or ``"refuse"`` the event. `options` are settings of the engine; the
    engines and their settings are listed in docs/engines.md.

    Ids are strings or 64-bit integers, of one kind in one matcher. Every call either does all of
    what it says or raises a `TamisError` and changes nothing.
    """

    def __init__(
        self,
        schema: Schema | Mapping[str, str] | Any,
        engine: str = "auto",
        semantics: str = "sql",
        *,
        defaults: Mapping[str, Any] | None = None,
        unknown: str = "ignore",
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.schema = as_schema(schema)
        self.meaning = Semantics(semantics, self.schema, defaults)
        self._engine = make_engine(engine, self.meaning, options)
        self.reader = EventReader(self.schema, unknown)
        self._shapes = ShapeCache(self.schema)
        self._expressions: dict[Id, Expression] = {}
        self._handles: dict[Id, int] = {}
        self._ids: dict[int, Id] = {}
        self._next_handle = 0
        self._column: IdColumn | None = None  # the ids in a form for tables

    @property
    def engine(self) -> str:
        """The name of the engine at work; never ``"auto"``."""
        return self._engine.name

    @property
    def semantics(self) -> str:
        """The name of the semantics."""
        return self.meaning.name

    # --- subscriptions

    # `filter`, though Python has one: so is the column of a table of subscriptions called.
    def subscribe(self, subscription: Id, filter: str | Expression) -> None:  # noqa: A002
        """Add a subscription, or replace the filter of one."""
        subscription = checked_id(subscription, self._kind_of_ids())
        expression = self._expression(filter)
        self._put(subscription, expression, self._engine.prepare(expression))

    def subscribe_many(self, subscriptions: Any) -> None:
        """Add or replace many subscriptions: all of them or, if one is bad, none.

        `subscriptions` is an iterable of ``(id, filter)`` or ``{"id": ..., "filter": ...}``, a
        mapping of ids to filters, or a table with those columns (Arrow, pandas, polars). Of rows
        with the same id the last one counts. The error names every bad row.
        """
        ready: list[tuple[Id, Expression, Any]] = []
        failures: list[tuple[int, Any, TamisError]] = []
        kind = self._kind_of_ids()
        row = -1
        with _collector_paused():
            for row, pair in enumerate(_pairs_of(subscriptions)):
                subscription: Any = None
                try:
                    subscription, text = _unpack(pair)
                    subscription = checked_id(subscription, kind)
                    kind = type(subscription)
                    expression = self._expression(text)
                    ready.append((subscription, expression, self._engine.prepare(expression)))
                except (SubscriptionError, ExpressionError) as error:
                    failures.append((row, subscription, error))
            if failures:
                raise BulkError(failures, row + 1)
            self._put_all(ready)

    def unsubscribe(self, subscription: Id) -> None:
        """Remove a subscription."""
        self._known(subscription)
        handle = self._handles.pop(subscription)
        self._engine.remove(handle)
        del self._ids[handle], self._expressions[subscription]
        self._column = None

    def get(self, subscription: Id, default: T | None = None) -> Expression | T | None:
        """The filter of a subscription, or `default`."""
        return self._expressions[subscription] if subscription in self else default

    def __len__(self) -> int:
        return len(self._expressions)

    def __iter__(self) -> Iterator[Id]:
        """The ids, in the order of their first subscription."""
        return iter(self._expressions)

    def __contains__(self, subscription: object) -> bool:
        return type(subscription) in {str, int} and subscription in self._expressions

    def __repr__(self) -> str:
        return (
            f"<Matcher of {len(self)} subscriptions, engine {self.engine!r}, "
            f"semantics {self.semantics!r}>"
        )

    # --- events

    def match(self, event: Mapping[str, Any] | str | bytes) -> list[Id]:
        """The ids of all subscriptions that an event satisfies, oldest first.

        The event is a mapping of attributes to values, or the text of a JSON object or of an XML
        document.
        """
        row = self.meaning.prepare(self.reader.row(event))
        return [self._ids[handle] for handle in self._engine.match(row).tolist()]

    def match_batch(self, events: Any, output: str = "pairs") -> "pa.Table":
        """The matches of many events, as an Arrow table.

        `events` is an Arrow table or record batch, a pandas or polars frame, anything else that
        speaks Arrow, or an iterable of what `match` takes. Events are numbered from 0. `output` is

        * ``"pairs"``: columns ``event``, ``subscription``; a row for each match,
        * ``"lists"``: columns ``event``, ``subscriptions``; a row for each event,
        * ``"counts"``: columns ``event``, ``count``; a row for each event.

        Within an event, subscriptions come oldest first.
        """
        choose("output", output, OUTPUTS)
        from tamis.columns import as_table

        table = as_table(events)
        if table is None or not isinstance(self._engine, BatchEngine):
            return self.match_rows(self._rows(events, table), output)
        from tamis.predicates.batches import batch_of_table

        refuse = self.reader.refuse_unknown
        batch = batch_of_table(table, self.meaning, refuse_unknown=refuse)
        return self._match_columns(self._engine, batch, None, output, range(batch.size))

    def match_rows(
        self, rows: Sequence[Row], output: str = "pairs", numbers: Sequence[int] | None = None
    ) -> "pa.Table":
        """`match_batch` for events that `reader` and `meaning` have read and prepared.

        `numbers` are the numbers of the events, for callers that left some out.
        """
        choose("output", output, OUTPUTS)
        numbers = range(len(rows)) if numbers is None else numbers
        if isinstance(self._engine, BatchEngine):
            from tamis.predicates.batches import batch_of_rows

            batch = batch_of_rows(rows, self.schema)
            return self._match_columns(self._engine, batch, rows, output, numbers)
        from tamis.results import pieces_of, table_of, table_of_counts

        found = list(self._engine.match_many(rows))
        if output == "counts":
            import numpy as np

            return table_of_counts(np.array([len(one) for one in found], np.int64), numbers)
        return table_of(pieces_of(found), numbers, output, self._id_column())

    def why(self, subscription: Id, event: Mapping[str, Any] | str | bytes) -> Explanation:
        """Why an event does or does not match a subscription, atom by atom."""
        self._known(subscription)
        row = self.reader.row(event)
        return explain(subscription, self._expressions[subscription], self.meaning, row)

    # --- inside

    def _match_columns(
        self, engine: BatchEngine, batch: "Batch", rows: Sequence[Row] | None, output: str,
        numbers: Sequence[int],
    ) -> "pa.Table":  # fmt: skip
        from tamis.results import table_of, table_of_counts

        if output == "counts":
            return table_of_counts(engine.count_batch(batch, rows), numbers)
        pieces = engine.match_batch(batch, rows)
        return table_of(pieces, numbers, output, self._id_column())

    def _id_column(self) -> "IdColumn":
        """The ids by handle; made anew when subscriptions have changed."""
        if self._column is None:
            from tamis.results import IdColumn

            self._column = IdColumn(self._ids)
        return self._column

    def _rows(self, events: Any, table: Any) -> list[Row]:
        from tamis.columns import table_rows

        if table is not None:
            refuse = self.reader.refuse_unknown
            read: Iterable[Row] = table_rows(table, self.schema, refuse_unknown=refuse)
        elif isinstance(events, Mapping | str | bytes) or not isinstance(events, Iterable):
            raise OptionError(
                "match_batch takes a table or an iterable of events, not "
                f"{type(events).__name__}; match takes a single event"
            )
        else:
            read = map(self.reader.row, events)
        rows: list[Row] = []
        try:
            rows.extend(map(self.meaning.prepare, read))  # keeps what came before an error
        except EventError as error:
            raise error.at(len(rows)) from None
        return rows

    def _expression(self, filter_: Any) -> Expression:
        if isinstance(filter_, Expression):
            if filter_.schema != self.schema:
                raise SubscriptionError(
                    "the expression was parsed with another schema than this matcher's"
                )
            return filter_
        return self._shapes.parse(filter_)

    def _put(self, subscription: Id, expression: Expression, prepared: Any) -> None:
        known = self._handles.get(subscription)
        handle = self._next_handle if known is None else known
        if known is not None:
            self._engine.remove(handle)
        try:
            self._engine.add(handle, prepared)
        except TamisError:
            if known is not None:  # there was room for the old one
                self._engine.add(handle, self._engine.prepare(self._expressions[subscription]))
            raise
        if known is None:
            self._next_handle += 1
            self._handles[subscription] = handle
            self._ids[handle] = subscription
            self._column = None
        self._expressions[subscription] = expression

    def _put_all(self, ready: list[tuple[Id, Expression, Any]]) -> None:
        """All or none: what was done before an engine had no more room is undone."""
        done: list[tuple[Id, Expression | None]] = []
        try:
            for subscription, expression, prepared in ready:
                before = self._expressions.get(subscription)
                self._put(subscription, expression, prepared)
                done.append((subscription, before))
        except TamisError:
            for subscription, before in reversed(done):
                if before is None:
                    self.unsubscribe(subscription)
                else:
                    self._put(subscription, before, self._engine.prepare(before))
            raise

    def _known(self, subscription: Id) -> None:
        if subscription in self:
            return
        hint = None
        if isinstance(subscription, str) and len(self) < 10_000:
            hint = did_you_mean(subscription, (id_ for id_ in self if isinstance(id_, str)))
        raise SubscriptionError(f"no subscription {subscription!r}" + (f"; {hint}" if hint else ""))

    def _kind_of_ids(self) -> type | None:
        return type(next(iter(self._expressions))) if self._expressions else None


def checked_id(subscription: Any, kind: type | None) -> Id:
    """An id as tamis keeps it; refuses what cannot be one, and one of another kind than others."""
    if type(subscription) is not bool and isinstance(subscription, Integral):
        subscription = int(subscription)
        if not INT64_MIN <= subscription <= INT64_MAX:
            raise SubscriptionError("the subscription id does not fit 64 bits")
    elif isinstance(subscription, str):
        subscription = str(subscription)
        try:
            subscription.encode()
        except UnicodeEncodeError:
            raise SubscriptionError("a subscription id is no valid Unicode text") from None
    else:
        raise SubscriptionError(
            f"a subscription id is a string or an integer, not {type(subscription).__name__}"
        )
    if kind is not None and type(subscription) is not kind:
        words = {str: "strings", int: "integers"}
        raise SubscriptionError(
            f"the ids of this matcher are {words[kind]}, and {subscription!r} is not"
        )
    kept: Id = subscription
    return kept


def _pairs_of(subscriptions: Any) -> Iterable[Any]:
    if isinstance(subscriptions, Mapping):
        return subscriptions.items()
    if isinstance(subscriptions, list | tuple | Iterator):
        return subscriptions
    from tamis.columns import as_table

    table = as_table(subscriptions)
    if table is None:
        if isinstance(subscriptions, Iterable) and not isinstance(subscriptions, str | bytes):
            return subscriptions
        raise OptionError(
            "subscribe_many takes (id, filter) pairs, a mapping or a table, not "
            f"{type(subscriptions).__name__}"
        )
    for name in ("id", "filter"):
        if table.column_names.count(name) != 1:
            raise OptionError(
                f"the table of subscriptions lacks the column {name!r}, or has two; "
                f"it has {', '.join(table.column_names)}"
            )
    return zip(table["id"].to_pylist(), table["filter"].to_pylist(), strict=True)


def _unpack(pair: Any) -> tuple[Any, Any]:
    if isinstance(pair, Mapping) and "id" in pair and "filter" in pair:
        return pair["id"], pair["filter"]
    if isinstance(pair, list | tuple) and len(pair) == 2:
        return pair[0], pair[1]
    raise SubscriptionError(f"expected (id, filter), got {type(pair).__name__}")


@contextmanager
def _collector_paused() -> Iterator[None]:
    """Millions of objects that all stay alive make the cyclic collector walk them for nothing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
