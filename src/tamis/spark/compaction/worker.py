"""Finding the forms of filters and reducing them, in the workers."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import pyarrow as pa

from tamis.language.shape_cache import ShapeCache
from tamis.matcher_settings import MatcherSettings
from tamis.predicates.event_space import EventSpace
from tamis.relations.merging.mergers import Merger
from tamis.relations.reduction import ReducedFilters, reduce_filters, why_never
from tamis.spark.compaction.filter_forms import FilterForm, FilterForms
from tamis.spark.compile.last_rows import FilterStore, read_last_rows
from tamis.spark.tables.arrow_batches import FILTERS_AT_ONCE, runs
from tamis.spark.tables.match_schema import ID_TYPES
from tamis.subscriptions.bulk import collector_paused

# What `FormsTask` returns: filters with their forms, those that never match, and its report.
FORMS = "kind string, id {id_type}, row bigint, filter string, key binary, pin bigint, text string"
# What `ReduceTask` returns for each distinct filter, and for mergers, which have no key. The text
# is that of a filter that is left out, or the reason why it is never true.
REDUCED = (
    "how string, key binary, copies bigint, id {id_type}, filter string, text string, asked int"
)
KEPT, COVERED, MERGED, MERGER, NEVER = "kept", "covered", "merged", "merger", "never"
STRIDE = 1 << 20  # ids of mergers that a task may give out


@dataclass(frozen=True)
class FormsTask:
    """The function of `mapInArrow` that finds the forms of filters."""

    settings: MatcherSettings
    duplicates: str
    position: int | None  # of the attribute by whose values filters are divided
    id_type: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        forms = FilterForms(self.settings, self.position)
        store = FilterStore(self.settings, lambda row, _id, text: (row, text, forms.of(text)))
        report = read_last_rows(batches, self.duplicates, store)
        for kind, text, number in report.rows():
            yield self._rows([kind], [None], [number], [None], [FilterForm(None, None, text)])
        if not report.repeated:
            yield from self._filters(store.filters)

    def _filters(self, filters: dict[Any, tuple[int, str, FilterForm]]) -> Iterator[pa.RecordBatch]:
        found = list(filters.items())
        for start in range(0, len(found), FILTERS_AT_ONCE):
            part = found[start : start + FILTERS_AT_ONCE]
            forms = [form for _, (_, _, form) in part]
            yield self._rows(
                ["filter" if form.reason is None else NEVER for form in forms],
                [one for one, _ in part], [row for _, (row, _, _) in part],
                [text for _, (_, text, _) in part], forms,
            )  # fmt: skip

    def _rows(
        self, kinds: list[str], ids: list[Any], rows: list[int], texts: list[str | None],
        forms: list[FilterForm],
    ) -> pa.RecordBatch:  # fmt: skip
        return pa.record_batch(
            {
                "kind": kinds, "id": pa.array(ids, ID_TYPES[self.id_type]),
                "row": pa.array(rows, pa.int64()), "filter": pa.array(texts, pa.string()),
                "key": pa.array([form.key for form in forms], pa.binary()),
                "pin": pa.array([form.pin for form in forms], pa.int64()),
                "text": pa.array([form.reason for form in forms], pa.string()),
            }
        )  # fmt: skip


class MergerIds(NamedTuple):
    """Ids for mergers, different in each task: a prefix and numbers, or only numbers."""

    prefix: str | None
    first: int = 0
    step: int = 1  # or -1, downwards

    def id(self, task: int, number: int) -> str | int:
        """The id of a merger of a task."""
        if self.prefix is not None:
            return f"{self.prefix}{task}-{number + 1}"
        return self.first + self.step * (task * STRIDE + number)


class SentKey(NamedTuple):
    """The key of a filter that another task keeps."""

    id: str | int


@dataclass(frozen=True)
class ReduceTask:
    """The function of `mapInArrow` that says which filters of a task represent which others.

    Those that were `sent`, ids and filters of other tasks, may represent filters, too.
    """

    settings: MatcherSettings
    cover: bool
    merge: bool
    id_type: str
    merger_ids: MergerIds
    before: int  # tasks of earlier jobs, whose mergers have ids, too
    sent: tuple[tuple[Any, str], ...] = ()

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for (task,), parts in groupby(runs(batches, 1), key=lambda run: run[0]):
            table = pa.Table.from_batches([batch for _, batch in parts])
            if not self.cover:
                yield self._kept(table)
                continue
            with collector_paused():
                yield self._reduced(task, table)

    def _kept(self, table: pa.Table) -> pa.RecordBatch:
        """Every filter represents itself."""
        names = ("key", "copies", "id", "filter")
        columns = (table[name].to_pylist() for name in names)
        return self._batch([(KEPT, *row, None, None) for row in zip(*columns, strict=True)])

    def _reduced(self, task: int, table: pa.Table) -> pa.RecordBatch:
        shapes = ShapeCache(self.settings.schema)
        semantics = self.settings.meaning()
        names = ("key", "id", "filter", "copies")
        keys, ids, texts, copies = (table[name].to_pylist() for name in names)
        expressions = {key: shapes.parse(text) for key, text in zip(keys, texts, strict=True)}
        given = {SentKey(one): shapes.parse(text) for one, text in self.sent}
        found: ReducedFilters[Any] = reduce_filters(
            expressions.items(), semantics, merge=self.merge, given=given
        )
        own = dict(zip(keys, ids, strict=True))
        for number, merger in enumerate(found.mergers):
            own[merger] = self.merger_ids.id(self.before + task, number)
        parts = {part for merger in found.mergers for part in merger.parts}
        space = EventSpace.of(semantics)
        rows: list[tuple[Any, ...]] = []
        for key, text, count in zip(keys, texts, copies, strict=True):
            stands = found.representatives.get(key)
            if stands is None:
                why = why_never(expressions[key], semantics, space)
                rows.append((NEVER, key, count, None, None, why, None))
            elif stands == key:
                asked = len(expressions[key].attributes)
                rows.append((KEPT, key, count, own[key], text, None, asked))
            else:
                one = stands.id if isinstance(stands, SentKey) else own[stands]
                how = MERGED if isinstance(stands, Merger) and key in parts else COVERED
                rows.append((how, key, count, one, None, text, None))
        for merger in found.mergers:
            of = merger.expression
            rows.append((MERGER, None, 0, own[merger], str(of), None, len(of.attributes)))
        return self._batch(rows)

    def _batch(self, rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
        names = ["how", "key", "copies", "id", "filter", "text", "asked"]
        kinds = [
            pa.string(), pa.binary(), pa.int64(), ID_TYPES[self.id_type], pa.string(),
            pa.string(), pa.int32(),
        ]  # fmt: skip
        columns = zip(*rows, strict=True)
        arrays = [pa.array(column, kind) for column, kind in zip(columns, kinds, strict=True)]
        return pa.RecordBatch.from_arrays(arrays, names=names)
