"""Formulas as steps, without a branch: each makes one value of three others, by AND and OR.

A step is (one AND-or-OR other) AND-or-OR third; if it has only two operands, the third is `other`
again, which changes nothing.

The steps of a chunk of up to 64 filters follow one another, whatever formulas these are; hardly two
filters need have the same one. Values are numbered: first the predicates that formulas test, then
the results of the members of the chunk, then the *registers*, which hold what is in between.

A step often needs the result of the one before, and the processor waits for it. So the members of a
chunk are divided into four *tracks* of about as many steps, which are run side by side; each has
registers of its own.

A chunk may have a *gate*: a predicate that all its members need, so that none is true without it,
or one that is enough for each of them.
"""

from typing import Any, NamedTuple

import numpy as np

from tamis.kernels.bits import smaller
from tamis.kernels.jit import Number, inner, jit
from tamis.kernels.predicate_rows import BlockRows
from tamis.kernels.records import record
from tamis.kernels.simd_rows import LANES, Row, combine_rows, load_row, store_row
from tamis.kernels.value_classes import REF_KINDS

Array = np.ndarray[Any, Any]

AND, OR = 0, 1  # a sign; the first one of a step is 1 * sign, the second one 2 * sign
TRACKS = 4
NO_GATE = -1
NEEDED, ENOUGH = 0, 1  # what a gate is to the members of its chunk
_ONE = np.uint64(1)
FEW = 4  # a chunk is prepared by itself if all chunks together have fewer steps than a value / FEW


@record
class FormulaSteps(NamedTuple):
    """The steps of all formulas, chunk by chunk."""

    tested: Array  # int32[value]: the references of the predicates, ascending
    steps_at: Array  # int64[TRACKS * chunk + 1]: the first steps of its tracks
    gates: Array  # int32[chunk]: 2 * value + NEEDED or ENOUGH, or NO_GATE
    operands: Array  # int32[step, 3]: values
    targets: Array  # int16[step]: 4 * (value - number of predicates) + signs


@jit
def choose_gates(
    at: Array, operands: Array, targets: Array, shares: Array, wanted: Array, gates: Array
) -> None:
    """Write to gates[filter] the predicate that says most about the filter, or NO_GATE.

    An operand is a predicate, or ~register; targets[step] is 4 * register + signs, and the last
    step of a filter, at[filter + 1] - 1, has its result. If the last sign is AND, all predicates
    that are joined to it by AND are needed, and the one with the smallest of shares[predicate] is
    chosen; if it is OR, each is enough, and the one with the greatest is. wanted[register] is
    scratch, all 0.
    """
    for f in range(gates.size):
        first, last = at[f], at[f + 1] - 1
        sign = (targets[last] >> 1) & 1
        best = np.int64(NO_GATE)
        wanted[targets[last] >> 2] = 1
        # Backwards: a register that is wanted was last written by the step that comes now.
        for k in range(last, first - 1, -1):
            register = targets[k] >> 2
            if wanted[register] == 0:
                continue
            wanted[register] = 0
            if (targets[k] >> 1) & 1 != sign:
                continue
            for place in range(0 if targets[k] & 1 == sign else 2, 3):
                operand = np.int64(operands[k, place])
                if operand < 0:
                    wanted[~operand] = 1
                elif best < 0 or (shares[operand] > shares[best]) == (sign == OR):
                    best = operand
        gates[f] = 2 * best + sign if best >= 0 else NO_GATE


@inner
def find_all_rows(steps: FormulaSteps, block: BlockRows, row_of: Array) -> None:
    """Write the row of each predicate to row_of[value]; they are ascending like the runs."""
    run, tested = 0, steps.tested
    starts, run_rows = block.run_starts, block.run_rows
    for value in range(tested.size):
        number = tested[value] // REF_KINDS
        while starts[run + 1] <= number:
            run += 1
        row_of[value] = run_rows[run, tested[value] % REF_KINDS]


