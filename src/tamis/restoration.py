"""From the matches of a compacted table back to those of the originals.

Originals of the same meaning are one *form*. A form that is in the compacted table matches when it
does there. Of the others it is known that they match only if their representative does: a second
matcher holds them, each form once, and sees only the events that met such a representative.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.columns import as_table
from tamis.errors import EventError, OptionError, SubscriptionError, choose
from tamis.matcher import OUTPUTS, Id, Matcher
from tamis.results import Array, IdColumn, table_of, table_of_counts
from tamis.schema import Schema

REMEMBERED = 100_000  # forms whose ids are kept as a list, once an event has met them


class Meaning(NamedTuple):
    """What filters are asked about."""

    schema: Schema
    semantics: str
    defaults: Mapping[str, Any] | None

    def matcher(self, options: Mapping[str, Any] | None = None) -> Matcher:
        """A matcher without subscriptions."""
        return Matcher(
            self.schema, semantics=self.semantics, defaults=self.defaults, options=options
        )


class Standing(NamedTuple):
    """Who stands for whom; ids, forms and representatives are known by their places."""

    representatives: pa.Array  # ids
    originals: pa.Array  # ids
    forms: Array  # [original]: its form, -1 for one that never matches
    stands: Array  # [form]: its representative
    exact: Array  # [form]: whether it is its own representative
    filters: pa.Array  # [form]: a text


class _Found(NamedTuple):
    """Places of something by events, those of one event behind those of another."""

    bounds: Array  # [event + 1]
    places: Array


class Restoration:
    """Maps matches back."""

    def __init__(
        self, standing: Standing, meaning: Meaning, options: Mapping[str, Any] | None = None
    ) -> None:
        self._standing = standing
        self._meaning = meaning
        self._options = options
        forms = len(standing.stands)
        alive = np.flatnonzero(standing.forms >= 0)
        homes = standing.forms[alive]
        # Originals in the order of their forms: those of a form are a range, which is written
        # faster than it is looked up. One form more, without originals, is that of mergers.
        self._originals = standing.originals.take(pa.array(alive[np.argsort(homes, kind="stable")]))
        self._starts = _ends(np.bincount(homes, minlength=forms + 1))
        self._listed: dict[int, list[Id]] = {}
        self._own = np.full(len(standing.representatives), forms, np.int32)
        exact = np.flatnonzero(standing.exact)
        self._own[standing.stands[exact]] = exact
        self._loose = np.flatnonzero(~standing.exact)
        self._watched = np.zeros(len(standing.representatives), np.bool_)  # of loose ones
        self._watched[standing.stands[self._loose]] = True

    @cached_property
    def _second(self) -> Matcher:
        """The forms that need a second look, under their places."""
        matcher = self._meaning.matcher(self._options)
        filters = self._standing.filters.take(pa.array(self._loose))
        matcher.subscribe_many(pa.table({"id": pa.array(self._loose), "filter": filters}))
        return matcher

    def of_event(self, forms: Iterable[int]) -> list[Id]:
        """The originals of the forms that one event met."""
        found: list[Id] = []
        for form in forms:
            ids = self._listed.get(form)
            if ids is None:
                start, end = self._starts[form : form + 2].tolist()
                ids = self._originals.slice(start, end - start).to_pylist()
                if len(self._listed) < REMEMBERED:
                    self._listed[form] = ids
            found += ids
        return found

    def table(self, matches: pa.Table, events: Any, output: str = "pairs") -> pa.Table:
        """The matches of the originals, in the outputs of `Matcher.match_batch`."""
        choose("output", output, OUTPUTS)
        held = as_table(events)
        if held is None:
            events = list(events)
        size = len(events) if held is None else held.num_rows
        found = self._found(matches, size)
        more = self._more(found, events if held is None else held, size)
        return self._written(found._replace(places=self._own[found.places]), more, output)

    def _found(self, matches: pa.Table, size: int) -> _Found:
        """The representatives that events met."""
        names = set(matches.column_names)
        if names >= {"event", "subscriptions"} and len(matches) == size:
            lists = matches["subscriptions"].combine_chunks()
            bounds = np.asarray(lists.offsets, np.int64)
            return _Found(bounds - bounds[0], self._places_of(pa.chunked_array([lists.flatten()])))
        if not names >= {"event", "subscription"}:
            raise OptionError(
                "restore takes matches as pairs, with the columns event and subscription, or as "
                f"lists, one for each event; there is {', '.join(matches.column_names) or 'none'}"
            )
        events = np.asarray(matches["event"].combine_chunks(), np.int64)
        if len(events) and not (events.min() >= 0 and events.max() < size):
            raise EventError(
                f"the matches are of event {int(events.max())}, and there are {size:,} events; "
                "pass the events that were matched"
            )
        places = self._places_of(matches["subscription"])
        if (events[1:] < events[:-1]).any():
            order = np.argsort(events, kind="stable")
            events, places = events[order], places[order]
        return _Found(_ends(np.bincount(events, minlength=size)), places)

    def _places_of(self, column: pa.ChunkedArray) -> Array:
        known = self._standing.representatives
        if not pa.types.is_dictionary(column.type):
            column = column.dictionary_encode()
        found = [np.empty(0, np.int32)]
        looked: tuple[Any, Array] | None = None
        for chunk in column.chunks:
            ids = chunk.dictionary
            # The chunks of one answer share their dictionary.
            if looked is None or not looked[0].equals(ids):
                looked = ids, np.asarray(pc.index_in(ids.cast(known.type), known).fill_null(-1))
            found.append(looked[1][np.asarray(chunk.indices)])
        places = np.concatenate(found)
        if len(places) and places.min() < 0:
            which = column.take([int(np.argmin(places))])[0].as_py()
            raise SubscriptionError(
                f"the matches name {which!r}, which is no subscription of the compacted table"
            )
        return places

    def _more(self, found: _Found, events: Any, size: int) -> _Found:
        """The forms that the second matcher finds."""
        from tamis.kernels.restoration import find_watched

        met = np.zeros(size, np.bool_)
        find_watched(*found, self._watched, met)
        rows = np.flatnonzero(met)
        if not len(rows):
            return _Found(np.zeros(size + 1, np.int64), np.empty(0, np.int32))
        if len(rows) < size:
            is_table = isinstance(events, pa.Table)
            events = events.take(rows) if is_table else [events[row] for row in rows]
        lists = self._second.match_batch(events, "lists")["subscriptions"].combine_chunks()
        counts = np.zeros(size, np.int64)
        counts[rows] = np.diff(np.asarray(lists.offsets))
        forms = lists.flatten()
        names = np.asarray(forms.dictionary).astype(np.int32)
        return _Found(_ends(counts), names[np.asarray(forms.indices)])

    def _written(self, first: _Found, more: _Found, output: str) -> pa.Table:
        from tamis.kernels.restoration import count_restored, write_restored

        totals = np.zeros(len(first.bounds) - 1, np.int64)
        count_restored(*first, *more, self._starts, totals)
        numbers = range(len(totals))
        if output == "counts":
            return table_of_counts(totals, numbers)
        restored = np.empty(totals.sum(), np.int32)
        write_restored(*first, *more, self._starts, restored)
        return table_of([(totals, restored)], numbers, output, IdColumn(self._originals))


class CompactedMatcher:
    """Matches events with each distinct filter once, and answers with the ids of the originals.

    Covered filters are asked, too: a filter costs less than a second look at an event.
    """

    def __init__(
        self, standing: Standing, meaning: Meaning, options: Mapping[str, Any] | None = None
    ) -> None:
        forms = np.arange(len(standing.stands), dtype=np.int32)
        ids = pa.array(forms, pa.int64())
        self._first = meaning.matcher(options)
        self._first.subscribe_many(pa.table({"id": ids, "filter": standing.filters}))
        own = standing._replace(
            representatives=ids, stands=forms, exact=np.ones(len(forms), np.bool_)
        )
        self._restoration = Restoration(own, meaning)

    def __len__(self) -> int:
        """The distinct filters."""
        return len(self._first)

    def match(self, event: Mapping[str, Any] | str | bytes) -> list[Id]:
        """What `Matcher.match` says of the originals, in the order of the distinct filters."""
        return self._restoration.of_event(self._first.match(event))  # type: ignore[arg-type]  # the ids are forms

    def match_batch(self, events: Any, output: str = "pairs") -> pa.Table:
        """What `Matcher.match_batch` says of the originals, within an event in that order."""
        choose("output", output, OUTPUTS)
        if as_table(events) is None and not isinstance(events, Mapping | str | bytes):
            events = list(events)
        return self._restoration.table(self._first.match_batch(events, "lists"), events, output)


def _ends(counts: Array) -> Array:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
