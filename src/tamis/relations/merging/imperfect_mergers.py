"""Imperfect mergers of boxes, those that add least first.

A heap holds pairs of boxes by the IMT (imperfect merging threshold) of their merger. The boxes of a
pair differ in one attribute or in two; within a group boxes are in the order of their values, and
only neighbours become pairs.

The IMT of a merger of mergers is bounded by what each step added. The true one may be smaller,
where events that one step added match a part of another step.
"""

import heapq
from bisect import bisect_left, insort
from collections.abc import Hashable, Iterator, Sequence
from itertools import combinations, product
from typing import Any, Generic, TypeVar

from tamis.language.ast import Node
from tamis.predicates.boxes import AttributeCondition
from tamis.predicates.classification import StringTest, classify
from tamis.predicates.value_orders import Cut
from tamis.relations.merging.box_pool import BoxPool, Ids, PooledBox
from tamis.relations.merging.condition_mergers import widen
from tamis.relations.merging.event_sets import EventSet, ProbabilitySpace

NEIGHBOURS = 2  # on each side of a box in its group
TRIED = 2  # rules of an attribute, if two attributes differ
_NOTHING = 1e-12  # sums of floats that should be 0 are less

K = TypeVar("K", bound=Hashable)
Shared = tuple[tuple[int, ...], Ids]  # the attributes that differ, and all other conditions


