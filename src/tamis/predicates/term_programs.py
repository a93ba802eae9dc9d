"""Terms as programs of `kernels.term_steps`: for numbers, truth values and times.

A program computes all its terms in one call, for many events or for one. The entry of a function in
`language.functions` says which operations it becomes. A part of a term that has no place in a
program, like ``length(name)``, is an *input*, as attributes are: it is computed before, by
`TermColumns` or, for a single event, by `evaluation`. These two also compute terms with decimals
that become too long for 64 bits.
"""

from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from tamis.deep_stack import with_deep_stack
from tamis.events.event_reader import Row
from tamis.kernels.term_operations import (
    CONSTANT,
    LOAD,
    MOST_OPERANDS,
    OPERATIONS,
    STORE,
    THERE,
    TOO_LONG,
)
from tamis.kernels.term_steps import LANES, run_terms
from tamis.language import ast
from tamis.language.arithmetic import as_decimal, loses_digits
from tamis.language.ast import Node
from tamis.language.conversions import conversion
from tamis.language.evaluation import compile_value
from tamis.language.functions.table import FUNCTIONS
from tamis.predicates.keys import WHOLE, Keys, has_values, unscaled
from tamis.predicates.term_columns import TermColumns
from tamis.schema import Attribute, Schema
from tamis.types import (
    DOUBLE,
    INT,
    INT32,
    INT64_MAX,
    SHORT_DECIMAL_DIGITS,
    Kind,
    Type,
    decimal_type,
)

Array = np.ndarray[Any, Any]

_COMPARE = {  # the operation, and whether the sides are exchanged
    "=": ("=", False), "<>": ("<>", False), "<": ("<", False), "<=": ("<=", False),
    ">": ("<", True), ">=": ("<=", True),
}  # fmt: skip
_ALIGNED = {"+", "-", "%"}  # operators on decimals that bring them to one scale first
_MOST_PLACES = 22  # powers of ten up to this one are doubles
_MOST_LISTED = 16  # constants of an IN that are compared one after the other
_NONE = np.zeros(0, np.int64)


def is_held(of: Type) -> bool:
    """Whether a register can hold values of a type; of decimals, only short values are held."""
    return of == DOUBLE or of.kind in WHOLE or of.kind is Kind.DECIMAL


def _fits(node: Node) -> bool:
    """As `is_held`, of the values of a node; a constant may be too long."""
    bare = ast.without_cast(node)
    if node.type.kind is Kind.DECIMAL and isinstance(bare, ast.Literal):
        return bool(abs(_number(_constant(bare, node.type), node.type)) <= INT64_MAX)
    return is_held(node.type)


def _constant(literal: ast.Literal, wanted: Type) -> Any:
    """The value of a constant that is converted to a type."""
    value = literal.value
    return value if value is None else conversion(literal.type, wanted)(value)


def _number(value: Any, of: Type) -> Any:
    """A value as a register holds it; a decimal may be too long."""
    if value is None:
        return 0
    return unscaled(value, of.scale) if of.kind is Kind.DECIMAL else value


def operations_of(node: Node) -> tuple[tuple[str, ...], tuple[Node, ...]] | None:
    """The operations that make a value, the first one of these operands; None if it is an input."""
    found: tuple[tuple[str, ...], tuple[Node, ...]] | None = None
    match node:
        case ast.Call(name, arguments):
            names = FUNCTIONS[name].operations(node)
            if names and OPERATIONS[names[0]][1] == 1:
                arguments = arguments[:1]  # others are constants that the entry has looked at
            if names and node.type.kind is Kind.DECIMAL and name in _ALIGNED:
                arguments = tuple([_with_scale(one, node.type.scale) for one in arguments])
            found = (names, arguments) if names else None
        case ast.Cast(operand, wanted):
            found = _conversion(operand, wanted)
        case ast.Compare(op, left, right) if op in _COMPARE and left.type == right.type:
            name, is_exchanged = _COMPARE[op]
            found = (name,), (right, left) if is_exchanged else (left, right)
        case ast.In(operand, items) if is_held(operand.type) and len(items) <= _MOST_LISTED:
            found = ("or",), tuple([ast.Compare("=", operand, item) for item in items])
        case ast.And(items):
            found = ("and",), items
        case ast.Or(items):
            found = ("or",), items
        case ast.Not(operand):
            found = ("not",), (operand,)
        case ast.IsNull(operand):
            found = ("is null",), (operand,)
        case ast.IsTruth(operand, truth):
            found = ("is true" if truth else "is false",), (operand,)
    if found is None or not all(map(_fits, found[1])):
        return None
    return found


