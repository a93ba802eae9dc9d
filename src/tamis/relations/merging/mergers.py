"""Which filters of a table to merge (MBD paper, section 5.2 and Fig. 10).

Perfect mergers first, then imperfect ones in the order of their IMT. To find the best set of
mergers is NP-complete; this one is greedy, and the same every time.
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tamis.errors import OptionError, choose
from tamis.language.expression import Expression
from tamis.relations.boxes import Box, box_of
from tamis.relations.event_space import World, form_of
from tamis.relations.merging.box_pool import Entry, Pool, join_perfectly
from tamis.relations.merging.degrees import PERFECT, Cells, Degree, degree_of_boxes
from tamis.relations.merging.event_sets import Space
from tamis.relations.merging.filter_texts import expression_of
from tamis.relations.merging.imperfect_mergers import Widening
from tamis.relations.merging.measures import Measure
from tamis.relations.merging.merge_rules import RULES
from tamis.semantics import Semantics

MOST_ROUNDS = 3  # of imperfect mergers, and perfect ones of these

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, eq=False, slots=True)
class Merger(Generic[K]):
    """A filter that covers its parts; each is one and equal to no other, so that it can be a key.

    Parts that were mergers are replaced by theirs.
    """

    expression: Expression
    parts: tuple[K, ...]
    degree: Degree
    boxes: tuple[Box, ...]  # of the parts

    def __repr__(self) -> str:
        return f"<Merger {str(self.expression)!r} of {len(self.parts):,}>"


@dataclass(frozen=True)
class Plan:
    """How to merge.

    * `rules`: what a merger may be, see `rules`
    * `candidates`: ``any`` one attribute may differ; or only the top one of an ``mbd``, in an
      `order` of attributes
    * `imperfect`: the largest IMT of a merger; None for perfect mergers only. 0 still allows what
      adds nothing under the measure, such as values that are never advertised.
    * `measure`: the probabilities of events
    * `advertisements`: what all events match one of
    """

    rules: str = "full"
    candidates: str = "any"
    order: tuple[str, ...] | None = None
    imperfect: float | None = None
    measure: Measure | None = None
    advertisements: tuple[Expression, ...] = ()

    def __post_init__(self) -> None:
        choose("rule set", self.rules, RULES)
        if self.imperfect is None:
            return
        if not 0 <= self.imperfect <= 1:
            raise OptionError(
                f"imperfect is the largest IMT, a share from 0 to 1, not {self.imperfect!r}"
            )
        if self.measure is None:
            raise OptionError(
                "imperfect mergers need a measure of events: Uniform, Profiled or Sampled"
            )


def find_mergers(
    filters: Mapping[K, Box | Expression], semantics: Semantics, plan: Plan | None = None
) -> list[Merger[Any]]:
    """Mergers of filters under keys; a key is part of one of them at most.

    Filters that are no boxes are left alone. A key that is a `Merger` itself is merged as its
    parts.
    """
    boxes = _boxes(filters, semantics)
    return _Finding(boxes, semantics, plan or Plan()).mergers()


def merged_boxes(
    boxes: Mapping[K, Box], semantics: Semantics, plan: Plan
) -> list[tuple[Box, list[K]]]:
    """What is left of boxes whose mergers together may not exceed the largest IMT."""
    finding = _Finding(boxes, semantics, plan, in_all=True)
    return [(finding.pool.box(entry.ids), entry.parts) for _, entry in finding.pool.alive]


class _Finding(Generic[K]):
    """One search."""

    def __init__(
        self, boxes: Mapping[K, Box], semantics: Semantics, plan: Plan, *, in_all: bool = False
    ) -> None:
        self._boxes = boxes
        self._semantics = semantics
        self._world = World.of(semantics)
        self.pool: Pool[K] = Pool(self._world, RULES[plan.rules], plan.candidates, plan.order)
        for key, box in boxes.items():
            extra, perfect = _history(key)
            self.pool.add(Entry(self.pool.ids_of(box), [key], extra, perfect))
        join_perfectly(self.pool)
        self._space: Space | None = None
        self._announced: list[Any] | None = None
        if plan.imperfect is None or plan.measure is None:
            return
        self._space = plan.measure.space(semantics)
        if plan.advertisements:
            cells = Cells(self._space, self._world)
            forms = [form_of(each, semantics) for each in plan.advertisements]
            self._announced = cells.union(c for form in forms for c in cells.of_form(form))
        limit = float(plan.imperfect)
        for _ in range(1 if in_all else MOST_ROUNDS):
            Widening(self.pool, self._space, self._announced, limit, in_all=in_all).run()
            before = len(self.pool.entries)
            join_perfectly(self.pool, limit)
            if len(self.pool.entries) == before:
                return

    def mergers(self) -> list[Merger[Any]]:
        """All that were merged, in the order of their first parts."""
        places = {key: n for n, key in enumerate(self._boxes)}
        merged = [entry for _, entry in self.pool.alive if len(entry.parts) > 1]
        for entry in merged:
            entry.parts.sort(key=places.__getitem__)
        merged.sort(key=lambda entry: places[entry.parts[0]])
        return [self._merger(entry) for entry in merged]

    def _merger(self, entry: Entry[K]) -> Merger[Any]:
        parts: list[Any] = []
        boxes: list[Box] = []
        for key in entry.parts:
            parts.extend(key.parts if isinstance(key, Merger) else (key,))
            boxes.extend(key.boxes if isinstance(key, Merger) else (self._boxes[key],))
        box = self.pool.box(entry.ids)
        found = PERFECT
        if not entry.perfect and self._space is not None:
            found = degree_of_boxes(
                box, boxes, self._world, self._space, self._announced, entry.extra
            )
        return Merger(expression_of(box, self._semantics), tuple(parts), found, tuple(boxes))


def _history(key: Any) -> tuple[float, bool]:
    if isinstance(key, Merger) and key.degree is not PERFECT:
        return float(key.degree.imt), False
    return 0.0, True


def _boxes(filters: Mapping[K, Box | Expression], semantics: Semantics) -> dict[K, Box]:
    world = World.of(semantics)
    found = {}
    for key, each in filters.items():
        box = each if isinstance(each, Box) else box_of(form_of(each, semantics), world)[0]
        if box is not None:
            found[key] = box
    return found
