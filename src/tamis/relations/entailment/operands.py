"""The operands that the predicates of some normal forms test, and the forms as formulas over them.

Each operand has a set of cells, and a predicate is a set of cells of one operand. The cells of
attributes combine freely: for every choice of one cell per attribute there is an event. A computed
operand depends on attributes, its *inputs*. Which of its cells go together with theirs is known
only where the inputs have few values; elsewhere more combinations are allowed than there are.

A test for elements of an array is a formula over several operands (`array_elements`).

A `Formula` is True, False, ``(operand, mask)``, or ``(ALL, items)`` or ``(ANY, items)``.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from tamis.language import ast
from tamis.language.arithmetic import order_key
from tamis.language.ast import Node
from tamis.language.evaluation import Evaluator, compile_tree, compile_value
from tamis.language.negations import is_null
from tamis.language.nulls import needed_attributes
from tamis.names import Path
from tamis.predicates.classification import ElementTest, classify
from tamis.predicates.event_space import EventSpace
from tamis.predicates.value_orders import order_of, value_order
from tamis.relations.entailment.array_elements import FALSE, TRUE, ArrayCells, Member, membership
from tamis.relations.entailment.cells import (
    Cells,
    IntervalCells,
    ListedCells,
    OutcomeCells,
    StringCells,
)
from tamis.relations.entailment.string_languages import TooManySteps
from tamis.relations.entailment.string_lengths import LENGTHS, measured, without_lengths
from tamis.relations.entailment.value_tests import Pair, ValueTest, value_test
from tamis.schema import Attribute, Domain, Enumeration, IntRange
from tamis.types import BOOL, DOUBLE, STRING

ALL, ANY = -1, -2
Formula = bool | tuple[int, Any]
Key = Node | Pair | Member
OpenCells = list[int]  # the cells of each operand that are still possible, as a mask

SMALL_DOMAIN = 256  # whole numbers of a domain that are tried one by one
MOST_BITS = 2**28  # of all masks together
MOST_TRIALS = 200_000  # tests of values of small domains


class Operand:
    """One operand; `missing` is the bit of the cell "no value", 0 if it always has a value."""

    __slots__ = (
        "cells", "compute", "fallible", "full", "inputs", "key", "missing", "needed", "position",
        "timed",
    )  # fmt: skip

    def __init__(self, key: Key, cells: Cells, *, missing: bool) -> None:
        self.key = key
        self.cells = cells
        self.missing = 1 << cells.count if missing else 0
        self.full = (1 << cells.count) - 1 | self.missing
        self.position = -1  # of an attribute in the schema
        self.inputs: tuple[int, ...] = ()  # the numbers of the attributes it is computed from
        self.needed: tuple[int, ...] = ()  # those without which it has no value
        self.compute: Evaluator = _nothing
        self.fallible = False  # it may be null though all its inputs have values
        self.timed = False  # its inputs do not decide on its value: it depends on the time as well


class Operands:
    """The operands of some normal forms over one event space, by their numbers."""

    def __init__(self, forms: Iterable[Node], space: EventSpace) -> None:
        self.space = space
        self.all: list[Operand] = []
        self.computed: list[int] = []
        self._numbers: dict[Key, int] = {}
        self._leaves: dict[Node, tuple[int, int] | bool] = {}
        self._elements: dict[Node, ElementTest] = {}
        self._trials = 0
        self._build(forms)
        self._full = [operand.full for operand in self.all]

    def formula(self, form: Node, *, positive: bool = True) -> Formula:
        """The formula of a form, or of the condition that the form is not true."""
        if isinstance(form, ast.And | ast.Or):
            items = [self.formula(item, positive=positive) for item in form.items]
            kind = ALL if isinstance(form, ast.And) == positive else ANY
            return chain(kind, items, self._full)
        if isinstance(form, ast.Literal):
            return (form.value is True) == positive
        if form in self._elements:
            return self._element_formula(self._elements[form], positive=positive)
        leaf = self._leaves[form]
        if isinstance(leaf, bool):
            return leaf == positive
        number, mask = leaf
        full = self.all[number].full
        mask = mask if positive else full & ~mask
        if not mask:
            return False
        return True if mask == full else (number, mask)

    def _element_formula(self, test: ElementTest, *, positive: bool) -> Formula:
        """A test for elements: one of them is there; or none of them is, nor a null."""
        wanted = FALSE if test.negated else TRUE
        items: list[Formula] = []
        for member in members_of(test):
            number = self._numbers[member]
            full = self.all[number].full
            items.append((number, wanted if positive else full & ~wanted))
        return chain(ALL if test.negated == positive else ANY, items, self._full)

    def _build(self, forms: Iterable[Node]) -> None:
        tests: dict[Node, ValueTest] = {}
        for predicate in predicates(forms):
            kind = classify(predicate)
            if isinstance(kind, ElementTest) and ast.attributes(kind.value):
                self._elements[predicate] = kind
            elif predicate not in self._leaves:
                found = value_test(predicate)
                self._leaves[predicate] = False if isinstance(found, ValueTest) else found
                if isinstance(found, ValueTest):
                    tests[predicate] = found
        tests = without_lengths(tests)
        listed = self._listed(tests.values())
        groups: dict[Key, list[ValueTest]] = {}
        keys: dict[Node, Key] = {}
        for predicate, test in tests.items():
            inputs = _inputs(test.operand)
            alone = len(inputs) == 1 and inputs[0] in listed and not _is_timed(test.operand)
            keys[predicate] = inputs[0] if alone else test.operand
            group = groups.setdefault(keys[predicate], [])
            for attribute in inputs:
                groups.setdefault(attribute, [])
            if not alone:
                group.append(test)
        for element_test in self._elements.values():
            for member in members_of(element_test):
                groups.setdefault(member, [])
                for attribute in _inputs(member):
                    groups.setdefault(attribute, [])
        # Attributes come first, so that computed operands find their inputs.
        for key, group in sorted(groups.items(), key=lambda item: not _is_attribute(item[0])):
            self._numbers[key] = len(self.all)
            self.all.append(self._operand(key, group, listed=key in listed))
        counts = (self.all[self._numbers[key]].cells.count * len(groups[key]) for key in groups)
        if sum(counts) > MOST_BITS:
            raise TooManySteps
        self.computed = [n for n, operand in enumerate(self.all) if operand.inputs]
        for predicate, test in tests.items():
            self._leaves[predicate] = self._mask(predicate, test, self._numbers[keys[predicate]])

    def _listed(self, tests: Iterable[ValueTest]) -> set[Node]:
        """The attributes whose values are tried one by one."""
        found: set[Node] = set()
        for test in tests:
            inputs = _inputs(test.operand)
            # Intervals are enough for plain comparisons of numbers.
            alone = len(inputs) == 1 and not _is_attribute(test.operand)
            alone = alone and not _is_timed(test.operand)
            for attribute in inputs:
                domain = self._attribute(attribute).domain
                if isinstance(domain, Enumeration) or (alone and _is_small(attribute, domain)):
                    found.add(attribute)
        return found

    def _attribute(self, node: ast.Attribute) -> Attribute:
        return self.space.schema.attributes[self.space.schema.positions[node.path]]

    def _operand(self, key: Key, group: list[ValueTest], *, listed: bool) -> Operand:
        if isinstance(key, ast.Attribute):
            return self._attribute_operand(key, group, listed=listed)
        inputs = tuple(self._numbers[attribute] for attribute in _inputs(key))
        nodes = _nodes(key, group)
        fallible = any(_fallible(node) for node in nodes)
        missing = fallible or any(self.all[n].missing for n in inputs)
        operand = Operand(key, _computed_cells(key, group), missing=missing)
        if isinstance(key, Pair) and key.left == key.right:
            operand.full = 0b010 | operand.missing
        operand.inputs = inputs
        needed = {path for node in nodes for path in needed_attributes(node)}
        operand.needed = tuple(n for n in inputs if self._path(n) in needed)
        operand.fallible = fallible
        operand.timed = _is_timed(key)
        operand.compute = self._computing(key, group)
        return operand

    def _path(self, number: int) -> Path:
        return self.space.schema.attributes[self.all[number].position].path

    def _attribute_operand(
        self, key: ast.Attribute, group: list[ValueTest], *, listed: bool
    ) -> Operand:
        attribute = self._attribute(key)
        domain = attribute.domain
        cells: Cells
        if key.type.is_nested:
            cells = ArrayCells(key.type)
        elif isinstance(domain, Enumeration):
            cells = ListedCells(domain.values)
        elif listed and isinstance(domain, IntRange):
            cells = ListedCells(range(domain.low, domain.high + 1))
        elif listed:
            cells = ListedCells((False, True))
        elif key.type == STRING:
            cells = StringCells(group)
        else:
            cells = IntervalCells(order_of(attribute), group)
        position = self.space.schema.positions[key.path]
        operand = Operand(key, cells, missing=self.space.may_miss(position))
        operand.position = position
        return operand

    def _computing(self, key: Key, group: list[ValueTest]) -> Evaluator:
        schema = self.space.schema
        if isinstance(key, Pair):
            x, y = compile_value(key.left, schema), compile_value(key.right, schema)
            return _comparing(x, y, order_key if key.left.type == DOUBLE else _itself)
        if isinstance(key, Member):
            return membership(key, schema)
        if group and group[0].kind == "holds":
            return compile_tree(key, schema)
        return compile_value(key, schema)

    def _mask(self, predicate: Node, test: ValueTest, number: int) -> tuple[int, int]:
        operand = self.all[number]
        if isinstance(operand.cells, ListedCells):
            return number, self._tried(predicate, operand, operand.cells)
        present = operand.full & ~operand.missing
        if test.kind == "null":
            mask, every = operand.missing, operand.full
        else:
            mask, every = operand.cells.mask(test) & present, present
        return number, every & ~mask if test.negated else mask

    def _tried(self, predicate: Node, operand: Operand, cells: ListedCells) -> int:
        """The cells of a small domain for whose values a predicate is true."""
        self._trials += cells.count
        if self._trials > MOST_TRIALS:
            raise TooManySteps
        holds = compile_tree(predicate, self.space.schema)
        row: list[Any] = [None] * len(self.space.schema)

        def of_value(value: Any) -> Any:
            row[operand.position] = value
            return holds(row)

        mask = cells.tried(of_value)
        return mask | operand.missing if of_value(None) is True else mask


def chain(kind: int, items: Iterable[Formula], full: Sequence[int]) -> Formula:
    """A conjunction or disjunction in which each operand occurs once.

    Chains of the same kind become part of it; `full` has all possible cells of each operand.
    """
    decisive = kind == ANY
    masks: dict[int, int] = {}
    chains: list[Formula] = []
    for item in items:
        if isinstance(item, bool):
            if item is decisive:
                return decisive
            continue
        for number, body in item[1] if item[0] == kind else (item,):
            if number < 0:
                chains.append((number, body))
            elif number not in masks:
                masks[number] = body
            elif decisive:
                masks[number] |= body
            else:
                masks[number] &= body
    for number, mask in masks.items():
        if mask == full[number] if decisive else not mask:
            return decisive
    found: tuple[Formula, ...] = (*masks.items(), *chains)
    if len(found) == 1:
        return found[0]
    return (kind, found) if found else not decisive


def members_of(test: ElementTest) -> list[Member]:
    """The operands of a test for elements."""
    constants = [*test.constants, None] if test.negated else test.constants
    return [Member(test.value, constant) for constant in constants]


def predicates(forms: Iterable[Node]) -> Iterator[Node]:
    """The predicates of normal forms, from left to right."""
    stack = list(forms)[::-1]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.And | ast.Or):
            stack.extend(reversed(node.items))
        elif not isinstance(node, ast.Literal):
            yield node


def _inputs(key: Key) -> list[ast.Attribute]:
    if isinstance(key, ast.Attribute):
        return [key]
    found = {
        part for node in _values(key) for part in ast.walk(node) if isinstance(part, ast.Attribute)
    }
    return sorted(found, key=lambda attribute: attribute.path)


def _values(key: Key) -> tuple[Node, ...]:
    """The values that an operand is made of."""
    if isinstance(key, Pair):
        return key
    return (key.array if isinstance(key, Member) else key,)


def _is_timed(key: Key) -> bool:
    """Whether an operand has ``now()`` in it, which may be any moment."""
    return any(map(ast.has_clock, _values(key)))


def _is_attribute(key: Key) -> bool:
    return isinstance(key, ast.Attribute)


def _is_small(attribute: ast.Attribute, domain: Domain | None) -> bool:
    if isinstance(domain, IntRange):
        return domain.high - domain.low < SMALL_DOMAIN
    return attribute.type == BOOL


def _nodes(key: Key, group: list[ValueTest]) -> tuple[Node, ...]:
    """The values that must be present for a computed operand to have one."""
    if isinstance(key, Pair):
        return key
    if isinstance(key, Member):
        return (key.array,)
    return ast.children(key) if group and group[0].kind == "holds" else (key,)


def _computed_cells(key: Key, group: list[ValueTest]) -> Cells:
    if isinstance(key, Pair):
        return OutcomeCells((-1, 0, 1))
    if isinstance(key, Member):
        return OutcomeCells((False, True))
    if group[0].kind == "holds":
        return OutcomeCells((False, True))
    if key.type == STRING:
        return StringCells(group)
    return IntervalCells(LENGTHS if measured(key) else value_order(key.type), group)


def _fallible(node: Node) -> bool:
    """Whether a value may be null though the attributes in it are not."""
    stack = [is_null(node)]
    while stack:
        test = stack.pop()
        if isinstance(test, ast.Or):
            stack.extend(test.items)
        elif isinstance(test, ast.IsNull) and not isinstance(test.operand, ast.Attribute):
            return True
    return False


def _comparing(x: Evaluator, y: Evaluator, key: Callable[[Any], Any]) -> Evaluator:
    def compare(row: Any) -> int | None:
        a, b = x(row), y(row)
        if a is None or b is None:
            return None
        a, b = key(a), key(b)
        return int(a > b) - int(a < b)

    return compare


def _itself(value: Any) -> Any:
    return value


def _nothing(_row: Any) -> Any:
    return None
