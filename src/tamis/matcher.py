"""The library's front door: subscriptions in, events in, matches out."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeVar, overload

from tamis.engines import make_engine
from tamis.engines.base import BatchEngine
from tamis.errors import TamisError, choose
from tamis.events.event_reader import EventReader, Row
from tamis.events.values import moment_of_call
from tamis.explanation import Explanation, explain_match
from tamis.language.arrival import arriving, each_arriving
from tamis.language.expression import Expression
from tamis.names import path_text
from tamis.schema import Schema, as_schema
from tamis.semantics import Semantics

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from tamis.dead_letters import DeadLetter
    from tamis.engines.match_plan import MatchPlan
    from tamis.given_events import GivenEvents, GivenEventsReader
    from tamis.id_columns import IdColumn
    from tamis.matches import Matches
    from tamis.predicates.event_batches import Batch
    from tamis.results import Numbers, Piece
    from tamis.subscriptions.bulk import Progress

Id = str | int
T = TypeVar("T")

OUTPUTS = ("pairs", "lists", "counts")
PAIR_BYTES = 12  # of a match in a table


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
        self.reader = EventReader(self.schema, unknown)
        from tamis.subscribed_filters import SubscribedFilters

        self._made_with = engine, options
        self._held = SubscribedFilters(make_engine(engine, self.meaning, options), self.meaning)

    @property
    def engine(self) -> str:
        """The name of the engine at work; never ``"auto"``."""
        return self._held.engine.name

    @property
    def semantics(self) -> str:
        """The name of the semantics."""
        return self.meaning.name

    # --- subscriptions

    # `filter`, though Python has one: the column of a table of subscriptions has the same name.
    def subscribe(
        self, subscription: Id, filter: str | Expression,
        parameters: Mapping[str, Any] | None = None,
    ) -> None:  # fmt: skip
        """Add a subscription, or replace the filter of one.

        `parameters` are the values of the filter's parameters: ``{"limit": 10}`` for
        ``price < :limit``. The filter is kept with its values.
        """
        self._held.put(subscription, filter, parameters)

    def subscribe_many(self, subscriptions: Any, progress: "Progress | None" = None) -> None:
        """Add or replace many subscriptions: all of them or, if one is bad, none.

        `subscriptions` is an iterable of ``(id, filter)`` or ``{"id": ..., "filter": ...}``, a
        mapping of ids to filters, or a table with those columns (Arrow, pandas, polars). In an
        iterable, ``(id, filter, parameters)`` and the key ``"parameters"`` are as for `subscribe`.
        Of rows with the same id the last one counts. The error names every bad row. `progress` is
        called from time to time with the number of filters read since the last call.
        """
        from tamis.subscriptions.bulk import collector_paused, rows_of

        with collector_paused():
            self._held.put_many(rows_of(subscriptions), progress)

    def unsubscribe(self, subscription: Id) -> None:
        """Remove a subscription."""
        self._held.remove(subscription)

    def unsubscribe_many(self, subscriptions: Iterable[Id]) -> None:
        """Remove many subscriptions: all of them or, if one is unknown, none.

        `subscriptions` are ids: a list, a column of Arrow, pandas or polars, or any other iterable.
        An id that comes twice is removed once.
        """
        from tamis.subscriptions.bulk import collector_paused

        with collector_paused():
            self._held.remove_many(subscriptions)

    def clear(self) -> None:
        """Remove all subscriptions. The next ones may have ids of the other type."""
        self._held.clear()

    def with_attributes(
        self, attributes: Mapping[str, str] | Schema | Any,
        defaults: Mapping[str, Any] | None = None,
    ) -> "Matcher":  # fmt: skip
        """A matcher of the same subscriptions whose schema has more attributes.

        `attributes` are names and types as of a schema; one that this matcher has already must have
        the same type. With the semantics ``"default"``, `defaults` has a value for each new one.
        Nothing is compiled from its text again. This matcher stays as it is, and later changes of
        one are not seen by the other.
        """
        schema = self.schema.with_attributes(attributes)
        known = self.meaning.wider_defaults(schema, defaults)
        engine, options = self._made_with
        header = schema, engine, self.semantics, known, self._unknown
        wider = Matcher._with_settings(*header, options)
        self._held.copy_to(wider._held, self.schema, schema)  # noqa: SLF001 - of the same class
        return wider

    def get(self, subscription: Id, default: T | None = None) -> Expression | T | None:
        """The filter of a subscription, or `default`."""
        found = self._held.get(subscription)
        return default if found is None else found

    def items(self) -> Iterator[tuple[Id, Expression]]:
        """The ids and filters of all subscriptions, in the order of their first subscription."""
        return self._held.items()

    def __getitem__(self, subscription: Id) -> Expression:
        """The filter of a subscription; an `UnknownSubscription` error if there is none."""
        found = self._held.get(subscription)
        if found is None:
            raise self._held.unknown(subscription)
        return found

    def __len__(self) -> int:
        return len(self._held.subscriptions)

    def __iter__(self) -> Iterator[Id]:
        """The ids, in the order of their first subscription."""
        return iter(self._held.subscriptions)

    def __contains__(self, subscription: object) -> bool:
        return self._held.find(subscription) is not None

    def __repr__(self) -> str:
        return (
            f"<Matcher of {len(self)} subscriptions, engine {self.engine!r}, "
            f"semantics {self.semantics!r}>"
        )

    def __reduce__(self) -> str | tuple[Any, ...]:
        raise TamisError(
            "a Matcher can be neither pickled nor copied; write it to a file with save, and open "
            "the file with Matcher.load wherever it is needed: processes share what they load"
        )

    # --- events

    def match(self, event: Mapping[str, Any] | str | bytes, *, now: Any = None) -> list[Id]:
        """The ids of all subscriptions that an event satisfies, oldest first.

        The event is a mapping of attributes to values, or the text of a JSON object or of an XML
        document. `now` is when it arrives, for filters with ``now()`` or ``current_date()``: a
        datetime, or a text as of a timestamp; the present if it is left out.
        """
        row = self.meaning.prepare(self.reader.row(event))
        with arriving(moment_of_call(now)):
            return self._match_row(row)

    def _match_row(self, row: Row) -> list[Id]:
        held = self._held
        if held.batching is None:
            with held.lock:
                return held.subscriptions.ids_of(held.engine.match(row))
        handles = held.engine.match(row)
        found = held.subscriptions.ids_of(handles)
        if len(found) == len(handles):
            return found
        # Some of them were removed meanwhile. What is left need not be the answer of any moment.
        with held.lock:
            snapshot = held.batching.snapshot(1)
            return held.subscriptions.ids_of(held.batching.match_at(snapshot, row))

    @overload
    def match_batch(
        self, events: Any, output: str = ..., *, on_bad: Literal["raise"] = ...,
        event_id: str | None = ..., keep: Sequence[str] = ..., now: Any = ...,
    ) -> "pa.Table": ...  # fmt: skip

    @overload
    def match_batch(
        self, events: Any, output: str = ..., *, on_bad: Literal["skip"],
        event_id: str | None = ..., keep: Sequence[str] = ..., now: Any = ...,
    ) -> "Matches": ...  # fmt: skip

    def match_batch(
        self, events: Any, output: str = "pairs", *, on_bad: str = "raise",
        event_id: str | None = None, keep: Sequence[str] = (), now: Any = None,
    ) -> "pa.Table | Matches":  # fmt: skip
        """The matches of many events, as an Arrow table.

        `events` is an Arrow table or record batch, a pandas or polars frame, anything else that
        speaks Arrow, or an iterable of what `match` takes. Events are numbered from 0. `output` is

        * ``"pairs"``: columns ``event``, ``subscription``; a row for each match,
        * ``"lists"``: columns ``event``, ``subscriptions``; a row for each event,
        * ``"counts"``: columns ``event``, ``count``; a row for each event.

        Within an event, subscriptions come oldest first.

        An event that does not fit the schema is an error. With ``on_bad="skip"`` it is left out;
        the answer is then a `Matches`, a table whose `bad` has a `DeadLetter` with the reason for
        each such event. A column of a type that does not fit is an error either way.

        `event_id` names a column, or a key of dicts, that tells events apart: the matches have a
        column ``event_id`` with its values instead of ``event``, and an event without one is a bad
        one. `keep` names columns of the events that the matches have as well, with their names.
        `now` is when the events arrive, as for `match`: one moment for all of them.
        """
        choose("output", output, OUTPUTS)
        moment = moment_of_call(now)
        given = self._reading(on_bad, event_id, keep).read(events)
        with arriving(moment):
            table = self._matches(given, output)
        return table if on_bad == "raise" else self._with_bad(table, given.bad)

    @overload
    def match_batches(
        self, events: Any, output: str = ..., *, on_bad: Literal["raise"] = ...,
        event_id: str | None = ..., keep: Sequence[str] = ..., now: Any = ...,
    ) -> "Iterator[pa.Table]": ...  # fmt: skip

    @overload
    def match_batches(
        self, events: Any, output: str = ..., *, on_bad: Literal["skip"],
        event_id: str | None = ..., keep: Sequence[str] = ..., now: Any = ...,
    ) -> "Iterator[Matches]": ...  # fmt: skip

    def match_batches(
        self, events: Any, output: str = "pairs", *, on_bad: str = "raise",
        event_id: str | None = None, keep: Sequence[str] = (), now: Any = None,
    ) -> "Iterator[pa.Table] | Iterator[Matches]":  # fmt: skip
        """The matches of many events in several tables, so that memory is bounded.

        `events` is what `match_batch` takes, or an iterator of Arrow tables or record batches, as
        of a large file. The tables follow each other in the order of the events, which are
        numbered from 0 through all of them. The other arguments are those of `match_batch`.
        """
        choose("output", output, OUTPUTS)
        from tamis.events.chunks import event_chunks

        moment = moment_of_call(now)
        reading, first = self._reading(on_bad, event_id, keep), 0
        for chunk in event_chunks(events):
            given = reading.read(chunk, first)
            bad = given.bad
            for table in each_arriving(moment, self._pieces(given, output)):
                yield table if on_bad == "raise" else self._with_bad(table, bad)
                bad = []
            first += len(chunk)

    def match_chunk(
        self, chunk: Any, output: str, numbers: "Numbers", first: int = 0
    ) -> "Iterator[pa.Table]":
        """The tables of some events with their numbers; an error counts its event from `first`."""
        given = self._reading("raise", None, ()).read(chunk, first)
        yield from self._pieces(replace(given, numbers=numbers), output)

    def match_rows(
        self, rows: Sequence[Row], output: str = "pairs", numbers: Sequence[int] | None = None
    ) -> "pa.Table":
        """`match_batch` for events that `reader` and `meaning` have read and prepared.

        `numbers` are the numbers of the events, if the caller has left some out.
        """
        choose("output", output, OUTPUTS)
        from tamis.given_events import given_rows

        in_columns = self._held.batching is not None
        return self._matches(given_rows(rows, self.schema, numbers, in_columns=in_columns), output)

    def given(self, events: Any) -> "GivenEvents":
        """Events that are read and checked once, for `match_given` of matchers that are alike."""
        return self._reading("raise", None, ()).read(events)

    def given_rows(self, rows: Sequence[Row]) -> "GivenEvents":
        """The same for events that `reader` and `meaning` have read and prepared."""
        from tamis.given_events import given_rows

        return given_rows(rows, self.schema, None, in_columns=self._held.batching is not None)

    def match_given(self, given: "GivenEvents", output: str = "pairs") -> "pa.Table":
        """`match_batch` for events of `given`, also of another matcher.

        That one has the same schema, semantics and kind of engine.
        """
        choose("output", output, OUTPUTS)
        return self._matches(given, output)

    def why(
        self, subscription: Id, event: Mapping[str, Any] | str | bytes, *, now: Any = None
    ) -> Explanation:
        """Why an event does or does not match a subscription, predicate by predicate."""
        given, row = self.reader.read(event, beside=())
        with arriving(moment_of_call(now)):
            return explain_match(subscription, self[subscription], self.meaning, row, given)

    # --- files

    def save(self, path: "str | Path") -> None:
        """Write all subscriptions, compiled, to one file, which `load` opens in milliseconds.

        The file is replaced as a whole: a process that reads it meanwhile sees the old one or the
        new one.
        """
        from tamis.rules_file import save

        held = self._held
        with held.changing:
            save(path, held.engine, held.subscriptions, self.meaning, self._unknown)

    @classmethod
    def load(cls, path: "str | Path", *, options: Mapping[str, Any] | None = None) -> "Matcher":
        """A matcher of what `save` wrote, ready to match and to change.

        The file is mapped into memory: processes that load the same file share it. Its checksums
        are verified first, those of the texts of filters when a text is first needed. `options` are
        settings of the engine, as for a new matcher.
        """
        from tamis.rules_file import RulesFile

        rules = RulesFile(path)
        matcher = cls._with_settings(*rules.header, options)
        held = matcher._held  # noqa: SLF001 - of the same class
        held.subscriptions = rules.fill(held.engine, matcher.meaning, held.parse)
        return matcher

    def absorb(self, path: "str | Path") -> None:
        """Add all subscriptions of a file that `save` wrote.

        The file has the same semantics, and no attribute that this matcher does not have. With the
        same schema nothing is compiled again before the next `save`; with fewer attributes no
        filter is read again. Subscriptions with an id of the file are replaced, and count as new
        ones.
        """
        from tamis.rules_file import RulesFile, absorb
        from tamis.subscriptions.bulk import checked_id

        rules, held = RulesFile(path), self._held
        found = rules.read_for(self.meaning, held.engine, held.parse)
        with held.changing, held.lock:
            for subscription in found.subscriptions:
                checked_id(subscription, held.subscriptions.kind)
                break  # all ids of a file are of one kind
            absorb(held.engine, held.subscriptions, found)

    def explain(self, events: Any = None) -> "MatchPlan":
        """How events are matched, and what the last batch cost; `events` are matched first."""
        from tamis.engines.match_plan import plan_of

        for _ in range(0 if events is None else 2):  # the first run loads the kernels
            self.match_batch(events, output="counts", on_bad="skip")
        with self._held.lock:
            return plan_of(self._held.engine, self.schema, self._held.subscriptions.ids_of)

    def attributes(self) -> set[str]:
        """The names of the attributes that at least one filter tests.

        Engines that compile filters read the names off the compiled filters, in little time.
        """
        with self._held.changing:
            if self._held.batching is not None:
                from tamis.engines.compiled_filters import tested_attributes

                return tested_attributes(self._held.engine, self.schema)
            return {path_text(path) for _, one in self.items() for path in one.attributes}

    # --- inside

    @classmethod
    def _with_settings(
        cls, schema: Schema, engine: str, semantics: str, defaults: Row, unknown: str,
        options: Mapping[str, Any] | None,
    ) -> "Matcher":  # fmt: skip
        """An empty matcher; `defaults` are by attribute, as `Semantics` keeps them."""
        named = dict.fromkeys(schema) if semantics == "default" else None
        matcher = cls(schema, engine, semantics, defaults=named, unknown=unknown, options=options)
        matcher.meaning.defaults = defaults
        return matcher

    @property
    def _unknown(self) -> str:
        return "refuse" if self.reader.refuse_unknown else "ignore"

    def _reading(
        self, on_bad: str, event_id: str | None, keep: Sequence[str]
    ) -> "GivenEventsReader":
        from tamis.given_events import EventChoices, GivenEventsReader

        choices = EventChoices.of(on_bad, event_id, keep)
        in_columns = self._held.batching is not None
        return GivenEventsReader(self.reader, self.meaning, choices, in_columns=in_columns)

    def _matches(self, given: "GivenEvents", output: str) -> "pa.Table":
        """The matches of all events in one table."""
        from tamis.results import pieces_of, table_of, table_of_counts

        held, places = self._held, given.places
        if held.batching is not None and given.batch is not None:
            if output == "counts":
                counts = held.batching.count_batch(given.batch, given.rows)
                return given.named(table_of_counts(counts, places))
            pieces, ids = self._found(held.batching, given.batch, given.rows)
            within = _within(pieces, held.batching.memory, PAIR_BYTES + given.row_bytes)
            return given.named(table_of(within, places, output, ids))
        with held.lock:
            found = list(held.engine.match_many(given.rows or ()))
            ids = held.subscriptions.column()
        if output == "counts":
            import numpy as np

            counts = np.array([len(one) for one in found], np.int64)
            return given.named(table_of_counts(counts, places))
        return given.named(table_of(pieces_of(found), places, output, ids))

    def _pieces(self, given: "GivenEvents", output: str) -> "Iterator[pa.Table]":
        """The matches of all events in one or more tables."""
        from tamis.results import table_of

        engine, places = self._held.batching, given.places
        if engine is None or given.batch is None or output == "counts" or not len(places):
            yield self._matches(given, output)
            return
        pieces, ids = self._found(engine, given.batch, given.rows)
        for piece in pieces:
            own, places = places[: len(piece[0])], places[len(piece[0]) :]
            yield given.named(table_of([piece], own, output, ids))

    def _found(
        self, engine: BatchEngine, batch: "Batch", rows: Sequence[Row] | None
    ) -> "tuple[Iterator[Piece], IdColumn]":
        with self._held.lock:  # so that there is an id for each subscription that is matched
            snapshot, ids = engine.snapshot(batch.size), self._held.subscriptions.column()
        return engine.match_batch(batch, rows, snapshot), ids

    def _with_bad(self, table: "pa.Table", bad: "list[DeadLetter]") -> "Matches":
        from tamis.matches import Matches

        return Matches(table, bad)


def _within(pieces: "Iterator[Piece]", memory: int, size: int) -> "Iterator[Piece]":
    """The pieces; an error as soon as a table of them would not fit into memory."""
    from tamis.engines.resources import check_memory

    total = 0
    for piece in pieces:
        total += size * len(piece[1])
        check_memory(
            total, memory, "the table of these matches",
            "use match_batches, output='counts' or fewer events",
        )  # fmt: skip
        yield piece