def _key_operation(of: Type) -> str | None:
    """The operation that makes the key of a value; None if the value is its own key."""
    if of == DOUBLE:
        return "double key"
    return None if has_values(of) else "decimal key"


def _with_scale(node: Node, scale: int) -> Node:
    """A decimal with this scale; its type may have more digits than filters may use."""
    more = scale - node.type.scale
    return ast.Cast(node, decimal_type(node.type.digits + more, scale)) if more else node


def _conversion(operand: Node, wanted: Type) -> tuple[tuple[str, ...], tuple[Node, ...]] | None:
    source = operand.type
    if source == wanted or (source.is_integer and wanted.is_integer and wanted != INT32):
        return ("same",), (operand,)
    is_exact = source.is_integer or source.kind is Kind.DECIMAL
    if is_exact and wanted.kind is Kind.DECIMAL and not loses_digits(source, wanted):
        more = wanted.scale - as_decimal(source).scale
        if more > SHORT_DECIMAL_DIGITS:
            return None
        return ("decimal *",), (operand, ast.Literal(10**more, INT))
    if source.kind is Kind.DECIMAL and wanted == DOUBLE and source.scale <= _MOST_PLACES:
        return ("decimal to double",), (operand, ast.Literal(10.0**source.scale, DOUBLE))
    name = {DOUBLE: "whole to double", INT32: "whole to int32"}.get(wanted)
    return ((name,), (operand,)) if name and source.is_integer else None


class _Steps:
    """The steps of a program in the order in which they are run; each has a value of its own."""

    def __init__(self) -> None:
        self.steps: list[tuple[int, ...]] = []
        self.inputs: dict[Node, int] = {}
        self.constants: dict[tuple[int, bool], int] = {}
        self._known: dict[tuple[Node, bool], int] = {}

    def store(self, term: Node, output: int) -> None:
        """Compute a term and write its keys to an output."""
        value = self._value(term, as_key=True)
        self.steps.append((STORE, value, output))

    def _value(self, node: Node, *, as_key: bool = False) -> int:
        """The value of a node, or its key if that is wanted and is something else."""
        key = _key_operation(node.type) if as_key else None
        bare = ast.without_cast(node)
        if isinstance(bare, ast.Literal):  # not in `_known`, where 0.0 and -0.0 would be the same
            made = self._given(_constant(bare, node.type), node.type)
            return made if key is None else self._step((key,), [made])
        known = self._known.get((node, key is not None))
        if known is None:
            known = self._computed(node) if key is None else self._step((key,), [self._value(node)])
            self._known[node, key is not None] = known
        return known

    def _computed(self, node: Node) -> int:
        found = operations_of(node)
        if found is None:
            number = self.inputs.setdefault(node, len(self.inputs))
            return self._put(LOAD, number)
        names, operands = found
        as_key = isinstance(node, ast.Compare) and operands[0].type == DOUBLE
        return self._step(names, [self._value(part, as_key=as_key) for part in operands])

    def _step(self, names: tuple[str, ...], operands: list[int]) -> int:
        """Operations one after the other; the first is repeated if it is given many operands."""
        operation, arity = OPERATIONS[names[0]]
        if arity == MOST_OPERANDS:  # conditions and values, and at the end what is left
            value = operands[-1]
            for place in range(len(operands) - 3, -1, -2):
                value = self._put(operation, operands[place], operands[place + 1], value)
        else:
            value, *rest = operands
            for other in rest:
                value = self._put(operation, value, other)
            if arity == 1:
                value = self._put(operation, value)
        for name in names[1:]:
            value = self._put(OPERATIONS[name][0], value)
        return value

    def _given(self, value: Any, of: Type) -> int:
        """The value of a constant."""
        kind = np.float64 if of == DOUBLE else np.int64
        bits = np.array(_number(value, of), kind).view(np.int64)
        place = self.constants.setdefault((int(bits), value is not None), len(self.constants))
        return self._put(CONSTANT, place)

    def _put(self, *step: int) -> int:
        self.steps.append(step)
        return len(self.steps) - 1


