"""How an engine matches events: what is compiled in which way, and what it costs."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from tamis.engines.auto import AutoEngine
from tamis.engines.sliced import SlicedEngine
from tamis.engines.sliced.blocks import SegmentEvaluator
from tamis.engines.sliced.segment import Segment
from tamis.engines.sliced.segment_predicates import SegmentPredicates
from tamis.errors import counted
from tamis.kernels.formula_steps import TRACKS
from tamis.kernels.programs import FORMULAS, MIXED
from tamis.kernels.simd_rows import LANES
from tamis.kernels.value_classes import REF_KINDS
from tamis.language import ast
from tamis.language.printer import print_tree
from tamis.schema import Schema
from tamis.visible_text import visible

Array = np.ndarray[Any, Any]


class PlanGroup(NamedTuple):
    """Subscriptions that are found in the same way."""

    how: str
    subscriptions: int
    clusters: int
    largest: int  # cluster
    evaluation: str


class PlanTerm(NamedTuple):
    """A computed value that takes long, and the subscriptions that test it."""

    value: str
    seconds: float  # per event, measured; what values have in common counts for one of them
    subscriptions: int
    ids: tuple[Any, ...]  # the first of them


class PlanPart(NamedTuple):
    """What a plan says of one compiled segment."""

    subscriptions: int
    gone: int
    predicates: int  # distinct
    shapes: int
    bytes: int
    groups: tuple[PlanGroup, ...]
    estimated: float  # seconds per event, in a block of 512
    measured: float | None  # of the last events in a batch, None before the first
    terms: int = 0  # distinct computed values
    computing: int = 0  # subscriptions that test one
    slowest: tuple[PlanTerm, ...] = ()  # the values that took longest in the last batch


class MatchPlan(NamedTuple):
    """The answer of `Matcher.explain`."""

    engine: str
    subscriptions: int
    asked: int  # subscriptions that are evaluated one by one
    parts: tuple[PlanPart, ...]

    def to_dict(self) -> dict[str, Any]:
        """The plan as JSON can hold it."""
        parts = [
            part._asdict()
            | {
                "groups": [group._asdict() for group in part.groups],
                "slowest": [term._asdict() | {"ids": list(term.ids)} for term in part.slowest],
            }
            for part in self.parts
        ]
        return self._asdict() | {"parts": parts}

    def __str__(self) -> str:
        lines = [f"engine {self.engine}: {self.subscriptions:,} subscriptions"]
        if self.asked:
            lines.append(f"  {self.asked:,} evaluated one by one, event by event")
        for number, part in enumerate(self.parts, 1):
            gone = f", {part.gone:,} gone" if part.gone else ""
            measured = "" if part.measured is None else f", {_time(part.measured)} measured"
            lines.append(
                f"  part {number}: {part.subscriptions:,} compiled{gone}; "
                f"{counted(part.predicates, 'predicate')}, {counted(part.shapes, 'shape')}, "
                f"{part.bytes:,} bytes"
            )
            lines.append(f"    per event: {_time(part.estimated)} estimated{measured}")
            for group in part.groups:
                clusters = f" in {group.clusters:,} clusters" if group.clusters else ""
                largest = f", the largest of {group.largest:,}" if group.clusters > 1 else ""
                lines.append(
                    f"    {group.subscriptions:,} {group.how}{clusters}{largest}: "
                    f"{group.evaluation}"
                )
            if part.terms:
                lines.append(
                    f"    {part.computing:,} compute values, {counted(part.terms, 'value')} in all"
                )
            for term in part.slowest:
                more = ", ..." if len(term.ids) < term.subscriptions else ""
                ids = ", ".join(map(str, term.ids)) + more
                lines.append(
                    f"      {_time(term.seconds)} per event: {term.value}, "
                    f"for {counted(term.subscriptions, 'subscription')}: {ids}"
                )
        return "\n".join(map(visible, lines))


# The model behind `estimated`, in seconds: to combine a row of 512 events; to compare one
# subscription of a cluster with one event; for each event before any subscription is looked at.
ROW, MEMBER, EVENT = 2e-9, 0.3e-9, 150e-9
MOST_SLOW, MOST_NAMED = 5, 3  # computed values that a plan names, and subscriptions of each
_BY_ROWS = "512 events at once"
_BY_COLUMNS = "64 subscriptions at once where few events come, else 512 events at once"


def plan_of(
    engine: Any, schema: Schema, ids_of: Callable[[Array], Sequence[Any]] = np.ndarray.tolist
) -> MatchPlan:
    """The plan of an engine; of an engine that does not compile filters, only its size.

    `ids_of` gives the ids of the subscriptions of some handles.
    """
    compiled: SlicedEngine | None = None
    if isinstance(engine, AutoEngine):
        compiled = engine.compiled
    elif isinstance(engine, SlicedEngine):
        compiled = engine
    total = engine.statistics()["subscriptions"]
    if compiled is None:
        return MatchPlan(engine.name, total, total if engine.name == "naive" else 0, ())
    parts = tuple(_part(evaluator, schema, ids_of) for evaluator in compiled.snapshot().parts)
    asked = total - compiled.statistics()["subscriptions"]
    return MatchPlan(engine.name, total, asked, parts)


class _Found(NamedTuple):
    """Subscriptions of one shape that are found in the same way."""

    subscriptions: int
    clusters: int = 0
    largest: int = 0  # cluster
    met: float = 0.0  # the sum of the squares of the sizes of the clusters
    is_alike: bool = False  # whether all chunks can be evaluated by columns


def _part(
    evaluator: SegmentEvaluator, schema: Schema, ids_of: Callable[[Array], Sequence[Any]]
) -> PlanPart:
    segment = evaluator.segment
    programs = segment.programs
    found: dict[str, list[_Found]] = {}
    rows = 0.0
    for shape in range(len(programs.widths)):
        bounds, subs = programs.chunk_bounds[shape].tolist(), programs.chunk_subs
        rows += float(subs[bounds[3]] - subs[bounds[1]]) * int(programs.widths[shape])
        if programs.widths[shape] == FORMULAS:
            ends = segment.steps.steps_at
            rows += float(ends[-1] - ends[TRACKS * (bounds[1] - bounds[0])])
        if bounds[0] < bounds[1]:
            for how, cluster in _clusters(segment, schema, shape):
                found.setdefault(how, []).append(cluster)
        for how, start, stop in (
            ("with a common first predicate", bounds[1], bounds[2]),
            ("without one", bounds[2], bounds[3]),
        ):
            count = int(subs[stop] - subs[start])
            if count:
                found.setdefault(how, []).append(_Found(count))
    groups = tuple(_group(how, entries) for how, entries in found.items())
    # As if events had the values that filters test for: values of many filters come often.
    met = sum(entry.met for entries in found.values() for entry in entries)
    members = met / max(sum(group.subscriptions for group in groups if group.clusters), 1)
    return PlanPart(
        subscriptions=len(segment), gone=segment.dead, predicates=_distinct(evaluator),
        shapes=len(programs.widths), bytes=segment.nbytes(), groups=groups,
        estimated=EVENT + rows * ROW / 512 + members * MEMBER, measured=evaluator.measured(),
        **_computing(evaluator, schema, ids_of),
    )  # fmt: skip


def _computing(
    evaluator: SegmentEvaluator, schema: Schema, ids_of: Callable[[Array], Sequence[Any]]
) -> dict[str, Any]:
    """The last fields of a `PlanPart`: who computes values, and which of these take longest."""
    predicates, first = evaluator.segment.predicates, len(schema)
    if not predicates.terms:
        return {}
    pairs = []  # handles, and the terms that their filters test
    for handles, refs in evaluator.segment.filters().uses():
        owners = _owners(predicates, refs)
        mine = owners >= first
        pairs.append((handles[mine], owners[mine] - first))
    handles, terms = (np.concatenate(part) for part in zip(*pairs, strict=True))
    seconds = evaluator.term_seconds()
    tested = np.unique(terms)
    slowest = []
    if seconds is not None:
        for number in tested[np.argsort(-seconds[tested], kind="stable")][:MOST_SLOW].tolist():
            own = np.unique(handles[terms == number])
            name = _name(first + number, evaluator.segment, schema)
            ids = tuple(ids_of(own[:MOST_NAMED]))
            slowest.append(PlanTerm(name, float(seconds[number]), len(own), ids))
    return {
        "terms": len(tested), "computing": len(np.unique(handles)), "slowest": tuple(slowest),
    }  # fmt: skip


def _owners(predicates: SegmentPredicates, refs: Array) -> Array:
    """The attribute or term of each reference, -1 for a test of several attributes."""
    found = predicates.attributes_of(refs).astype(np.int64)
    numbers = refs // REF_KINDS - predicates.base
    tests = np.array(predicates.test_attributes, np.int64)
    # In the order of their numbers: sets of IN, tests, sets of NOT IN.
    listed = np.concatenate([predicates.in_sets.attributes, tests, predicates.out_sets.attributes])
    listed = np.where(listed == len(predicates.cuts), -1, listed)
    inside = numbers >= 0
    found[inside] = listed[numbers[inside]]
    return found


def _clusters(segment: Segment, schema: Schema, shape: int) -> Iterator[tuple[str, _Found]]:
    """The subscriptions of a shape that are found by a value, by a set or by a test."""
    programs, subs = segment.programs, segment.programs.chunk_subs
    first, end = (int(bound) for bound in programs.chunk_bounds[shape, :2])
    refs = segment.access_of(shape)
    sizes = np.diff(subs[first : end + 1])
    is_alike = bool((programs.signatures[first:end] != MIXED).all())
    owners = segment.predicates.attributes_of(refs)
    of_sets = _owners_of_sets(segment, refs, owners)
    for owner in np.unique(of_sets).tolist():
        mine = of_sets == owner
        clusters, places = np.unique(refs[mine], return_inverse=True)
        totals = np.bincount(places.reshape(-1), weights=sizes[mine])
        how = "found by sets and tests"
        if owner >= 0:
            name = _name(owner, segment, schema)
            is_array = name.startswith("elements of ")
            how = f"found by {name}" if is_array else f"found by the value of {name}"
        yield (
            how,
            _Found(
                int(totals.sum()),
                len(clusters),
                int(totals.max()),
                float((totals**2).sum()),
                is_alike,
            ),
        )


def _owners_of_sets(segment: Segment, refs: Array, owners: Array) -> Array:
    """The owner of each reference; that of a set of elements is what stands for the elements."""
    predicates = segment.predicates
    first = len(predicates.cuts) - len(predicates.terms)
    arrays = [first + n for n, t in enumerate(predicates.terms) if isinstance(t, ast.Elements)]
    if not arrays:
        return owners
    found = owners.copy()
    numbers = refs // REF_KINDS - predicates.base
    inside = (numbers >= 0) & (numbers < predicates.first_test)
    of_set = predicates.in_sets.attributes[numbers[inside]]
    found[inside] = np.where(np.isin(of_set, arrays), of_set, -1)
    return found


def _name(owner: int, segment: Segment, schema: Schema) -> str:
    """The name of an attribute, or the text of a term."""
    if owner < len(schema):
        return schema.attributes[owner].name
    return print_tree(segment.predicates.terms[owner - len(schema)], suffixes=False)


def _group(how: str, found: list[_Found]) -> PlanGroup:
    return PlanGroup(
        how, sum(entry.subscriptions for entry in found), sum(entry.clusters for entry in found),
        max(entry.largest for entry in found),
        _BY_COLUMNS if all(entry.is_alike for entry in found) else _BY_ROWS,
    )  # fmt: skip


def _distinct(evaluator: SegmentEvaluator) -> int:
    segment = evaluator.segment
    own = segment.programs.named
    own = own if len(own) else segment.programs.refs[:-LANES]
    return len(np.unique(np.concatenate([own, segment.steps.tested])))


def _time(seconds: float) -> str:
    if seconds < 1e-6:
        return f"{seconds * 1e9:.0f} ns"
    return f"{seconds * 1e6:.1f} us" if seconds < 1e-3 else f"{seconds * 1e3:.1f} ms"
