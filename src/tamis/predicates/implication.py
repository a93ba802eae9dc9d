"""What the truth of one predicate says about another predicate on the same attribute.

Three facts about canonical predicates u and v (BDD, section 6), each for every event that has the
attribute:

* u implies v: ``n = 10`` and ``n > 8``
* u excludes v: ``n < 5`` and ``n > 8``; at most one is true
* u and v exhaust the values: ``n < 10`` and ``n > 8``; at least one is true

An event without the attribute makes both false, except for ``IS NULL``: there the first two facts
still hold, the third does not. A fact that is not found may still hold (regular expressions are not
compared with each other); one that is found always holds.

BDD is Campailla et al., "Efficient filtering in publish-subscribe systems using binary decision
diagrams" (ICSE 2001).
"""

from typing import NamedTuple

from tamis.bounded_caches import remembered
from tamis.language import ast
from tamis.language.ast import Node
from tamis.names import Path
from tamis.predicates.classification import Presence, StringTest, classify, plain_attribute
from tamis.predicates.value_orders import ValueOrder, value_order
from tamis.predicates.value_sets import ValueSet, all_values, holds_of, value_set
from tamis.schema import Domain

MOST_LISTED = 10_000  # values that a test of strings is tried with


class Facts(NamedTuple):
    """What holds between two predicates u and v."""

    implies: bool = False
    implied: bool = False  # v implies u
    excludes: bool = False
    exhausts: bool = False

    @property
    def complements(self) -> bool:
        """Exactly one of the two is true."""
        return self.excludes and self.exhausts

    def mirrored(self) -> "Facts":
        """The facts between v and u."""
        return Facts(self.implied, self.implies, self.excludes, self.exhausts)


NOTHING = Facts()


def implies(u: Node, v: Node, domain: Domain | None = None) -> bool:
    """Whether every event that makes u true makes v true."""
    sets = _value_sets(u, v, domain)
    # Not by `facts`, which also finds out what two sets have in common: that takes long lists long.
    return facts(u, v, domain).implies if sets is None else sets[0].issubset(sets[1])


def excludes(u: Node, v: Node, domain: Domain | None = None) -> bool:
    """Whether no event makes both true."""
    return facts(u, v, domain).excludes


def complements(u: Node, v: Node, domain: Domain | None = None) -> bool:
    """Whether every event that has the attribute makes exactly one of the two true."""
    return facts(u, v, domain).complements


def attribute_of(predicate: Node) -> Path | None:
    """The attribute that a predicate tests as it is, None if it tests anything else."""
    tested = plain_attribute(predicate)
    return None if tested is None else tested.path


def _value_sets(u: Node, v: Node, domain: Domain | None) -> tuple[ValueSet, ValueSet] | None:
    """The values for which two predicates on one attribute are true, if they can be listed."""
    tested, other = plain_attribute(u), plain_attribute(v)
    if tested is None or tested != other or _is_presence(u) or _is_presence(v):
        return None
    order = value_order(tested.type, domain)
    first, second = value_set(u, order), value_set(v, order)
    return None if first is None or second is None else (first, second)


def _is_presence(predicate: Node) -> bool:
    return isinstance(classify(predicate), Presence)


@remembered(32_000_000)
def facts(u: Node, v: Node, domain: Domain | None = None) -> Facts:
    """All facts known between two canonical predicates; `domain` is that of their attribute."""
    if u == v:
        return Facts(implies=True, implied=True)
    tested, other = plain_attribute(u), plain_attribute(v)
    if tested is None or tested != other:
        return NOTHING
    if _is_presence(v):
        return _with_presence(u, v)
    if _is_presence(u):
        return _with_presence(v, u).mirrored()
    order = value_order(tested.type, domain)
    first, second = value_set(u, order), value_set(v, order)
    if first is not None and second is not None:
        return Facts(
            implies=first.issubset(second),
            implied=second.issubset(first),
            excludes=not first.intersection(second),
            exhausts=all_values(order).difference(first).issubset(second),
        )
    if first is not None:
        return _values_and_test(first, v, order)
    if second is not None:
        return _values_and_test(second, u, order).mirrored()
    return _tests(u, v)


def _with_presence(u: Node, presence: Node) -> Facts:
    """u and ``IS NULL`` or ``IS NOT NULL``."""
    if _is_presence(u):  # the other of the two
        return Facts(excludes=True, exhausts=True)
    if isinstance(presence, ast.IsNull):
        return Facts(excludes=True)
    return Facts(implies=True, exhausts=True)


def _values_and_test(values: ValueSet, test: Node, order: ValueOrder) -> Facts:
    """A predicate that is true of some strings, or of all except some, and a test of strings."""
    if ast.has_clock(test):
        return NOTHING  # its answers are others at another time
    some = values.members(order, MOST_LISTED)
    if some is not None:
        answers = [holds_of(test)(value) for value in some]
        return Facts(implies=all(answers), excludes=not any(answers))
    exceptions = all_values(order).difference(values).members(order, MOST_LISTED)
    if exceptions is None:
        return NOTHING
    answers = [holds_of(test)(value) for value in exceptions]
    return Facts(implied=not any(answers), exhausts=all(answers))


def _tests(u: Node, v: Node) -> Facts:
    """Two tests of strings."""
    bare_u = u.operand if isinstance(u, ast.Not) else u
    bare_v = v.operand if isinstance(v, ast.Not) else v
    if bare_u == bare_v:
        return Facts(excludes=True, exhausts=True)
    found = _positive_tests(bare_u, bare_v)
    if isinstance(u, ast.Not):
        # not u implies v iff u and v exhaust; not u excludes v iff v implies u
        found = Facts(found.exhausts, found.excludes, found.implied, found.implies)
    if isinstance(v, ast.Not):
        found = Facts(found.excludes, found.exhausts, found.implies, found.implied)
    return found


def _positive_tests(u: Node, v: Node) -> Facts:
    one, other = classify(u), classify(v)
    if not isinstance(one, StringTest) or not isinstance(other, StringTest):
        return NOTHING
    forward, backward = _contains_test(one, other), _contains_test(other, one)
    ends = one.function == other.function != "contains"
    return Facts(forward, backward, excludes=ends and not forward and not backward)


def _contains_test(one: StringTest, other: StringTest) -> bool:
    """Whether a test of strings implies another because its text has the other's text in it."""
    match other.function:
        case "contains":
            return other.text in one.text
        case "startswith":
            return one.function == "startswith" and one.text.startswith(other.text)
        case _:
            return one.function == "endswith" and one.text.endswith(other.text)
