"""Covering with filters that are no boxes: refuted by witnesses, decided by entailment.

Who covers a filter is true of its witnesses, so only these are asked; whom it covers has witnesses
of which it is true. What is left is decided exactly, pair by pair.
"""

from collections.abc import Iterator
from typing import NamedTuple

from tamis.events import Row
from tamis.language import ast
from tamis.language.ast import Node
from tamis.relations.event_space import World
from tamis.relations.tables.prepared_filters import Prepared
from tamis.relations.tables.search import Search
from tamis.relations.tables.terms import TermPool
from tamis.relations.tables.witnesses import Witnessed, Witnesses


class Sample(NamedTuple):
    """What a filter is compared with general formulas by."""

    witnessed: Witnessed
    required: int  # attributes that may be missing, and without which it is not true


class GeneralSearch:
    """General formulas under numbers, and their relations with boxes and each other."""

    def __init__(self, pool: TermPool, boxes: Search) -> None:
        self._pool = pool
        self._world = pool.world
        self._witnesses = Witnesses(pool.world)
        self._boxes = boxes
        self._generals: dict[int, Sample] = {}
        self._of_boxes: dict[int, Sample] = {}  # of those that were asked about

    def __len__(self) -> int:
        return len(self._generals)

    def sample(self, prepared: Prepared) -> Sample:
        """The sample of a filter."""
        form = prepared.form
        return Sample(self._witnesses.witnessed(form), required(form, self._world))

    def add(self, number: int, sample: Sample) -> None:
        """Take in a general formula."""
        self._generals[number] = sample

    def discard(self, number: int) -> None:
        """Forget a general formula, or what is remembered of a box."""
        self._generals.pop(number, None)
        self._of_boxes.pop(number, None)

    def generals_covering(self, new: Sample) -> Iterator[int]:
        """The general formulas that cover a filter."""
        narrow, missing = new.witnessed, ~new.witnessed.present
        bits, known = self._witnesses.bits(narrow), narrow.known
        for number, one in self._generals.items():
            wide = one.witnessed
            # The common case first: refuted by what is known already.
            if (wide.known >= known and bits & ~wide.bits) or one.required & missing:
                continue
            if self._witnesses.covers(wide, narrow):
                yield number

    def generals_covered(self, new: Sample) -> Iterator[int]:
        """The general formulas that a filter covers."""
        wide, required_by_new = new.witnessed, new.required
        others, known = ~self._witnesses.bits(wide), wide.known
        for number, one in self._generals.items():
            narrow = one.witnessed
            if (narrow.known <= known and narrow.bits & others) or (
                required_by_new & ~narrow.present
            ):
                continue
            if self._witnesses.covers(wide, narrow):
                yield number

    def boxes_covering(self, new: Sample, roots: dict[int, Prepared]) -> Iterator[int]:
        """The boxes that cover a general formula."""
        rows = new.witnessed.rows
        found = self._boxes.covering(self._point(rows[0])) if rows else self._boxes.asking(0)
        for number in found:
            box = self._of_box(number, roots[number])
            if self._witnesses.covers(box.witnessed, new.witnessed):
                yield number

    def boxes_covered(self, new: Sample, roots: dict[int, Prepared]) -> Iterator[int]:
        """The boxes that a general formula covers."""
        for number in self._boxes.asking(new.required):
            box = self._of_box(number, roots[number])
            if self._witnesses.covers(new.witnessed, box.witnessed):
                yield number

    def _of_box(self, number: int, prepared: Prepared) -> Sample:
        sample = self._of_boxes.get(number)
        if sample is None:
            sample = self._of_boxes[number] = self.sample(prepared)
        return sample

    def _point(self, row: Row) -> Prepared:
        """The box of a single row."""
        points = (self._pool.point(position, value) for position, value in enumerate(row))
        return Prepared.of_terms(ast.TRUE, tuple(points))


def required(form: Node, world: World) -> int:
    """The attributes that may be missing, and without which a form is not true."""
    match form:
        case ast.And(items):
            found = 0
            for item in items:
                found |= required(item, world)
            return found
        case ast.Or(items):
            found = -1
            for item in items:
                found &= required(item, world)
            return found
        case ast.Literal():
            return -1 if form == ast.FALSE else 0
        case _:
            bare = form.operand if isinstance(form, ast.Not) else form
            if isinstance(bare, ast.IsNull):
                return _mask(bare.operand, world) if isinstance(form, ast.Not) else 0
            return _mask(form, world)


def _mask(node: Node, world: World) -> int:
    """The attributes of a value that is null as soon as one of them is missing, else none."""
    lenient = ast.IsNull | ast.IsTruth | ast.And | ast.Or
    for part in ast.walk(node):
        if isinstance(part, lenient) or (isinstance(part, ast.Compare) and part.op == "<=>"):
            return 0
    positions = (world.schema.positions[path] for path in ast.attributes(node))
    return sum(1 << position for position in positions if world.may_miss(position))
