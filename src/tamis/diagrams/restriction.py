"""Dependencies between the predicates of a filter, by which its diagram is restricted.

They are those of sections 6 and 7 of Campailla et al., "Efficient filtering in publish-subscribe
systems using binary decision diagrams" (ICSE 2001), called BDD here. The dependency function of a
filter is a conjunction of clauses, one for each fact about two of its predicates. No event makes it
false, so a diagram may be restricted by it.

That at least one of two predicates is true (``price < 10`` or ``price >= 10``) is a fact only where
the attribute cannot be missing: in total events, in events completed by defaults, and in strict
semantics, where an event without the attribute does not match, whatever the diagram says. Elsewhere
it is true only of events that have the attribute; in other events no predicate on it is true,
except IS NULL.
"""

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from tamis.kernels.bdd_operations import DO_AND, DO_NOT, DO_OR, DO_TRUE
from tamis.language import ast
from tamis.language.ast import Node
from tamis.names import Path
from tamis.predicates.classification import Presence, classify
from tamis.predicates.implication import attribute_of, facts
from tamis.schema import Schema
from tamis.semantics import Semantics

Program = np.ndarray[Any, np.dtype[np.int64]]

MOST_PAIRS = 2_000  # pairs of predicates of one filter that are compared; others are ignored


def always_present(semantics: Semantics) -> Callable[[Path], bool]:
    """A function that says whether every event that a filter may match has an attribute."""
    if semantics.name == "default":
        defaults = dict(zip(semantics.schema.positions, semantics.defaults, strict=True))
        return lambda path: defaults[path] is not None
    certain = semantics.name in {"strict", "total"}
    return lambda _path: certain


class AttributeFacts(NamedTuple):
    """The clauses about the predicates on one attribute; each clause is a program."""

    always: list[list[int]]
    if_present: list[list[int]]  # true of events that have the attribute
    if_missing: list[int]  # one clause, true of the other events; empty if there are none


def dependency_facts(
    predicates: Sequence[tuple[Node, int]], schema: Schema, present: Callable[[Path], bool]
) -> list[AttributeFacts]:
    """The facts about predicates, given with their variables, attribute by attribute."""
    by_attribute: dict[Path, list[tuple[Node, int]]] = {}
    for predicate, variable in predicates:
        path = attribute_of(predicate)
        if path is not None:
            by_attribute.setdefault(path, []).append((predicate, variable))
    found = []
    pairs = 0
    for path, members in by_attribute.items():
        certain, attribute = present(path), schema.find(path)
        domain = attribute.domain if attribute else None
        presence = [(p, v) for p, v in members if _tests_presence(p)]
        always = [[v] if isinstance(p, ast.Not) else [v, DO_NOT] for p, v in presence if certain]
        if_present: list[list[int]] = []
        for (p, u), (q, v) in combinations(members, 2):
            if (pairs := pairs + 1) > MOST_PAIRS:
                break
            known = facts(p, q, domain)
            always += [[u, DO_NOT, v, DO_OR]] * known.implies
            always += [[v, DO_NOT, u, DO_OR]] * known.implied
            always += [[u, DO_NOT, v, DO_NOT, DO_OR]] * known.excludes
            surely = certain or (_tests_presence(p) and _tests_presence(q))
            if known.exhausts:
                (always if surely else if_present).append([u, v, DO_OR])
        if always or if_present:
            found.append(AttributeFacts(always, if_present, [] if certain else _missing(members)))
    return found


def _missing(members: list[tuple[Node, int]]) -> list[int]:
    """What is true of an event without the attribute: no predicate on it except IS NULL."""
    parts = [[v] if isinstance(p, ast.IsNull) else [v, DO_NOT] for p, v in members]
    return conjunction(parts)


def conjunction(programs: list[list[int]]) -> list[int]:
    """A program that is true if all programs are."""
    steps = [DO_TRUE]
    for program in programs:
        steps += [*program, DO_AND]
    return steps


def whole_function(found: list[AttributeFacts]) -> Program:
    """The dependency function as one program."""
    parts = []
    for one in found:
        parts += one.always
        if one.if_present:
            present = conjunction(one.if_present)
            parts.append([*present, *one.if_missing, DO_OR] if one.if_missing else present)
    return np.array(conjunction(parts), np.int64)


def single_clauses(found: list[AttributeFacts]) -> Program:
    """The clauses of the dependency function: a program that leaves each of them."""
    parts = []
    for one in found:
        parts += one.always
        for clause in one.if_present:
            parts.append([*clause, *one.if_missing, DO_OR] if one.if_missing else clause)
    return np.array([step for part in parts for step in part], np.int64)


def _tests_presence(predicate: Node) -> bool:
    return isinstance(classify(predicate), Presence)
