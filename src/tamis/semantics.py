"""Semantics: the four meanings of a missing attribute.

They are from section 4 of Campailla et al., "Efficient filtering in publish-subscribe systems using
binary decision diagrams" (ICSE 2001), called BDD here.

========= ================ =========================================================================
name      in the paper     an event matches a filter iff
========= ================ =========================================================================
sql       NULL (JMS)       the filter is true in Kleene's logic, where missing is NULL
strict    StSL             the event has every attribute that *occurs* in it, and the filter is true
default   DeSL             the filter is true after missing attributes got their defaults
total     SiSL             the filter is true; an event that lacks an attribute is an error
========= ================ =========================================================================

What strict semantics needs depends on the text of the filter: ``price < 1000 OR price > 500`` is
true for every price and still does not match an event without a price (the paper's example 5). A
default of None is the paper's ⊥: a special value that equals no constant and is neither above nor
below one; ``IS NULL`` tests for it, and NOT is plain negation.
"""

from collections.abc import Callable, Mapping
from typing import Any

from tamis.errors import EventError, OptionError, choose, unknown_attribute
from tamis.events.event_reader import Row
from tamis.events.values import value_reader
from tamis.language.evaluation import Logic, compile_tree
from tamis.language.expression import Expression
from tamis.schema import Schema

NAMES = ("sql", "strict", "default", "total")


class Semantics:
    """One of the four semantics, for one schema."""

    def __init__(
        self, name: str, schema: Schema, defaults: Mapping[str, Any] | None = None
    ) -> None:
        self.name = choose("semantics", name, NAMES)
        self.schema = schema
        self.logic = Logic.CLASSICAL if name == "default" else Logic.KLEENE
        self.defaults: Row = ()
        if name == "default":
            self.defaults = _read_defaults(schema, defaults)
        elif defaults is not None:
            raise OptionError(f'defaults belong to semantics="default", not to {name!r}')

    def wider_defaults(self, schema: Schema, more: Mapping[str, Any] | None) -> Row:
        """The defaults for a schema with more attributes, `more` being those of the new ones."""
        if self.name != "default":
            Semantics(self.name, schema, more)  # refuses defaults
            return ()
        new = Schema.of_attributes(
            a for a in schema.attributes if a.path not in self.schema.positions
        )
        known = dict(zip(self.schema.positions, self.defaults, strict=True))
        known |= dict(zip(new.positions, _read_defaults(new, more or {}), strict=True))
        return tuple(known[path] for path in schema.positions)

    def prepare(self, row: Row) -> Row:
        """The row that filters are evaluated on: with defaults, or checked to be complete."""
        if self.name == "default":
            return tuple(
                default if value is None else value
                for value, default in zip(row, self.defaults, strict=True)
            )
        if self.name == "total" and None in row:
            missing = [
                a.name for a, v in zip(self.schema.attributes, row, strict=True) if v is None
            ]
            raise EventError(
                f"the event lacks {', '.join(missing[:5])}"
                + (", ..." if len(missing) > 5 else "")
                + ', and semantics="total" allows no missing attribute'
            )
        return row

    def condition(self, expression: Expression) -> Callable[[Row], bool]:
        """A function that says whether a prepared row matches the expression."""
        evaluate = compile_tree(expression.tree, self.schema, self.logic)
        demanded = self.demanded(expression)
        if not demanded:
            return lambda row: evaluate(row) is True
        return lambda row: all(row[n] is not None for n in demanded) and evaluate(row) is True

    def demanded(self, expression: Expression) -> tuple[int, ...]:
        """The positions of the attributes that an event must have, whatever the filter says.

        They are those of the text in strict semantics, and none in the others.
        """
        if self.name != "strict":
            return ()
        return tuple(sorted(self.schema.positions[path] for path in expression.attributes))


def _read_defaults(schema: Schema, defaults: Mapping[str, Any] | None) -> Row:
    if defaults is None:
        raise OptionError(
            'semantics="default" needs defaults, a value for each attribute; '
            "None stands for the special value that equals nothing"
        )
    for name in defaults:
        if name not in schema:
            raise OptionError(f"defaults: {unknown_attribute(name, schema)}")
    values = {schema[name].path: value for name, value in defaults.items()}
    missing = [a.name for a in schema.attributes if a.path not in values]
    if missing:
        raise OptionError(f"the defaults lack {', '.join(missing)}")
    try:
        return tuple(value_reader(a)(values[a.path]) for a in schema.attributes)
    except EventError as error:
        raise OptionError(f"defaults: {error}") from None
