"""Whether some event makes a formula true: a search that keeps the open cells of operands.

A state has a mask of open cells for each operand, and clauses that must still become true. A
clause about one operand closes cells; fewer open cells make other clauses true or false, and
computed values lose cells together with their inputs. Only where a choice remains are its
alternatives tried. Clauses that share no attribute are independent and searched apart.

A state without clauses is a set of events, if the computed values agree. Where inputs have few
values all of them are tried; otherwise a few events are tried, and if none is found the answer is
unknown.
"""

from collections.abc import Iterator
from enum import Enum
from typing import Any, NamedTuple

from tamis.relations.disjoint_sets import DisjointSets
from tamis.relations.entailment.computed_values import ComputedValues
from tamis.relations.entailment.operands import ALL, ANY, Formula, OpenCells, Operands, chain
from tamis.relations.entailment.string_languages import TooManySteps
from tamis.relations.entailment.trial_events import TrialEvents

MOST_STEPS = 500_000  # parts of clauses that are visited
DEEPEST_SPLIT = 20  # independent parts within independent parts

Values = dict[int, Any]
Clause = tuple[int, Any]


class SearchOutcome(Enum):
    """What a search found."""

    EVENT = "an event"
    NONE = "there is none"
    UNKNOWN = "neither"


class _Problem(NamedTuple):
    """Operands that have nothing to do with others, and the clauses that must become true."""

    clauses: list[Clause]
    attributes: list[int]
    computed: list[int]


