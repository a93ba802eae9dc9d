"""Rehearsals: small examples that call the kernels of the engines, so that these are compiled.

What is compiled depends only on the types of arrays, and these are the same for two events as for
two million.
"""

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pyarrow as pa

from tamis.engines import make_engine
from tamis.engines.sliced.segment_checks import check_steps
from tamis.kernels.match_bits import write_numbers
from tamis.language.expression import parse
from tamis.predicates.event_batches import Batch, batch_of_table
from tamis.predicates.text_index import TextIndex, TextTest
from tamis.schema import Schema
from tamis.semantics import Semantics

SCHEMA = Schema(
    {"s": "string", "x": "double", "n": "int", "hour": "int(0, 23)", "tags": "array<string>"}
)
ROW = ("b", 1.5, 3, 7, ("a", "b"))
EVENTS = 600  # more than one block
FILTERS = (
    "x > 1", "n < 5", "n = 3", "n <> 3", "s = 'b'", "s >= 'b'", "hour = 7", "hour >= 3",
    "s IS NULL", "n IN (1, 3, 5)", "n NOT IN (1, 3, 5)", "s LIKE '%b%'", "x > n", "TRUE",
    "s = 'b' AND n = 3", "(n < 9 OR s = 'a') AND (hour > 2 OR x < 7) OR n = 3",
    "n = 3 AND x > 1 AND s LIKE 'b%'", "NOT contains(s, 'a')", "array_contains(tags, 'b')",
    "NOT array_contains(tags, 'b')",
)  # fmt: skip
SELECTIVE = 2200  # filters with so many constants that `sliced` does not give each a row


def events() -> pa.Table:
    """Some events, a few of them without a string."""
    return pa.table({
        "s": [None if k % 7 == 0 else "abc"[k % 3] for k in range(EVENTS)],
        "x": [k / 8 for k in range(EVENTS)], "n": range(EVENTS),
        "hour": [k % 24 for k in range(EVENTS)],
        "tags": [["a", "b"][k % 3 :] for k in range(EVENTS)],
    })  # fmt: skip


def rehearse_batches() -> None:
    """Call the kernels with which the engines auto and sliced match many events at once."""
    for engine, batch in _engines():
        for _ in range(2):  # what an engine learns from one answer decides how it finds the next
            list(engine.match_batch(batch))
            engine.count_batch(batch)
    rehearse_text_tests()
    numbers = np.arange(3)
    write_numbers(numbers, numbers, np.empty(3, np.int64))  # where a table of pairs is large


def rehearse_text_tests() -> None:
    """Call the kernels that find which tests a string passes."""
    test = TextTest("contains", "b", of_constant=False, negated=False, decided=True)
    index = TextIndex({0: test})
    for most in (0, 1):  # with and without counting them before
        index.of_texts(np.arange(2), np.frombuffer(b"b", np.uint8), most)


def rehearse_matching() -> None:
    """Call all kernels of the engines auto and sliced."""
    rehearse_batches()
    for engine, _ in _engines():
        for _ in range(2):
            engine.match(ROW)
        for segment in engine.segments:  # as for a file that another process wrote
            check_steps(segment.programs, segment.steps)


def _engines() -> Iterator[tuple[Any, Batch]]:
    """Engines with many selective and with a few other filters, and events for them."""
    meaning = Semantics("sql", SCHEMA)
    batch = batch_of_table(events(), meaning, refuse_unknown=False)
    selective = [f"n = {k} AND x < {k}.5" for k in reversed(range(SELECTIVE))]
    for texts in ([*selective, *FILTERS], FILTERS):
        # Without threads of its own: Python starts none while a process ends.
        engine: Any = make_engine("sliced", meaning, {"threads": 1})
        bulk = engine.bulk(0)
        for handle, text in enumerate(texts):
            bulk.put(handle, engine.prepare(parse(text, SCHEMA)))
        bulk.commit([])
        yield engine, batch


def rehearse_papers() -> None:
    """Call the kernels of the papers' engines, also those for many filters that come and go."""
    settings: list[tuple[str, dict[str, Any]]] = [
        *((f"counting-{kind}", {}) for kind in ("list", "bits", "bytes")),
        ("tree", {"index_attributes": 1, "young": 0}),
        ("tree", {"equality_tree": False}),
        ("tree", {"successors": "plain", "young": 0}),
        *(("bdd", {"restriction": how}) for how in ("query", "iterative", "none")),
        ("mbd", {}),
    ]
    texts = [*FILTERS, *(f"n < {k} AND x > {k}" for k in range(40))]
    equalities = [f"n = {k} AND hour = {k % 24}" for k in range(200)]
    for (name, options), logic in product(settings, ("sql", "strict")):
        engine = make_engine(name, Semantics(logic, SCHEMA), options)
        for some in (texts, equalities):
            for handle, text in enumerate(some):
                engine.add(handle, engine.prepare(parse(text, SCHEMA)))
            list(engine.match_many([ROW, (None, 0.5, 2, 8, ()), (None,) * 5]))
            for handle in (*range(0, len(some), 2), *range(1, len(some), 2)):
                engine.remove(handle)
                if handle % 50 == 0:
                    engine.match(ROW)
            engine.match(ROW)
