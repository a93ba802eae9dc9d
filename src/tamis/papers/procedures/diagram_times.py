"""The time to match messages with the shared diagram (BDD, section 8, second table; section 7).

The densities of the paper are multiples of 1/13 of the *atoms*: 16 of 208 belong to one string
attribute. So 7.7 % to 30.8 % are messages that define one to four of the four string attributes
and no number. The other reading is that each of the ten attributes is present with that
probability; then 45 % of the messages at 7.7 % are empty. Both are measured.
"""

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tamis.engines import make_engine
from tamis.engines.base import BatchEngine
from tamis.events.columns import table_rows
from tamis.events.event_reader import Row
from tamis.language.expression import Expression
from tamis.language.shape_cache import ShapeCache
from tamis.papers.contest import Answers, Data, draw, time_batch, time_each
from tamis.papers.measurements import Point
from tamis.papers.procedures.diagram_nodes import sizes_of
from tamis.semantics import Semantics
from tamis.workloads import Workload, workload

STRINGS = ("s0", "s1", "s2", "s3")
ATOMS, OF_A_STRING = 208, 16
MESSAGES = 1_000  # of the paper's times
AUTO = "auto, batches"
EVENT_SEEDS = 2_000_003


def shares() -> dict[str, tuple[int, float]]:
    """The paper's densities: their names, how many string attributes, which share of the atoms."""
    found = {f"{k * OF_A_STRING / ATOMS:.1%}".replace("%", " %"): (k, k * OF_A_STRING / ATOMS)
             for k in range(1, len(STRINGS) + 1)}  # fmt: skip
    return found | {"100 %": (len(STRINGS), 1.0)}


def with_strings(source: Workload, events: int, seed: int, strings: int) -> pa.Table:
    """Messages with some of the string attributes, any of them, and nothing else."""
    table = source.events(events, seed=seed)
    chance = np.random.default_rng([seed, strings])
    kept = np.argsort(chance.random((events, len(STRINGS))), axis=1) < strings
    return pa.table({
        name: pc.if_else(
            pa.array(kept[:, STRINGS.index(name)] if name in STRINGS else np.zeros(events, bool)),
            table[name], pa.scalar(None, table[name].type),
        )
        for name in table.column_names
    })  # fmt: skip


def times_by_density(size: int, seed: int, parameters: Mapping[str, Any]) -> Iterator[Point]:
    """Measure the engine ``bdd`` with up to `size` queries, at ``steps`` sizes, in seconds for
    1,000 messages.

    * ``strings``: by the number of queries, messages with some of the string attributes; the line
      ``SiSL`` has total messages in total semantics, all others are in strict semantics;
    * ``independent``: the same, each attribute is present with the probability of the line's name;
    * ``by density``: by the density in percent, with all queries;
    * ``empty``: the share of the messages that have no attribute, by the density.
    """
    source = workload("bdd")
    strict = draw(workload("bdd"), size, 1, seed, semantics="strict")
    total = Semantics("total", source.schema)
    messages = _messages(source, parameters["events"], seed, strict.semantics)
    of_strict = make_engine("bdd", strict.semantics)
    of_total = make_engine("bdd", total)
    auto: Any = make_engine("auto", strict.semantics)
    done = 0
    for queries in sizes_of(size, parameters["steps"]):
        for handle, expression in enumerate(strict.expressions[done:queries], done):
            of_strict.add(handle, of_strict.prepare(expression))
            of_total.add(handle, of_total.prepare(expression))
        _extend(auto, enumerate(strict.expressions[done:queries], done))
        done = queries
        for (density, kind), rows in messages.items():
            answers = Answers()
            seconds, found = time_each(of_strict.match, rows)
            answers.compare("bdd", found)
            percent = round(100 * shares()[density][1], 1)
            yield Point(density, kind, queries, seconds * MESSAGES)
            batch, found = _batched(auto, rows, strict.semantics)
            answers.compare(AUTO, found)
            if density == "100 %":
                seconds_total, found = time_each(of_total.match, rows)
                answers.compare("bdd, total", found)
                yield Point("SiSL", kind, queries, seconds_total * MESSAGES)
                yield Point(AUTO, kind, queries, batch * MESSAGES)
            if queries == size:
                yield Point(kind, "by density", percent, seconds * MESSAGES)
                yield Point(f"{AUTO}, {kind}", "by density", percent, batch * MESSAGES)
                empty = sum(all(value is None for value in row) for row in rows)
                yield Point(kind, "empty", percent, empty / len(rows))


def _messages(
    source: Workload, events: int, seed: int, semantics: Semantics
) -> dict[tuple[str, str], list[Row]]:
    """Messages of each density, of both kinds."""
    found = {}
    for name, (strings, share) in shares().items():
        independent = source.events(events, seed + EVENT_SEEDS, density=share)
        tables = {
            "strings": independent if share == 1 else
            with_strings(source, events, seed + EVENT_SEEDS, strings),
            "independent": independent,
        }  # fmt: skip
        for kind, table in tables.items():
            rows = table_rows(table, source.schema, refuse_unknown=True)
            found[name, kind] = [semantics.prepare(row) for row in rows]
    return found


def _extend(engine: BatchEngine, queries: Iterable[tuple[int, Expression]]) -> None:
    """Add more queries, all at once."""
    bulk = engine.bulk(0)
    for handle, query in queries:
        bulk.put(handle, engine.prepare(query))
    bulk.finish()
    bulk.commit(())


def _batched(
    engine: BatchEngine, rows: Sequence[Row], semantics: Semantics
) -> tuple[float, list[Any]]:
    return time_batch(engine, Data((), rows, semantics))


def half_a_million(size: int, seed: int, parameters: Mapping[str, Any]) -> Iterator[Point]:
    """Measure `size` queries, read one after the other, with messages of two string attributes
    (15.4 %): ``seconds`` for 1,000 messages, and ``build``, seconds to read and add all queries.
    """
    source = workload("bdd")
    semantics = Semantics("strict", source.schema)
    table = with_strings(source, parameters["events"], seed + EVENT_SEEDS, 2)
    rows = [semantics.prepare(row) for row in table_rows(table, source.schema, refuse_unknown=True)]
    answers = Answers()
    for name in ("bdd", "auto"):
        parse = ShapeCache(source.schema).parse
        texts = source.subscriptions(size, seed=seed)["filter"]
        start = time.process_time()
        engine: Any = make_engine(name, semantics)
        # One by one: the trees of half a million queries are large.
        queries = enumerate(parse(text.as_py()) for text in texts)
        if isinstance(engine, BatchEngine):
            _extend(engine, queries)
        else:
            for handle, query in queries:
                engine.add(handle, engine.prepare(query))
        engine.match(rows[0])
        yield Point(name, "build", size, time.process_time() - start)
        seconds, found = time_each(engine.match, rows)
        answers.compare(name, found)
        yield Point(name, "seconds", size, seconds * MESSAGES)
        if name == "auto":
            seconds, found = _batched(engine, rows, semantics)
            answers.compare(AUTO, found)
            yield Point(AUTO, "seconds", size, seconds * MESSAGES)
        del engine
