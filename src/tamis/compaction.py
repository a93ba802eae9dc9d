"""A smaller table of subscriptions that leads to the same matches: `compact`.

Subscriptions that mean the same become one, those that another one covers are left out, and those
that one filter can replace exactly are merged. The mapping says which entry represents which
originals, so that the matches of the compacted table lead back to exactly those of the originals.
"""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.errors import SubscriptionError, counted
from tamis.language.expression import Expression
from tamis.language.shape_cache import ShapeCache
from tamis.matcher import Id
from tamis.matcher_settings import MatcherSettings
from tamis.matches import Matches
from tamis.predicates.event_space import EventSpace
from tamis.relations.merging.mergers import Merger
from tamis.relations.reduction import canonical, reduce_filters, why_never
from tamis.restoration import CompactedMatcher, Representation, Restoration
from tamis.schema import as_schema
from tamis.semantics import Semantics
from tamis.subscriptions.bulk import (
    BulkRows,
    check_ids,
    collector_paused,
    id_column,
    read_all,
    rows_of,
    text_column,
)
from tamis.types import INT64_MAX, INT64_MIN

NO_CLOCK = "in compacted tables, for which events are matched a second time"
MERGED = "merged-"  # how the ids of mergers begin, where ids are strings


@dataclass(frozen=True)
class Report:
    """What happened to the originals; each is counted once.

    ``originals == never + duplicates + covered + merged + kept`` and ``left == kept + mergers``.
    """

    originals: int = 0
    never: int = 0  # that can match no event
    duplicates: int = 0  # that mean the same as one before them
    covered: int = 0  # that match only events that another one matches
    merged: int = 0  # that a merger replaces
    kept: int = 0
    mergers: int = 0

    @property
    def left(self) -> int:
        """How many subscriptions the compacted table has."""
        return self.kept + self.mergers

    def to_dict(self) -> dict[str, int]:
        """The numbers as JSON can hold them."""
        return {f.name: getattr(self, f.name) for f in fields(self)} | {"left": self.left}

    def __str__(self) -> str:
        into = f" into {counted(self.mergers, 'merger')}" if self.merged else ""
        return (
            f"{counted(self.originals, 'subscription')} became {self.left:,}: "
            f"{counted(self.duplicates, 'duplicate')}, {self.covered:,} covered, "
            f"{self.merged:,} merged{into}, {self.never:,} that can never match"
        )


def compact(
    subscriptions: Any, schema: Any, *, semantics: str = "sql",
    defaults: Mapping[str, Any] | None = None, cover: bool = True, merge: bool = True,
) -> "Compacted":  # fmt: skip
    """Remove duplicate and covered subscriptions, and merge perfectly.

    `subscriptions`, `schema`, `semantics` and `defaults` are those of `tamis.Matcher` and its
    `subscribe_many`: of rows with the same id the last one counts, and an error names every bad
    row. Without `merge` every filter of the compacted table is one of the originals; without
    `cover` only duplicates are removed, which takes a fraction of the time.

    >>> from tamis.compaction import compact
    >>> found = compact({"a": "x > 1", "b": "x>1", "c": "x > 5"}, {"x": "int"})
    >>> found.subscriptions.to_pylist()
    [{'id': 'a', 'filter': 'x > 1'}]
    >>> found.match_batch([{"x": 3}, {"x": 7}], output="lists")["subscriptions"].to_pylist()
    [['a', 'b'], ['a', 'b', 'c']]
    """
    known = as_schema(schema)
    # Events are matched again to restore matches, by which time now() would be another one.
    settings = MatcherSettings(known.without_clock(NO_CLOCK), semantics, defaults)
    forms = _Forms(settings.meaning())
    with collector_paused():
        rows = rows_of(subscriptions)
        check_ids(rows, None)
        read_all(rows, forms.read, None)
        return _Compaction(rows, forms, cover=cover, merge=merge).compacted(settings)