class TermProgram:
    """The program of some terms of a schema, each with the number of its output."""

    def __init__(self, terms: Mapping[int, Node], schema: Schema) -> None:
        made = _steps_of(terms)
        self._steps, self._registers = _with_registers(made.steps)
        ends = np.flatnonzero(self._steps[:, 0] == STORE)  # of the terms, in their order
        self.shares = np.diff(ends, prepend=-1) / len(self._steps)  # of the terms in all steps
        self._inputs = list(made.inputs)
        self._constants = np.array([bits for bits, _ in made.constants], np.int64)
        self._given = np.array([given for _, given in made.constants], np.uint8)
        self._schema = schema
        self._of_row: list[Callable[[Row], Any]] = [compile_value(n, schema) for n in made.inputs]
        self._of_decimals = {n: term for n, term in terms.items() if has_decimals(term)}
        self._may_be_long = np.array(list(self._of_decimals), np.int64)

    @property
    def steps(self) -> int:
        """How many operations the program has."""
        return len(self._steps)

    @property
    def inputs(self) -> int:
        """How many values the program is given for each event."""
        return len(self._inputs)

    def of_batch(self, columns: TermColumns, outputs: int) -> tuple[Array, Array]:
        """keys[output, event] and present[output, event]; arbitrary where an output has no term."""
        size = columns.size
        keys, present = np.empty((outputs, size), np.int64), np.empty((outputs, size), np.uint8)
        self._run(*self.inputs_of_batch(columns), keys, present)
        for output in self._too_long(present):
            column = columns.column(self._of_decimals[output])
            keys[output], present[output] = column.keys, column.present
        return keys, present

    def of_row(self, row: Row, keys: Array, present: Array) -> None:
        """Write keys[output] and present[output] of one event."""
        self._run(*self.inputs_of_row(row), keys.reshape(-1, 1), present.reshape(-1, 1))
        for output in self._too_long(present):
            compute, key = self._alone[output]
            value = compute(row)
            keys[output], present[output] = 0 if value is None else key(value), value is not None

    def inputs_of_batch(self, columns: TermColumns) -> tuple[Array, Array]:
        """values[input, event] and there[input, event]; arbitrary for a variable."""
        values = np.empty((len(self._inputs), columns.size), np.int64)
        there = np.empty(values.shape, np.uint8)
        for place, node in enumerate(self._inputs):
            if isinstance(node, ast.Variable):
                continue
            vector = columns.vector(node)
            found, known = vector.values, vector.present
            if node.type.kind is Kind.DECIMAL:
                found, known = _short(found, known)
            values[place] = found.view(np.int64) if found.dtype == np.float64 else found
            there[place] = known
        return values, there

    def inputs_of_row(self, row: Row) -> tuple[Array, Array]:
        """As `inputs_of_batch`, for one event."""
        values = np.zeros((len(self._inputs), 1), np.int64)
        there = np.zeros(values.shape, np.uint8)
        doubles = values.view(np.float64)
        for place, (node, compute) in enumerate(zip(self._inputs, self._of_row, strict=True)):
            value = None if isinstance(node, ast.Variable) else compute(row)
            if value is None:
                continue
            there[place, 0] = THERE
            if node.type == DOUBLE:
                doubles[place, 0] = value
            elif node.type.kind is not Kind.DECIMAL:
                values[place, 0] = value
            elif abs(number := unscaled(value, node.type.scale)) <= INT64_MAX:
                values[place, 0] = number
            else:
                there[place, 0] = TOO_LONG
        return values, there

    def test_elements(
        self, inputs: tuple[Array, Array], elements: tuple[Array, Array], owners: Array,
        decisive: Array, keys: Array, present: Array,
    ) -> None:  # fmt: skip
        """Change keys[output, event] and present[output, event] by the tests that elements pass.

        The terms of the program are these tests; their variable is an element, and none of them has
        a decimal. `inputs` are those of the events, `elements` are values[element] and
        there[element], and owners[element] is the event of an element. An element for which a test
        is decisive[output] decides the output for its event.
        """
        values, there = inputs[0][:, owners], inputs[1][:, owners]
        for place, node in enumerate(self._inputs):
            if isinstance(node, ast.Variable):
                values[place], there[place] = elements
        self._run(values, there, keys, present, owners, decisive)

    def _too_long(self, present: Array) -> list[int]:
        """The outputs that have to be computed in another way, because some value is too long."""
        if not self._may_be_long.size:
            return []
        late = present[self._may_be_long] == TOO_LONG
        found: list[int] = self._may_be_long[late.reshape(len(late), -1).any(axis=1)].tolist()
        return found

    @cached_property
    def _alone(self) -> dict[int, tuple[Callable[[Row], Any], Callable[[Any], int]]]:
        """For each output that may be too long: its value in a row, and the key of that."""
        terms = self._of_decimals.values()
        keys = Keys(
            Schema.of_attributes([Attribute((str(n),), t.type) for n, t in enumerate(terms)])
        )
        return {
            output: (compile_value(term, self._schema), keys.of_one(place))
            for place, (output, term) in enumerate(self._of_decimals.items())
        }

    def _run(
        self, values: Array, there: Array, keys: Array, present: Array,
        owners: Array = _NONE, decisive: Array = _NONE,
    ) -> None:  # fmt: skip
        lanes = max(min(values.shape[1], LANES), 1)
        registers = np.empty((self._registers, lanes), np.int64)
        known = np.empty(registers.shape, np.uint8)
        with np.errstate(all="ignore"):  # for kernels that are not compiled
            run_terms(
                self._steps, values, there, self._constants, self._given, registers,
                registers.view(np.float64), known, owners, decisive, keys, present,
            )  # fmt: skip


