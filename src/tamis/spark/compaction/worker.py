"""What runs in the Python workers of executors when a table of subscriptions is compacted."""

import hashlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Any, NamedTuple

import pyarrow as pa

from tamis.bulk import collector_paused
from tamis.errors import ExpressionError
from tamis.language.ast import Node
from tamis.language.expression import Expression
from tamis.language.shape_cache import ShapeCache
from tamis.predicates.boxes import pinned_values
from tamis.predicates.event_space import EventSpace
from tamis.relations.merging.mergers import Merger
from tamis.relations.reduction import Reduction, canonical, reduce_filters, why_never
from tamis.schema import Schema
from tamis.semantics import Semantics
from tamis.spark.compile.compilation import FILTERS_AT_ONCE, Meaning
from tamis.spark.compile.last_rows import hold
from tamis.spark.shards.worker import ID_TYPES, runs

# What `Forming` says: filters and those that are never true, and reports.
FORMED = "kind string, id {id_type}, row bigint, filter string, key binary, pin bigint, text string"
# What `Reducing` says of each distinct filter, and of mergers, which have no key. The text is that
# of a filter that is left out, or the reason for which it is never true.
REDUCED = (
    "how string, key binary, copies bigint, id {id_type}, filter string, text string, asked int"
)
KEPT, COVERED, MERGED, MERGER, NEVER = "kept", "covered", "merged", "merger", "never"
REMEMBERED = 200_000  # texts whose forms a worker remembers
STRIDE = 1 << 20  # ids of mergers that a task may give out


class Form(NamedTuple):
    """What is known of a filter before it is compared with others."""

    key: bytes | None  # filters with the same key match the same events; None for a reason
    pin: int | None  # a number for the one value that it asks of the attribute, if it asks for one
    reason: str | None  # for which it is never true


class Forms:
    """Reads filters."""

    def __init__(self, meaning: Meaning, position: int | None) -> None:
        self._shapes = ShapeCache(meaning.schema)
        self._semantics = Semantics(meaning.semantics, meaning.schema, meaning.defaults)
        self._space = EventSpace.of(self._semantics)
        self._position = position
        self._known: dict[str, Form] = {}

    def of(self, text: str) -> Form:
        """The form of a filter."""
        found = self._known.get(text)
        if found is None:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            found = self._known[text] = self._made(self._shapes.parse(text))
        return found

    def _made(self, expression: Expression) -> Form:
        form = canonical(expression, self._semantics, self._space)
        if form is None:
            return Form(None, None, why_never(expression, self._semantics, self._space))
        value = None
        if self._position is not None:
            value = pins_of(form, self._space.schema).get(self._position)
        key = hashlib.blake2b(repr(form).encode(errors="surrogatepass"), digest_size=16).digest()
        return Form(key, None if value is None else _number(value), None)

    def pins(self, text: str) -> dict[int, str]:
        """The attributes of which a filter asks for one value, and the value."""
        form = canonical(self._shapes.parse(text), self._semantics, self._space)
        return {} if form is None else pins_of(form, self._space.schema)


def pins_of(form: Node, schema: Schema) -> dict[int, str]:
    """The attributes that must have one certain value for a form to be true, and the value."""
    return {position: repr(value) for position, value in pinned_values(form, schema).items()}


def _number(value: str) -> int:
    digest = hashlib.blake2b(value.encode(errors="surrogatepass"), digest_size=7).digest()
    return int.from_bytes(digest)


@dataclass(frozen=True)
class Forming:
    """The function of `mapInArrow` that finds the forms of subscriptions."""

    meaning: Meaning
    duplicates: str
    position: int | None  # of the attribute by whose values filters are divided
    id_type: str

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        forms = Forms(self.meaning, self.position)
        held = hold(
            batches,
            self.meaning,
            self.duplicates,
            lambda row, _id, text: (row, text, forms.of(text)),
        )
        for kind, text, number in held.reports:
            yield self._said(kind, text, number)
        yield from self._filters(held.filters)

    def _filters(self, held: dict[Any, tuple[int, str, Form]]) -> Iterator[pa.RecordBatch]:
        found = list(held.items())
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
        forms: list[Form],
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

    def _said(self, kind: str, text: str, number: int = 0) -> pa.RecordBatch:
        return self._rows([kind], [None], [number], [None], [Form(None, None, text)])


class Fresh(NamedTuple):
    """Ids for mergers, each task its own: texts with a prefix, or numbers from a first one on."""

    prefix: str | None
    first: int = 0
    step: int = 1  # or -1, downwards

    def id(self, task: int, number: int) -> str | int:
        """One of them."""
        if self.prefix is not None:
            return f"{self.prefix}{task}-{number + 1}"
        return self.first + self.step * (task * STRIDE + number)


class Given(NamedTuple):
    """A key of a filter that is held elsewhere."""

    id: str | int


@dataclass(frozen=True)
class Reducing:
    """The function of `mapInArrow` that says who stands for whom among the filters of a task.

    Those that are `given`, filters by ids, may stand for others, too.
    """

    meaning: Meaning
    cover: bool
    merge: bool
    id_type: str
    fresh: Fresh
    before: int  # tasks of others, whose mergers have ids, too
    given: tuple[tuple[Any, str], ...] = ()

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for (task,), parts in groupby(runs(batches, 1), key=lambda run: run[0]):
            table = pa.Table.from_batches([batch for _, batch in parts])
            if not self.cover:
                yield self._kept(table)
                continue
            with collector_paused():
                yield self._reduced(task, table)

    def _kept(self, table: pa.Table) -> pa.RecordBatch:
        """Every filter stands for itself."""
        names = ("key", "copies", "id", "filter")
        columns = (table[name].to_pylist() for name in names)
        return self._batch([(KEPT, *row, None, None) for row in zip(*columns, strict=True)])

    def _reduced(self, task: int, table: pa.Table) -> pa.RecordBatch:
        shapes = ShapeCache(self.meaning.schema)
        semantics = Semantics(self.meaning.semantics, self.meaning.schema, self.meaning.defaults)
        names = ("key", "id", "filter", "copies")
        keys, ids, texts, copies = (table[name].to_pylist() for name in names)
        expressions = {key: shapes.parse(text) for key, text in zip(keys, texts, strict=True)}
        given = {Given(one): shapes.parse(text) for one, text in self.given}
        found: Reduction[Any] = reduce_filters(
            expressions.items(), semantics, merge=self.merge, given=given
        )
        own = dict(zip(keys, ids, strict=True))
        for number, merger in enumerate(found.mergers):
            own[merger] = self.fresh.id(self.before + task, number)
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
                one = stands.id if isinstance(stands, Given) else own[stands]
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


def most_pinned(texts: Iterable[str], meaning: Meaning) -> int | None:
    """The attribute of which most filters ask for one value; None if hardly any does."""
    forms = Forms(meaning, None)
    counts: dict[int, int] = {}
    read = 0
    for text in dict.fromkeys(texts):
        try:
            pins = forms.pins(text)
        except ExpressionError:
            continue  # a letter will tell
        read += 1
        for position in pins:
            counts[position] = counts.get(position, 0) + 1
    best = max(counts, key=lambda position: (counts[position], -position), default=None)
    return best if best is not None and counts[best] * 4 >= read else None
