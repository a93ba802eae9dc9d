"""One engine on one workload, in its own process, so that memory can be measured."""

import ctypes
import gc
import multiprocessing
import statistics
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from scan_engine import ScanEngine
from tamis.engines import make_engine
from tamis.engines.base import Engine
from tamis.events.columns import table_rows
from tamis.events.event_reader import Row
from tamis.language.expression import Expression
from tamis.language.shape_cache import ShapeCache
from tamis.semantics import Semantics
from tamis.workloads import workload

CHANGES = 100  # subscriptions that are added and removed while events are matched
PATIENCE = 20.0  # seconds after which no further event is matched
COMPARED = 10  # events whose matches are compared between contestants


@dataclass(frozen=True)
class Task:
    """What is measured."""

    workload: str
    size: int
    engine: str  # or "numpy scan"
    events: int = 100
    density: float = 1.0
    semantics: str = "sql"
    options: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Result:
    """Seconds, bytes, and what was found."""

    read: float  # filters to expressions
    build: float  # expressions to an engine that has answered one event
    bytes: float  # of the engine, for one subscription
    event: float  # median
    spread: float  # (90th - 10th percentile) / median
    subscribe: float  # one more, with what it costs the next event
    unsubscribe: float
    matches: float  # per event
    digest: int  # of the matches of the first events
    statistics: dict[str, int]


def run(task: Task) -> Result:
    """Measure in a fresh process."""
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        return pool.apply(measure, (task,))


def measure(task: Task) -> Result:
    source = workload(task.workload)
    # A few more filters, to subscribe while events come.
    filters = source.subscriptions(task.size + CHANGES, seed=1)["filter"].to_pylist()
    table = source.events(task.events, seed=2, density=task.density)
    semantics = Semantics(task.semantics, source.schema)
    rows = [semantics.prepare(row) for row in table_rows(table, source.schema, refuse_unknown=True)]
    gc.collect()
    gc.disable()
    start = time.perf_counter()
    parse = ShapeCache(source.schema).parse
    expressions = [parse(text) for text in filters]
    for expression in expressions:
        _ = expression.tree  # built on first use; that is not the engine's work
    read = time.perf_counter() - start
    warm_up(task, semantics, expressions[:200], rows)
    before = resident()
    engine = new_engine(task, semantics)
    start = time.perf_counter()
    for handle, expression in enumerate(expressions[: task.size]):
        engine.add(handle, engine.prepare(expression))
    engine.match(rows[0])
    build = time.perf_counter() - start
    size = (resident() - before) / task.size
    times, found = time_events(engine, rows)
    event = statistics.median(times)
    deciles = statistics.quantiles(times, n=10)
    changes = list(enumerate(expressions[task.size :], task.size))
    some = rows[: len(times)]
    return Result(
        read=read, build=build, bytes=size, event=event,
        spread=(deciles[-1] - deciles[0]) / event,
        subscribe=time_changes(engine, changes, some, subscribe),
        unsubscribe=time_changes(engine, changes, some, unsubscribe),
        matches=statistics.mean(len(one) for one in found),
        digest=digest(found), statistics=engine.statistics(),
    )  # fmt: skip


def new_engine(task: Task, semantics: Semantics) -> Engine:
    if task.engine == "numpy scan":
        return ScanEngine(semantics)
    return make_engine(task.engine, semantics, task.options)


def warm_up(
    task: Task, semantics: Semantics, expressions: Sequence[Any], rows: Sequence[Row]
) -> None:
    """Compile the kernels, or load them, with a small engine."""
    engine = new_engine(task, semantics)
    for handle, expression in enumerate(expressions):
        engine.add(handle, engine.prepare(expression))
    for row in rows[:3]:
        engine.match(row)
    for handle in range(len(expressions)):
        engine.remove(handle)


def time_events(engine: Engine, rows: Sequence[Row]) -> tuple[list[float], list[Any]]:
    times: list[float] = []
    found: list[Any] = []
    for row in rows:
        start = time.perf_counter()
        handles = engine.match(row)
        times.append(time.perf_counter() - start)
        found.append(np.asarray(handles, np.int64))
        if sum(times) > PATIENCE and len(times) >= COMPARED:
            break
    return times, found


def subscribe(engine: Engine, handle: int, expression: Expression) -> None:
    engine.add(handle, engine.prepare(expression))


def unsubscribe(engine: Engine, handle: int, _expression: Expression) -> None:
    engine.remove(handle)


def time_changes(
    engine: Engine, changes: Sequence[tuple[int, Expression]], rows: Sequence[Row],
    change: Callable[[Engine, int, Expression], None],
) -> float:  # fmt: skip
    """The median time of a change, plus how much longer the next event takes."""
    times: list[float] = []
    for number, (handle, expression) in enumerate(changes):
        row = rows[number % len(rows)]
        before = time.perf_counter()
        engine.match(row)
        start = time.perf_counter()
        change(engine, handle, expression)
        engine.match(row)
        times.append((time.perf_counter() - start) - (start - before))
    return statistics.median(times)


def digest(found: Sequence[Any]) -> int:
    sum_ = 0
    for handles in found[:COMPARED]:
        sum_ = zlib.crc32(handles.tobytes(), sum_)
    return sum_


def resident() -> int:
    """Bytes of memory in use by this process, after the allocator has released what it can."""
    gc.collect()
    ctypes.CDLL(None).malloc_trim(0)
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1]) * 4096