class ImperfectMerging(Generic[K]):
    """Merges pairs of a pool while their IMT is at most a limit.

    With `in_all` the limit is for all mergers together. A `price` is the most that may be added for
    each box that is saved.
    """

    def __init__(
        self, pool: BoxPool[K], probabilities: ProbabilitySpace,
        announced: Sequence[EventSet] | None, limit: float, price: float | None = None, *,
        in_all: bool = False,
    ) -> None:  # fmt: skip
        self._pool = pool
        self._probabilities = probabilities
        self._announced = announced  # sets that have nothing in common
        self._limit = limit
        self._price = limit if price is None else price
        self._left = limit if in_all else None
        self._arriving = 1.0 if announced is None else sum(map(probabilities.rough, announced))
        self._event_sets: dict[Ids, EventSet | None] = {}
        self._weights: dict[Ids, float] = {}
        self._groups: dict[Shared, list[tuple[Any, int]]] = {}
        self._heap: list[tuple[float, int, int, Ids, Shared]] = []
        self._seen: set[tuple[int, int]] = set()
        self._lows: dict[int, Any] = {}
        self._widened: dict[tuple[int, Node, Node], list[Node]] = {}

    def run(self) -> None:
        """Merge what may be merged."""
        for number, entry in self._pool.alive:
            for shared in self._shared(entry):
                self._groups.setdefault(shared, []).append((self._key(entry, shared), number))
        for shared, group in self._groups.items():
            group.sort()
            for _, number in group if len(group) > 1 else ():
                self._pair(number, shared)
        while self._heap:
            imt, one, other, ids, shared = heapq.heappop(self._heap)
            alive = [n for n in (one, other) if self._pool.entries[n].alive]
            if len(alive) == 2 and self._allows(imt, alive):
                number = self._pool.merged(alive, ids, imt, perfect=False)
                self._enter(number)
            elif len(alive) == 1:  # its neighbour is gone, so it has another one
                self._pair(alive[0], shared)

    def _allows(self, imt: float, numbers: list[int]) -> bool:
        if self._left is None:
            return True
        added = imt - sum(self._pool.entries[n].extra for n in numbers)
        if added > self._left + _NOTHING:
            return False
        self._left -= added
        return True

    # --- groups

    def _shared(self, entry: PooledBox[K]) -> Iterator[Shared]:
        """The groups of boxes that differ from one in one attribute or in two."""
        pool, ids = self._pool, entry.ids
        if self._events(ids) is None:
            return
        places = list(pool.places(ids))
        most = 1 if pool.by_top else len(places)
        for place in places[:most]:
            yield (pool.condition(ids[place]).position,), ids[:place] + ids[place + 1 :]
        pairs = combinations(places[:2] if pool.by_top else places, 2)
        for a, b in pairs:
            first, second = min(a, b), max(a, b)
            positions = pool.condition(ids[first]).position, pool.condition(ids[second]).position
            yield positions, ids[:first] + ids[first + 1 : second] + ids[second + 1 :]
        if pool.rules.takes_tests and not pool.by_top:
            for place in places:  # conditions on different attributes can only be dropped
                yield (), ids[:place] + ids[place + 1 :]

    def _key(self, entry: PooledBox[K], shared: Shared) -> Any:
        """The place of a box in the order of a group."""
        positions, rest = shared
        if not positions:
            (only,) = set(entry.ids).difference(rest)
            return -self._weight((only,))
        return tuple(self._low(self._pool.on(entry.ids, position)) for position in positions)

    def _low(self, number: int) -> Any:
        """The cut where the values of a condition begin."""
        found = self._lows.get(number)
        if found is None:
            found = self._lows[number] = self._begin(self._pool.condition(number))
        return found

    def _begin(self, condition: AttributeCondition) -> Cut:
        order = self._pool.attribute(condition.position).order
        match classify(condition.node):
            case StringTest(_, "startswith", text, False):
                return order.around(text)[0]
        values = condition.values
        return values.intervals[0][0] if values and values.intervals else order.start

    def _node(self, ids: Ids, position: int) -> Node:
        return self._pool.condition(self._pool.on(ids, position)).node

    def _enter(self, number: int) -> None:
        entry = self._pool.entries[number]
        for shared in self._shared(entry):
            insort(self._groups.setdefault(shared, []), (self._key(entry, shared), number))
            self._pair(number, shared)

    # --- pairs

    def _pair(self, number: int, shared: Shared) -> None:
        """Put a box and its neighbours of a group on the heap."""
        group = self._groups[shared]
        entries = self._pool.entries
        place = bisect_left(group, (self._key(entries[number], shared), number))
        for steps in (range(place - 1, -1, -1), range(place + 1, len(group))):
            found = 0
            for step in steps:
                other = group[step][1]
                if entries[other].alive:
                    self._consider(min(number, other), max(number, other), shared)
                    found += 1
                    if found == NEIGHBOURS:
                        break

    def _consider(self, one: int, other: int, shared: Shared) -> None:
        if (one, other) in self._seen:
            return
        a, b = self._pool.entries[one], self._pool.entries[other]
        choices = [(self._weight(ids), ids) for ids in self._mergers(a.ids, b.ids, shared)]
        if not choices:
            return
        self._seen.add((one, other))
        weight, ids = min(choices, key=lambda choice: choice[0])
        both = self._probabilities.common(self._events(a.ids), self._events(b.ids))
        union = self._weight(a.ids) + self._weight(b.ids) - self._rough(both)
        added = weight - union
        imt = (added if added > _NOTHING else 0.0) + a.extra + b.extra
        if imt <= self._limit + _NOTHING and added <= self._price + _NOTHING:
            heapq.heappush(self._heap, (imt, one, other, ids, shared))

    def _mergers(self, a: Ids, b: Ids, shared: Shared) -> Iterator[Ids]:
        """Boxes that cover two boxes of a group."""
        positions, rest = shared
        pairs = [(self._node(a, p), self._node(b, p)) for p in positions]
        if len(positions) == 2 and any(one == other for one, other in pairs):
            return  # they differ in one attribute, and are in a group of their own
        if not positions:
            yield rest
            return
        widened = [
            self._widen(position, *pair) for position, pair in zip(positions, pairs, strict=True)
        ]
        if len(widened) == 2:
            widened = [nodes[:TRIED] for nodes in widened]
        for nodes in product(*widened):
            ids = rest
            for position, node in zip(positions, nodes, strict=True):
                ids = self._pool.replaced(ids, position, node)
            if self._events(ids) is not None:
                yield ids

    def _widen(self, position: int, a: Node, b: Node) -> list[Node]:
        key = position, a, b
        found = self._widened.get(key)
        if found is None:
            found = widen(a, b, self._pool.attribute(position), self._pool.rules)
            self._widened[key] = found
        return found

    # --- weights

    def _events(self, ids: Ids) -> EventSet | None:
        if ids not in self._event_sets:
            self._event_sets[ids] = self._probabilities.of_box(self._pool.box(ids))
        return self._event_sets[ids]

    def _weight(self, ids: Ids) -> float:
        found = self._weights.get(ids)
        if found is None:
            found = self._weights[ids] = self._rough(self._events(ids))
        return found

    def _rough(self, events: EventSet | None) -> float:
        """The share of a set among the events that arrive."""
        if events is None:
            return 0.0
        if self._announced is None:
            return self._probabilities.rough(events)
        common = (self._probabilities.common(events, each) for each in self._announced)
        weight = sum(self._probabilities.rough(each) for each in common if each is not None)
        return weight / self._arriving if self._arriving else 0.0