class Compacted:
    """A compacted table, with all that is needed to get back to the originals.

    * `subscriptions`: ``id``, ``filter``. A merger has an id that no original has.
    * `mapping`: ``subscription`` (of the compacted table), ``original``, and ``exact``: whether the
      original matches whenever the other one does. If not, it is covered or part of a merger.
    * `never`: ``original``, ``reason``, for those that cannot match any event
    * `report`: how many there are of each
    """

    def __init__(
        self, subscriptions: pa.Table, representation: Representation, never: pa.Table,
        report: Report, settings: MatcherSettings,
    ) -> None:  # fmt: skip
        self.subscriptions = subscriptions
        self.never = never
        self.report = report
        self._representation = representation
        self._settings = settings

    @cached_property
    def mapping(self) -> pa.Table:
        """Which subscription represents which original, in the order of the originals."""
        of = self._representation
        rows = np.flatnonzero(of.form_of >= 0)
        forms = of.form_of[rows]
        return pa.table(
            {
                "subscription": of.representatives.take(pa.array(of.representative[forms])),
                "original": of.originals.take(pa.array(rows)),
                "exact": pa.array(of.exact[forms]),
            }
        )

    @cached_property
    def _restoration(self) -> Restoration:
        return Restoration(self._representation, self._settings)

    @cached_property
    def _matcher(self) -> CompactedMatcher:
        return self.matcher()

    def restore(self, matches: pa.Table, events: Any, output: str = "pairs") -> pa.Table:
        """The matches of the originals, from those of `subscriptions` with the same events.

        `matches` are pairs or lists, as a `Matcher` of `subscriptions` returns them, and `events`
        are the events that it matched; an event is matched again only if it matched the
        representative of an original that is not exact. The answer is that of a matcher of the
        originals; within an event, originals that mean the same stand together.
        """
        return self._restoration.table(matches, events, output)

    def matcher(self, options: Mapping[str, Any] | None = None) -> CompactedMatcher:
        """A matcher of the originals that evaluates each distinct filter once.

        `options` are those of the engine; docs/compaction.md says what it costs and saves.
        """
        return CompactedMatcher(self._representation, self._settings, options)

    def match(self, event: Mapping[str, Any] | str | bytes) -> list[Id]:
        """The ids of all originals that an event matches."""
        return self._matcher.match(event)

    def match_batch(
        self, events: Any, output: str = "pairs", *, on_bad: str = "raise",
        event_id: str | None = None, keep: Sequence[str] = (),
    ) -> pa.Table | Matches:  # fmt: skip
        """The matches of the originals with many events; arguments as of `Matcher.match_batch`."""
        return self._matcher.match_batch(
            events, output, on_bad=on_bad, event_id=event_id, keep=keep
        )

    def __repr__(self) -> str:
        return f"<Compacted: {self.report}>"


class _Forms:
    """The forms of filters; a text that comes again is not read again."""

    def __init__(self, semantics: Semantics) -> None:
        self.semantics = semantics
        self.space = EventSpace.of(semantics)
        self.expressions: dict[int, Expression] = {}  # by the first row of a form
        self.forms: list[int] = []  # [row]: the first row of its form
        self._shapes = ShapeCache(semantics.schema)
        self._firsts: dict[Hashable, int] = {}
        self._texts: dict[Any, int] = {}

    def read(self, row: int, text: Any) -> None:
        """Find the form of the filter of a row."""
        self.forms.extend([-1] * (row + 1 - len(self.forms)))
        known = self._texts.get(text) if isinstance(text, str) else None
        if known is None:
            known = self._read(row, text)
            if isinstance(text, str):
                self._texts[text] = known
        self.forms[row] = known

    def _read(self, row: int, text: Any) -> int:
        if isinstance(text, Expression):
            if text.schema != self.semantics.schema:
                raise SubscriptionError(
                    "the expression was parsed with another schema than that of the compaction"
                )
            expression = text
        else:
            expression = self._shapes.parse(text)
        form = canonical(expression, self.semantics, self.space)
        # Each filter that is never true keeps its own form: it has its own reason.
        first = row if form is None else self._firsts.setdefault(form, row)
        if first == row:
            self.expressions[row] = expression
        return first


