"""The time per subscription as the table of uncovered subscriptions grows (MBD, Fig. 13).

The table itself takes all subscriptions. The ways to search are measured in *windows*: before a
window they are given the filters that were added and removed, without any search; within it they
insert every subscription themselves, and must find what the table found.
"""

import random
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from tamis.papers.contest import Disagreement, quiet
from tamis.papers.measurements import Point
from tamis.papers.procedures.table_reductions import SETS
from tamis.papers.routing_tables import SubscriptionSet
from tamis.predicates.event_space import form_of
from tamis.relations.tables import CoverTable, Insertion
from tamis.relations.tables.candidate_search import CandidateSearch
from tamis.relations.tables.constraints import ConstraintPool
from tamis.relations.tables.mbd_search import MbdSearch
from tamis.relations.tables.prepared_filters import FilterPreparation, PreparedFilter
from tamis.relations.tables.search import CoverSearch, SearchResult
from tamis.workloads import workload

BLOCK = 50  # subscriptions that one way takes before it is another one's turn
Array = np.ndarray[Any, Any]

RECENT = 1_000  # subscriptions before a window whose predicates are known in it


class Separate(MbdSearch):
    """Two separate algorithms: the second one makes its own truth assignment."""

    def evaluate(self, new: PreparedFilter, truth: Array) -> SearchResult:
        found = super().evaluate(new, truth)
        if found.covering is None:
            self.assign(new)
        return found


# Ways to search among the filters that none covers.
WAYS: dict[str, Callable[[ConstraintPool], CoverSearch]] = {
    "candidates": CandidateSearch,
    "one pass": MbdSearch,
    "one pass, no cache": lambda pool: MbdSearch(pool, cache=False),
    "two passes": lambda pool: MbdSearch(pool, passes=2),
    "two algorithms": lambda pool: Separate(pool, passes=2, cache=False),
}


class InsertionStep(NamedTuple):
    """One subscription, and the result of inserting it into the table."""

    number: int
    prepared: PreparedFilter | None
    insertion: Insertion[int]


class Contestant:
    """A way to search, and the filters that it searches among."""

    def __init__(self, name: str, search: CoverSearch) -> None:
        self.name = name
        self.search = search
        self.held: dict[int, PreparedFilter] = {}

    def follow(self, wanted: dict[int, PreparedFilter], recent: Iterable[PreparedFilter]) -> None:
        """Hold exactly these filters, and know the predicates of the recent ones."""
        for number in self.held.keys() - wanted.keys():
            self.search.remove(number, self.held.pop(number))
        for number in sorted(wanted.keys() - self.held.keys()):
            self.held[number] = wanted[number]
            self.search.add(number, wanted[number])
        if isinstance(self.search, MbdSearch):
            for prepared in recent:  # which is in the cache, if one has searched for them
                self.search.assign(prepared)

    def take(self, steps: Sequence[InsertionStep]) -> float:
        """Seconds to insert subscriptions; what is found is compared with what the table found."""
        seconds = 0.0
        for number, prepared, insertion in steps:
            if prepared is None:
                continue
            start = time.process_time()
            found = self.search.find(prepared)
            if found.covering is None:
                self.search.add(number, prepared)
                for covered in found.covered:
                    self.search.remove(covered, self.held[covered])
            seconds += time.process_time() - start
            self._compare(number, found, insertion)
            if found.covering is None:
                self.held[number] = prepared
                for covered in found.covered:
                    del self.held[covered]
        return seconds

    def assign(self, steps: Sequence[InsertionStep]) -> float:
        """Seconds of the truth assignments of subscriptions whose predicates are all known."""
        search = self.search
        if not isinstance(search, MbdSearch):
            raise TypeError(f"{self.name} assigns nothing")
        some = [step.prepared for step in steps if step.prepared is not None]
        for prepared in some:
            search.assign(prepared)
        start = time.process_time()
        for prepared in some:
            search.assign(prepared)
        return time.process_time() - start

    def _compare(self, number: int, found: SearchResult, insertion: Insertion[int]) -> None:
        is_covered = insertion.covered_by is not None
        if (found.covering is not None) != is_covered:
            said = "is covered" if is_covered else "is covered by none"
            raise Disagreement(
                f"{self.name}: subscription {number} {said}, and it finds {found.covering}"
            )
        if sorted(found.covered) != sorted(insertion.covers):
            raise Disagreement(
                f"{self.name}: subscription {number} covers {len(insertion.covers)}, and it finds "
                f"{len(found.covered)}"
            )