@inner
def find_rows(steps: FormulaSteps, chunk: Number, block: BlockRows, row_of: Array) -> None:
    """Write the rows of the predicates of one chunk to row_of[value]."""
    tested, coarse, starts = steps.tested, block.coarse, block.run_starts
    for k in range(steps.steps_at[TRACKS * chunk], steps.steps_at[TRACKS * (chunk + 1)]):
        for place in range(3):
            value = np.int64(steps.operands[k, place])
            if value < tested.size:
                number = np.int64(tested[value] // REF_KINDS)
                run = np.int64(coarse[number >> block.shift])
                while starts[run + 1] <= number:
                    run += 1
                row_of[value] = block.run_rows[run, tested[value] % REF_KINDS]


@inner
def copy_rows(steps: FormulaSteps, row_of: Array, rows: Array, values: Array) -> None:
    """Copy the rows of all predicates to values[value, word]."""
    for value in range(steps.tested.size):
        store_row(values, value, load_row(rows, row_of[value]))


@inner
def run_steps(steps: FormulaSteps, chunk: Number, row_of: Array, rows: Array) -> None:
    """Run the steps of a chunk; row_of[value] says where in rows[row, word] values are."""
    a, b, c, d, most = _tracks(steps, chunk)
    for _ in range(most):
        _run_step(steps, a, row_of, rows)
        _run_step(steps, b, row_of, rows)
        _run_step(steps, c, row_of, rows)
        _run_step(steps, d, row_of, rows)
        a, b, c, d = a + _ONE, b + _ONE, c + _ONE, d + _ONE
    for track in range(TRACKS):
        first = steps.steps_at[TRACKS * chunk + track] + most
        for k in range(first, steps.steps_at[TRACKS * chunk + track + 1]):
            _run_step(steps, np.uint64(k), row_of, rows)


@inner
def _run_step(steps: FormulaSteps, k: Number, row_of: Array, rows: Array) -> None:
    """Run one step; indices are unsigned, for others numba checks if they count from the end."""
    operands, target = steps.operands, np.uint32(steps.targets[k])
    one = load_row(rows, row_of[np.uint32(operands[k, 0])])
    other = load_row(rows, row_of[np.uint32(operands[k, 1])])
    third = load_row(rows, row_of[np.uint32(operands[k, 2])])
    place = row_of[np.uint32(steps.tested.size) + (target >> np.uint32(2))]
    store_row(rows, place, _made(one, other, third, target))


@inner
def run_steps_in_place(steps: FormulaSteps, chunk: Number, values: Array) -> None:
    """As `run_steps`, where values[value, word] are the rows of the values."""
    a, b, c, d, most = _tracks(steps, chunk)
    for _ in range(most):
        _run_step_in_place(steps, a, values)
        _run_step_in_place(steps, b, values)
        _run_step_in_place(steps, c, values)
        _run_step_in_place(steps, d, values)
        a, b, c, d = a + _ONE, b + _ONE, c + _ONE, d + _ONE
    for track in range(TRACKS):
        first = steps.steps_at[TRACKS * chunk + track] + most
        for k in range(first, steps.steps_at[TRACKS * chunk + track + 1]):
            _run_step_in_place(steps, np.uint64(k), values)


@inner
def _run_step_in_place(steps: FormulaSteps, k: Number, values: Array) -> None:
    """Run one step."""
    operands, target = steps.operands, np.uint32(steps.targets[k])
    one = load_row(values, np.uint32(operands[k, 0]))
    other = load_row(values, np.uint32(operands[k, 1]))
    third = load_row(values, np.uint32(operands[k, 2]))
    place = np.uint32(steps.tested.size) + (target >> np.uint32(2))
    store_row(values, place, _made(one, other, third, target))


@inner
def _made(one: Row, other: Row, third: Row, signs: Number) -> Row:
    """What a step makes of three rows."""
    made = combine_rows(one, other, signs & np.uint32(1))
    return combine_rows(made, third, (signs >> np.uint32(1)) & np.uint32(1))


@inner
def test_steps(steps: FormulaSteps, chunk: Number, truth: Array) -> None:
    """Run the steps of a chunk for one event, of which truth[value] says what is true: 0 or 1."""
    results = truth[steps.tested.size :]
    a, b, c, d, most = _tracks(steps, chunk)
    for _ in range(most):
        _test_step(steps, a, truth, results)
        _test_step(steps, b, truth, results)
        _test_step(steps, c, truth, results)
        _test_step(steps, d, truth, results)
        a, b, c, d = a + _ONE, b + _ONE, c + _ONE, d + _ONE
    for track in range(TRACKS):
        first = steps.steps_at[TRACKS * chunk + track] + most
        for k in range(first, steps.steps_at[TRACKS * chunk + track + 1]):
            _test_step(steps, np.uint64(k), truth, results)


@inner
def _test_step(steps: FormulaSteps, k: Number, truth: Array, results: Array) -> None:
    """Run one step for one event."""
    operands, target = steps.operands, np.uint32(steps.targets[k])
    one, other = truth[np.uint32(operands[k, 0])], truth[np.uint32(operands[k, 1])]
    third, sign = truth[np.uint32(operands[k, 2])], np.uint8(target)
    made = (one & other) | (sign & (one | other))
    sign >>= np.uint8(1)
    made = (made & third) | (sign & (made | third))
    results[target >> np.uint32(2)] = made & np.uint8(1)


@inner
def _tracks(steps: FormulaSteps, chunk: Number) -> tuple[Number, Number, Number, Number, Number]:
    """Where the tracks of a chunk begin, and how many steps all of them have."""
    at = steps.steps_at[TRACKS * chunk : TRACKS * chunk + TRACKS + 1]
    most = at[1] - at[0]
    for track in range(1, TRACKS):
        most = smaller(most, at[track + 1] - at[track])
    return np.uint64(at[0]), np.uint64(at[1]), np.uint64(at[2]), np.uint64(at[3]), most


@inner
def are_worth_all(steps: FormulaSteps, first: Number, end: Number) -> bool:
    """Whether some chunks have so many steps that all predicates are looked up before."""
    size = steps.steps_at[TRACKS * end] - steps.steps_at[TRACKS * first]
    return bool(size * FEW >= steps.tested.size and first < end)


@jit
def are_written_before(steps: FormulaSteps, written: Array) -> bool:
    """Whether each filter reads registers of its track that it has written before.

    written[register] is scratch, all -1.
    """
    first, values, filter_ = steps.tested.size + LANES, steps.tested.size, 0
    for part in range(steps.steps_at.size - 1):
        for k in range(steps.steps_at[part], steps.steps_at[part + 1]):
            for place in range(3):
                value = np.int64(steps.operands[k, place])
                if value >= values and (value < first or written[value - first] != filter_):
                    return False
            register = np.int64(steps.targets[k] >> 2) - LANES
            if register < 0:
                filter_ += 1
            elif register % TRACKS != part % TRACKS:
                return False
            else:
                written[register] = filter_
    return True


@jit
def are_gates(steps: FormulaSteps, truth: Array) -> bool:
    """Whether all gates are gates; truth[value] is scratch, all 0.

    Formulas have no negation: if one is false where only its gate is, it needs the gate; if it is
    true where only its gate is, the gate is enough.
    """
    size = steps.tested.size
    for is_enough in range(2):
        for value in range(size):
            truth[value] = 1 - is_enough
        for chunk in range(steps.gates.size):
            gate = steps.gates[chunk]
            if gate == NO_GATE or gate & 1 != is_enough:
                continue
            truth[gate >> 1] = is_enough
            test_steps(steps, chunk, truth)
            for k in range(steps.steps_at[TRACKS * chunk], steps.steps_at[TRACKS * (chunk + 1)]):
                target = steps.targets[k] >> 2
                if target < LANES and truth[size + target] != is_enough:
                    return False
            truth[gate >> 1] = 1 - is_enough
    return True


def registers_of(steps: FormulaSteps) -> int:
    """How many values there are after the predicates: results of members, and registers."""
    return max(LANES, int(steps.targets.max(initial=0)) // 4 + 1)