def inputs_of(term: Node) -> list[Node]:
    """The parts of a term that a program is given, because it does not compute them."""
    found: list[Node] = []
    left = [term]
    while left:
        node = left.pop()
        if isinstance(ast.without_cast(node), ast.Literal):
            continue
        operations = operations_of(node)
        if operations is None:
            found.append(node)
        else:
            left += operations[1]
    return found


def has_decimals(term: Node) -> bool:
    """Whether any part of a term is a decimal, which may become too long."""
    return any(part.type.kind is Kind.DECIMAL for part in ast.walk(term))


def _short(numbers: Array, present: Array) -> tuple[Array, Array]:
    """The numbers of decimals in 64 bits, and whether each is MISSING, THERE or TOO_LONG."""
    if numbers.dtype == object:
        fits = np.asarray(abs(numbers) <= INT64_MAX, np.bool_)
    else:
        fits = numbers >= -INT64_MAX
    known = np.where(fits, THERE, TOO_LONG) * present
    return np.where(fits, numbers, 0).astype(np.int64), known


@with_deep_stack
def _steps_of(terms: Mapping[int, Node]) -> _Steps:
    made = _Steps()
    for output, term in terms.items():
        made.store(term, output)
    return made


def _with_registers(steps: list[tuple[int, ...]]) -> tuple[Array, int]:
    """steps[step, 5] with registers instead of values, and how many registers there are.

    A register is free again after the last step that reads it.
    """
    last = list(range(len(steps)))
    for place, step in enumerate(steps):
        for value in _read(step):
            last[value] = place
    found = np.zeros((len(steps), 2 + MOST_OPERANDS), np.int32)
    register_of: dict[int, int] = {}
    free: list[int] = []
    count = 0
    for place, step in enumerate(steps):
        read = _read(step)
        if step[0] == STORE:
            found[place, [0, 2, 3]] = step[0], register_of[step[1]], step[2]
        else:
            if not free:
                free.append(count)
                count += 1
            register_of[place] = free.pop()
            operands = [register_of[value] for value in read] or step[1:]
            found[place, 0], found[place, 1] = step[0], register_of[place]
            found[place, 2 : 2 + len(operands)] = operands
        free += [register_of[value] for value in set(read) if last[value] == place]
    return found, count


def _read(step: tuple[int, ...]) -> Iterable[int]:
    """The values that a step reads."""
    if step[0] in {LOAD, CONSTANT}:
        return ()
    return step[1:2] if step[0] == STORE else step[1:]


def in_programs(terms: Iterable[Node]) -> dict[int, Node]:
    """The terms, by their places, that are computed by a program."""
    return {
        place: term
        for place, term in enumerate(terms)
        if is_held(term.type) and operations_of(term) is not None
    }
