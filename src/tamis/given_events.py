"""Events as callers give them to a matcher: ready to be matched, without the bad ones.

In: tables and frames, or dicts and texts. Out: columns or rows for the engine, and for each event
what the table of matches says about it: its number, or its id and the columns to keep.
"""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from tamis.column_types import without_views
from tamis.dead_letters import DeadLetter, short_text, valid
from tamis.errors import EventError, OptionError, choose, did_you_mean
from tamis.events.bad_events import faults_of, python_value
from tamis.events.column_values import plain_type, readable_type
from tamis.events.columns import as_table, check_names, find_column, table_rows
from tamis.events.event_reader import EventReader, Row
from tamis.predicates.event_batches import Batch, batch_of_rows, batch_of_table
from tamis.results import Numbers
from tamis.schema import Schema
from tamis.semantics import Semantics

ON_BAD = ("raise", "skip")
EVENT, EVENT_ID = "event", "event_id"  # columns of matches: the number of an event, or its id
OTHERS = ("subscription", "subscriptions", "count")  # columns of matches
NO_ID = "the event has no id"


class EventChoices(NamedTuple):
    """What a caller wants to know about events."""

    on_bad: str
    event_id: str | None
    keep: tuple[str, ...]

    @classmethod
    def of(cls, on_bad: str, event_id: str | None, keep: Iterable[str]) -> "EventChoices":
        """The choices, checked."""
        choose("treatment of bad rows", on_bad, ON_BAD)
        if event_id is not None and not isinstance(event_id, str):
            raise OptionError(f"event_id is the name of a column, not {event_id!r}")
        names = kept_names(keep)
        taken = {EVENT if event_id is None else EVENT_ID, *OTHERS}
        for name in names:
            if name in taken:
                raise OptionError(
                    f"keep: the column {name!r} has the name of a column of the matches; "
                    "rename it first"
                )
        return cls(on_bad, event_id, names)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns of the events that go into the matches."""
        return self.keep if self.event_id is None else (self.event_id, *self.keep)

    def check(self, known: Sequence[str]) -> None:
        """Refuse names that a table does not have."""
        for name in self.names:
            if name not in known:
                what = "event_id" if name == self.event_id else "keep"
                raise OptionError(
                    f"{what}: the events have no column {name!r}; {did_you_mean(name, known)}"
                )


def kept_names(keep: Iterable[str]) -> tuple[str, ...]:
    """The columns to keep, checked to be a list of distinct names."""
    if isinstance(keep, str):
        raise OptionError(f"keep is a list of columns, not {keep!r}; write [{keep!r}]")
    names = tuple(keep)
    if len(set(names)) < len(names):
        raise OptionError("keep names a column twice")
    return names


@dataclass(frozen=True)
class GivenEvents:
    """Events that can be matched, and what is known about each of them."""

    batch: Batch | None  # in columns, if the engine takes columns
    rows: Sequence[Row] | None  # one by one, if they are at hand
    numbers: Numbers  # of each event, among all that were given
    columns: pa.Table | None  # the id and the columns to keep, one row per event
    bad: list[DeadLetter]

    @property
    def places(self) -> Numbers:
        """What a table of matches is made with: numbers, or rows of `columns`."""
        return self.numbers if self.columns is None else range(len(self.numbers))

    @property
    def row_bytes(self) -> int:
        """About how many bytes a match takes for what is kept of its event."""
        if self.columns is None or not self.columns.num_rows:
            return 0
        return int(self.columns.nbytes // self.columns.num_rows)

    def named(self, matches: pa.Table) -> pa.Table:
        """Matches that were made with `places`, with what the caller wants to know of events."""
        if self.columns is None:
            return matches
        places, found = matches[EVENT], matches.column_names[1]
        ids = self.columns.column(EVENT) if EVENT in self.columns.column_names else None
        first = EVENT_ID if ids is None else EVENT
        taken = {name: self.columns[name].take(places) for name in self.columns.column_names}
        kept = {name: column for name, column in taken.items() if name != first}
        return pa.table({first: taken[first], found: matches[found]} | kept)


def given_rows(
    rows: Sequence[Row], schema: Schema, numbers: Sequence[int] | None, *, in_columns: bool
) -> GivenEvents:
    """Events that were read and prepared already."""
    batch = batch_of_rows(rows, schema) if in_columns else None
    return GivenEvents(batch, rows, range(len(rows)) if numbers is None else numbers, None, [])


class GivenEventsReader:
    """Reads events for one matcher, with the choices of one call."""

    def __init__(
        self, reader: EventReader, meaning: Semantics, choices: EventChoices, *, in_columns: bool
    ) -> None:
        self._reader = reader
        self._meaning = meaning
        self._schema = meaning.schema
        self._choices = choices
        self._in_columns = in_columns  # whether the engine takes columns

    def read(self, events: Any, first: int = 0) -> GivenEvents:
        """The events that can be matched, numbered from `first`."""
        table = as_table(events)
        if table is None:
            return self._of_events(events, first)
        self._reader.notice_names(table.column_names)
        return self._of_table(table, first)

    # --- tables

    def _of_table(self, table: pa.Table, first: int) -> GivenEvents:
        self._choices.check(table.column_names)
        faults = self._lacking_ids(table)
        try:
            if faults and self._choices.on_bad == "raise":
                raise EventError(NO_ID, min(faults))
            batch, rows = self._prepared(table)
        except EventError as error:
            if self._choices.on_bad == "raise":
                raise (error if error.row is None else error.at(first + error.row)) from None
            self._check_columns(table)
            faults |= faults_of(table, self._meaning)
            if not faults:
                raise
        letters = self._letters(table, faults, first)
        numbers: Sequence[int] = range(first, first + table.num_rows)
        if faults:
            left = np.setdiff1d(np.arange(table.num_rows), np.array(list(faults), np.int64))
            table = without_views(table).take(pa.array(left))
            batch, rows = self._prepared(table)
            numbers = (first + left).tolist()
        return GivenEvents(batch, rows, numbers, self._columns_of(table, numbers), letters)

    def _prepared(self, table: pa.Table) -> tuple[Batch | None, list[Row] | None]:
        refuse = self._reader.refuse_unknown
        if refuse and self._choices.names:
            tops = {path[0] for path in self._schema.positions}
            others = [name for name in self._choices.names if name not in tops]
            table = table.drop_columns(list(dict.fromkeys(others)))
        if self._in_columns:
            return batch_of_table(table, self._meaning, refuse_unknown=refuse), None
        found = table_rows(table, self._schema, refuse_unknown=refuse)
        rows: list[Row] = []
        try:
            rows.extend(map(self._meaning.prepare, found))  # an error keeps the rows before it
        except EventError as error:
            raise error.at(len(rows)) from None
        return None, rows

    def _check_columns(self, table: pa.Table) -> None:
        """Raise the error if it is about a whole column, and not about some rows."""
        check_names(table, self._schema, refuse_unknown=False)
        for attribute in self._schema.attributes:
            find_column(table, attribute)

    def _lacking_ids(self, table: pa.Table) -> dict[int, str]:
        name = self._choices.event_id
        if name is None or not table[name].null_count:
            return {}
        rows = np.flatnonzero(np.asarray(table[name].is_null()))
        return dict.fromkeys(rows.tolist(), NO_ID)

    def _letters(self, table: pa.Table, faults: Mapping[int, str], first: int) -> list[DeadLetter]:
        known = set(table.column_names)
        names = dict.fromkeys(path[0] for path in self._schema.positions if path[0] in known)
        found = []
        for row, reason in sorted(faults.items()):
            value = {name: python_value(table[name][row]) for name in names}
            of = self._choices.event_id
            named = None if of is None else python_value(table[of][row])
            found.append(letter_of(first + row, named, reason, value))
        return found

    def _columns_of(self, table: pa.Table, numbers: Sequence[int]) -> pa.Table | None:
        if not self._choices.names:
            return None
        plain = without_views(table.select(list(dict.fromkeys(self._choices.names))))
        return self._named({name: plain[name] for name in plain.column_names}, numbers)

    def _named(self, columns: Mapping[str, Any], numbers: Sequence[int]) -> pa.Table:
        """The id or number of each event, and what is kept of it."""
        of = self._choices.event_id
        first = {EVENT: pa.array(numbers, pa.int64())} if of is None else {EVENT_ID: columns[of]}
        return pa.table(first | {name: columns[name] for name in self._choices.keep})

    # --- one by one

    def _of_events(self, events: Any, first: int) -> GivenEvents:
        if isinstance(events, Mapping | str | bytes) or not isinstance(events, Iterable):
            raise OptionError(
                "match_batch takes a table or an iterable of events, not "
                f"{type(events).__name__}; match takes a single event"
            )
        rows: list[Row] = []
        numbers: list[int] = []
        bad: list[DeadLetter] = []
        kept: list[Row] = []
        for number, event in enumerate(events, first):
            if number == first and isinstance(event, Mapping):
                self._reader.notice_names(event)
            try:
                row, beside = self._row(event)
                prepared = self._meaning.prepare(row)
                if self._choices.event_id is not None and beside[0] is None:
                    raise EventError(NO_ID)
            except EventError as error:
                if self._choices.on_bad == "raise":
                    raise error.at(number) from None
                bad.append(self._letter(number, event, error.problem))
                continue
            rows.append(prepared)
            numbers.append(number)
            kept.append(beside)
        batch = batch_of_rows(rows, self._schema) if self._in_columns else None
        columns = None
        if self._choices.names:
            names = self._choices.names
            listed = {name: [one[n] for one in kept] for n, name in enumerate(names)}
            made = {name: self._column(name, values) for name, values in listed.items()}
            columns = self._named(made, numbers)
        return GivenEvents(batch, rows, numbers, columns, bad)

    def _row(self, event: Any) -> tuple[Row, Row]:
        """The row of an event, and the values that go into the matches."""
        names = self._choices.names
        if not names:
            return self._reader.row(event), ()
        record, row = self._reader.read(event, beside=names)
        beside = tuple(
            record.get(name) if (at := self._schema.positions.get((name,))) is None else row[at]
            for name in names
        )
        return row, beside

    def _column(self, name: str, values: list[Any]) -> pa.Array:
        attribute = self._schema.find((name,))
        if attribute is not None:
            return pa.array(values, plain_type(attribute)).cast(readable_type(attribute))
        try:
            return pa.array(values)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            raise OptionError(
                f"the values of {name!r} make no column, as they are of several types or of one "
                f"that Arrow does not have: {error}"
            ) from None

    def _letter(self, number: int, event: Any, reason: str) -> DeadLetter:
        named, of = None, self._choices.event_id
        if of is not None:
            with suppress(EventError):  # no id can be read from it
                named = self._reader.record(event)[0].get(of)
        return letter_of(number, named, reason, event)


def letter_of(row: int, event_id: Any, reason: str, event: Any) -> DeadLetter:
    """The letter about a bad event."""
    if isinstance(event, bytes):
        event = event.decode(errors="replace")
    try:
        value = short_text(dict(event) if isinstance(event, Mapping) else event)
    except (TypeError, ValueError, RecursionError):  # JSON cannot hold it
        value = f"an event of type {type(event).__name__}"
    named = None if event_id is None else valid(str(event_id))
    return DeadLetter("events", row, named, valid(reason), value=value)
