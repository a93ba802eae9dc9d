"""Whether some event makes a formula true: a search that keeps, for each subject, what is open.

A state is a mask of open cells for each subject, its *room*, and clauses that must still become
true. Whatever a clause asks of one subject narrows the room, the narrower room makes other clauses
true or false, and what is computed is narrowed with its inputs; only where a choice remains is it
tried. Clauses that share no attribute are independent and tried apart.

A state without clauses is a set of events, if the computed values play along. Where inputs have few
values this is tried out; otherwise a few events are tried, and when none will do, nobody knows.
"""

from collections.abc import Iterator
from enum import Enum
from typing import Any, NamedTuple

from tamis.relations.entailment.computed_values import Computing, Room
from tamis.relations.entailment.string_languages import TooLarge
from tamis.relations.entailment.subjects import ALL, ANY, Formula, Subjects
from tamis.relations.entailment.trial_events import Trials

MOST_STEPS = 500_000  # parts of clauses that are looked at
DEEPEST_SPLIT = 20  # independent parts within independent parts

Values = dict[int, Any]
Clause = tuple[int, Any]


class Finding(Enum):
    """What a search found."""

    EVENT = "an event"
    NONE = "there is none"
    UNKNOWN = "neither"


class _Part(NamedTuple):
    """Subjects that have nothing to do with the others, and what must become true of them."""

    clauses: list[Clause]
    attributes: list[int]
    computed: list[int]


class Solver:
    """One search over some subjects."""

    def __init__(self, subjects: Subjects) -> None:
        self.subjects = subjects
        self.steps = 0
        self.computing = Computing(subjects)
        self.trials = Trials(subjects, self.computing)

    def run(self, given: Formula, goal: Formula) -> tuple[Finding, Values]:
        """Whether an event makes both formulas true, and the values of such an event.

        The alternatives of both are tried one by one, before any other choice is made: an
        alternative of what is given mostly decides the goal at once. The values are by number of
        subject; an attribute that is not among them may have any.
        """
        answer = Finding.NONE
        try:
            for part, room in self._starts(given, goal):
                found, values = self._solve(part, room, 0)
                if found is Finding.EVENT:
                    return found, values
                if found is Finding.UNKNOWN:
                    answer = found
        except TooLarge:
            answer = Finding.UNKNOWN
        return answer, {}

    def _starts(self, given: Formula, goal: Formula) -> Iterator[tuple[_Part, Room]]:
        everything = range(len(self.subjects.all))
        attributes = [n for n in everything if not self.subjects.all[n].inputs]
        computed = self.subjects.computed
        for way in _alternatives(given):
            room = [subject.full for subject in self.subjects.all]
            left = self._narrow([way] if isinstance(way, tuple) else [], computed, room)
            if left is None:
                continue
            rest = self._restricted(goal, room) if isinstance(goal, tuple) else goal
            for wish in _alternatives(rest):
                clauses = [*left, wish] if isinstance(wish, tuple) else left
                self.steps += len(room) // 8
                yield _Part(clauses, attributes, computed), room.copy()

    def _solve(self, part: _Part, room: Room, depth: int) -> tuple[Finding, Values]:
        stack = [(part.clauses, room)]
        answer = Finding.NONE
        while stack:
            clauses, room = stack.pop()
            left = self._narrow(clauses, part.computed, room)
            if left is None:
                continue
            found, values = self._look(part._replace(clauses=left), room, depth)
            if found is Finding.EVENT:
                return found, values
            if found is Finding.UNKNOWN:
                answer = found
            elif found is None:
                stack.extend(self._choices(left, room))
        return answer, {}

    def _look(self, part: _Part, room: Room, depth: int) -> tuple[Finding | None, Values]:
        """What is known of a state; None if a choice must be made."""
        if not part.clauses and not part.computed:
            return Finding.EVENT, {n: self.trials.example(n, room[n]) for n in part.attributes}
        pieces = self._pieces(part)
        if part.clauses and (len(pieces) == 1 or depth >= DEEPEST_SPLIT):
            return None, {}
        answer = Finding.EVENT
        event: Values = {}
        for piece in sorted(pieces, key=lambda piece: len(piece.clauses)):
            if piece.clauses:
                found, values = self._solve(piece, room.copy(), depth + 1)
            else:
                found, values = self._attempt(piece, room)
            if found is Finding.NONE:
                return Finding.NONE, {}
            if found is Finding.UNKNOWN:
                answer = found
            event |= values
        return answer, event

    def _attempt(self, part: _Part, room: Room) -> tuple[Finding, Values]:
        values, complete = self.trials.attempt(part.computed, part.attributes, room)
        if values is not None:
            return Finding.EVENT, values
        return Finding.NONE if complete else Finding.UNKNOWN, {}

    # --- narrowing

    def _narrow(
        self, clauses: list[Clause], computed: list[int], room: Room
    ) -> list[Clause] | None:
        """The choices that remain; None if there is no way."""
        changed = bool(computed)
        while True:
            left: list[Clause] = []
            for clause in clauses:
                rest = self._restricted(clause, room)
                if isinstance(rest, bool):
                    if not rest:
                        return None
                    continue
                tag, body = rest
                for number, mask in body if tag == ALL else (rest,):
                    if number < 0:
                        left.append((number, mask))
                    else:
                        room[number] &= mask
                    changed = changed or number >= 0 or tag == ALL
            if not changed:
                return left
            self.steps += len(computed)
            if computed and not self.computing.narrow(computed, room):
                return None
            clauses, changed = left, False

    def _restricted(self, formula: Clause, room: Room) -> Formula:
        """What is left of a clause within the room."""
        self.steps += 1
        if self.steps > MOST_STEPS:
            raise TooLarge
        tag, body = formula
        if tag >= 0:
            self.steps += body.bit_length() >> 10  # a long mask takes longer
            mask = body & room[tag]
            if not mask:
                return False
            if mask == room[tag]:
                return True
            return formula if mask == body else (tag, mask)
        decisive = tag == ANY
        items: list[Clause] = []
        same = True
        for item in body:
            rest = self._restricted(item, room)
            if rest is decisive:
                return decisive
            same = same and rest is item
            if not isinstance(rest, bool):
                items.append(rest)
        if same:
            return formula
        if not items:
            return not decisive
        return _joined(tag, items, room)

    def _choices(self, clauses: list[Clause], room: Room) -> Iterator[tuple[list[Clause], Room]]:
        """The ways to make the shortest clause true, the first one last."""
        shortest = min(clauses, key=lambda clause: len(clause[1]))
        others = [clause for clause in clauses if clause is not shortest]
        rooms: list[tuple[list[Clause], Room]] = []
        room = room.copy()
        for item in sorted(shortest[1], key=lambda item: item[0] < 0):
            self.steps += len(room) // 8
            rooms.append(([*others, item], room.copy()))
            number, mask = item
            if number >= 0:  # whoever comes later may take it that this one is not true
                room[number] &= ~mask
        return reversed(rooms)

    def _pieces(self, part: _Part) -> list[_Part]:
        """The independent parts of a part; attributes that nobody asks about go to the first."""
        groups = _Groups()
        for number in part.computed:
            groups.join((number, *self.subjects.all[number].inputs))
        anchors = []
        for clause in part.clauses:
            numbers = _numbers(clause)
            self.steps += len(numbers)
            groups.join(numbers)
            anchors.append(numbers[0])
        pieces: dict[int, _Part] = {}

        def piece(number: int) -> _Part:
            return pieces.setdefault(groups.find(number), _Part([], [], []))

        for clause, anchor in zip(part.clauses, anchors, strict=True):
            piece(anchor).clauses.append(clause)
        for number in part.computed:
            piece(number).computed.append(number)
        for number in part.attributes:
            known = groups.find(number) in pieces
            (piece(number) if known else next(iter(pieces.values()))).attributes.append(number)
        return list(pieces.values())


