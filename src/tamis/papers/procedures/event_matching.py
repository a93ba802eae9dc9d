"""Single events, matched by several engines (COUNT, section 5.1.2): time, loading, memory."""

from collections.abc import Iterator, Mapping
from typing import Any

from tamis.engines.counting import CountingEngine
from tamis.engines.database import DatabaseEngine
from tamis.papers.contest import Answers, Data, build, draw, time_batch, time_each
from tamis.papers.measurements import Point

AUTO_BATCH = "auto, batches"


def match_single_events(size: int, seed: int, parameters: Mapping[str, Any]) -> Iterator[Point]:
    """Measure the engines of ``contestants`` with `size` filters of ``workload``.

    * ``match``: milliseconds for one event, the median of ``events``;
    * ``second stage``: those of counting alone, after the satisfied predicates are known;
    * ``load``: milliseconds from parsed filters to the first answer;
    * ``memory``: bytes of what associates predicates and subscriptions.

    ``most`` limits the size for some contestants.
    """
    data = draw(parameters["workload"], size, parameters["events"], seed)
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
            yield Point(name, "memory", size, engine.association_bytes)
            if name == "counting-list":
                both = engine.association_bytes + engine.deletion_bytes
                yield Point(f"{name} with deletion", "memory", size, both)
        case DatabaseEngine():
            yield Point(name, "memory", size, engine.database_bytes)
    if name == "auto":
        seconds, found = time_batch(engine, data)
        answers.compare(AUTO_BATCH, found)
        yield Point(AUTO_BATCH, "match", size, 1e3 * seconds)