class Solver:
    """One search over some operands."""

    def __init__(self, operands: Operands) -> None:
        self.operands = operands
        self.steps = 0
        self.computed_values = ComputedValues(operands)
        self.trial_events = TrialEvents(operands, self.computed_values)

    def run(self, given: Formula, goal: Formula) -> tuple[SearchOutcome, Values]:
        """Whether an event makes both formulas true, and the values of such an event.

        The alternatives of both are tried one by one, before any other choice is made: an
        alternative of what is given mostly decides the goal at once. The values are by number of
        operand; an attribute that is not among them may have any value.
        """
        answer = SearchOutcome.NONE
        try:
            for problem, open_cells in self._starts(given, goal):
                found, values = self._solve(problem, open_cells, 0)
                if found is SearchOutcome.EVENT:
                    return found, values
                if found is SearchOutcome.UNKNOWN:
                    answer = found
        except TooManySteps:
            answer = SearchOutcome.UNKNOWN
        return answer, {}

    def _starts(self, given: Formula, goal: Formula) -> Iterator[tuple[_Problem, OpenCells]]:
        everything = range(len(self.operands.all))
        attributes = [n for n in everything if not self.operands.all[n].inputs]
        computed = self.operands.computed
        for way in _alternatives(given):
            open_cells = [operand.full for operand in self.operands.all]
            left = self._narrow([way] if isinstance(way, tuple) else [], computed, open_cells)
            if left is None:
                continue
            rest = self._restricted(goal, open_cells) if isinstance(goal, tuple) else goal
            for wish in _alternatives(rest):
                clauses = [*left, wish] if isinstance(wish, tuple) else left
                self.steps += len(open_cells) // 8
                yield _Problem(clauses, attributes, computed), open_cells.copy()

    def _solve(
        self, problem: _Problem, open_cells: OpenCells, depth: int
    ) -> tuple[SearchOutcome, Values]:
        stack = [(problem.clauses, open_cells)]
        answer = SearchOutcome.NONE
        while stack:
            clauses, open_cells = stack.pop()
            left = self._narrow(clauses, problem.computed, open_cells)
            if left is None:
                continue
            found, values = self._look(problem._replace(clauses=left), open_cells, depth)
            if found is SearchOutcome.EVENT:
                return found, values
            if found is SearchOutcome.UNKNOWN:
                answer = found
            elif found is None:
                stack.extend(self._choices(left, open_cells))
        return answer, {}

    def _look(
        self, problem: _Problem, open_cells: OpenCells, depth: int
    ) -> tuple[SearchOutcome | None, Values]:
        """What is known about a state; None if a choice must be made."""
        if not problem.clauses and not problem.computed:
            return SearchOutcome.EVENT, {
                n: self.trial_events.example(n, open_cells[n]) for n in problem.attributes
            }
        parts = self._independent(problem)
        if problem.clauses and (len(parts) == 1 or depth >= DEEPEST_SPLIT):
            return None, {}
        answer = SearchOutcome.EVENT
        event: Values = {}
        for part in sorted(parts, key=lambda part: len(part.clauses)):
            if part.clauses:
                found, values = self._solve(part, open_cells.copy(), depth + 1)
            else:
                found, values = self._attempt(part, open_cells)
            if found is SearchOutcome.NONE:
                return SearchOutcome.NONE, {}
            if found is SearchOutcome.UNKNOWN:
                answer = found
            event |= values
        return answer, event

    def _attempt(self, problem: _Problem, open_cells: OpenCells) -> tuple[SearchOutcome, Values]:
        values, complete = self.trial_events.attempt(
            problem.computed, problem.attributes, open_cells
        )
        if values is not None:
            return SearchOutcome.EVENT, values
        return SearchOutcome.NONE if complete else SearchOutcome.UNKNOWN, {}

    # --- narrowing

    def _narrow(
        self, clauses: list[Clause], computed: list[int], open_cells: OpenCells
    ) -> list[Clause] | None:
        """Close cells as the clauses demand: the clauses that remain, None if none can be true."""
        changed = bool(computed)
        while True:
            left: list[Clause] = []
            for clause in clauses:
                rest = self._restricted(clause, open_cells)
                if isinstance(rest, bool):
                    if not rest:
                        return None
                    continue
                tag, body = rest
                for number, mask in body if tag == ALL else (rest,):
                    if number < 0:
                        left.append((number, mask))
                    else:
                        open_cells[number] &= mask
                    changed = changed or number >= 0 or tag == ALL
            if not changed:
                return left
            self.steps += len(computed)
            if computed and not self.computed_values.narrow(computed, open_cells):
                return None
            clauses, changed = left, False

    def _restricted(self, formula: Clause, open_cells: OpenCells) -> Formula:
        """What is left of a clause within the open cells."""
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise TooManySteps
        tag, body = formula
        if tag >= 0:
            self.steps += body.bit_length() >> 10  # a long mask takes longer
            mask = body & open_cells[tag]
            if not mask:
                return False
            if mask == open_cells[tag]:
                return True
            return formula if mask == body else (tag, mask)
        decisive = tag == ANY
        items: list[Clause] = []
        same = True
        for item in body:
            rest = self._restricted(item, open_cells)
            if rest is decisive:
                return decisive
            same = same and rest is item
            if not isinstance(rest, bool):
                items.append(rest)
        if same:
            return formula
        if not items:
            return not decisive
        return chain(tag, items, open_cells)

    def _choices(
        self, clauses: list[Clause], open_cells: OpenCells
    ) -> Iterator[tuple[list[Clause], OpenCells]]:
        """The ways to make the shortest clause true, the first one last."""
        shortest = min(clauses, key=lambda clause: len(clause[1]))
        others = [clause for clause in clauses if clause is not shortest]
        states: list[tuple[list[Clause], OpenCells]] = []
        open_cells = open_cells.copy()
        for item in sorted(shortest[1], key=lambda item: item[0] < 0):
            self.steps += len(open_cells) // 8
            states.append(([*others, item], open_cells.copy()))
            number, mask = item
            if number >= 0:  # the later ways may assume that this one fails
                open_cells[number] &= ~mask
        return reversed(states)

    def _independent(self, problem: _Problem) -> list[_Problem]:
        """The independent parts of a problem; attributes that are not tested go to the first."""
        groups = DisjointSets()
        for number in problem.computed:
            groups.join((number, *self.operands.all[number].inputs))
        anchors = []
        for clause in problem.clauses:
            numbers = _numbers(clause)
            self.steps += len(numbers)
            groups.join(numbers)
            anchors.append(numbers[0])
        parts: dict[int, _Problem] = {}

        def part_of(number: int) -> _Problem:
            return parts.setdefault(groups.find(number), _Problem([], [], []))

        for clause, anchor in zip(problem.clauses, anchors, strict=True):
            part_of(anchor).clauses.append(clause)
        for number in problem.computed:
            part_of(number).computed.append(number)
        for number in problem.attributes:
            known = groups.find(number) in parts
            (part_of(number) if known else next(iter(parts.values()))).attributes.append(number)
        return list(parts.values())


def _alternatives(formula: Formula) -> tuple[Formula, ...]:
    """The ways to make a formula true; none if there is no way."""
    if isinstance(formula, bool):
        return (True,) if formula else ()
    return formula[1] if formula[0] == ANY else (formula,)


def _numbers(clause: Clause) -> list[int]:
    """The operands of a clause."""
    found: dict[int, None] = {}
    stack = [clause]
    while stack:
        number, body = stack.pop()
        if number < 0:
            stack.extend(body)
        else:
            found[number] = None
    return list(found)
