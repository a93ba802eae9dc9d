"""Fig. 13: the time per subscription, as the table of uncovered subscriptions grows.

The table itself takes all subscriptions. The other ways to search are measured in *windows*: before
a window they are given the filters that were added and removed, without any search; within it they
insert every subscription themselves, and must find what the table found.
"""

import random
import statistics
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from routing_sections import paper_figures
from routing_sections.subscription_set import SubscriptionSet
from routing_sections.tables import DASH, aligned, shown, with_spread
from tamis.predicates.event_space import form_of
from tamis.relations.tables import CoverTable, Insertion
from tamis.relations.tables.candidate_search import CandidateSearch
from tamis.relations.tables.constraints import ConstraintPool
from tamis.relations.tables.mbd_search import MbdSearch
from tamis.relations.tables.prepared_filters import Preparation, PreparedFilter
from tamis.relations.tables.search import CoverSearch, SearchResult

BLOCK = 50  # subscriptions that one way takes before it is another one's turn
Array = np.ndarray[Any, Any]

RECENT = 1_000  # subscriptions before a window whose predicates are known in it
WARM = 600


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
    "one-pass": MbdSearch,
    "one-pass, no cache": lambda pool: MbdSearch(pool, cache=False),
    "two-pass": lambda pool: MbdSearch(pool, passes=2),
    "separate, no cache": lambda pool: Separate(pool, passes=2, cache=False),
}
ONE, TWO, PLAIN, APART = "one-pass", "two-pass", "one-pass, no cache", "separate, no cache"


class Step(NamedTuple):
    """One subscription, and the result of inserting it into the table."""

    number: int
    prepared: PreparedFilter | None
    insertion: Insertion[int]


class Seconds(NamedTuple):
    """Seconds for some subscriptions, by the three steps of section 4.3."""

    assigning: float = 0.0
    searching: float = 0.0
    changing: float = 0.0

    @property
    def whole(self) -> float:
        return self.assigning + self.searching + self.changing

    def plus(self, other: "Seconds") -> "Seconds":
        return Seconds(*(a + b for a, b in zip(self, other, strict=True)))


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

    def take(self, steps: Sequence[Step]) -> Seconds:
        """Insert subscriptions, and compare what is found with what the table found."""
        seconds = Seconds()
        for number, prepared, insertion in steps:
            if prepared is None:
                continue
            start = time.perf_counter()
            found, assigned = self._find(prepared)
            middle = time.perf_counter()
            if found.covering is None:
                self.search.add(number, prepared)
                for covered in found.covered:
                    self.search.remove(covered, self.held[covered])
            end = time.perf_counter()
            seconds = seconds.plus(Seconds(assigned - start, middle - assigned, end - middle))
            self._compare(number, found, insertion)
            if found.covering is None:
                self.held[number] = prepared
                for covered in found.covered:
                    del self.held[covered]
        return seconds

    def assign(self, steps: Sequence[Step]) -> float:
        """Seconds of the truth assignments of subscriptions whose predicates are all known."""
        search = self.search
        if not isinstance(search, MbdSearch):
            raise TypeError(f"{self.name} assigns nothing")
        some = [step.prepared for step in steps if step.prepared is not None]
        for prepared in some:
            search.assign(prepared)
        start = time.perf_counter()
        for prepared in some:
            search.assign(prepared)
        return time.perf_counter() - start

    def _find(self, prepared: PreparedFilter) -> tuple[SearchResult, float]:
        """What is found, and the time at which all variables had their bits."""
        if not isinstance(self.search, MbdSearch):
            return self.search.find(prepared), time.perf_counter()
        truth = self.search.assign(prepared)
        assigned = time.perf_counter()
        return self.search.evaluate(prepared, truth), assigned

    def _compare(self, number: int, found: SearchResult, insertion: Insertion[int]) -> None:
        is_covered = insertion.covered_by is not None
        if (found.covering is not None) != is_covered:
            said = "is covered" if is_covered else "is covered by none"
            raise AssertionError(
                f"{self.name}: subscription {number} {said}, and it finds {found.covering}"
            )
        if sorted(found.covered) != sorted(insertion.covers):
            raise AssertionError(
                f"{self.name}: subscription {number} covers {len(insertion.covers)}, and it finds "
                f"{len(found.covered)}"
            )


