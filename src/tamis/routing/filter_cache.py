"""The filters of a broker: read once, compared once."""

import functools
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tamis.errors import RoutingError
from tamis.events import Row
from tamis.language import ast
from tamis.language.expression import Expression, parse_with
from tamis.language.normal_form import flatten
from tamis.relations.entailment.decision import Answer, satisfiable
from tamis.relations.event_space import World, form_of
from tamis.schema import Schema, as_schema
from tamis.semantics import Semantics

REMEMBERED = 100_000  # texts, and pairs of texts
SHOWN = 3  # advertisements that a message lists


def reading_of(schema: Any, semantics: str, defaults: Mapping[str, Any] | None) -> "Reading":
    """What reads the filters of a broker; brokers of one process share it."""
    items = None if defaults is None else tuple(sorted(defaults.items()))
    return _reading(as_schema(schema), semantics, items)


@functools.lru_cache(maxsize=100)
def _reading(schema: Schema, semantics: str, defaults: tuple[Any, ...] | None) -> "Reading":
    return Reading(schema, semantics, None if defaults is None else dict(defaults))


class Reading:
    """Texts as filters over one schema, in one semantics."""

    def __init__(self, schema: Schema, semantics: str, defaults: Mapping[str, Any] | None) -> None:
        self.schema = schema
        self.defaults = defaults
        self.meaning = Semantics(semantics, self.schema, defaults)
        self._world = World.of(self.meaning)
        self.read = functools.lru_cache(REMEMBERED)(self._read)
        self.intersects = functools.lru_cache(REMEMBERED)(self._intersects)
        self._condition = functools.lru_cache(REMEMBERED)(self._compiled)

    def _read(self, text: str) -> Expression:
        return parse_with(text, self.schema)

    def _intersects(self, text: str, other: str) -> bool:
        """Whether an event may match both; False only if surely none does."""
        forms = tuple(form_of(self.read(one), self.meaning) for one in (text, other))
        both = flatten(ast.And(forms), self.meaning.logic)
        return satisfiable(both, self._world) is not Answer.NO

    def _compiled(self, text: str) -> Callable[[Row], bool]:
        return self.meaning.condition(self.read(text))

    def check_possible(self, expression: Expression) -> None:
        """Raise an error if no event can match a filter."""
        if satisfiable(form_of(expression, self.meaning), self._world) is Answer.NO:
            raise RoutingError(f"no event can ever match {str(expression)!r}; nothing was changed")

    def check_offer(self, client: str, row: Row, offers: Iterable[str]) -> None:
        """Raise an error if a publication is none of those that a client has advertised."""
        texts = list(dict.fromkeys(offers))
        if any(self._condition(text)(row) for text in texts):
            return
        if not texts:
            raise RoutingError(f"{client!r} has advertised nothing; advertise before publishing")
        listed = "; ".join(texts[:SHOWN]) + ("; ..." if len(texts) > SHOWN else "")
        raise RoutingError(
            f"the event matches no advertisement of {client!r}, who has advertised: {listed}"
        )
