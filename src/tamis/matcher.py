"""The library's front door: subscriptions in, events in, matches out."""

import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from tamis.engines import make_engine
from tamis.engines.base import BatchEngine
from tamis.errors import (
    EventError,
    OptionError,
    SubscriptionError,
    TamisError,
    choose,
    did_you_mean,
)
from tamis.events.event_reader import EventReader, Row
from tamis.explanation import Explanation, explain
from tamis.language.expression import Expression, parse_with
from tamis.language.shape_cache import ShapeCache
from tamis.names import path_text
from tamis.schema import Schema, as_schema
from tamis.semantics import Semantics

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from tamis.engines.match_plan import MatchPlan
    from tamis.predicates.event_batches import Batch
    from tamis.results import Piece
    from tamis.subscriptions.bulk import Progress, Rows

Id = str | int
T = TypeVar("T")

OUTPUTS = ("pairs", "lists", "counts")
PAIR_BYTES = 12  # of a match in a table
FEWEST_AT_ONCE = 64  # subscriptions from which a bulk is kept in columns


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

    The ids of a matcher are all strings or all 64-bit integers. Every call either does all of what
    it says or raises a `TamisError` and changes nothing.
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
        self.meaning = Semantics(semantics, self.schema, defaults)  # `semantics` is its name
        self._engine = make_engine(engine, self.meaning, options)
        self.reader = EventReader(self.schema, unknown)
        self._shapes = ShapeCache(self.schema)
        from tamis.subscriptions.subscriptions import Subscriptions

        self._subscriptions = Subscriptions(self._parse)
        # The same engine if it is one; to test for a protocol takes longer than to match an event.
        made: Any = self._engine
        self._batching: BatchEngine | None = made if isinstance(made, BatchEngine) else None
        # Held while subscriptions change; by matches too, if the engine is not made for threads.
        self._lock = threading.RLock() if self._batching is None else self._batching.lock
        self._changing = threading.RLock()  # held by each change from its beginning to its end

    @property
    def engine(self) -> str:
        """The name of the engine at work; never ``"auto"``."""
        return self._engine.name

    @property
    def semantics(self) -> str:
        """The name of the semantics."""
        return self.meaning.name

    # --- subscriptions

    # `filter`, though Python has one: the column of a table of subscriptions has the same name.
    # `filter` is the word of the domain; the builtin is not used here.
    def subscribe(self, subscription: Id, filter: str | Expression) -> None:  # noqa: A002
        """Add a subscription, or replace the filter of one."""
        from tamis.subscriptions.bulk import checked_id

        with self._changing:
            subscription = checked_id(subscription, self._subscriptions.kind)
            expression = self._expression(filter)
            prepared = self._engine.prepare(expression)
            with self._lock:
                self._put(subscription, expression, prepared)

    def subscribe_many(self, subscriptions: Any, progress: "Progress | None" = None) -> None:
        """Add or replace many subscriptions: all of them or, if one is bad, none.

        `subscriptions` is an iterable of ``(id, filter)`` or ``{"id": ..., "filter": ...}``, a
        mapping of ids to filters, or a table with those columns (Arrow, pandas, polars). Of rows
        with the same id the last one counts. The error names every bad row. `progress` is called
        from time to time with the number of filters read since the last call.
        """
        from tamis.subscriptions.bulk import check_ids, collector_paused, read_all, rows_of

        with collector_paused(), self._changing:
            rows = rows_of(subscriptions)
            check_ids(rows, self._subscriptions.kind)
            if len(rows.ids) < FEWEST_AT_ONCE or self._batching is None:
                ready: list[tuple[Id, Expression, Any]] = []

                def read(row: int, text: Any) -> None:
                    expression = self._expression(text)
                    ready.append((rows.ids[row], expression, self._engine.prepare(expression)))

                read_all(rows, read, progress)
                with self._lock:
                    self._put_all(ready)
            else:
                self._put_columns(self._batching, rows, progress)

    def unsubscribe(self, subscription: Id) -> None:
        """Remove a subscription."""
        with self._changing, self._lock:
            if subscription not in self:
                raise self._unknown(subscription)
            self._engine.remove(self._subscriptions.remove(subscription))

    def get(self, subscription: Id, default: T | None = None) -> Expression | T | None:
        """The filter of a subscription, or `default`."""
        handle = self._subscriptions.find(subscription) if subscription in self else None
        try:
            return default if handle is None else self._subscriptions.expression(handle)
        except KeyError:  # it was removed meanwhile
            return default

    def __len__(self) -> int:
        return len(self._subscriptions)

    def __iter__(self) -> Iterator[Id]:
        """The ids, in the order of their first subscription."""
        return iter(self._subscriptions)

    def __contains__(self, subscription: object) -> bool:
        return type(subscription) in {str, int} and subscription in self._subscriptions

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
        if self._batching is None:
            with self._lock:
                return self._subscriptions.ids_of(self._engine.match(row))
        handles = self._engine.match(row)
        found = self._subscriptions.ids_of(handles)
        if len(found) == len(handles):
            return found
        # Some of them were removed meanwhile. What is left need not be the answer of any moment.
        with self._lock:
            snapshot = self._batching.snapshot(1)
            return self._subscriptions.ids_of(self._batching.match_at(snapshot, row))

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
        from tamis.events.columns import as_table

        table = as_table(events)
        if table is None or self._batching is None:
            return self.match_rows(self._rows(events, table), output)
        return self._match_columns(self._batching, self._batch(table), None, output, None)

    def match_batches(self, events: Any, output: str = "pairs") -> "Iterator[pa.Table]":
        """The matches of many events in several tables, so that memory is bounded.

        `events` is what `match_batch` takes, or an iterator of Arrow tables or record batches, as
        of a large file. The tables follow each other in the order of the events, which are
        numbered from 0 through all of them.
        """
        choose("output", output, OUTPUTS)
        from tamis.events.chunks import event_chunks

        first = 0
        for chunk in event_chunks(events):
            numbers = range(first, first + len(chunk))
            yield from self.match_chunk(chunk, output, numbers, first)
            first += len(chunk)

    def match_rows(
        self, rows: Sequence[Row], output: str = "pairs", numbers: Sequence[int] | None = None
    ) -> "pa.Table":
        """`match_batch` for events that `reader` and `meaning` have read and prepared.

        `numbers` are the numbers of the events, if the caller has left some out.
        """
        choose("output", output, OUTPUTS)
        if self._batching is not None:
            from tamis.predicates.event_batches import batch_of_rows

            batch = batch_of_rows(rows, self.schema)
            return self._match_columns(self._batching, batch, rows, output, numbers)
        from tamis.results import pieces_of, table_of, table_of_counts

        numbers = range(len(rows)) if numbers is None else numbers
        with self._lock:
            found = list(self._engine.match_many(rows))
            ids = self._subscriptions.column()
        if output == "counts":
            import numpy as np

            return table_of_counts(np.array([len(one) for one in found], np.int64), numbers)
        return table_of(pieces_of(found), numbers, output, ids)

    def why(self, subscription: Id, event: Mapping[str, Any] | str | bytes) -> Explanation:
        """Why an event does or does not match a subscription, predicate by predicate."""
        row = self.reader.row(event)
        expression = self.get(subscription)
        if expression is None:
            raise self._unknown(subscription)
        return explain(subscription, expression, self.meaning, row)

    # --- files

    def save(self, path: "str | Path") -> None:
        """Write all subscriptions, compiled, to one file, which `load` opens in milliseconds.

        The file is replaced as a whole: a process that reads it meanwhile sees the old one or the
        new one.
        """
        from tamis.rules_file import save

        unknown = "refuse" if self.reader.refuse_unknown else "ignore"
        with self._changing:
            save(path, self._engine, self._subscriptions, self.meaning, unknown)

    @classmethod
    def load(cls, path: "str | Path", *, options: Mapping[str, Any] | None = None) -> "Matcher":
        """A matcher of what `save` wrote, ready to match and to change.

        The file is mapped into memory: processes that load the same file share it. Its checksums
        are verified first, those of the texts of filters when a text is first needed. `options` are
        settings of the engine, as for a new matcher.
        """
        from tamis.rules_file import RulesFile

        rules = RulesFile(path)
        schema, engine, semantics, defaults, unknown = rules.header
        named = dict.fromkeys(schema) if semantics == "default" else None
        matcher = cls(schema, engine, semantics, defaults=named, unknown=unknown, options=options)
        matcher.meaning.defaults = defaults
        matcher._subscriptions = rules.fill(matcher._engine, matcher.meaning, matcher._parse)
        return matcher

    def absorb(self, path: "str | Path") -> None:
        """Add all subscriptions of a file that `save` wrote, and that has the same schema.

        Nothing is compiled again before the next `save`. Subscriptions with an id of the file are
        replaced, and count as new ones.
        """
        from tamis.rules_file import RulesFile, absorb
        from tamis.subscriptions.bulk import checked_id

        rules = RulesFile(path)
        rules.check_like(self.meaning)
        found = rules.read(self.meaning, self._parse)
        with self._changing, self._lock:
            for subscription in found.subscriptions:
                checked_id(subscription, self._subscriptions.kind)
                break  # all ids of a file are of one kind
            absorb(self._engine, self._subscriptions, found)

    def explain(self) -> "MatchPlan":
        """How events are matched: what is compiled in which way, and what it costs."""
        from tamis.engines.match_plan import plan_of

        with self._lock:
            return plan_of(self._engine, self.schema)

    def attributes(self) -> set[str]:
        """The names of the attributes that at least one filter tests.

        Engines that compile filters read the names off the compiled filters, in little time.
        """
        with self._changing:
            if self._batching is not None:
                from tamis.engines.compiled_filters import tested_attributes

                return tested_attributes(self._engine, self.schema)
            filters = (self._subscriptions.expression(h) for h in self._subscriptions.handles())
            return {path_text(path) for one in filters for path in one.attributes}

    # --- inside

    def _batch(self, table: "pa.Table") -> "Batch":
        from tamis.predicates.event_batches import batch_of_table

        refuse = self.reader.refuse_unknown
        return batch_of_table(table, self.meaning, refuse_unknown=refuse)

    def _match_columns(
        self, engine: BatchEngine, batch: "Batch", rows: Sequence[Row] | None, output: str,
        numbers: Sequence[int] | None,
    ) -> "pa.Table":  # fmt: skip
        from tamis.results import table_of, table_of_counts

        numbers = range(batch.size) if numbers is None else numbers
        if output == "counts":
            return table_of_counts(engine.count_batch(batch, rows), numbers)
        with self._lock:  # so that there is an id for each subscription that is matched
            snapshot, ids = engine.snapshot(batch.size), self._subscriptions.column()
        pieces = engine.match_batch(batch, rows, snapshot)
        return table_of(_within(pieces, engine.memory), numbers, output, ids)

    def match_chunk(
        self, chunk: Any, output: str, numbers: Sequence[int] | Any, first: int = 0
    ) -> "Iterator[pa.Table]":
        """The tables of some events with their numbers; an error counts its event from `first`."""
        from tamis.events.columns import as_table
        from tamis.predicates.event_batches import batch_of_rows
        from tamis.results import table_of

        table, engine, rows = as_table(chunk), self._batching, None
        try:
            if table is not None and engine is not None:
                batch = self._batch(table)
            else:
                rows = self._rows(chunk, table)
                batch = batch_of_rows(rows, self.schema)
        except EventError as error:
            raise (error if error.row is None else error.at(first + error.row)) from None
        if engine is None or output == "counts":
            yield (
                self.match_rows(rows or (), output, numbers)
                if engine is None
                else self._match_columns(engine, batch, rows, output, numbers)
            )
            return
        with self._lock:
            snapshot, ids = engine.snapshot(batch.size), self._subscriptions.column()
        for piece in engine.match_batch(batch, rows, snapshot):
            own, numbers = numbers[: len(piece[0])], numbers[len(piece[0]) :]
            yield table_of([piece], own, output, ids)

    def _rows(self, events: Any, table: Any) -> list[Row]:
        from tamis.events.columns import table_rows

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
            rows.extend(map(self.meaning.prepare, read))  # keeps the rows before an error
        except EventError as error:
            raise error.at(len(rows)) from None
        return rows

    def _parse(self, text: str) -> Expression:
        """Read a filter again; from any thread, so without the cache."""
        return parse_with(text, self.schema)

    def _expression(self, filter_: Any) -> Expression:
        if isinstance(filter_, Expression):
            if filter_.schema != self.schema:
                raise SubscriptionError(
                    "the expression was parsed with another schema than this matcher's"
                )
            return filter_
        return self._shapes.parse(filter_)

    def _put(self, subscription: Id, expression: Expression, prepared: Any) -> None:
        held = self._subscriptions
        handle = held.find(subscription)
        if handle is None:
            self._engine.add(held.next_handle, prepared)
            held.add(subscription, expression)
            return
        self._engine.remove(handle)
        try:
            self._engine.add(handle, prepared)
        except TamisError:  # the old filter fitted, so it fits again
            self._engine.add(handle, self._engine.prepare(held.expression(handle)))
            raise
        held.replace(handle, expression)

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
                    self.unsubscribe(subscription)
                else:
                    self._put(subscription, before, self._engine.prepare(before))
            raise

    def _put_columns(self, engine: BatchEngine, rows: "Rows", progress: "Progress | None") -> None:
        """Many subscriptions, compiled aside and then added all at once."""
        import numpy as np
        import pyarrow as pa

        from tamis.subscriptions.bulk import id_column, read_all, text_column

        held, bulk = self._subscriptions, engine.bulk(len(rows.ids))
        good = [row for row in range(len(rows.ids)) if row not in rows.failures]
        ids = id_column([rows.ids[row] for row in good] if rows.failures else rows.ids)
        split = held.split(ids)
        handles = np.full(len(rows.ids), -1, np.int64)
        places = np.array(good, np.int64)
        handles[places[split.known]] = split.handles
        handles[places[split.new]] = held.next_handle + np.arange(len(split.new))
        handle_of = handles.tolist()

        def read(row: int, text: Any) -> None:
            expression = self._expression(text)
            prepared = engine.prepare(expression)
            if handle_of[row] >= 0:
                bulk.put(handle_of[row], prepared)

        read_all(rows, read, progress)
        bulk.finish()
        texts = text_column(rows.filters)
        known, new = pa.array(split.known), pa.array(split.new)
        with self._lock:
            bulk.commit(split.handles.tolist())
            held.replace_page(split.handles, ids.take(known), texts.take(known))
            held.add_page(ids.take(new), texts.take(new))

    def _unknown(self, subscription: Id) -> SubscriptionError:
        hint = None
        if isinstance(subscription, str) and len(self) < 10_000:
            hint = did_you_mean(subscription, (id_ for id_ in self if isinstance(id_, str)))
        return SubscriptionError(
            f"no subscription {subscription!r}" + (f"; {hint}" if hint else "")
        )


def _within(pieces: "Iterator[Piece]", memory: int) -> "Iterator[Piece]":
    """The pieces; an error as soon as a table of them would not fit into memory."""
    from tamis.engines.resources import check_memory

    total = 0
    for piece in pieces:
        total += PAIR_BYTES * len(piece[1])
        check_memory(
            total, memory, "the table of these matches",
            "use match_batches, output='counts' or fewer events",
        )  # fmt: skip
        yield piece
