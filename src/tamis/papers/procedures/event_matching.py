"""Single events, matched by several engines (COUNT, section 5.1.2): time, loading, memory."""

import time
from collections.abc import Iterator, Mapping
from typing import Any

from tamis.engines.counting import CountingEngine
from tamis.engines.database import DatabaseEngine
from tamis.papers.contest import (
    Answers,
    Data,
    build,
    draw,
    four_operators,
    quiet,
    time_batch,
    time_each,
)
from tamis.papers.measurements import Point
from tamis.workloads import workload

AUTO_BATCH = "auto, batches"
BOTH_STAGES = "auto, both stages"


def match_single_events(size: int, seed: int, parameters: Mapping[str, Any]) -> Iterator[Point]:
    """Measure the engines of ``contestants`` with `size` filters of a workload of COUNT.

    * ``match``: milliseconds for one event, the median of ``events``;
    * ``second stage``: those of counting alone, after the satisfied predicates are known;
    * ``load``: milliseconds from parsed filters to the first answer;
    * ``association``: those of associating slots and predicates alone, once these have their ids;
    * ``memory``: bytes of what associates predicates and subscriptions.

    ``most`` limits the size for some contestants.
    """
    source = four_operators(workload(parameters["workload"]))
    data = draw(source, size, parameters["events"], seed)
    answers = Answers()
    for name in parameters["contestants"]:
        if size <= parameters.get("most", {}).get(name, size):
            yield from _measured(name, size, data, answers)


def _measured(name: str, size: int, data: Data, answers: Answers) -> Iterator[Point]:
    engine, seconds = build(name, data)
    yield Point(name, "load", size, 1e3 * seconds)
    seconds, found = time_each(engine.match, data.rows)
    answers.compare(name, found)
    yield Point(name, "match", size, 1e3 * seconds)
    match engine:
        case CountingEngine():
            satisfied = [engine.predicates.satisfied(row) for row in data.rows]
            seconds, _ = time_each(engine.complete, satisfied)
            yield Point(name, "second stage", size, 1e3 * seconds)
            yield Point(name, "association", size, 1e3 * time_association(engine))
            yield Point(name, "memory", size, engine.association_bytes)
            if name == "counting-list":
                both = engine.association_bytes + engine.deletion_bytes
                yield Point(f"{name} with deletion", "memory", size, both)
        case DatabaseEngine():
            yield Point(name, "memory", size, engine.database_bytes)
    if name == "auto":
        yield Point(BOTH_STAGES, "second stage", size, 1e3 * seconds)
        if "bytes" in engine.statistics():  # it compiles many filters only
            yield Point(name, "memory", size, engine.statistics()["bytes"])
        seconds, found = time_batch(engine, data)
        answers.compare(AUTO_BATCH, found)
        yield Point(AUTO_BATCH, "match", size, 1e3 * seconds)


def time_association(engine: CountingEngine) -> float:
    """The seconds to fill an association with the conjunctions that an engine holds."""
    held = list(engine.held_conjunctions())
    fresh = engine.association()
    with quiet():
        start = time.process_time()
        for slot, predicates in held:
            fresh.insert(slot, predicates)
        return time.process_time() - start
