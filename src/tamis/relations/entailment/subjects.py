"""What the predicates of some forms ask about, and the forms as formulas over it.

Each *subject* has a set of cells; a predicate is a set of cells of one subject. The cells of
attributes combine freely: for every choice of a cell for each attribute there is an event. A
computed subject depends on attributes, its *inputs*; which cells go together there is known only
where the inputs have few values, and otherwise taken to be more than there are.

A `Formula` is True, False, ``(subject, mask)``, or ``(ALL, items)`` or ``(ANY, items)``.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tamis.language import ast
from tamis.language.arithmetic import order_key
from tamis.language.ast import Node
from tamis.language.evaluation import Evaluator, compile_tree, compile_value
from tamis.language.negations import is_null
from tamis.relations.entailment.cells import Cells, Listed, Outcomes, Stretches, Strings
from tamis.relations.entailment.ordered_values import Order
from tamis.relations.entailment.questions import Pair, Question, question
from tamis.relations.entailment.string_languages import TooLarge
from tamis.relations.entailment.string_lengths import LENGTHS, measured, without_lengths
from tamis.relations.event_space import World
from tamis.schema import Attribute, Domain, Enumeration, IntRange
from tamis.types import BOOL, DOUBLE, STRING

ALL, ANY = -1, -2
Formula = bool | tuple[int, Any]

SMALL_DOMAIN = 256  # whole numbers of a domain that are tried one by one
MOST_BITS = 2**28  # of all masks together
MOST_TRIALS = 200_000  # tests of values of small domains


class Subject:
    """One subject; `missing` is the bit of the cell of no value, 0 if there is none."""

    __slots__ = ("cells", "compute", "fallible", "full", "inputs", "key", "missing", "position")

    def __init__(self, key: Node | Pair, cells: Cells, *, missing: bool) -> None:
        self.key = key
        self.cells = cells
        self.missing = 1 << cells.count if missing else 0
        self.full = (1 << cells.count) - 1 | self.missing
        self.position = -1  # of an attribute in the schema
        self.inputs: tuple[int, ...] = ()  # the subjects of the attributes it is computed from
        self.compute: Evaluator = _nothing
        self.fallible = False  # it may be null though all its inputs have values


class Subjects:
    """The subjects of some forms over one world."""

    def __init__(self, forms: Iterable[Node], world: World) -> None:
        self.world = world
        self.all: list[Subject] = []
        self.computed: list[int] = []
        self._numbers: dict[Node | Pair, int] = {}
        self._leaves: dict[Node, tuple[int, int] | bool] = {}
        self._trials = 0
        self._build(forms)

    # --- formulas

    def formula(self, form: Node, *, positive: bool = True) -> Formula:
        """A form, or the condition that it is not true."""
        if isinstance(form, ast.And | ast.Or):
            items = [self.formula(item, positive=positive) for item in form.items]
            return self.chain(ALL if isinstance(form, ast.And) == positive else ANY, items)
        if isinstance(form, ast.Literal):
            return (form.value is True) == positive
        leaf = self._leaves[form]
        if isinstance(leaf, bool):
            return leaf == positive
        number, mask = leaf
        return self.leaf(number, mask if positive else self.all[number].full & ~mask)

    def leaf(self, number: int, mask: int) -> Formula:
        """The condition that a subject lies in some cells."""
        if not mask:
            return False
        return True if mask == self.all[number].full else (number, mask)

    def chain(self, kind: int, items: Iterable[Formula]) -> Formula:
        """A conjunction or disjunction; what it asks of one subject becomes one condition."""
        decisive = kind == ANY
        masks: dict[int, int] = {}
        chains: list[Formula] = []
        for item in items:
            if isinstance(item, bool):
                if item is decisive:
                    return decisive
                continue
            tag, body = item
            parts = body if tag == kind else (item,)
            for part in parts:
                number, mask = part
                if number < 0:
                    chains.append(part)
                elif number not in masks:
                    masks[number] = mask
                else:
                    masks[number] = masks[number] | mask if decisive else masks[number] & mask
        leaves = [self.leaf(number, mask) for number, mask in masks.items()]
        if decisive in leaves:
            return decisive
        found = (*leaves, *chains)
        if len(found) == 1:
            return found[0]
        return (kind, found) if found else not decisive

    # --- building

    def _build(self, forms: Iterable[Node]) -> None:
        asked: dict[Node, Question] = {}
        for leaf in predicates(forms):
            if leaf not in self._leaves:
                found = question(leaf)
                self._leaves[leaf] = False if isinstance(found, Question) else found
                if isinstance(found, Question):
                    asked[leaf] = found
        asked = without_lengths(asked)
        listed = self._listed(asked.values())
        groups: dict[Node | Pair, list[Question]] = {}
        places: dict[Node, Node | Pair] = {}
        for leaf, found in asked.items():
            inputs = _inputs(found.subject)
            alone = len(inputs) == 1 and inputs[0] in listed
            places[leaf] = inputs[0] if alone else found.subject
            group = groups.setdefault(places[leaf], [])
            for attribute in inputs:
                groups.setdefault(attribute, [])
            if not alone:
                group.append(found)
        # Attributes come first, so that what is computed finds its inputs.
        for key, group in sorted(groups.items(), key=lambda item: not _is_attribute(item[0])):
            self._numbers[key] = len(self.all)
            self.all.append(self._subject(key, group, listed=key in listed))
        counts = (self.all[self._numbers[key]].cells.count * len(groups[key]) for key in groups)
        if sum(counts) > MOST_BITS:
            raise TooLarge
        self.computed = [n for n, subject in enumerate(self.all) if subject.inputs]
        for leaf, found in asked.items():
            self._leaves[leaf] = self._mask(leaf, found, self._numbers[places[leaf]])

    def _listed(self, questions: Iterable[Question]) -> set[Node]:
        """The attributes whose values are tried one by one."""
        found: set[Node] = set()
        for asked in questions:
            inputs = _inputs(asked.subject)
            # Cells of neighbours do for plain comparisons of numbers.
            alone = len(inputs) == 1 and not _is_attribute(asked.subject)
            for attribute in inputs:
                domain = self._attribute(attribute).domain
                if isinstance(domain, Enumeration) or (alone and _is_small(attribute, domain)):
                    found.add(attribute)
        return found

    def _attribute(self, node: ast.Attribute) -> Attribute:
        return self.world.schema.attributes[self.world.schema.positions[node.path]]

    def _subject(self, key: Node | Pair, group: list[Question], *, listed: bool) -> Subject:
        if isinstance(key, ast.Attribute):
            return self._attribute_subject(key, group, listed=listed)
        inputs = tuple(self._numbers[attribute] for attribute in _inputs(key))
        nodes = _nodes(key, group)
        fallible = any(_fallible(node) for node in nodes)
        missing = fallible or any(self.all[n].missing for n in inputs)
        subject = Subject(key, _computed_cells(key, group), missing=missing)
        if isinstance(key, Pair) and key.left == key.right:
            subject.full = 0b010 | subject.missing
        subject.inputs = inputs
        subject.fallible = fallible
        subject.compute = self._computing(key, group)
        return subject

    def _attribute_subject(
        self, key: ast.Attribute, group: list[Question], *, listed: bool
    ) -> Subject:
        attribute = self._attribute(key)
        domain = attribute.domain
        cells: Cells
        if isinstance(domain, Enumeration):
            cells = Listed(domain.values)
        elif listed and isinstance(domain, IntRange):
            cells = Listed(range(domain.low, domain.high + 1))
        elif listed:
            cells = Listed((False, True))
        elif key.type == STRING:
            cells = Strings(group)
        else:
            cells = Stretches(Order(key.type, domain), group)
        position = self.world.schema.positions[key.path]
        subject = Subject(key, cells, missing=self.world.may_miss(position))
        subject.position = position
        return subject

    def _computing(self, key: Node | Pair, group: list[Question]) -> Evaluator:
        schema = self.world.schema
        if isinstance(key, Pair):
            x, y = compile_value(key.left, schema), compile_value(key.right, schema)
            return _comparing(x, y, order_key if key.left.type == DOUBLE else _itself)
        if group and group[0].ask == "holds":
            return compile_tree(key, schema)
        return compile_value(key, schema)

    def _mask(self, leaf: Node, asked: Question, number: int) -> tuple[int, int]:
        subject = self.all[number]
        if isinstance(subject.cells, Listed):
            return number, self._tried(leaf, subject, subject.cells)
        present = subject.full & ~subject.missing
        if asked.ask == "null":
            mask, every = subject.missing, subject.full
        else:
            mask, every = subject.cells.mask(asked) & present, present
        return number, every & ~mask if asked.negated else mask

    def _tried(self, leaf: Node, subject: Subject, cells: Listed) -> int:
        self._trials += cells.count
        if self._trials > MOST_TRIALS:
            raise TooLarge
        holds = compile_tree(leaf, self.world.schema)
        row: list[Any] = [None] * len(self.world.schema)

        def of_value(value: Any) -> Any:
            row[subject.position] = value
            return holds(row)

        mask = cells.tried(of_value)
        return mask | subject.missing if of_value(None) is True else mask


def predicates(forms: Iterable[Node]) -> Iterator[Node]:
    """The predicates of forms, from left to right."""
    stack = list(forms)[::-1]
    while stack:
        node = stack.pop()
        if isinstance(node, ast.And | ast.Or):
            stack.extend(reversed(node.items))
        elif not isinstance(node, ast.Literal):
            yield node


def _inputs(key: Node | Pair) -> list[ast.Attribute]:
    if isinstance(key, ast.Attribute):
        return [key]
    nodes = key if isinstance(key, Pair) else (key,)
    found = {part for node in nodes for part in ast.walk(node) if isinstance(part, ast.Attribute)}
    return sorted(found, key=lambda attribute: attribute.path)


def _is_attribute(key: Node | Pair) -> bool:
    return isinstance(key, ast.Attribute)


def _is_small(attribute: ast.Attribute, domain: Domain | None) -> bool:
    if isinstance(domain, IntRange):
        return domain.high - domain.low < SMALL_DOMAIN
    return attribute.type == BOOL


def _nodes(key: Node | Pair, group: list[Question]) -> tuple[Node, ...]:
    """The values that must be there for a computed subject to have one."""
    if isinstance(key, Pair):
        return key
    return ast.children(key) if group and group[0].ask == "holds" else (key,)


def _computed_cells(key: Node | Pair, group: list[Question]) -> Cells:
    if isinstance(key, Pair):
        return Outcomes((-1, 0, 1))
    if group[0].ask == "holds":
        return Outcomes((False, True))
    if key.type == STRING:
        return Strings(group)
    return Stretches(LENGTHS if measured(key) else Order(key.type), group)


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
