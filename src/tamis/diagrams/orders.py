"""An order of attributes from the history of subscriptions (MBD, section 3.2).

What two subscriptions have in common should be at the bottom of their diagrams, where it is shared.
Three things speak for putting an attribute low: it is asked often, what is asked of it is often the
same, and it is asked together with those that are below it already.
"""

from collections import Counter, defaultdict
from collections.abc import Iterable

from tamis.language import ast
from tamis.language.ast import Node


def attribute_order(
    history: Iterable[Iterable[Node]], positions: dict[tuple[str, ...], int]
) -> list[int]:
    """The positions of all attributes, top first; `history` holds the predicates of filters."""
    uses: dict[int, Counter[Node]] = defaultdict(Counter)
    together: Counter[tuple[int, int]] = Counter()
    asked: Counter[int] = Counter()
    filters = 0
    for predicates in history:
        filters += 1
        seen = set()
        for predicate in predicates:
            for path in ast.attributes(predicate):
                uses[positions[path]][predicate] += 1
                seen.add(positions[path])
        asked.update(seen)
        together.update((a, b) for a in seen for b in seen if a != b)
    # The chance that two filters have a predicate of the attribute in common: frequency and spread.
    shared = {a: sum(n * n for n in uses[a].values()) / max(1, filters) ** 2 for a in asked}
    bottom_up: list[int] = []
    left = set(asked)
    while left:
        below = bottom_up[-1] if bottom_up else None

        def worth(a: int, below: int | None = below) -> tuple[float, int]:
            company = 0.0 if below is None else together[a, below] / asked[below]
            return shared[a] * (1 + company), -a

        best = max(left, key=worth)
        left.remove(best)
        bottom_up.append(best)
    never = [a for a in positions.values() if a not in asked]
    return never + bottom_up[::-1]
