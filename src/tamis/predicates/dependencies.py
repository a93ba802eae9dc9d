"""The table of variable dependencies: complete and minimal.

It is that of section 4.4 and Fig. 8 of Li et al., "A unified approach to routing, covering and
merging in publish/subscribe systems based on modified binary decision diagrams" (ICDCS 2005; MBD
for short).

A dependency u -> v says that predicate u implies predicate v. The table holds only those that do
not follow from others (the transitive reduction); the rest is found by following them. It is kept
minimal as predicates come and go. Predicates that are true of the same values form one class with
one representative, and only representatives have dependencies.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator

from tamis.language.ast import Node
from tamis.names import Path
from tamis.predicates.implication import Facts, attribute_of, facts
from tamis.schema import Domain, Schema


class Dependencies:
    """The minimal dependencies between predicates of one schema.

    `subject` is the attribute of a predicate and `known` what holds between two of one attribute,
    for tables of other formulas than single predicates.
    """

    def __init__(
        self,
        schema: Schema,
        subject: Callable[[Node], Path | None] = attribute_of,
        known: Callable[[Node, Node, Domain | None], Facts] = facts,
    ) -> None:
        self._schema = schema
        self._subject = subject
        self._known = known
        self._weaker: dict[Node, set[Node]] = {}  # what a representative implies, minimal
        self._stronger: dict[Node, set[Node]] = {}  # the same, seen from the other side
        self._equal: dict[Node, list[Node]] = {}  # representative -> its class, itself first
        self._representative: dict[Node, Node] = {}
        self._weakest: dict[Path, set[Node]] = defaultdict(set)  # those that imply no other
        self._strongest: dict[Path, set[Node]] = defaultdict(set)

    def __len__(self) -> int:
        """How many dependencies the table holds."""
        inside = sum(len(members) - 1 for members in self._equal.values())
        return sum(map(len, self._weaker.values())) + 2 * inside

    def __contains__(self, predicate: Node) -> bool:
        return predicate in self._representative

    def __iter__(self) -> Iterator[tuple[Node, Node]]:
        """The dependencies (u, v): u implies v."""
        for u, weaker in self._weaker.items():
            for v in weaker:
                yield u, v
        for representative, members in self._equal.items():
            for other in members[1:]:
                yield representative, other
                yield other, representative

    def add(self, predicate: Node) -> None:
        """Add a new predicate; one that tests no single attribute depends on no other."""
        path = self._subject(predicate)
        attribute = None if path is None else self._schema.find(path)
        domain = attribute.domain if attribute else None
        above = self._closest(predicate, upward=True, path=path, domain=domain)
        below = self._closest(predicate, upward=False, path=path, domain=domain)
        same = above & below
        if same:
            (representative,) = same
            self._equal[representative].append(predicate)
            self._representative[predicate] = representative
            return
        self._representative[predicate] = predicate
        self._equal[predicate] = [predicate]
        for u in below:  # what went past the new one now goes through it
            for v in self._weaker[u] & above:
                self._cut(u, v)
        self._weaker[predicate], self._stronger[predicate] = set(), set()
        if path is not None:
            self._weakest[path].add(predicate)
            self._strongest[path].add(predicate)
        for v in above:
            self._join(predicate, v)
        for u in below:
            self._join(u, predicate)

    def remove(self, predicate: Node) -> None:
        """Remove a predicate."""
        representative = self._representative.pop(predicate)
        members = self._equal[representative]
        members.remove(predicate)
        if representative != predicate:
            return
        if members:
            self._rename(predicate, members[0])
            return
        del self._equal[predicate]
        above, below = set(self._weaker[predicate]), set(self._stronger[predicate])
        for v in above:
            self._cut(predicate, v)
        for u in below:
            self._cut(u, predicate)
        path = self._subject(predicate)
        if path is not None:
            self._weakest[path].discard(predicate)
            self._strongest[path].discard(predicate)
        del self._weaker[predicate], self._stronger[predicate]
        for u in below:  # what went only through it
            for v in above:
                if v not in self._reachable(u, self._weaker):
                    self._join(u, v)

    def implied_by(self, predicate: Node) -> set[Node]:
        """All other predicates that a predicate implies."""
        return self._closure(predicate, self._weaker)

    def that_imply(self, predicate: Node) -> set[Node]:
        """All other predicates that imply a predicate."""
        return self._closure(predicate, self._stronger)

    # --- inside

    def _closure(self, predicate: Node, edges: dict[Node, set[Node]]) -> set[Node]:
        representative = self._representative[predicate]
        found = self._reachable(representative, edges) | {representative}
        return {member for one in found for member in self._equal[one]} - {predicate}

    @staticmethod
    def _reachable(start: Node, edges: dict[Node, set[Node]]) -> set[Node]:
        found: set[Node] = set()
        waiting = list(edges[start])
        while waiting:
            one = waiting.pop()
            if one not in found:
                found.add(one)
                waiting.extend(edges[one])
        return found

    def _closest(
        self, new: Node, *, upward: bool, path: Path | None, domain: Domain | None
    ) -> set[Node]:
        """The strongest representatives that a new one implies (or the weakest that imply it).

        What it implies is closed upward, so the search starts from the weakest and goes on only
        from those that it implies.
        """
        if path is None:
            return set()
        ends = self._weakest if upward else self._strongest
        edges = self._stronger if upward else self._weaker
        found: set[Node] = set()
        seen: set[Node] = set()
        waiting = list(ends[path])
        while waiting:
            one = waiting.pop()
            if one in seen:
                continue
            seen.add(one)
            known = self._known(new, one, domain)
            if known.implies if upward else known.implied:
                found.add(one)
                waiting.extend(edges[one])
        return {one for one in found if not edges[one] & found}

    def _join(self, u: Node, v: Node) -> None:
        self._weaker[u].add(v)
        self._stronger[v].add(u)
        path = self._subject(u)
        if path is not None:
            self._weakest[path].discard(u)
            self._strongest[path].discard(v)

    def _cut(self, u: Node, v: Node) -> None:
        self._weaker[u].remove(v)
        self._stronger[v].remove(u)
        path = self._subject(u)
        if path is not None:
            if not self._weaker[u]:
                self._weakest[path].add(u)
            if not self._stronger[v]:
                self._strongest[path].add(v)

    def _rename(self, old: Node, new: Node) -> None:
        """Let another member of a class represent it."""
        self._equal[new] = self._equal.pop(old)
        for member in self._equal[new]:
            self._representative[member] = new
        for edges, mirror in ((self._weaker, self._stronger), (self._stronger, self._weaker)):
            edges[new] = edges.pop(old)
            for other in edges[new]:
                mirror[other].remove(old)
                mirror[other].add(new)
        path = self._subject(old)
        if path is not None:
            for ends in (self._weakest[path], self._strongest[path]):
                if old in ends:
                    ends.remove(old)
                    ends.add(new)