def _alternatives(formula: Formula) -> tuple[Formula, ...]:
    """The ways to make a formula true; none if there is no way."""
    if isinstance(formula, bool):
        return (True,) if formula else ()
    return formula[1] if formula[0] == ANY else (formula,)


def _joined(tag: int, items: list[Clause], room: Room) -> Formula:
    """A chain whose items changed: chains of its kind are part of it, a subject occurs once."""
    masks: dict[int, int] = {}
    chains: list[Clause] = []
    for item in items:
        for number, body in item[1] if item[0] == tag else (item,):
            if number < 0:
                chains.append((number, body))
            elif number not in masks:
                masks[number] = body
            elif tag == ANY:
                masks[number] |= body
            else:
                masks[number] &= body
    found: list[Clause] = []
    for number, mask in masks.items():
        if tag == ANY and mask == room[number]:
            return True
        if not mask:
            return False
        found.append((number, mask))
    found.extend(chains)
    return found[0] if len(found) == 1 else (tag, tuple(found))


def _numbers(clause: Clause) -> list[int]:
    """The subjects of a clause."""
    found: dict[int, None] = {}
    stack = [clause]
    while stack:
        number, body = stack.pop()
        if number < 0:
            stack.extend(body)
        else:
            found[number] = None
    return list(found)


class _Groups:
    """Disjoint sets of numbers that grow together."""

    def __init__(self) -> None:
        self._above: dict[int, int] = {}

    def find(self, number: int) -> int:
        above = self._above
        root = number
        while root in above:
            root = above[root]
        while number != root:
            above[number], number = root, above[number]
        return root

    def join(self, numbers: "list[int] | tuple[int, ...]") -> None:
        root = self.find(numbers[0])
        for number in numbers[1:]:
            other = self.find(number)
            if other != root:
                self._above[other] = root
