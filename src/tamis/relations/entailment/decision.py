"""Whether one normal form follows from another, and whether a normal form can be true at all.

``b`` entails ``a`` iff no event makes b true and a not true. The answers YES and NO are always
right; for NO there is an event that shows it, see `witness`. The answer is UNDECIDED for tests that
cannot be related to each other (regular expressions, computed values) and for formulas that would
cost too much. Boxes are compared attribute by attribute, by their value sets; for other formulas
the solver searches for an event that makes b true and a not.
"""

import functools
from enum import Enum
from typing import Any

from tamis.bounded_caches import remembered
from tamis.events.event_reader import Row
from tamis.language import ast
from tamis.language.ast import FALSE, TRUE, Node, has_clock
from tamis.predicates.boxes import AttributeCondition, Box, box_of
from tamis.predicates.event_space import EventSpace
from tamis.predicates.value_orders import order_of
from tamis.predicates.value_sets import ValueSet, all_values, holds_of
from tamis.relations.entailment.array_elements import ArrayCells
from tamis.relations.entailment.operands import Operands
from tamis.relations.entailment.solver import SearchOutcome, Solver
from tamis.relations.entailment.string_languages import TooManySteps
from tamis.schema import Enumeration

MOST_LISTED = 100_000  # strings that a test is tried with

MOST_PAIRS = 16  # of single items that are compared after a search gave up


class Answer(Enum):
    """YES and NO are always right."""

    YES = "yes"
    NO = "no"
    UNDECIDED = "undecided"


@remembered()
def entails(b: Node, a: Node, space: EventSpace) -> Answer:
    """Whether every event of the space that makes form b true makes form a true."""
    if b == a:
        return Answer.YES
    answer = _implies(b, a, space)
    if answer is Answer.UNDECIDED and _by_single_items(b, a, space):
        return Answer.YES
    return answer


def _implies(b: Node, a: Node, space: EventSpace) -> Answer:
    given = box_of(b, space, computed=True)
    wanted = box_of(a, space, computed=True)
    if given is None or wanted is None:
        return _search_implies(b, a, space)
    return _box_implies(given, wanted, space)


def _by_single_items(b: Node, a: Node, space: EventSpace) -> bool:
    """Whether each item of a follows from a single item of b, if the whole forms cost too much."""
    wanted = a.items if isinstance(a, ast.And) else (a,)
    given = b.items if isinstance(b, ast.And) else (b,)
    choices = [item.items if isinstance(item, ast.Or) else (item,) for item in wanted]
    if sum(map(len, choices)) * len(given) > MOST_PAIRS:
        return False
    return all(
        any(_implies(one, other, space) is Answer.YES for other in choice for one in given)
        for choice in choices
    )


@remembered()
def satisfiable(form: Node, space: EventSpace) -> Answer:
    """Whether some event of the space makes a form true."""
    box = box_of(form, space, computed=True)
    if box is None:
        return _OPPOSITE[_search_implies(form, FALSE, space)]
    return _box_possible(box, space)


_OPPOSITE = {
    Answer.YES: Answer.NO,
    Answer.NO: Answer.YES,
    Answer.UNDECIDED: Answer.UNDECIDED,
}


# --- attribute by attribute


def _box_implies(given: Box, wanted: Box, space: EventSpace) -> Answer:
    """Every condition that is wanted must follow, unless what is given cannot be true."""
    if given.is_empty:
        return Answer.YES
    if wanted.is_empty:
        return _OPPOSITE[_box_possible(given, space)]
    answer = Answer.YES
    conditions = {condition.position: condition for condition in given.conditions}
    for condition in wanted.conditions:
        known = conditions.get(condition.position) or _anything(condition.position, space)
        found = _condition_implies(known, condition, space)
        if found is not Answer.YES:
            answer = found
            if found is Answer.NO:
                break
    if answer is Answer.YES:
        return answer
    possible = _box_possible(given, space)
    if possible is Answer.NO:
        return Answer.YES
    return answer if possible is Answer.YES else Answer.UNDECIDED


@functools.lru_cache(maxsize=1_000)
def _anything(position: int, space: EventSpace) -> AttributeCondition:
    everything = all_values(order_of(space.schema.attributes[position]))
    return AttributeCondition(
        position, TRUE, ValueSet(everything.intervals, space.may_miss(position))
    )


def _condition_implies(
    given: AttributeCondition, wanted: AttributeCondition, space: EventSpace
) -> Answer:
    if given.values is not None:
        if wanted.values is not None:
            return Answer.YES if given.values.issubset(wanted.values) else Answer.NO
        order = order_of(space.schema.attributes[wanted.position])
        can_try = order.is_string and not has_clock(wanted.node)
        some = given.values.members(order, MOST_LISTED) if can_try else None
        if some is not None:
            holds = holds_of(wanted.node)
            missing = not given.values.missing or holds(None)
            return Answer.YES if missing and all(map(holds, some)) else Answer.NO
    return _search_implies(given.node, wanted.node, space)


def _box_possible(box: Box, space: EventSpace) -> Answer:
    """Whether some event makes a box true; conditions with a value set always can be."""
    if box.is_empty:
        return Answer.NO
    answer = Answer.YES
    for condition in box.conditions:
        if condition.values is None:
            found = _OPPOSITE[_search_implies(condition.node, FALSE, space)]
            if found is Answer.NO:
                return found
            if found is Answer.UNDECIDED:
                answer = found
    return answer


# --- in general


@remembered()
def _search_implies(b: Node, a: Node, space: EventSpace) -> Answer:
    return _IMPLIED[_search(b, a, space)[0]]


_IMPLIED = {
    SearchOutcome.NONE: Answer.YES,
    SearchOutcome.EVENT: Answer.NO,
    SearchOutcome.UNKNOWN: Answer.UNDECIDED,
}


def witness(b: Node, a: Node, space: EventSpace) -> Row | None:
    """The row of an event that makes b true and a not; None where none is found."""
    found, values = _search(b, a, space)
    return values if found is SearchOutcome.EVENT else None


def _search(b: Node, a: Node, space: EventSpace) -> tuple[SearchOutcome, Row]:
    b, a = _without_common(b, a)
    if b == FALSE or a == TRUE:
        return SearchOutcome.NONE, ()
    try:
        operands = Operands((b, a), space)
        given, goal = operands.formula(b), operands.formula(a, positive=False)
    except TooManySteps:
        return SearchOutcome.UNKNOWN, ()
    found, values = Solver(operands).run(given, goal)
    row = list(_any_row(space))
    for number, value in values.items():
        row[operands.all[number].position] = value
    return found, tuple(row)


@functools.lru_cache(maxsize=100)
def _any_row(space: EventSpace) -> Row:
    """An event of the space with as few attributes as it may have."""
    row: list[Any] = []
    for position, attribute in enumerate(space.schema.attributes):
        if space.may_miss(position):
            row.append(None)
        elif isinstance(attribute.domain, Enumeration):
            row.append(attribute.domain.values[0])
        elif attribute.type.is_nested:
            row.append(ArrayCells(attribute.type).examples(0)[0])
        else:
            order = order_of(attribute)
            row.append(order.value(order.readable(order.start, order.end)))
    return tuple(row)


def _without_common(b: Node, a: Node) -> tuple[Node, Node]:
    """Without what follows at once: items of a that b has, and alternatives of b that a has."""
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
