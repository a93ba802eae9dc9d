"""How conditions of one attribute merge (MBD paper, section 5.1.1 and Table 1).

A perfect merger of conditions is true of the values of which one of them is: their union, if it can
be said in the words of a rule set. An imperfect one is true of more. Each rule is a function;
``before -> after`` in its docstring shows what it does.

========= ==========================================================================================
rule set  what a merger may be
========= ==========================================================================================
paper     one comparison, or presence: what a predicate of the paper can say
full      also an interval, a list of values, or all but a list
stretches also several of these joined by OR
========= ==========================================================================================
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from tamis.language import ast
from tamis.language.ast import Node
from tamis.predicates.regions import Cut, Region, complement, intersection, whole
from tamis.relations.extents import Extent, condition_of, extent
from tamis.relations.merging.filter_texts import MEMBERS, members
from tamis.schema import Attribute


class Ground(NamedTuple):
    """The attribute whose conditions are merged."""

    attribute: Attribute
    may_miss: bool
    list_size: int = MEMBERS

    @property
    def everything(self) -> Region:
        """All values that it may have."""
        return whole(self.attribute.type, self.attribute.domain)

    @property
    def presence(self) -> Node:
        """What every condition implies that is false of a missing value."""
        return self.condition(Extent(self.everything))

    def extent(self, node: Node) -> Extent | None:
        """The extent of a condition, or none that can be written down."""
        return Extent((), missing=False) if node == ast.FALSE else extent(node, self.attribute)

    def condition(self, found: Extent) -> Node:
        """The canonical condition of an extent."""
        if not self.may_miss:
            found = Extent(found.values, missing=found.values == self.everything)
        return condition_of(found, self.attribute)


# --- perfect: whether the values of a union can be said in one way

Saying = Callable[[Region, Ground], bool]


def presence(values: Region, ground: Ground) -> bool:
    """``x < 5, x >= 5 -> x IS NOT NULL``"""
    return values == ground.everything


def comparison(values: Region, ground: Ground) -> bool:
    """``x = 150, x < 150 -> x <= 150``"""
    if len(values) != 1:
        return False
    everything = ground.everything
    (low, high) = values[0]
    ends = low == everything[0][0] or high == everything[-1][1]
    return ends or members(values, ground.attribute, 1) is not None


def exception(values: Region, ground: Ground) -> bool:
    """``x < 5, x > 5 -> x <> 5``"""
    return members(_outside(values, ground), ground.attribute, 1) is not None


def interval(values: Region, _ground: Ground) -> bool:
    """``x >= 1 AND x <= 5, x >= 4 AND x <= 9 -> x >= 1 AND x <= 9``"""
    return len(values) == 1


def listing(values: Region, ground: Ground) -> bool:
    """``x = 1, x IN (4, 7) -> x IN (1, 4, 7)``"""
    return members(values, ground.attribute, ground.list_size) is not None


def exceptions(values: Region, ground: Ground) -> bool:
    """``x < 5, x = 6, x > 7 -> x NOT IN (5, 7)``"""
    outside = _outside(values, ground)
    return members(outside, ground.attribute, ground.list_size) is not None


def alternatives(_values: Region, _ground: Ground) -> bool:
    """``x < 5, x > 9 -> x < 5 OR x > 9``"""
    return True


def _outside(values: Region, ground: Ground) -> Region:
    return intersection(complement(values), ground.everything)


# --- imperfect: conditions that two of them imply

Widening = Callable[[Extent, Extent, Ground], Extent | None]


def open_ends(a: Extent, b: Extent, ground: Ground) -> Extent | None:
    """``x < 1, x > 5 -> x IS NOT NULL``"""
    found = hull(a, b, ground)
    return found if found is not None and found.values == ground.everything else None


def up_to(a: Extent, b: Extent, ground: Ground) -> Extent | None:
    """``x < 1, x = 5 -> x <= 5``"""
    ends = _ends(a, b)
    return at_most(a, b, ground) if ends and ends[0] == ground.everything[0][0] else None


def down_to(a: Extent, b: Extent, ground: Ground) -> Extent | None:
    """``x > 5, x = 1 -> x >= 1``"""
    ends = _ends(a, b)
    return at_least(a, b, ground) if ends and ends[1] == ground.everything[-1][1] else None


def at_most(a: Extent, b: Extent, ground: Ground) -> Extent | None:
    """``x = 1, x = 5 -> x <= 5``"""
    ends = _ends(a, b)
    return _between(ground.everything[0][0], ends[1], a, b, ground) if ends else None


def at_least(a: Extent, b: Extent, ground: Ground) -> Extent | None:
    """``x = 1, x = 5 -> x >= 1``"""
    ends = _ends(a, b)
    return _between(ends[0], ground.everything[-1][1], a, b, ground) if ends else None


def hull(a: Extent, b: Extent, ground: Ground) -> Extent | None:
    """``x = 1, x = 5 -> x >= 1 AND x <= 5``"""
    ends = _ends(a, b)
    return _between(*ends, a, b, ground) if ends else None


def is_present(a: Extent, b: Extent, ground: Ground) -> Extent | None:
    """``x = 1, x <> 7 -> x IS NOT NULL``"""
    return Extent(ground.everything, a.missing or b.missing)


def dropped(_a: Extent, _b: Extent, ground: Ground) -> Extent | None:
    """``x = 1, x <> 7 ->`` nothing is asked of x"""
    return Extent(ground.everything, missing=True)


def _ends(a: Extent, b: Extent) -> tuple[Cut, Cut] | None:
    stretches = (*a.values, *b.values)
    if not stretches:
        return None
    return min(low for low, _ in stretches), max(high for _, high in stretches)


def _between(low: Cut, high: Cut, a: Extent, b: Extent, ground: Ground) -> Extent:
    values = intersection(((low, high),), ground.everything)
    return Extent(values, a.missing or b.missing)


# --- rule sets


@dataclass(frozen=True)
class Rules:
    """What mergers may be; the first imperfect rules are the closest."""

    name: str
    sayings: tuple[Saying, ...]
    widenings: tuple[Widening, ...]
    takes_tests: bool  # of strings, which the paper has none of

    def can_say(self, found: Extent, ground: Ground) -> bool:
        """Whether an extent is one condition in these words."""
        if found.missing and found.values != ground.everything and self.name == "paper":
            return False
        return any(saying(found.values, ground) for saying in self.sayings)


_PAPER = (presence, comparison, exception)
_FULL = (*_PAPER, interval, listing, exceptions)
_TABLE_1 = (open_ends, up_to, down_to)
RULES = {
    "paper": Rules("paper", _PAPER, (*_TABLE_1, at_least, at_most, is_present, dropped), False),
    "full": Rules("full", _FULL, (hull, is_present, dropped), True),
    "stretches": Rules("stretches", (*_FULL, alternatives), (hull, is_present, dropped), True),
}