class _Compaction:
    """The compaction of one table."""

    def __init__(self, rows: BulkRows, forms: _Forms, *, cover: bool, merge: bool) -> None:
        self._forms = forms
        # Of rows with the same id the last one counts, in the place of the first one.
        last = {subscription: row for row, subscription in enumerate(rows.ids)}
        self._rows = list(last.values())
        self._ids = list(last)
        self._texts = [rows.filters[row] for row in self._rows]
        self._firsts: dict[int, int] = {}  # by form, the position of its first original
        self._form_of = [forms.forms[row] for row in self._rows]
        for place, form in enumerate(self._form_of):
            self._firsts.setdefault(form, place)
        self._reduced = reduce_filters(self._filters(), forms.semantics, cover=cover, merge=merge)

    def _filters(self) -> Iterator[tuple[int, Expression]]:
        """The distinct forms in the order of their first originals."""
        for form in self._firsts:
            yield form, self._forms.expressions[form]

    def compacted(self, settings: MatcherSettings) -> Compacted:
        """The compacted table."""
        reduced, never = self._reduced, set(self._reduced.never)
        firsts = {form: place for form, place in self._firsts.items() if form not in never}
        heads: dict[Any, int] = {}  # by form or merger, its position among the representatives
        ids: list[Id] = []
        texts: list[Any] = []
        for form, place in firsts.items():
            if reduced.representatives[form] == form:
                heads[form] = len(ids)
                ids.append(self._ids[place])
                texts.append(self._texts[place])
        for merger, fresh in zip(reduced.mergers, fresh_ids(self._ids), strict=False):
            heads[merger] = len(ids)
            ids.append(fresh)
            texts.append(str(merger.expression))
        numbers = {form: n for n, form in enumerate(firsts)}
        kind = id_column(self._ids).type
        representation = Representation(
            representatives=pa.array(ids, kind),
            originals=pa.array(self._ids, kind),
            form_of=np.array([numbers.get(form, -1) for form in self._form_of], np.int32),
            representative=np.array(
                [heads[reduced.representatives[form]] for form in firsts], np.int32
            ),
            exact=np.array([form in heads for form in firsts], np.bool_),
            filters=text_column([self._texts[place] for place in firsts.values()]),
        )
        table = pa.table({"id": representation.representatives, "filter": text_column(texts)})
        never_table, report = self._never(never, kind), self._report(never)
        return Compacted(table, representation, never_table, report, settings)

    def _never(self, never: set[int], kind: pa.DataType) -> pa.Table:
        of = self._forms
        reasons = {n: why_never(of.expressions[n], of.semantics, of.space) for n in never}
        found = [(self._ids[n], form) for n, form in enumerate(self._form_of) if form in never]
        return pa.table(
            {
                "original": pa.array([one for one, _ in found], kind),
                "reason": pa.array([reasons[form] for _, form in found], pa.string()),
            }
        )

    def _report(self, never: set[int]) -> Report:
        reduced = self._reduced
        total, hopeless = len(self._ids), sum(form in never for form in self._form_of)
        represented = reduced.representatives
        kept = sum(stands == form for form, stands in represented.items())
        parts = {part for merger in reduced.mergers for part in merger.parts}
        merged = sum(isinstance(represented[part], Merger) for part in parts)
        return Report(
            originals=total, never=hopeless, duplicates=total - hopeless - len(represented),
            covered=len(represented) - kept - merged, merged=merged, kept=kept,
            mergers=len(reduced.mergers),
        )  # fmt: skip


def fresh_ids(taken: Iterable[Id]) -> Iterator[Id]:
    """Ids of the same kind that are not taken."""
    ids = set(taken)
    if any(isinstance(one, int) for one in ids):
        whole = [one for one in ids if isinstance(one, int)]
        yield from range(max(whole) + 1, INT64_MAX + 1)
        yield from range(min(whole) - 1, INT64_MIN - 1, -1)
        yield from (number for number in range(INT64_MAX) if number not in ids)
        return
    prefix = fresh_prefix(lambda start: any(str(one).startswith(start) for one in ids))
    number = 0
    while True:
        number += 1
        yield f"{prefix}{number}"


def fresh_prefix(is_taken: Any) -> str:
    """A prefix with which no id begins."""
    prefix = MERGED
    while is_taken(prefix):
        prefix += "-"
    return prefix
