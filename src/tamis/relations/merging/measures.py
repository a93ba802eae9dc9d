"""Measures of events, by which the degrees of mergers are computed or estimated.

* `Uniform`: all values of a domain are equally probable (the evaluation of the MBD paper)
* `Profiled`: values are as frequent as in a profile, and attributes are independent
* `Sampled`: listed events, with all dependencies between their attributes

A measure becomes a `ProbabilitySpace` for one semantics, which says what a missing value means.
"""

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any, Protocol

from tamis.errors import OptionError, unknown_attribute
from tamis.events.event_reader import EventReader
from tamis.events.values import value_reader
from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.expression import Expression
from tamis.relations.merging.distributions import Distribution, UniformRange, WeightedValues
from tamis.relations.merging.event_sets import IndependentAttributes, ListedEvents, ProbabilitySpace
from tamis.schema import Attribute, Enumeration, IntRange, Schema
from tamis.semantics import Semantics
from tamis.types import BOOL, DOUBLE, INT, STRING

if TYPE_CHECKING:
    from tamis.profiles import Profile

FEW = 256  # whole numbers that are listed, because that is faster
_ROUNDING = 10**9  # denominators of shares that are given as floats


class Measure(Protocol):
    """Probabilities of events: `Uniform`, `Profiled` or `Sampled`."""

    schema: Schema

    def probabilities(self, semantics: Semantics) -> ProbabilitySpace:
        """The events as filters of a semantics see them."""
        ...


class Uniform:
    """All values of a domain are equally probable.

    Domains are those of the schema, and truth values; other attributes need `bounds`: a pair (low,
    high) for numbers and timestamps, whose whole numbers are microseconds, and a list of values for
    strings. `presence` is the share of events that have an attribute, for all or by name.
    """

    def __init__(
        self, schema: Schema, *, bounds: Mapping[str, Sequence[Any]] | None = None,
        presence: float | Mapping[str, float] = 1,
    ) -> None:  # fmt: skip
        self.schema = schema
        named = presence if isinstance(presence, Mapping) else {}
        for name in (*(bounds or {}), *named):
            if name not in schema:
                raise OptionError(f"Uniform: {unknown_attribute(name, schema)}")
        shares = {schema[name].path: share for name, share in named.items()}
        usual = 1 if isinstance(presence, Mapping) else presence
        self._presence = [_share(a, shares.get(a.path, usual)) for a in schema.attributes]
        given = {schema[name].path: values for name, values in (bounds or {}).items()}
        self._bounds = [_read_bounds(a, given.get(a.path)) for a in schema.attributes]

    @classmethod
    def around(
        cls, expressions: Iterable[Expression], *, presence: float | Mapping[str, float] = 1
    ) -> "Uniform":
        """A measure with bounds around the constants of some filters, where there is no domain.

        The bounds leave as much room on both sides as the constants lie apart.
        """
        all_of_them = list(expressions)
        constants: dict[Any, set[Any]] = {}
        for expression in all_of_them:
            for part in ast.walk(expression.tree):
                _gather(part, constants)
        schema = all_of_them[0].schema
        bounds = {
            a.name: _surroundings(a, constants.get(a.path, set()))
            for a in schema.attributes
            if a.domain is None and a.type != BOOL and not a.type.is_nested
        }
        return cls(schema, bounds=bounds, presence=presence)

    def probabilities(self, semantics: Semantics) -> IndependentAttributes:
        """The probabilities for one semantics; in total semantics no attribute is missing."""
        return IndependentAttributes(
            [self._distribution(n, semantics) for n in range(len(self.schema))]
        )

    def _distribution(self, position: int, semantics: Semantics) -> Distribution | str:
        attribute, bounds = self.schema.attributes[position], self._bounds[position]
        presence = Fraction(1) if semantics.name == "total" else self._presence[position]
        filling = semantics.defaults[position] if semantics.name == "default" else None
        if bounds is None:
            return (
                f"the uniform measure needs a domain for attribute {attribute.name}; declare one in"
                f' the schema, such as int(1, 100), or give bounds={{"{attribute.name}": ...}}, or '
                "use a profile of events"
            )
        if isinstance(bounds, tuple) and attribute.type == INT and bounds[1] - bounds[0] < FEW:
            bounds = list(range(bounds[0], bounds[1] + 1))
        if isinstance(bounds, tuple):
            return UniformRange(attribute, *bounds, presence, filling)
        missing = presence.denominator - presence.numerator
        weights = [presence.numerator] * len(bounds)
        return _filled(bounds, weights, missing * len(bounds), filling)


def _filled(
    values: Sequence[Any], weights: Sequence[int], missing: int, filling: Any
) -> WeightedValues:
    """Weighted values, with the weight of the missing value on what it is taken for."""
    if filling is None:
        return WeightedValues(values, weights, missing)
    found = dict(zip(values, weights, strict=True))
    found[filling] = found.get(filling, 0) + missing
    return WeightedValues(list(found), list(found.values()))