def measured(
    some: SubscriptionSet, points: Sequence[int], window: int, most: int,
    ways: Mapping[str, Callable[[ConstraintPool], CoverSearch]] = WAYS,
) -> Iterator[dict[str, Any]]:  # fmt: skip
    """Seconds per subscription at some sizes; all ways except the table stop at `most`."""
    table: CoverTable[int] = CoverTable(some.semantics)
    preparation = Preparation(some.semantics)
    contestants = [Contestant(name, make(preparation.pool)) for name, make in ways.items()]
    done = 0
    roots: dict[int, PreparedFilter] = {}
    recent: deque[PreparedFilter] = deque(maxlen=RECENT)
    for point in sorted(points):
        begin = max(done, point - window)
        spent = _Spent()
        for step in _steps(some, table, preparation, done, begin, spent):
            _apply(step, roots)
            if step.prepared is not None:
                recent.append(step.prepared)
        line: dict[str, Any] = {"set": some.name, "size": point, "window": point - begin}
        if point <= most:
            for contestant in contestants:
                contestant.follow(roots, recent)
        steps = list(_steps(some, table, preparation, begin, point, spent))
        for step in steps:
            _apply(step, roots)
        line["ways"] = _contest(contestants, steps, roots) if point <= most else {}
        line["roots"] = len(roots)
        line["table"] = spent.inserting / (point - done)
        line["normalising"] = spent.normalising / (point - done)
        done = point
        yield line


class _Spent:
    """Seconds of the table itself."""

    normalising = inserting = 0.0


def _steps(
    some: SubscriptionSet,
    table: CoverTable[int],
    preparation: Preparation,
    start: int,
    end: int,
    spent: _Spent,
) -> Iterator[Step]:
    for number in range(start, end):
        expression = some.expressions[number]
        began = time.perf_counter()
        form_of(expression, some.semantics)  # cached, so that no contestant's time includes it
        formed = time.perf_counter()
        insertion = table.insert(number, expression)
        spent.normalising += formed - began
        spent.inserting += time.perf_counter() - formed
        prepared = preparation.prepare(expression)
        if prepared is not None and prepared.constraints is None:
            raise AssertionError(f"subscription {number} is not a box: {expression}")
        yield Step(number, prepared, insertion)


def _apply(step: Step, roots: dict[int, PreparedFilter]) -> None:
    if step.prepared is not None and step.insertion.covered_by is None:
        roots[step.number] = step.prepared
    for covered in step.insertion.covers:
        del roots[covered]


def _contest(
    contestants: Sequence[Contestant], steps: Sequence[Step], roots: dict[int, PreparedFilter]
) -> dict[str, dict[str, list[float]]]:
    """Seconds per subscription of each way, block by block."""
    blocks = [steps[n : n + BLOCK] for n in range(0, len(steps), BLOCK)]
    found: dict[str, dict[str, list[float]]] = {}
    chance = random.Random(len(steps))
    for block in blocks:
        for contestant in chance.sample(contestants, len(contestants)):
            seconds = contestant.take(block)
            kept = found.setdefault(contestant.name, {"whole": [], "search": [], "assign": []})
            kept["whole"].append(seconds.whole / len(block))
            kept["search"].append((seconds.assigning + seconds.searching) / len(block))
            if isinstance(contestant.search, MbdSearch):
                kept["assign"].append(contestant.assign(block) / len(block))
                kept["variables"] = [len(contestant.search.assignments)]
                kept["mbds"] = [len(contestant.search.mbds)]
    for contestant in contestants:
        if contestant.held.keys() != roots.keys():
            raise AssertionError(f"{contestant.name} holds other filters than the table")
    return found


