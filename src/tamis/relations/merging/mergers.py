"""Which filters of a table to merge (MBD, section 5.2 and Fig. 10).

Perfect mergers are made first, then imperfect ones in the order of their IMT. Finding the best set
of mergers is NP-complete; this one is greedy and deterministic.

MBD is Li, Hou, Jacobsen, "A unified approach to routing, covering and merging in publish/subscribe
systems based on modified binary decision diagrams" (ICDCS 2005).
"""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from tamis.errors import OptionError, choose
from tamis.language.expression import Expression
from tamis.predicates.boxes import Box, box_of
from tamis.predicates.event_space import EventSpace, form_of
from tamis.relations.merging.box_pool import BoxPool, PooledBox, join_perfectly
from tamis.relations.merging.degrees import PERFECT, Degree, EventUnions, degree_of_boxes
from tamis.relations.merging.event_sets import ProbabilitySpace
from tamis.relations.merging.filter_texts import expression_of
from tamis.relations.merging.imperfect_mergers import ImperfectMerging
from tamis.relations.merging.measures import Measure
from tamis.relations.merging.merge_rules import RULES
from tamis.semantics import Semantics

MOST_ROUNDS = 3  # of imperfect mergers, and perfect ones of these
MOST_SEARCHES = 8  # for mergers, and mergers of these, and so on

K = TypeVar("K", bound=Hashable)


@dataclass(frozen=True, eq=False, slots=True)
class Merger(Generic[K]):
    """A filter that covers its parts, which are keys. It can be a key itself: it equals no other.

    Parts that were mergers are replaced by their own parts.
    """

    expression: Expression
    parts: tuple[K, ...]
    degree: Degree
    boxes: tuple[Box, ...]  # of the parts

    def __repr__(self) -> str:
        return f"<Merger {str(self.expression)!r} of {len(self.parts):,}>"


@dataclass(frozen=True)
class MergeOptions:
    """How to merge.

    * `rules`: what a merger may be, see `merge_rules`
    * `candidates`: with ``any``, one attribute may differ, whichever it is; with ``mbd``, only the
      top attribute of an MBD, in an `order` of attributes
    * `imperfect`: the largest IMT of a merger; None for perfect mergers only. 0 still allows
      mergers that add nothing under the measure, such as values that are never advertised.
    * `price`: the most that may be added to the IMT for each filter that is saved
    * `measure`: the probabilities of events
    * `advertisements`: every event matches at least one of them
    """

    rules: str = "full"
    candidates: str = "any"
    order: tuple[str, ...] | None = None
    imperfect: float | None = None
    price: float | None = None
    measure: Measure | None = None
    advertisements: tuple[Expression, ...] = ()

    def __post_init__(self) -> None:
        choose("rule set", self.rules, RULES)
        if self.imperfect is None:
            return
        if not 0 <= self.imperfect <= 1:
            raise OptionError(
                f"imperfect is the largest IMT and must be from 0 to 1, not {self.imperfect!r}"
            )
        if self.measure is None:
            raise OptionError(
                "imperfect mergers need a measure of events: Uniform, Profiled or Sampled"
            )


def find_mergers(
    filters: Mapping[K, Box | Expression], semantics: Semantics, options: MergeOptions | None = None
) -> list[Merger[Any]]:
    """The mergers of some filters (Fig. 10); no key is part of two of them.

    Filters that are not boxes are left alone. A key that is a `Merger` itself is replaced by its
    parts.
    """
    boxes = _boxes(filters, semantics)
    return _MergerSearch(boxes, semantics, options or MergeOptions()).mergers()


def merged_boxes(
    boxes: Mapping[K, Box], semantics: Semantics, options: MergeOptions
) -> list[tuple[Box, list[K]]]:
    """The boxes after merging, with their parts; all mergers together respect the largest IMT."""
    search = _MergerSearch(boxes, semantics, options, in_all=True)
    return [(search.pool.box(entry.ids), entry.parts) for _, entry in search.pool.alive]


class _MergerSearch(Generic[K]):
    """One search."""

    def __init__(
        self,
        boxes: Mapping[K, Box],
        semantics: Semantics,
        options: MergeOptions,
        *,
        in_all: bool = False,
    ) -> None:
        self._boxes = boxes
        self._semantics = semantics
        self._space = EventSpace.of(semantics)
        self.pool: BoxPool[K] = BoxPool(
            self._space, RULES[options.rules], options.candidates, options.order
        )
        for key, box in boxes.items():
            extra, perfect = _history(key)
            self.pool.add(PooledBox(self.pool.ids_of(box), [key], extra, perfect))
        join_perfectly(self.pool)
        self._probabilities: ProbabilitySpace | None = None
        self._announced: list[Any] | None = None
        if options.imperfect is None or options.measure is None:
            return
        self._probabilities = options.measure.probabilities(semantics)
        if options.advertisements:
            unions = EventUnions(self._probabilities, self._space)
            forms = [form_of(each, semantics) for each in options.advertisements]
            self._announced = unions.union(e for form in forms for e in unions.of_form(form))
        limit = float(options.imperfect)
        for _ in range(1 if in_all else MOST_ROUNDS):
            ImperfectMerging(
                self.pool, self._probabilities, self._announced, limit, options.price,
                in_all=in_all,
            ).run()  # fmt: skip
            before = len(self.pool.entries)
            join_perfectly(self.pool, limit)
            if len(self.pool.entries) == before:
                return

    def mergers(self) -> list[Merger[Any]]:
        """The mergers, in the order of their first parts."""
        places = {key: n for n, key in enumerate(self._boxes)}
        merged = [entry for _, entry in self.pool.alive if len(entry.parts) > 1]
        for entry in merged:
            entry.parts.sort(key=places.__getitem__)
        merged.sort(key=lambda entry: places[entry.parts[0]])
        return [self._merger(entry) for entry in merged]

    def _merger(self, entry: PooledBox[K]) -> Merger[Any]:
        parts: list[Any] = []
        boxes: list[Box] = []
        for key in entry.parts:
            parts.extend(key.parts if isinstance(key, Merger) else (key,))
            boxes.extend(key.boxes if isinstance(key, Merger) else (self._boxes[key],))
        box = self.pool.box(entry.ids)
        found = PERFECT
        if not entry.perfect and self._probabilities is not None:
            found = degree_of_boxes(
                box, boxes, self._space, self._probabilities, self._announced, entry.extra
            )
        return Merger(expression_of(box, self._semantics), tuple(parts), found, tuple(boxes))


def imt_of(merger: Merger[Any], semantics: Semantics, measure: Measure) -> float:
    """The share of all events that a merger lets through, by another measure than before."""
    space = EventSpace.of(semantics)
    box = box_of(form_of(merger.expression, semantics), space)
    if merger.degree is PERFECT or box is None:
        return 0.0
    probabilities = measure.probabilities(semantics)
    return float(degree_of_boxes(box, merger.boxes, space, probabilities, None, 1.0).imt)


def _history(key: Any) -> tuple[float, bool]:
    if isinstance(key, Merger) and key.degree is not PERFECT:
        return float(key.degree.imt), False
    return 0.0, True


def _boxes(filters: Mapping[K, Box | Expression], semantics: Semantics) -> dict[K, Box]:
    space = EventSpace.of(semantics)
    found = {}
    for key, each in filters.items():
        box = each if isinstance(each, Box) else box_of(form_of(each, semantics), space)
        if box is not None and not box.is_empty:
            found[key] = box
    return found
