"""A contest: engines with the same filters and events, measured one after the other, and compared.

Times are processor times of this process: what else the machine does meanwhile hardly changes them.
"""

import gc
import statistics
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from tamis.engines import make_engine
from tamis.engines.base import BatchEngine, Engine
from tamis.errors import OptionError, TamisError
from tamis.events.columns import table_rows
from tamis.events.event_reader import Row
from tamis.language.expression import Expression
from tamis.language.shape_cache import ShapeCache
from tamis.predicates.event_batches import Batch, batch_of_rows
from tamis.semantics import Semantics
from tamis.workloads import Workload
from tamis.workloads.conjunctions import Comparisons

PATIENCE = 10.0  # seconds after which no further event is measured
ROUNDS = 5
QUICK = 0.4  # seconds after which no further round begins
FEWEST = 5  # events that are measured in any case
EVENT_SEEDS = 1_000_003  # events have other seeds than filters
OPERATORS_OF_COUNT = ("=", "<>", "<", ">")


class Disagreement(TamisError):
    """Contestants that give different answers; then no figure of theirs means anything."""


@dataclass(frozen=True)
class Data:
    """The filters and events of one case."""

    expressions: Sequence[Expression]
    rows: Sequence[Row]
    semantics: Semantics


def draw(
    source: Workload, size: int, events: int, seed: int, *, density: float = 1.0,
    semantics: str = "sql",
) -> Data:  # fmt: skip
    """Filters and events of a workload."""
    meaning = Semantics(semantics, source.schema)
    parse = ShapeCache(source.schema).parse
    texts = source.subscriptions(size, seed=seed)["filter"].to_pylist()
    expressions = [parse(text) for text in texts]
    for expression in expressions:
        _ = expression.tree  # built on first use, which is not the engine's work
    table = source.events(events, seed=seed + EVENT_SEEDS, density=density)
    rows = [meaning.prepare(row) for row in table_rows(table, source.schema, refuse_unknown=True)]
    return Data(expressions, rows, meaning)


def four_operators(source: Workload) -> Workload:
    """A workload of COUNT with the four operators that the paper shows (section 3.2).

    That these were all: 5 million subscriptions take 248 MB as a matrix of bits (section 5.1.2),
    which is a row of bits for each of 400 predicates: 10 attributes, 10 values, 4 operators.
    """
    if not isinstance(source.kind, Comparisons):
        raise OptionError(
            f"the workload {source.name} has no comparisons with operators of its own"
        )
    return replace(source, kind=replace(source.kind, operators=OPERATORS_OF_COUNT))


def build(name: str, data: Data, options: Mapping[str, Any] | None = None) -> tuple[Any, float]:
    """An engine with all filters, which has answered one event, and the seconds for that."""
    engine: Any = make_engine(name, data.semantics, options)
    with quiet():
        start = time.process_time()
        fill(engine, data.expressions)
        engine.match(data.rows[0])
        return engine, time.process_time() - start


def fill(engine: Engine, expressions: Sequence[Expression]) -> None:
    """Add filters under the handles 0, 1, ...; all at once where the engine can do that."""
    if isinstance(engine, BatchEngine):
        bulk = engine.bulk(len(expressions))
        for handle, expression in enumerate(expressions):
            bulk.put(handle, engine.prepare(expression))
        bulk.finish()
        bulk.commit(())
        return
    for handle, expression in enumerate(expressions):
        engine.add(handle, engine.prepare(expression))


def time_each(
    work: Callable[[Any], Any], items: Sequence[Any], before: Callable[[Any], Any] | None = None
) -> tuple[float, list[Any]]:
    """The median seconds of a call, and what the calls returned.

    All items are taken up to `ROUNDS` times, as long as that is quick, and the round counts that
    was disturbed least. `before` is called with each item first, and its time is not counted.
    """
    medians: list[float] = []
    found: list[Any] = []
    with quiet():
        _timed(work, items[0], before)  # what is done on first use is done
        began = time.perf_counter()
        while len(medians) < ROUNDS and (not medians or time.perf_counter() - began < QUICK):
            times, answers = [], []
            for item in items:
                seconds, answer = _timed(work, item, before)
                times.append(seconds)
                answers.append(answer)
                if len(times) >= FEWEST and time.perf_counter() - began > PATIENCE:
                    break
            medians.append(statistics.median(times))
            found = found or answers
    return min(medians), found


def time_in_turns(
    works: Mapping[str, Callable[[Any], Any]], items: Sequence[Any],
    before: Mapping[str, Callable[[Any], Any]],
) -> dict[str, float]:  # fmt: skip
    """The seconds of `time_each` for several contestants, whose rounds alternate.

    What lasts longer than a round, such as another process that fills the caches, disturbs all of
    them alike. It is for contestants that differ by little.
    """
    found: dict[str, list[float]] = {name: [] for name in works}
    with quiet():
        for _ in range(ROUNDS):
            for name, work in works.items():
                times = [_timed(work, item, before[name])[0] for item in items]
                found[name].append(statistics.median(times))
    return {name: min(medians) for name, medians in found.items()}


def _timed(
    work: Callable[[Any], Any], item: Any, before: Callable[[Any], Any] | None
) -> tuple[float, Any]:
    if before is not None:
        before(item)
    start = time.process_time()
    answer = work(item)
    return time.process_time() - start, answer


def time_batch(engine: BatchEngine, data: Data) -> tuple[float, list[Any]]:
    """The seconds per event of all events at once, in the best of three rounds, and the matches."""
    batch: Batch = batch_of_rows(data.rows, data.semantics.schema)
    times, found = [], []
    with quiet():
        for _ in range(4):  # the first one is not counted
            start = time.process_time()
            pieces = list(engine.match_batch(batch))
            times.append(time.process_time() - start)
    for counts, handles in pieces:
        ends = np.cumsum(counts)[:-1]
        found += np.split(np.asarray(handles), ends)
    return min(times[1:]) / len(data.rows), found


@contextmanager
def quiet() -> Iterator[None]:
    """The garbage collector waits meanwhile."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


class Answers:
    """The answers of the first contestant, with which those of the others are compared."""

    def __init__(self) -> None:
        self._first: list[int] = []
        self._of = ""

    def compare(self, contestant: str, found: Sequence[Any]) -> None:
        """Raise a `Disagreement` if this contestant found something else for an event.

        Slow contestants answer fewer events; those that both answered are compared.
        """
        sums = [zlib.crc32(np.asarray(handles, np.int64).tobytes()) for handles in found]
        for event, (one, two) in enumerate(zip(self._first, sums, strict=False)):
            if one != two:
                raise Disagreement(f"{self._of} and {contestant} disagree about event {event}")
        if len(sums) > len(self._first):
            self._first, self._of = sums, contestant
