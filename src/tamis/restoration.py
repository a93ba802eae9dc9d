"""From the matches of a compacted table back to those of the original subscriptions.

Originals that mean the same are one *form*. A form that is in the compacted table matches the
events that its entry there matches: it is *exact*. Every other form is *inexact*: it can only match
events that its representative matches. A second matcher has these forms, each once, and sees only
the events that matched one of their representatives.
"""

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.errors import EventError, OptionError, SubscriptionError, choose
from tamis.events.columns import as_table
from tamis.given_events import ON_BAD
from tamis.id_columns import Array, IdColumn
from tamis.matcher import OUTPUTS, Id, Matcher
from tamis.matcher_settings import MatcherSettings
from tamis.matches import Matches
from tamis.results import table_of, table_of_counts

REMEMBERED = 100_000  # forms whose ids are kept as a list, once an event has matched them


class Representation(NamedTuple):
    """Which entry of a compacted table represents which originals.

    Originals, forms and representatives are known by their positions.
    """

    representatives: pa.Array  # ids
    originals: pa.Array  # ids
    form_of: Array  # [original]: its form, -1 if it can never match
    representative: Array  # [form]: its representative
    exact: Array  # [form]: whether it is its own representative
    filters: pa.Array  # [form]: a text


class _Matched(NamedTuple):
    """What events matched: forms or representatives, those of each event together."""

    bounds: Array  # [event + 1]: where those of an event begin
    positions: Array


