"""How conditions on one attribute merge (MBD, section 5.1.1 and Table 1).

A perfect merger of conditions is true of the values of which one of them is: their union, if a rule
set can write it as one condition. An imperfect merger is true of more values. Each rule is a
function whose docstring shows ``before -> after``.

========= ==========================================================================================
rule set  what a merger may be
========= ==========================================================================================
paper     one comparison, or presence: what a predicate of the paper can be
full      also an interval, a list of values, or all values except a list
stretches also several of these joined by OR
========= ==========================================================================================

MBD is Li, Hou, Jacobsen, "A unified approach to routing, covering and merging in publish/subscribe
systems based on modified binary decision diagrams" (ICDCS 2005).
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from tamis.language.ast import Node
from tamis.predicates.value_orders import Cut, ValueOrder, order_of
from tamis.predicates.value_sets import ValueSet, all_values, condition_of, value_set
from tamis.relations.merging.filter_texts import MOST_MEMBERS
from tamis.schema import Attribute


class MergedAttribute(NamedTuple):
    """The attribute whose conditions are merged."""

    attribute: Attribute
    may_miss: bool
    list_size: int = MOST_MEMBERS

    @property
    def order(self) -> ValueOrder:
        """The order of its values."""
        return order_of(self.attribute)

    @property
    def everything(self) -> ValueSet:
        """All values that it may have, without the missing one."""
        return all_values(self.order)

    @property
    def presence(self) -> Node:
        """What every condition implies that is false of the missing value."""
        return self.condition(self.everything)

    def values(self, node: Node) -> ValueSet | None:
        """The value set of a condition, None if it has none."""
        return value_set(node, self.order)

    def condition(self, values: ValueSet) -> Node:
        """The condition of a value set."""
        if not self.may_miss:
            whole = values.intervals == self.everything.intervals
            values = ValueSet(values.intervals, missing=whole)
        return condition_of(values, self.attribute)

    def is_list(self, values: ValueSet, most: int) -> bool:
        """Whether a set has no more values than some number."""
        return values.members(self.order, most) is not None


# --- perfect mergers: whether one condition of a certain kind says what a union of values is

PerfectRule = Callable[[ValueSet, MergedAttribute], bool]


def presence(values: ValueSet, attribute: MergedAttribute) -> bool:
    """``x < 5, x >= 5 -> x IS NOT NULL``"""
    return values.intervals == attribute.everything.intervals


def comparison(values: ValueSet, attribute: MergedAttribute) -> bool:
    """``x = 150, x < 150 -> x <= 150``"""
    if len(values.intervals) != 1:
        return False
    everything = attribute.everything.intervals
    low, high = values.intervals[0]
    reaches_end = low == everything[0][0] or high == everything[-1][1]
    return reaches_end or attribute.is_list(values, 1)


def exception(values: ValueSet, attribute: MergedAttribute) -> bool:
    """``x < 5, x > 5 -> x <> 5``"""
    return attribute.is_list(attribute.everything.difference(values), 1)


def interval(values: ValueSet, _attribute: MergedAttribute) -> bool:
    """``x >= 1 AND x <= 5, x >= 4 AND x <= 9 -> x >= 1 AND x <= 9``"""
    return len(values.intervals) == 1


def listing(values: ValueSet, attribute: MergedAttribute) -> bool:
    """``x = 1, x IN (4, 7) -> x IN (1, 4, 7)``"""
    return attribute.is_list(values, attribute.list_size)


def exceptions(values: ValueSet, attribute: MergedAttribute) -> bool:
    """``x < 5, x = 6, x > 7 -> x NOT IN (5, 7)``"""
    return attribute.is_list(attribute.everything.difference(values), attribute.list_size)


def alternatives(_values: ValueSet, _attribute: MergedAttribute) -> bool:
    """``x < 5, x > 9 -> x < 5 OR x > 9``"""
    return True


# --- imperfect mergers: conditions that two conditions imply

ImperfectRule = Callable[[ValueSet, ValueSet, MergedAttribute], ValueSet | None]


def open_ends(a: ValueSet, b: ValueSet, attribute: MergedAttribute) -> ValueSet | None:
    """``x < 1, x > 5 -> x IS NOT NULL``"""
    found = hull(a, b, attribute)
    return found if found is not None and presence(found, attribute) else None


def up_to(a: ValueSet, b: ValueSet, attribute: MergedAttribute) -> ValueSet | None:
    """``x < 1, x = 5 -> x <= 5``"""
    ends = _ends(a, b)
    begins = ends and ends[0] == attribute.everything.intervals[0][0]
    return at_most(a, b, attribute) if begins else None


def down_to(a: ValueSet, b: ValueSet, attribute: MergedAttribute) -> ValueSet | None:
    """``x > 5, x = 1 -> x >= 1``"""
    ends = _ends(a, b)
    finishes = ends and ends[1] == attribute.everything.intervals[-1][1]
    return at_least(a, b, attribute) if finishes else None


def at_most(a: ValueSet, b: ValueSet, attribute: MergedAttribute) -> ValueSet | None:
    """``x = 1, x = 5 -> x <= 5``"""
    ends = _ends(a, b)
    return _between(attribute.order.start, ends[1], a, b, attribute) if ends else None


def at_least(a: ValueSet, b: ValueSet, attribute: MergedAttribute) -> ValueSet | None:
    """``x = 1, x = 5 -> x >= 1``"""
    ends = _ends(a, b)
    return _between(ends[0], attribute.order.end, a, b, attribute) if ends else None


def hull(a: ValueSet, b: ValueSet, attribute: MergedAttribute) -> ValueSet | None:
    """``x = 1, x = 5 -> x >= 1 AND x <= 5``"""
    ends = _ends(a, b)
    return _between(*ends, a, b, attribute) if ends else None


def is_present(a: ValueSet, b: ValueSet, attribute: MergedAttribute) -> ValueSet | None:
    """``x = 1, x <> 7 -> x IS NOT NULL``"""
    return ValueSet(attribute.everything.intervals, a.missing or b.missing)


def dropped(_a: ValueSet, _b: ValueSet, attribute: MergedAttribute) -> ValueSet | None:
    """``x = 1, x <> 7 ->`` x is not tested"""
    return ValueSet(attribute.everything.intervals, missing=True)


def _ends(a: ValueSet, b: ValueSet) -> tuple[Cut, Cut] | None:
    both = a.union(b).intervals
    return (both[0][0], both[-1][1]) if both else None


def _between(low: Cut, high: Cut, a: ValueSet, b: ValueSet, attribute: MergedAttribute) -> ValueSet:
    found = ValueSet(((low, high),)).intersection(attribute.everything)
    return ValueSet(found.intervals, a.missing or b.missing)


# --- rule sets


@dataclass(frozen=True)
class RuleSet:
    """What mergers may be; the first imperfect rules give the closest mergers."""

    name: str
    perfect: tuple[PerfectRule, ...]
    imperfect: tuple[ImperfectRule, ...]
    takes_tests: bool  # of strings, which the paper does not have

    def can_write(self, values: ValueSet, attribute: MergedAttribute) -> bool:
        """Whether some rule can write a value set as one condition."""
        if values.missing and not presence(values, attribute) and self.name == "paper":
            return False
        return any(rule(values, attribute) for rule in self.perfect)


_PAPER = (presence, comparison, exception)
_FULL = (*_PAPER, interval, listing, exceptions)
_TABLE_1 = (open_ends, up_to, down_to)
RULES = {
    "paper": RuleSet("paper", _PAPER, (*_TABLE_1, at_least, at_most, is_present, dropped), False),
    "full": RuleSet("full", _FULL, (hull, is_present, dropped), True),
    "stretches": RuleSet("stretches", (*_FULL, alternatives), (hull, is_present, dropped), True),
}