def insert_subscriptions(case: str, seed: int, parameters: Mapping[str, Any]) -> Iterator[Point]:
    """Measure a set where its table has each of some ``sizes``, each over the ``window`` of
    subscriptions before it; all ways except the table itself stop after ``most``.

    * ``insertion``: microseconds per subscription, the mean of the window as in the paper, of each
      way to find out what covers it or is covered by it, and to change what is searched;
    * ``traversal``: microseconds of the first step alone, finding which predicates imply which;
    * ``mbds``: how many there are.
    """
    sizes, most = parameters["sizes"][case], parameters["most"][case]
    some = SubscriptionSet(workload(SETS[case]), sizes[-1], seed)
    with quiet():
        for size, seconds, ways in windows(some, sizes, parameters["window"], most):
            yield Point(f"{case}, table", "insertion", size, 1e6 * seconds)
            for name, times in ways.items():
                line = f"{case}, {name}"
                yield Point(line, "insertion", size, 1e6 * statistics.fmean(times.whole))
                if times.assign:
                    yield Point(line, "traversal", size, 1e6 * statistics.median(times.assign))
                    yield Point(line, "mbds", size, times.mbds)


@dataclass
class Times:
    """Seconds per subscription of one way, block by block."""

    whole: list[float] = field(default_factory=list)
    assign: list[float] = field(default_factory=list)  # the truth assignment alone
    mbds: int = 0


def windows(
    some: SubscriptionSet,
    sizes: Sequence[int],
    window: int,
    most: int,
    ways: Mapping[str, Callable[[ConstraintPool], CoverSearch]] = WAYS,
) -> Iterator[tuple[int, float, dict[str, Times]]]:
    """Each size, the table's own seconds per subscription, and the times of the ways."""
    table: CoverTable[int] = CoverTable(some.semantics)
    preparation = FilterPreparation(some.semantics)
    contestants = [Contestant(name, make(preparation.pool)) for name, make in ways.items()]
    done = 0
    roots: dict[int, PreparedFilter] = {}
    recent: deque[PreparedFilter] = deque(maxlen=RECENT)
    for size in sizes:
        begin = max(done, size - window)
        spent = _Spent()
        for step in _steps(some, table, preparation, done, begin, spent):
            _apply(step, roots)
            if step.prepared is not None:
                recent.append(step.prepared)
        if size <= most:
            for contestant in contestants:
                contestant.follow(roots, recent)
        spent = _Spent()
        steps = list(_steps(some, table, preparation, begin, size, spent))
        for step in steps:
            _apply(step, roots)
        found = _contest(contestants, steps, roots) if size <= most else {}
        done = size
        yield size, spent.inserting / (size - begin), found


class _Spent:
    """Seconds of the table itself."""

    inserting = 0.0


def _steps(
    some: SubscriptionSet,
    table: CoverTable[int],
    preparation: FilterPreparation,
    start: int,
    end: int,
    spent: _Spent,
) -> Iterator[InsertionStep]:
    for number in range(start, end):
        expression = some.expressions[number]
        form_of(expression, some.semantics)  # cached, so that no contestant's time includes it
        began = time.process_time()
        insertion = table.insert(number, expression)
        spent.inserting += time.process_time() - began
        prepared = preparation.prepare(expression)
        if prepared is not None and prepared.constraints is None:
            raise Disagreement(f"subscription {number} is not a box: {expression}")
        yield InsertionStep(number, prepared, insertion)


def _apply(step: InsertionStep, roots: dict[int, PreparedFilter]) -> None:
    if step.prepared is not None and step.insertion.covered_by is None:
        roots[step.number] = step.prepared
    for covered in step.insertion.covers:
        del roots[covered]


def _contest(
    contestants: Sequence[Contestant],
    steps: Sequence[InsertionStep],
    roots: dict[int, PreparedFilter],
) -> dict[str, Times]:
    """The times of each way, which take turns."""
    found = {contestant.name: Times() for contestant in contestants}
    chance = random.Random(len(steps))  # noqa: S311 - an order, not a secret
    for start in range(0, len(steps), BLOCK):
        block = steps[start : start + BLOCK]
        for contestant in chance.sample(contestants, len(contestants)):
            times = found[contestant.name]
            times.whole.append(contestant.take(block) / len(block))
            if isinstance(contestant.search, MbdSearch):
                times.assign.append(contestant.assign(block) / len(block))
                times.mbds = len(contestant.search.mbds)
    for contestant in contestants:
        if contestant.held.keys() != roots.keys():
            raise Disagreement(f"{contestant.name} holds other filters than the table")
    return found
