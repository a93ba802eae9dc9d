"""Terms as programs of `kernels.term_steps`: for whole numbers, doubles, truth values and times.

A program computes all its terms in one call, for many events or for one. What a function does in it
is said by its entry in `language.functions`. A part of a term that has no place in a program, like
``length(name)``, is an *input*, as attributes are: it is computed before, by `TermColumns` or, for
a single event, by `evaluation`.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

import numpy as np

from tamis.deep_stack import with_deep_stack
from tamis.events.event_reader import Row
from tamis.kernels import term_steps as kernel
from tamis.kernels.term_steps import LANES, MOST_OPERANDS, OPERATIONS, run_terms
from tamis.language import ast
from tamis.language.ast import Node
from tamis.language.conversions import conversion
from tamis.language.evaluation import compile_value
from tamis.language.functions.table import FUNCTIONS
from tamis.predicates.keys import WHOLE
from tamis.predicates.term_columns import TermColumns
from tamis.schema import Schema
from tamis.types import DOUBLE, INT32, Type

Array = np.ndarray[Any, Any]

_COMPARE = {  # the operation, and whether the sides are exchanged
    "=": ("=", False), "<>": ("<>", False), "<": ("<", False), "<=": ("<=", False),
    ">": ("<", True), ">=": ("<=", True),
}  # fmt: skip
_KEY = ("double key",)


def is_held(of: Type) -> bool:
    """Whether a register can hold values of a type."""
    return of == DOUBLE or of.kind in WHOLE


def operations_of(node: Node) -> tuple[tuple[str, ...], tuple[Node, ...]] | None:
    """The operations that make a value, the first one of these operands; None if it is an input."""
    found: tuple[tuple[str, ...], tuple[Node, ...]] | None = None
    match node:
        case ast.Call(name, arguments):
            names = FUNCTIONS[name].operations(node)
            if names and OPERATIONS[names[0]][1] == 1:
                arguments = arguments[:1]  # others are constants that the entry has looked at
            found = (names, arguments) if names else None
        case ast.Cast(operand, wanted):
            converted = _conversion(operand.type, wanted)
            found = None if converted is None else ((converted,), (operand,))
        case ast.Compare(op, left, right) if op in _COMPARE and left.type == right.type:
            name, is_exchanged = _COMPARE[op]
            found = (name,), (right, left) if is_exchanged else (left, right)
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
    if found is None or not all(is_held(operand.type) for operand in found[1]):
        return None
    return found


def _conversion(source: Type, wanted: Type) -> str | None:
    if source == wanted or (source.is_integer and wanted.is_integer and wanted != INT32):
        return "same"
    if source.is_integer:
        return {DOUBLE: "whole to double", INT32: "whole to int32"}.get(wanted)
    return None


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
        self.steps.append((kernel.STORE, value, output))

    def _value(self, node: Node, *, as_key: bool = False) -> int:
        """The value of a node, or what it is compared by."""
        as_key = as_key and node.type == DOUBLE
        bare = ast.without_cast(node)
        if isinstance(bare, ast.Literal):
            value = bare.value
            if value is not None and bare is not node:
                value = conversion(bare.type, node.type)(value)
            return self._constant(value, node.type, as_key=as_key)
        known = self._known.get((node, as_key))
        if known is None:
            known = self._step(_KEY, [self._value(node)]) if as_key else self._computed(node)
            self._known[node, as_key] = known
        return known

    def _computed(self, node: Node) -> int:
        found = operations_of(node)
        if found is None:
            number = self.inputs.setdefault(node, len(self.inputs))
            return self._put(kernel.LOAD, number)
        names, operands = found
        as_key = isinstance(node, ast.Compare)
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

    def _constant(self, value: Any, of: Type, *, as_key: bool) -> int:
        given = 0 if value is None else value
        bits = np.array(given, np.float64 if of == DOUBLE else np.int64).view(np.int64)
        place = self.constants.setdefault((int(bits), value is not None), len(self.constants))
        made = self._put(kernel.CONSTANT, place)
        return self._step(_KEY, [made]) if as_key else made

    def _put(self, *step: int) -> int:
        self.steps.append(step)
        return len(self.steps) - 1


class TermProgram:
    """The program of some terms of a schema, each with the number of its output."""

    def __init__(self, terms: Mapping[int, Node], schema: Schema) -> None:
        made = _steps_of(terms)
        self._steps, self._registers = _with_registers(made.steps)
        ends = np.flatnonzero(self._steps[:, 0] == kernel.STORE)  # of the terms, in their order
        self.shares = np.diff(ends, prepend=-1) / len(self._steps)  # of the terms in all steps
        self._inputs = [(node, node.type == DOUBLE) for node in made.inputs]
        self._constants = np.array([bits for bits, _ in made.constants], np.int64)
        self._given = np.array([given for _, given in made.constants], np.uint8)
        self._of_row: list[Callable[[Row], Any]] = [compile_value(n, schema) for n in made.inputs]

    @property
    def steps(self) -> int:
        """How many operations the program has."""
        return len(self._steps)

    def of_batch(self, columns: TermColumns, outputs: int) -> tuple[Array, Array]:
        """keys[output, event] and present[output, event]; arbitrary where an output has no term."""
        size = columns.size
        values = np.empty((len(self._inputs), size), np.int64)
        there = np.empty((len(self._inputs), size), np.uint8)
        for place, (node, _) in enumerate(self._inputs):
            vector = columns.vector(node)
            found = vector.values
            values[place] = found.view(np.int64) if found.dtype == np.float64 else found
            there[place] = vector.present
        keys, present = np.empty((outputs, size), np.int64), np.empty((outputs, size), np.uint8)
        self._run(values, there, keys, present, min(size, LANES))
        return keys, present

    def of_row(self, row: Row, keys: Array, present: Array) -> None:
        """Write keys[output] and present[output] of one event."""
        values = np.zeros((len(self._inputs), 1), np.int64)
        there = np.zeros((len(self._inputs), 1), np.uint8)
        doubles = values.view(np.float64)
        for place, ((_, is_double), compute) in enumerate(
            zip(self._inputs, self._of_row, strict=True)
        ):
            value = compute(row)
            if value is not None:
                (doubles if is_double else values)[place, 0] = value
                there[place, 0] = 1
        self._run(values, there, keys.reshape(-1, 1), present.reshape(-1, 1), 1)

    def _run(self, values: Array, there: Array, keys: Array, present: Array, lanes: int) -> None:
        registers = np.empty((self._registers, max(lanes, 1)), np.int64)
        known = np.empty(registers.shape, np.uint8)
        with np.errstate(all="ignore"):  # for kernels that are not compiled
            run_terms(
                self._steps, values, there, self._constants, self._given, registers,
                registers.view(np.float64), known, keys, present,
            )  # fmt: skip


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
        if step[0] == kernel.STORE:
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
    if step[0] in {kernel.LOAD, kernel.CONSTANT}:
        return ()
    return step[1:2] if step[0] == kernel.STORE else step[1:]


def in_programs(terms: Iterable[Node]) -> dict[int, Node]:
    """The terms, by their places, that are computed by a program."""
    return {
        place: term
        for place, term in enumerate(terms)
        if is_held(term.type) and operations_of(term) is not None
    }
