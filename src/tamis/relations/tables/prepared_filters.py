"""Filters as tables hold them: a normal form, and the constraints of its box if it is one."""

from collections.abc import Callable

from tamis.language.ast import Node
from tamis.language.expression import Expression
from tamis.predicates.boxes import box_of
from tamis.predicates.event_space import EventSpace, form_of
from tamis.relations.entailment.decision import Answer, satisfiable
from tamis.relations.tables.atom_values import AtomValues
from tamis.relations.tables.constraints import Constraint, ConstraintPool, Constraints
from tamis.semantics import Semantics

# Not strict filters, which test all attributes of their texts, and not defaults, with which ``<>``
# is true of what is missing.
BY_ATOMS = frozenset(("sql", "total"))


class PreparedFilter:
    """A filter that may be true. Without constraints it is a general filter, not a box."""

    __slots__ = ("_form", "by_position", "constraints", "mask")

    def __init__(self, form: Callable[[], Node], constraints: Constraints | None) -> None:
        self._form = form
        self.constraints = constraints
        self.mask = 0  # one bit for each attribute that the constraints test
        self.by_position: dict[int, Constraint] = {}
        for constraint in constraints or ():
            self.mask |= constraint.bit
            self.by_position[constraint.position] = constraint

    @property
    def form(self) -> Node:
        """The normal form, which is not needed to compare boxes with boxes."""
        return self._form()


class FilterPreparation:
    """Prepares the filters of one semantics."""

    def __init__(self, semantics: Semantics) -> None:
        self.semantics = semantics
        self.space = EventSpace.of(semantics)
        self.pool = ConstraintPool(self.space)
        self._atoms = AtomValues(self.space)

    def prepare(self, expression: Expression) -> PreparedFilter | None:
        """A filter, None if it can never be true."""
        values = self._atoms.of(expression) if self.semantics.name in BY_ATOMS else None
        if values is not None:
            constraints = self.pool.constraints_of_values(values)
            if constraints is None:
                return None
            return PreparedFilter(lambda: form_of(expression, self.semantics), constraints)
        form = form_of(expression, self.semantics)
        box = box_of(form, self.space)
        if box is not None:
            constraints = self.pool.constraints(box)
            return None if constraints is None else PreparedFilter(lambda: form, constraints)
        if satisfiable(form, self.space) is Answer.NO:
            return None
        return PreparedFilter(lambda: form, None)