def _share(attribute: Attribute, share: float) -> Fraction:
    if not 0 <= share <= 1:
        raise OptionError(f"presence of {attribute.name} must be from 0 to 1, not {share!r}")
    return Fraction(share).limit_denominator(_ROUNDING)


def _read_bounds(attribute: Attribute, given: Any) -> tuple[Any, Any] | list[Any] | None:
    match attribute.domain:
        case IntRange(low, high):
            return low, high
        case Enumeration(values):
            return list(values)
    if attribute.type == BOOL:
        return [False, True]
    if given is None:
        return None
    read = value_reader(attribute)
    listed = [value if type(value) is int else read(value) for value in given]
    if attribute.type == STRING and listed:
        return sorted(set(listed))
    if len(listed) == 2 and listed[0] < listed[1]:
        return listed[0], listed[1]
    wanted = "a list of strings" if attribute.type == STRING else "a pair (low, high), low < high"
    raise OptionError(f"bounds of {attribute.name} must be {wanted}, not {given!r}")


def _gather(part: Node, constants: dict[Any, set[Any]]) -> None:
    """Collect the constants that one attribute is compared with."""
    if not isinstance(part, ast.Compare | ast.In | ast.Between | ast.Call | ast.Like):
        return
    named = ast.attributes(part)
    for path in named if len(named) == 1 else ():
        found = constants.setdefault(path, set())
        found.update(n.value for n in ast.walk(part) if isinstance(n, ast.Literal))
        if isinstance(part, ast.Like):
            found.add(part.pattern.strip("%"))


def _surroundings(attribute: Attribute, constants: set[Any]) -> Sequence[Any]:
    if attribute.type == STRING:
        texts = sorted(value for value in constants if isinstance(value, str))
        return [*texts, "\uffff"]  # and another one
    numbers = [float(value) for value in constants if not isinstance(value, str | bool | None)]
    low, high = min(numbers, default=0.0), max(numbers, default=1.0)
    apart = max(high - low, 1.0)
    bounds = low - apart, high + apart
    return bounds if attribute.type == DOUBLE else (int(bounds[0]), int(bounds[1]))


# --- profiles


class Profiled:
    """Values as frequent as in a profile; attributes are taken to be independent.

    An attribute that no event of the profile has cannot be weighed, unless it `may_be_absent`: then
    no event will have it.
    """

    def __init__(self, profile: "Profile", *, may_be_absent: bool = False) -> None:
        self.schema = profile.schema
        self._profile = profile
        self._may_be_absent = may_be_absent

    def probabilities(self, semantics: Semantics) -> IndependentAttributes:
        """The probabilities for one semantics; in total semantics no attribute is missing."""
        return IndependentAttributes(
            [self._distribution(n, semantics) for n in range(len(self.schema))]
        )

    def _distribution(self, position: int, semantics: Semantics) -> Distribution | str:
        name = self.schema.attributes[position].name
        if self.schema.attributes[position].type.is_nested:
            return f"a profile knows only the sizes of {name}; use a sample of events"
        present = self._profile.present(name)
        if not present and not (self._may_be_absent and self._profile.events):
            return f"no event of the profile has attribute {name}; profile more events"
        weights = _counts(self._profile, name, present)
        missing = 0 if semantics.name == "total" else self._profile.events - present
        filling = semantics.defaults[position] if semantics.name == "default" else None
        return _filled(list(weights), list(weights.values()), missing * _ROUNDING, filling)


def _counts(profile: "Profile", name: str, present: int) -> dict[Any, int]:
    """How often values occur, times `_ROUNDING`: frequent ones as counted, others as sampled."""
    drawn: dict[Any, int] = {}
    for value in profile.drawn_values(name):
        drawn[value] = drawn.get(value, 0) + 1
    frequent = {f.value: f.low * _ROUNDING for f in profile.frequent(name)}
    left = max(0, present * _ROUNDING - sum(frequent.values()))
    others = {value: count for value, count in drawn.items() if value not in frequent}
    total = sum(others.values())
    if not total:
        return frequent
    return frequent | {value: left * count // total for value, count in others.items()}


# --- events themselves


class Sampled:
    """Some events, all equally probable: shares among them are exact."""

    def __init__(self, events: Any, schema: Schema) -> None:
        self.schema = schema
        reader = EventReader(schema)
        listed = events.to_pylist() if hasattr(events, "to_pylist") else events
        self.rows = [reader.row(event) for event in listed]
        if not self.rows:
            raise OptionError("a sample of events needs at least one event")

    def probabilities(self, semantics: Semantics) -> ListedEvents:
        """The events as filters see them; total semantics leaves out incomplete events."""
        rows = self.rows
        if semantics.name == "total":
            rows = [row for row in rows if None not in row]
        return ListedEvents([semantics.prepare(row) for row in rows], self.schema)
