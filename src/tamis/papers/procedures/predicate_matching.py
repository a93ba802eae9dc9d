"""The first stage alone (COUNT, section 5.1.1): which predicates an event satisfies."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from tamis.events.columns import table_rows
from tamis.papers.contest import EVENT_SEEDS, Answers, four_operators, time_each
from tamis.papers.linked_lists import LinkedLists, StoredComparison
from tamis.papers.measurements import Point
from tamis.predicates.comparison_index import ComparisonIndex
from tamis.predicates.keys import Keys
from tamis.workloads import Workload, workload

FORMS = {"table": "tables", "list": "lists", "auto": "auto"}
LINKED = "linked list"


def match_predicates(size: int, seed: int, parameters: Mapping[str, Any]) -> Iterator[Point]:
    """Measure how `size` distinct predicates are found, with each of ``workloads``.

    Lines are named ``table, w0``: tables, lists that are bisected, linked lists, and what tamis
    chooses (auto).

    * ``match``: milliseconds to find the satisfied predicates of one event;
    * ``memory``: bytes of the lists or tables.
    """
    for name in parameters["workloads"]:
        source = four_operators(workload(name))
        stored = distinct_comparisons(source, size, seed)
        keys = Keys(source.schema)
        table = source.events(parameters["events"], seed=seed + EVENT_SEEDS)
        events = [keys.row(row) for row in table_rows(table, source.schema, refuse_unknown=True)]
        answers = Answers()
        for line in (*FORMS, LINKED):
            index = _index(line, source, keys, stored)
            seconds, found = time_each(partial(_satisfied, index), events)
            answers.compare(line, [np.sort(one) for one in found])
            yield Point(f"{line}, {name}", "match", size, 1e3 * seconds)
            yield Point(f"{line}, {name}", "memory", size, index.bytes)


def _index(
    line: str, source: Workload, keys: Keys, stored: Sequence[StoredComparison]
) -> ComparisonIndex | LinkedLists:
    if line == LINKED:
        return LinkedLists(len(source.schema), stored)
    index = ComparisonIndex(source.schema, keys, FORMS[line])
    for one in stored:
        index.add(*one)
    return index


def _satisfied(index: ComparisonIndex | LinkedLists, event: tuple[Any, Any]) -> Any:
    return index.satisfied(*event)


def distinct_comparisons(source: Workload, size: int, seed: int) -> list[StoredComparison]:
    """The first `size` distinct predicates of a workload's subscriptions."""
    positions = {attribute.name: n for n, attribute in enumerate(source.schema.attributes)}
    drawn = max(64, size // 8)
    while True:
        texts = source.subscriptions(drawn, seed=seed)["filter"].to_pylist()
        found = list(dict.fromkeys(part for text in texts for part in text.split(" AND ")))
        if len(found) >= size:
            break
        drawn *= 2
    stored = []
    for number, text in enumerate(found[:size]):
        attribute, op, constant = text.split()  # as this kind of workload writes them
        stored.append(StoredComparison(positions[attribute], op, int(constant), number))
    return stored
