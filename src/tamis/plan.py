"""How events are matched: what is compiled in which way, and what it costs."""

from typing import Any, NamedTuple

import numpy as np

from tamis.engines.auto import AutoEngine
from tamis.engines.sliced import SlicedEngine
from tamis.engines.sliced.blocks import SegmentEvaluator
from tamis.errors import counted
from tamis.kernels.programs import MIXED
from tamis.kernels.simd_rows import LANES
from tamis.language.ast import attributes
from tamis.names import path_text
from tamis.rules_file import compiling
from tamis.schema import Schema


class Group(NamedTuple):
    """Subscriptions that are found in the same way."""

    how: str
    subscriptions: int
    clusters: int
    largest: int  # cluster
    evaluation: str


class Part(NamedTuple):
    """A compiled segment."""

    subscriptions: int
    gone: int
    predicates: int  # distinct
    shapes: int
    bytes: int
    groups: tuple[Group, ...]
    estimated: float  # seconds an event, in a block of 512
    measured: float | None  # of the last events in a batch, None before the first


class Plan(NamedTuple):
    """What `Matcher.explain` says."""

    engine: str
    subscriptions: int
    asked: int  # one by one
    parts: tuple[Part, ...]

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        parts = [
            part._asdict() | {"groups": [group._asdict() for group in part.groups]}
            for part in self.parts
        ]
        return self._asdict() | {"parts": parts}

    def __str__(self) -> str:
        lines = [f"engine {self.engine}: {self.subscriptions:,} subscriptions"]
        if self.asked:
            lines.append(f"  {self.asked:,} asked one by one, event by event")
        for number, part in enumerate(self.parts, 1):
            gone = f", {part.gone:,} gone" if part.gone else ""
            measured = "" if part.measured is None else f", {_time(part.measured)} measured"
            lines.append(
                f"  part {number}: {part.subscriptions:,} compiled{gone}; "
                f"{counted(part.predicates, 'predicate')}, {counted(part.shapes, 'shape')}, "
                f"{part.bytes:,} bytes"
            )
            lines.append(f"    an event: {_time(part.estimated)} estimated{measured}")
            for group in part.groups:
                clusters = f" in {group.clusters:,} clusters" if group.clusters else ""
                largest = f", the largest of {group.largest:,}" if group.clusters > 1 else ""
                lines.append(
                    f"    {group.subscriptions:,} {group.how}{clusters}{largest}: "
                    f"{group.evaluation}"
                )
        return "\n".join(lines)


# Seconds, rough ones of a model: to combine a row of 512 events; to compare a subscription of a
# cluster with one event; for an event before anything is found. `measured` says what it took.
ROW, MEMBER, EVENT = 2e-9, 0.3e-9, 150e-9
_BY_ROWS = "512 events at once"
_BY_COLUMNS = "64 subscriptions at once where few events come, else 512 events at once"


def plan_of(engine: Any, schema: Schema) -> Plan:
    """The plan of an engine; engines of the papers say no more than their sizes."""
    compiled: SlicedEngine | None = None
    if isinstance(engine, AutoEngine):
        compiled = engine.compiled
    elif isinstance(engine, SlicedEngine):
        compiled = engine
    total = engine.statistics()["subscriptions"]
    if compiled is None:
        return Plan(engine.name, total, total if engine.name == "naive" else 0, ())
    parts = tuple(_part(blocks, schema) for blocks in compiled.snapshot().parts)
    asked = total - compiled.statistics()["subscriptions"]
    return Plan(engine.name, total, asked, parts)


def asked_attributes(engine: Any, schema: Schema) -> set[str]:
    """The names of the attributes that some filter asks for, of an engine that compiles filters."""
    compiled = compiling(engine)
    found: set[str] = set()
    for segment in (blocks.segment for blocks in compiled.snapshot().parts):
        found |= {schema.attributes[place].name for place in segment.used.tolist()}
        for test in segment.predicates.tests:
            found |= {path_text(path) for path in attributes(test)}
    return found


def _part(blocks: SegmentEvaluator, schema: Schema) -> Part:
    segment = blocks.segment
    programs, predicates = segment.programs, segment.predicates
    found: dict[str, list[tuple[int, int, int, bool]]] = {}
    rows = met = 0.0
    for shape in range(len(segment.shapes)):
        width, at = int(programs.widths[shape]), int(programs.refs_at[shape])
        bounds = [int(bound) for bound in programs.chunk_bounds[shape]]
        subs = programs.chunk_subs
        rows += float(subs[bounds[3]] - subs[bounds[1]]) * width
        first, end = bounds[0], bounds[1]
        if first < end:
            places = (subs[first:end].astype(np.int64) - int(programs.subs[shape])) * width
            refs = programs.refs[at + places]
            refs = programs.named[refs] if len(programs.named) else refs
            sizes = np.diff(subs[first : end + 1])
            alike = bool((programs.signatures[first:end] != MIXED).all())
            owners = predicates.attributes_of(refs)
            for owner in np.unique(owners).tolist():
                mine = owners == owner
                clusters, places = np.unique(refs[mine], return_inverse=True)
                totals = np.bincount(places.reshape(-1), weights=sizes[mine])
                name = schema.attributes[owner].name if owner >= 0 else None
                how = f"found by the value of {name}" if name else "found by sets and tests"
                entry = int(totals.sum()), len(clusters), int(totals.max()), alike
                met += float((totals**2).sum())
                found.setdefault(how, []).append(entry)
        for how, start, stop in (
            ("with a common first predicate", bounds[1], bounds[2]),
            ("without one", bounds[2], bounds[3]),
        ):
            count = int(subs[stop] - subs[start])
            if count:
                found.setdefault(how, []).append((count, 0, 0, False))
    groups = tuple(
        Group(
            how, sum(entry[0] for entry in entries), sum(entry[1] for entry in entries),
            max(entry[2] for entry in entries),
            _BY_COLUMNS if all(entry[3] for entry in entries) else _BY_ROWS,
        )
        for how, entries in found.items()
    )  # fmt: skip
    # As if events had the values of the filters: what many ask for comes often.
    members = met / max(sum(group.subscriptions for group in groups if group.clusters), 1)
    return Part(
        subscriptions=len(segment), gone=segment.dead, predicates=_distinct(blocks),
        shapes=len(segment.shapes), bytes=segment.nbytes(), groups=groups,
        estimated=EVENT + rows * ROW / 512 + members * MEMBER, measured=blocks.measured(),
    )  # fmt: skip


def _distinct(blocks: SegmentEvaluator) -> int:
    programs = blocks.segment.programs
    return len(programs.named) or len(np.unique(programs.refs[:-LANES]))


def _time(seconds: float) -> str:
    if seconds < 1e-6:
        return f"{seconds * 1e9:.0f} ns"
    return f"{seconds * 1e6:.1f} us" if seconds < 1e-3 else f"{seconds * 1e3:.1f} ms"
