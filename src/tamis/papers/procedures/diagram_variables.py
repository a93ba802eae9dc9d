"""Shared diagrams with several kinds of variables (BDD, sections 6 and 7).

BDD says that each distinct atom is a variable, and that ``<=`` abbreviates ``= OR <``; it counts
208 atoms where each of six operators makes its own. tamis' engine pushes NOT down to the
predicates, because NULL needs that, so a predicate and its complement are two variables. How much a
restriction can remove depends on that choice, which is measured here:

* ``literals``: the predicates of the normal form; a predicate and its complement are two variables
* ``operators``: the 208 atoms as written; ``x = 1`` and ``x <> 1`` are two variables, NOT negates
* ``atoms``: as ``operators``, but a predicate and its complement are one variable
* ``comparisons``: the atoms of section 4 only, ``= < >``; all others are made of these
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import combinations

import numpy as np

from tamis.diagrams.diagram import Array, Diagram
from tamis.diagrams.restriction import conjunction
from tamis.events.event_reader import Row
from tamis.kernels.bdd_evaluation import eval_bdd, true_slots
from tamis.kernels.bdd_operations import DO_AND, DO_NOT, DO_OR
from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.expression import Expression
from tamis.language.normal_form import normalize
from tamis.predicates.implication import Facts, attribute_of, facts
from tamis.predicates.index import PredicateIndex
from tamis.schema import Schema

MAX_NODES = 50_000_000
COMPLEMENTS = {"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">"}
FACTS = ("implies", "excludes", "exhausts")  # the three parts of d(A)

Steps = list[int | Node]  # a program in postfix order, with atoms instead of variables


def _literal(atom: Node, *, negated: bool) -> Steps:
    return [normalize(ast.Not(atom) if negated else atom)]


def _operator(atom: Node, *, negated: bool) -> Steps:
    return [atom, DO_NOT] if negated else [atom]


def _atom(atom: Node, *, negated: bool) -> Steps:
    if isinstance(atom, ast.Compare) and atom.op in {"<>", ">=", ">"}:
        return _operator(replace(atom, op=COMPLEMENTS[atom.op]), negated=not negated)
    return _operator(atom, negated=negated)


def _comparison(atom: Node, *, negated: bool) -> Steps:
    match atom:
        case ast.Compare("<>", _, _):
            return _operator(replace(atom, op="="), negated=not negated)
        case ast.Compare(("<=" | ">=") as op, _, _):
            either: Steps = [replace(atom, op="="), replace(atom, op=op[0]), DO_OR]
            return [*either, DO_NOT] if negated else either
    return _operator(atom, negated=negated)


ENCODINGS: Mapping[str, Callable[..., Steps]] = {
    "literals": _literal, "operators": _operator, "atoms": _atom, "comparisons": _comparison,
}  # fmt: skip


class VariableDiagram:
    """All queries in one diagram, as they are and restricted, with one kind of variables.

    Queries are boolean combinations of comparisons and tests of strings, and messages are total.
    """

    def __init__(self, schema: Schema, encoding: str, used: Sequence[str] = FACTS) -> None:
        self._schema = schema
        self._encode = ENCODINGS[encoding]
        self._used = used
        self._diagram = Diagram(MAX_NODES)
        self._variables: dict[Node, int] = {}  # by atom
        self._positions: dict[Node, int] = {}  # of the attributes of atoms
        self._facts: dict[tuple[Node, Node], Facts] = {}  # what holds between two atoms
        self._predicates = PredicateIndex(schema)
        self._numbers: dict[int, int] = {}  # predicate -> variable
        self.plain: list[int] = []  # the node of each query
        self.restricted: list[int] = []

    @property
    def variables(self) -> int:
        return len(self._variables)

    def add(self, query: Expression) -> None:
        """Add a query, and restrict it by the dependency function of its own atoms."""
        steps = [*_postfix(query.tree, self._encode, negated=False)]
        program = [one if isinstance(one, int) else self._variable(one) for one in steps]
        root = self._diagram.build(np.array(program, np.int64))
        self.plain.append(root)
        clauses = self._clauses(dict.fromkeys(one for one in steps if not isinstance(one, int)))
        if clauses:
            root = self._diagram.restrict_by(root, np.array(conjunction(clauses), np.int64))
        self.restricted.append(root)

    def nodes(self) -> tuple[int, int]:
        """How many nodes the queries need, as they are and restricted."""
        reachable = self._diagram.reachable
        return len(reachable(self.plain)), len(reachable(self.restricted))

    def matches(self, rows: Sequence[Row]) -> list[Array]:
        """The numbers of the restricted queries that are true of each message.

        Afterwards only the restricted queries are left.
        """
        roots = np.array(self.restricted, np.int32)
        self._diagram.collect(roots)
        self.plain, self.restricted = [], roots.tolist()
        value = np.zeros(self._diagram.nodes + 2, np.uint8)
        found = []
        for row in rows:
            truth = np.zeros(self._diagram.variables, np.uint8)
            truth[[self._numbers[n] for n in self._predicates.satisfied(row).tolist()]] = 1
            eval_bdd(truth, self._diagram.variable_ranges, self._diagram.store, value)
            slots = np.empty(roots.size + 1, np.int32)
            found.append(slots[: true_slots(value, roots, slots)])
        return found

    def _variable(self, atom: Node) -> int:
        known = self._variables.get(atom)
        if known is not None:
            return known
        predicate = normalize(atom)
        path = attribute_of(predicate)
        if path is None:
            raise TypeError(f"{atom} does not test an attribute as it is")
        position = self._positions[atom] = self._schema.positions[path]
        variable = self._diagram.new_variable((position << 40) + len(self._variables))
        self._numbers[self._predicates.intern(predicate)] = variable
        self._variables[atom] = variable
        return variable

    def _known(self, p: Node, q: Node) -> Facts:
        found = self._facts.get((p, q))
        if found is None:
            found = self._facts[p, q] = facts(normalize(p), normalize(q))
        return found

    def _clauses(self, atoms: Mapping[Node, None]) -> list[list[int]]:
        """The dependency function of some atoms (BDD, section 6), clause by clause."""
        clauses: list[list[int]] = []
        for p, q in combinations(atoms, 2):
            if self._positions[p] != self._positions[q]:
                continue
            known, u, v = self._known(p, q), self._variables[p], self._variables[q]
            if "implies" in self._used:
                clauses += [[u, DO_NOT, v, DO_OR]] * known.implies
                clauses += [[v, DO_NOT, u, DO_OR]] * known.implied
            if "excludes" in self._used:
                clauses += [[u, DO_NOT, v, DO_NOT, DO_OR]] * known.excludes
            if "exhausts" in self._used:
                clauses += [[u, v, DO_OR]] * known.exhausts
        return clauses


def _postfix(tree: Node, encode: Callable[..., Steps], *, negated: bool) -> Iterator[int | Node]:
    match tree:
        case ast.Not(operand):
            yield from _postfix(operand, encode, negated=not negated)
        case ast.And(items) | ast.Or(items):
            # NOT goes down to the atoms by De Morgan's laws.
            operator = DO_AND if isinstance(tree, ast.And) != negated else DO_OR
            for number, item in enumerate(items):
                yield from _postfix(item, encode, negated=negated)
                if number:
                    yield operator
        case _:
            yield from encode(tree, negated=negated)
