"""Whether one form follows from another, and whether a form can be true at all.

``b`` entails ``a`` iff no event makes b true and a not true. The answers YES and NO are always
right; for NO there is an event that shows it, see `witness`. UNDECIDED is left to what depends on
tests that cannot be related to each other (regular expressions, computed values) and to formulas
that would cost too much.
"""

import functools
from enum import Enum
from typing import Any

from tamis.events import Row
from tamis.language import ast
from tamis.language.ast import FALSE, TRUE, Node
from tamis.relations.entailment.ordered_values import Order
from tamis.relations.entailment.parts import Part, Parts, parts
from tamis.relations.entailment.solver import Finding, Solver
from tamis.relations.entailment.spans import Names, Numbers, holding, whole
from tamis.relations.entailment.string_languages import TooLarge
from tamis.relations.entailment.subjects import Subjects
from tamis.relations.event_space import World
from tamis.schema import Enumeration
from tamis.types import STRING

REMEMBERED = 50_000  # answers

MOST_PIECES = 16  # pairs of parts that are compared after a search gave up


class Answer(Enum):
    """YES and NO are always right."""

    YES = "yes"
    NO = "no"
    UNDECIDED = "undecided"


@functools.lru_cache(maxsize=REMEMBERED)
def entails(b: Node, a: Node, world: World) -> Answer:
    """Whether every event of the world that makes form b true makes form a true."""
    if b == a or isinstance(b, ast.Literal) or isinstance(a, ast.Literal):
        return _of_constants(b, a, world)
    answer = _implies(b, a, world)
    if answer is Answer.UNDECIDED and _by_pieces(b, a, world):
        return Answer.YES
    return answer


def _implies(b: Node, a: Node, world: World) -> Answer:
    given, asked = parts(b, world), parts(a, world)
    if given is None or asked is None:
        return _IMPLIED[_search(b, a, world)[0]]
    return _by_parts(given, asked, world)


def _by_pieces(b: Node, a: Node, world: World) -> bool:
    """Whether each part of a follows from a single part of b, when all together are too much."""
    wanted = a.items if isinstance(a, ast.And) else (a,)
    given = b.items if isinstance(b, ast.And) else (b,)
    choices = [item.items if isinstance(item, ast.Or) else (item,) for item in wanted]
    if sum(map(len, choices)) * len(given) > MOST_PIECES:
        return False
    return all(
        any(_implies(one, other, world) is Answer.YES for other in choice for one in given)
        for choice in choices
    )


@functools.lru_cache(maxsize=REMEMBERED)
def satisfiable(form: Node, world: World) -> Answer:
    """Whether some event of the world makes a form true."""
    if isinstance(form, ast.Literal):
        return Answer.YES if form.value is True else Answer.NO
    asked = parts(form, world)
    if asked is None:
        return _POSSIBLE[_search(form, FALSE, world)[0]]
    return _possible(asked, world)


_IMPLIED = {
    Finding.NONE: Answer.YES,
    Finding.EVENT: Answer.NO,
    Finding.UNKNOWN: Answer.UNDECIDED,
}
_POSSIBLE = {
    Finding.NONE: Answer.NO,
    Finding.EVENT: Answer.YES,
    Finding.UNKNOWN: Answer.UNDECIDED,
}


def _of_constants(b: Node, a: Node, world: World) -> Answer:
    if b in {a, FALSE} or a == TRUE:
        return Answer.YES
    if a == FALSE:
        return _OPPOSITE[satisfiable(b, world)]
    return _IMPLIED[_search(b, a, world)[0]]


_OPPOSITE = {
    Answer.YES: Answer.NO,
    Answer.NO: Answer.YES,
    Answer.UNDECIDED: Answer.UNDECIDED,
}


# --- attribute by attribute


def _by_parts(given: Parts, asked: Parts, world: World) -> Answer:
    """Every part that is asked must follow, unless what is given cannot be."""
    answer = Answer.YES
    conditions = {part.position: part for part in given}
    for part in asked:
        known = conditions.get(part.position) or _anything(part.position, world)
        found = _one_implies(known, part, world)
        if found is not Answer.YES:
            answer = found
            if found is Answer.NO:
                break
    if answer is Answer.YES:
        return answer
    possible = _possible(given, world)
    if possible is Answer.NO:
        return Answer.YES
    return answer if possible is Answer.YES else Answer.UNDECIDED


