"""Filters as tables hold them: a normal form, and the terms of its box if it is one."""

from typing import NamedTuple

from tamis.language.ast import Node
from tamis.language.expression import Expression
from tamis.predicates.boxes import box_of
from tamis.predicates.event_space import EventSpace, form_of
from tamis.relations.entailment.decision import Answer, satisfiable
from tamis.relations.tables.terms import Term, TermPool, Terms
from tamis.semantics import Semantics


class PreparedFilter(NamedTuple):
    """A filter that may be true. Without terms it is a general filter, not a box."""

    form: Node
    terms: Terms | None
    mask: int  # one bit for each attribute that the terms test
    by_position: dict[int, Term]

    @classmethod
    def of_terms(cls, form: Node, terms: Terms) -> "PreparedFilter":
        """A box."""
        mask = 0
        for term in terms:
            mask |= term.bit
        return cls(form, terms, mask, {term.position: term for term in terms})

    @classmethod
    def of_form(cls, form: Node) -> "PreparedFilter":
        """A general filter."""
        return cls(form, None, 0, {})


class Preparation:
    """Prepares the filters of one semantics."""

    def __init__(self, semantics: Semantics) -> None:
        self.semantics = semantics
        self.space = EventSpace.of(semantics)
        self.pool = TermPool(self.space)

    def prepare(self, expression: Expression) -> PreparedFilter | None:
        """A filter, None if it can never be true."""
        form = form_of(expression, self.semantics)
        box = box_of(form, self.space)
        if box is not None:
            terms = self.pool.terms(box)
            return None if terms is None else PreparedFilter.of_terms(form, terms)
        return None if satisfiable(form, self.space) is Answer.NO else PreparedFilter.of_form(form)
