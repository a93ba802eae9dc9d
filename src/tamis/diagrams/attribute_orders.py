"""An order of attributes, learned from filters or from events of the past (MBD, section 3.2).

MBD is short for Li, Hou and Jacobsen, "A unified approach to routing, covering and merging in
publish/subscribe systems based on modified binary decision diagrams" (ICDCS 2005).

The predicates that two filters have in common should be at the bottom of their diagrams, where
nodes are shared. An attribute should be low if many filters test it, if they often test it in the
same way, and if they test it together with attributes that are already below it. Before there are
filters, a profile of events gives the same statistics of the values.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from tamis.language import ast
from tamis.language.ast import Node
from tamis.names import Path

if TYPE_CHECKING:  # Arrow is heavy
    from tamis.profiles import Profile

FIRST_REORDER = 1_000  # filters after which an order is learned; then again at every doubling
HISTORY = 20_000  # filters whose predicates are counted


def attribute_order(history: Iterable[Iterable[Node]], positions: dict[Path, int]) -> list[int]:
    """The positions of all attributes, top first; `history` has the predicates of each filter."""
    uses: dict[int, Counter[Node]] = defaultdict(Counter)
    together: Counter[tuple[int, int]] = Counter()
    tested: Counter[int] = Counter()
    filters = 0
    for predicates in history:
        filters += 1
        seen = set()
        for predicate in predicates:
            for path in ast.attributes(predicate):
                uses[positions[path]][predicate] += 1
                seen.add(positions[path])
        tested.update(seen)
        together.update((a, b) for a in seen for b in seen if a != b)
    # The chance that two filters share a predicate on the attribute: its frequency and its spread.
    shared = {a: sum(n * n for n in uses[a].values()) / max(1, filters) ** 2 for a in tested}
    return _top_down(shared, lambda a, below: together[a, below] / tested[below], positions)


def profiled_order(profile: "Profile", positions: dict[Path, int]) -> list[int]:
    """The same by a profile: which attributes and values events have, and which together."""
    names = {positions[a.path]: a.name for a in profile.schema.attributes if a.path in positions}
    present = {a: profile.present(name) for a, name in names.items()}
    shared = {a: _shared_values(profile, name) for a, name in names.items() if present[a]}

    def company(a: int, below: int) -> float:
        return profile.together(names[a], names[below]) * profile.events / present[below]

    return _top_down(shared, company, positions)


def _shared_values(profile: "Profile", name: str) -> float:
    """The chance that two events have the same value of an attribute."""
    frequent = [frequent.low for frequent in profile.frequent(name)]
    rest = profile.present(name) - sum(frequent)
    others = max(1, profile.distinct(name) - len(frequent))  # assumed to be equally frequent
    return (sum(n * n for n in frequent) + rest * rest / others) / profile.events**2


def _top_down(
    shared: dict[int, float], company: Callable[[int, int], float], positions: dict[Path, int]
) -> list[int]:
    """The most shared attribute at the bottom; above it what is shared and often with it."""
    bottom_up: list[int] = []
    left = set(shared)
    while left:
        below = bottom_up[-1] if bottom_up else None

        def worth(a: int, below: int | None = below) -> tuple[float, int]:
            return shared[a] * (1 + (0.0 if below is None else company(a, below))), -a

        best = max(left, key=worth)
        left.remove(best)
        bottom_up.append(best)
    never = [a for a in positions.values() if a not in shared]
    return never + bottom_up[::-1]


def ranks_of(order: list[int]) -> list[int]:
    """The rank of each position in an order."""
    ranks = [0] * len(order)
    for place, position in enumerate(order):
        ranks[position] = place
    return ranks