@functools.lru_cache(maxsize=1_000)
def _anything(position: int, world: World) -> Part:
    attribute = world.schema.attributes[position]
    return Part(position, TRUE, whole(attribute, world.may_miss(position)))


def _one_implies(given: Part, asked: Part, world: World) -> Answer:
    known, wanted = given.span, asked.span
    if isinstance(known, Numbers) and isinstance(wanted, Numbers):
        return Answer.YES if known.within(wanted) else Answer.NO
    if isinstance(known, Names):
        if isinstance(wanted, Names):
            return Answer.YES if known.within(wanted) else Answer.NO
        if not known.others:
            attribute = world.schema.attributes[asked.position]
            holds = holding(asked.condition, attribute)
            values = (*known.names, None) if known.missing else known.names
            return Answer.YES if all(map(holds, values)) else Answer.NO
    return _conditions_imply(given.condition, asked.condition, world)


@functools.lru_cache(maxsize=REMEMBERED)
def _conditions_imply(given: Node, asked: Node, world: World) -> Answer:
    return _IMPLIED[_search(given, asked, world)[0]]


def _possible(asked: Parts, world: World) -> Answer:
    answer = Answer.YES
    for part in asked:
        if part.span is not None:
            found = Answer.YES if part.span else Answer.NO
        else:
            found = _condition_possible(part.condition, world)
        if found is Answer.NO:
            return found
        if found is Answer.UNDECIDED:
            answer = found
    return answer


@functools.lru_cache(maxsize=REMEMBERED)
def _condition_possible(condition: Node, world: World) -> Answer:
    return _POSSIBLE[_search(condition, FALSE, world)[0]]


# --- in general


def witness(b: Node, a: Node, world: World) -> Row | None:
    """The row of an event that makes b true and a not; None where none is found."""
    found, values = _search(b, a, world)
    return values if found is Finding.EVENT else None


def _search(b: Node, a: Node, world: World) -> tuple[Finding, Row]:
    b, a = _without_common(b, a)
    if b == FALSE or a == TRUE:
        return Finding.NONE, ()
    try:
        subjects = Subjects((b, a), world)
        given, goal = subjects.formula(b), subjects.formula(a, positive=False)
    except TooLarge:
        return Finding.UNKNOWN, ()
    found, values = Solver(subjects).run(given, goal)
    row = list(_any_row(world))
    for number, value in values.items():
        row[subjects.all[number].position] = value
    return found, tuple(row)


@functools.lru_cache(maxsize=100)
def _any_row(world: World) -> Row:
    """An event of the world with as little as it may have."""
    row: list[Any] = []
    for position, attribute in enumerate(world.schema.attributes):
        if world.may_miss(position):
            row.append(None)
        elif isinstance(attribute.domain, Enumeration):
            row.append(attribute.domain.values[0])
        elif attribute.type == STRING:
            row.append("")
        else:
            order = Order(attribute.type, attribute.domain)
            row.append(order.value(order.pleasant(order.low, order.high)))
    return tuple(row)


def _without_common(b: Node, a: Node) -> tuple[Node, Node]:
    """Without what follows at once: parts of a that b asks for, alternatives of b that a allows."""
    if isinstance(a, ast.And):
        given = set(b.items) if isinstance(b, ast.And) else {b}
        a = _chain(ast.And, [item for item in a.items if item not in given], TRUE)
    if isinstance(b, ast.Or):
        enough = set(a.items) if isinstance(a, ast.Or) else {a}
        b = _chain(ast.Or, [item for item in b.items if item not in enough], FALSE)
    return b, a


def _chain(kind: type[ast.And | ast.Or], items: list[Node], empty: Node) -> Node:
    if not items:
        return empty
    return items[0] if len(items) == 1 else kind(tuple(items))