def warm_up(some: SubscriptionSet) -> None:
    """Compile the kernels, or load them."""
    size = min(WARM, some.size)
    for _ in measured(some, [size], size, size):
        pass


# --- tables

COLUMNS = (
    "subscriptions", "none covers", "MBDs", "predicates", "normalise, us", "table, us",
    *(f"{name}, us" for name in WAYS), "two/one", "without/with cache",
)  # fmt: skip
STEP_COLUMNS = (
    "subscriptions", "predicates", "with cache, ms", "paper", "without, ms", "paper",
    "one pass saves of two", "of two algorithms, no cache", "paper",
)  # fmt: skip
SHOWN = 2_900  # predicates: the 5,000 of Set B are about as many different conditions


def printed(lines: Sequence[dict[str, Any]], most: int) -> str:
    """All results of a set."""
    first, last = lines[0], lines[-1]
    said = (
        f"**{first['set']}: time per subscription as the table grows** (Fig. 13); medians of "
        f"{BLOCK} at a time in the last {last['window']:,} before each size; *table* is all that "
        "`CoverTable` does but normalising, the mean of all since the size before; the ways are "
        "search and change of what is searched; *separate* are two algorithms that share nothing, "
        "not even the truth assignment"
    )
    parts = [said, aligned(COLUMNS, map(_cells, lines))]
    if most < last["size"]:
        parts.append(f"All but the table stop at {most:,} subscriptions, as they were told to.")
    compared = [line for line in lines if line["ways"]]
    if compared:
        step = "**Truth assignment alone** (4.4), and what one pass saves of the time of two (4.3)"
        parts += [step, aligned(STEP_COLUMNS, map(_step_cells, compared))]
    return "\n\n".join(parts)


def _cells(line: dict[str, Any]) -> list[str]:
    ways = line["ways"]
    return [
        f"{line['size']:,}", f"{line['roots']:,}", _last(ways, "mbds"), _last(ways, "variables"),
        f"{line['normalising'] * 1e6:,.0f}", f"{line['table'] * 1e6:,.0f}",
        *(with_spread([1e6 * t for t in _times(ways, name)], "{:,.0f}") for name in WAYS),
        with_spread(ratios(ways, TWO, ONE)), with_spread(ratios(ways, PLAIN, ONE)),
    ]  # fmt: skip


def _step_cells(line: dict[str, Any]) -> list[str]:
    ways = line["ways"]
    many = ways[ONE]["variables"][0] >= SHOWN
    cells = [f"{line['size']:,}", _last(ways, "variables")]
    for name, cache in ((ONE, True), (PLAIN, False)):
        cells.append(with_spread([1e3 * t for t in _times(ways, name, "assign")], "{:.3f}"))
        cells.append(shown(paper_figures.ASSIGNMENT[cache] if many else None, "{:.2f}"))
    for one, other in ((ONE, TWO), (PLAIN, APART)):
        saved = 1 - statistics.median(ratios(ways, one, other))
        cells.append(f"{saved:.1%}")
    return [*cells, f"{paper_figures.ONE_PASS:.1%}"]


def ratios(ways: Mapping[str, Mapping[str, list[float]]], one: str, other: str) -> list[float]:
    """How many times longer one way takes than another, block by block."""
    pairs = zip(_times(ways, one), _times(ways, other), strict=True)
    return [a / b for a, b in pairs]


def _times(
    ways: Mapping[str, Mapping[str, list[float]]], name: str, what: str = "whole"
) -> list[float]:
    return list(ways[name][what]) if name in ways else []


def _last(ways: Mapping[str, Mapping[str, list[float]]], what: str) -> str:
    return f"{ways[ONE][what][-1]:,.0f}" if ONE in ways else DASH