class Restoration:
    """Turns matches of a compacted table into matches of the originals."""

    def __init__(
        self,
        representation: Representation,
        settings: MatcherSettings,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self._representation = representation
        self._settings = settings
        self._options = options
        form_count = len(representation.representative)
        alive = np.flatnonzero(representation.form_of >= 0)
        forms = representation.form_of[alive]
        # Originals in the order of their forms: those of a form are a range, so that no id has to
        # be looked up. One more form, without originals, is that of mergers.
        self._originals = representation.originals.take(
            pa.array(alive[np.argsort(forms, kind="stable")])
        )
        self._starts = _ends(np.bincount(forms, minlength=form_count + 1))
        self._listed: dict[int, list[Id]] = {}
        self._own = np.full(len(representation.representatives), form_count, np.int32)
        exact = np.flatnonzero(representation.exact)
        self._own[representation.representative[exact]] = exact
        self._inexact = np.flatnonzero(~representation.exact)
        self._watched = np.zeros(
            len(representation.representatives), np.bool_
        )  # [representative]: whether it represents an inexact form
        self._watched[representation.representative[self._inexact]] = True

    @cached_property
    def _second(self) -> Matcher:
        """A matcher of the forms that need a second look, with their positions as ids."""
        matcher = self._settings.matcher(self._options)
        filters = self._representation.filters.take(pa.array(self._inexact))
        matcher.subscribe_many(pa.table({"id": pa.array(self._inexact), "filter": filters}))
        return matcher

    def of_event(self, forms: Iterable[int]) -> list[Id]:
        """The originals of the forms that one event matched."""
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
        return self._written(found._replace(positions=self._own[found.positions]), more, output)

    def of_lists(self, column: pa.ChunkedArray, output: str) -> pa.Table:
        """The matches of originals that all are exact, from a list for each event."""
        found = self._listed_in(column)
        none = _Matched(np.zeros(len(column) + 1, np.int64), np.empty(0, np.int32))
        return self._written(found._replace(positions=self._own[found.positions]), none, output)

    def _found(self, matches: pa.Table, size: int) -> _Matched:
        """The representatives that events matched."""
        names = set(matches.column_names)
        if names >= {"event", "subscriptions"} and len(matches) == size:
            return self._listed_in(matches["subscriptions"])
        if not names >= {"event", "subscription"}:
            raise OptionError(
                "restore takes matches as pairs, with the columns event and subscription, or as "
                f"lists, one per event, not {', '.join(matches.column_names) or 'an empty table'}"
            )
        events = np.asarray(matches["event"].combine_chunks(), np.int64)
        if len(events) and not (events.min() >= 0 and events.max() < size):
            raise EventError(
                f"the matches name event {int(events.max())}, but there are only {size:,} events; "
                "pass the events that were matched"
            )
        places = self._positions_of(matches["subscription"])
        if (events[1:] < events[:-1]).any():
            order = np.argsort(events, kind="stable")
            events, places = events[order], places[order]
        return _Matched(_ends(np.bincount(events, minlength=size)), places)

    def _listed_in(self, column: pa.ChunkedArray) -> _Matched:
        """The representatives in a column of lists."""
        lists = column.combine_chunks()
        bounds = np.asarray(lists.offsets, np.int64)
        places = self._positions_of(pa.chunked_array([lists.flatten()]))
        return _Matched(bounds - bounds[0], places)

    def _positions_of(self, column: pa.ChunkedArray) -> Array:
        known = self._representation.representatives
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
                f"the matches name {which!r}, which is not a subscription of the compacted table"
            )
        return places

    def _more(self, found: _Matched, events: Any, size: int) -> _Matched:
        """The forms that the second matcher finds for the events that need a second look."""
        from tamis.kernels.restoration import find_watched

        met = np.zeros(size, np.bool_)
        find_watched(*found, self._watched, met)
        rows = np.flatnonzero(met)
        if not len(rows):
            return _Matched(np.zeros(size + 1, np.int64), np.empty(0, np.int32))
        if len(rows) < size:
            is_table = isinstance(events, pa.Table)
            events = events.take(rows) if is_table else [events[row] for row in rows]
        lists = self._second.match_batch(events, "lists")["subscriptions"].combine_chunks()
        counts = np.zeros(size, np.int64)
        counts[rows] = np.diff(np.asarray(lists.offsets))
        ids = lists.flatten()
        forms = np.asarray(ids.dictionary).astype(np.int32)
        return _Matched(_ends(counts), forms[np.asarray(ids.indices)])

    def _written(self, first: _Matched, more: _Matched, output: str) -> pa.Table:
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

    Covered filters are evaluated, too: a filter costs less than a second look at an event.
    """

    def __init__(
        self,
        representation: Representation,
        settings: MatcherSettings,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        forms = np.arange(len(representation.representative), dtype=np.int32)
        ids = pa.array(forms, pa.int64())
        self._first = settings.matcher(options)
        self._first.subscribe_many(pa.table({"id": ids, "filter": representation.filters}))
        own = representation._replace(
            representatives=ids, representative=forms, exact=np.ones(len(forms), np.bool_)
        )
        self._restoration = Restoration(own, settings)

    def __len__(self) -> int:
        """How many distinct filters there are."""
        return len(self._first)

    def match(self, event: Mapping[str, Any] | str | bytes) -> list[Id]:
        """The ids of the originals that an event matches, in the order of the distinct filters."""
        return self._restoration.of_event(self._first.match(event))  # type: ignore[arg-type]  # the ids are forms

    def match_batch(
        self, events: Any, output: str = "pairs", *, on_bad: str = "raise",
        event_id: str | None = None, keep: Sequence[str] = (),
    ) -> pa.Table | Matches:  # fmt: skip
        """The matches of the originals, within an event in the order of the distinct filters."""
        choose("output", output, OUTPUTS)
        choose("treatment of bad rows", on_bad, ON_BAD)
        if on_bad == "raise":
            found = self._first.match_batch(events, "lists", event_id=event_id, keep=keep)
            return self._restored(found, output)
        good = self._first.match_batch(
            events, "lists", on_bad="skip", event_id=event_id, keep=keep
        )  # fmt: skip
        return Matches(self._restored(good.table, output), good.bad)

    def _restored(self, lists: pa.Table, output: str) -> pa.Table:
        """The matches of the originals, with what the lists of the first matches say of events."""
        matches = self._restoration.of_lists(lists["subscriptions"], output)
        first, _, *kept = lists.column_names
        places, found = matches.columns
        named = {first: lists[first].take(places), matches.column_names[1]: found}
        return pa.table(named | {name: lists[name].take(places) for name in kept})


def _ends(counts: Array) -> Array:
    return np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)])
