"""Filters as tables of them hold them: a form, and the terms of a box where it is one."""

from typing import NamedTuple

from tamis.language.ast import Node
from tamis.language.expression import Expression
from tamis.relations.boxes import box_of
from tamis.relations.entailment.decision import Answer, satisfiable
from tamis.relations.event_space import World, form_of
from tamis.relations.tables.terms import Term, TermPool, Terms
from tamis.semantics import Semantics


class Prepared(NamedTuple):
    """A filter that may be true. Without terms it is a general formula."""

    form: Node
    terms: Terms | None
    mask: int  # a bit for each attribute that the terms ask
    by_position: dict[int, Term]

    @classmethod
    def of_terms(cls, form: Node, terms: Terms) -> "Prepared":
        """A box."""
        mask = 0
        for term in terms:
            mask |= term.bit
        return cls(form, terms, mask, {term.position: term for term in terms})

    @classmethod
    def of_form(cls, form: Node) -> "Prepared":
        """A general formula."""
        return cls(form, None, 0, {})


class Preparation:
    """Prepares the filters of one semantics."""

    def __init__(self, semantics: Semantics) -> None:
        self.semantics = semantics
        self.world = World.of(semantics)
        self.pool = TermPool(self.world)

    def prepare(self, expression: Expression) -> Prepared | None:
        """A filter, None if it can never be true."""
        form = form_of(expression, self.semantics)
        box, never = box_of(form, self.world)
        if never:
            return None
        if box is not None:
            terms = self.pool.terms(box)
            return None if terms is None else Prepared.of_terms(form, terms)
        return None if satisfiable(form, self.world) is Answer.NO else Prepared.of_form(form)
