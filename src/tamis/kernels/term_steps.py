"""Computed values as programs: a list of steps, each one operation for a block of events.

A *register* holds a value for each event of a block, as a whole number or as the bits of a double:
``wholes[register, lane]`` and ``doubles[register, lane]`` are the same memory. Truth is 0 or 1.
``known[register, lane]`` says whether the value is there; where it is not, the register holds
anything. A step is (operation, target, x, y, z), the last three of which are registers as far as
the operation has operands. Its target is none of them, so that they can be read many at a time.

A decimal is held as a whole number of at most 63 bits, all its digits; its scale is known to
whoever writes the program. If a decimal is longer, it and all that is computed from it are
TOO_LONG, and the caller computes these values in another way.

All terms of a segment are one program, so what they have in common is computed once, and a block's
registers stay in the cache. One event is a block of one lane.

A program may also test the elements of an array, for `exists` and `forall`: then a lane is an
element, and its owner is the event whose array has it.
"""

from typing import Any

import numpy as np

from tamis.kernels.bits import smaller
from tamis.kernels.jit import Number, inner, jit
from tamis.kernels.term_arithmetic import (
    comparison,
    copy,
    of_double,
    of_doubles,
    of_times_and_decimals,
    of_whole,
    of_wholes,
    to_whole,
)
from tamis.kernels.term_operations import (
    AND,
    CHOICE,
    CONSTANT,
    DOUBLE_ADD,
    DOUBLE_FLOOR,
    DOUBLE_GREATEST,
    DOUBLE_LEAST,
    DOUBLE_NEGATIVE,
    EQUAL,
    FIRST_OF_ITS_OWN,
    FIRST_OF_TWO,
    FIRST_PRESENT,
    IS_NULL,
    IS_TRUE,
    LOAD,
    MISSING,
    OR,
    STORE,
    THERE,
    TIME_ADD,
    WHOLE_GREATEST,
    WHOLE_LEAST,
)

Array = np.ndarray[Any, Any]

LANES = 512  # events of a block


@jit
def run_terms(
    steps: Array, inputs: Array, there: Array, constants: Array, given: Array, wholes: Array,
    doubles: Array, known: Array, owners: Array, decisive: Array, keys: Array, present: Array,
) -> None:  # fmt: skip
    """Write keys[output, event] and present[output, event]; a missing value has the key 0.

    inputs[input, lane] has whole numbers or the bits of doubles; there[input, lane] is MISSING,
    THERE or TOO_LONG, and so is present[output, event]. constants[*] and given[*] are the same for
    all lanes. A lane is an event, unless there are owners[lane]. Then a lane is an element of the
    array of its owner, and keys and present, which say before what is true of arrays without
    elements, are changed by each element.
    """
    width = wholes.shape[1]
    for start in range(0, inputs.shape[1], width):
        end = smaller(start + width, inputs.shape[1])
        lanes = end - start
        for k in range(steps.shape[0]):
            operation, t, x = steps[k, 0], steps[k, 1], steps[k, 2]
            if operation == LOAD:
                _load(inputs[x, start:end], there[x, start:end], wholes[t], known[t])
            elif operation == CONSTANT:
                _fill(constants[x], given[x], lanes, wholes[t], known[t])
            elif operation == STORE:
                y = steps[k, 3]
                _write(wholes[x], known[x], start, end, owners, decisive, y, keys, present)
            elif operation < FIRST_OF_TWO:
                copy(known[x], lanes, known[t])
                if operation < DOUBLE_NEGATIVE:
                    of_whole(operation, wholes[x], lanes, wholes[t], doubles[t])
                elif operation < DOUBLE_FLOOR:
                    of_double(operation, doubles[x], lanes, doubles[t])
                else:
                    to_whole(operation, doubles[x], wholes[x], lanes, doubles[t], wholes[t])
            elif operation < FIRST_OF_ITS_OWN:
                y = steps[k, 3]
                _both(known[x], known[y], lanes, known[t])
                if operation < DOUBLE_ADD:
                    of_wholes(operation, wholes[x], wholes[y], lanes, wholes[t], known[t])
                elif operation < EQUAL:
                    of_doubles(operation, doubles[x], doubles[y], lanes, doubles[t], known[t])
                elif operation < TIME_ADD:
                    comparison(operation, wholes[x], wholes[y], lanes, wholes[t])
                else:
                    of_times_and_decimals(operation, wholes[x], wholes[y], doubles[y], lanes,
                                           wholes[t], doubles[t], known[t])  # fmt: skip
            elif operation < AND:
                _presence(operation, wholes[x], known[x], lanes, wholes[t], known[t])
            elif operation < FIRST_PRESENT:
                y = steps[k, 3]
                _logic(operation == OR, wholes[x], wholes[y], known[x], known[y], lanes, wholes[t],
                       known[t])  # fmt: skip
            elif operation < CHOICE:
                y = steps[k, 3]
                _better(operation, wholes[x], wholes[y], doubles[x], doubles[y], known[x],
                        known[y], lanes, wholes[t], known[t])  # fmt: skip
            else:
                y, z = steps[k, 3], steps[k, 4]
                _choice(wholes[x], known[x], wholes[y], known[y], wholes[z], known[z], lanes,
                        wholes[t], known[t])  # fmt: skip


@inner
def _load(values: Array, there: Array, target: Array, known: Array) -> None:
    for e in range(values.size):
        target[e] = values[e]
    for e in range(values.size):
        known[e] = there[e]


@inner
def _fill(value: Number, given: Number, lanes: Number, target: Array, known: Array) -> None:
    for e in range(lanes):
        target[e] = value
    for e in range(lanes):
        known[e] = given


@inner
def _write(
    values: Array, known: Array, start: Number, end: Number, owners: Array, decisive: Array,
    output: Number, keys: Array, present: Array,
) -> None:  # fmt: skip
    """Write the values of events to an output, or let elements decide for their events."""
    if owners.size:
        _quantify(values, known, owners[start:end], decisive[output], keys[output], present[output])
    else:
        _store(values, known, keys[output, start:end], present[output, start:end])


@inner
def _store(values: Array, known: Array, keys: Array, present: Array) -> None:
    for e in range(keys.size):
        present[e] = known[e]
    for e in range(keys.size):
        keys[e] = values[e] if known[e] else 0


@inner
def _quantify(
    values: Array, known: Array, owners: Array, decisive: Number, keys: Array, present: Array
) -> None:
    """Let each element decide for its event, or make its result null; none is TOO_LONG here."""
    for e in range(owners.size):
        event = owners[e]
        if known[e] == MISSING:
            if keys[event] != decisive or present[event] == 0:
                keys[event] = 0
                present[event] = 0
        elif values[e] == decisive:
            keys[event] = decisive
            present[event] = 1


@inner
def _both(x: Array, y: Array, lanes: Number, target: Array) -> None:
    """What is known of a value that two others make: MISSING if one is, else the larger one."""
    for e in range(lanes):
        there = x[e] & y[e] & THERE
        target[e] = there | ((x[e] | y[e]) & (there << 1))


@inner
def _presence(
    operation: Number, x: Array, there: Array, lanes: Number, target: Array, known: Array
) -> None:
    if operation == IS_NULL:
        for e in range(lanes):
            target[e] = (there[e] & THERE) ^ 1
    else:
        wanted = np.int64(operation == IS_TRUE)
        for e in range(lanes):
            target[e] = there[e] & (x[e] == wanted)
    for e in range(lanes):
        known[e] = there[e] | THERE


@inner
def _logic(
    decisive: Number, x: Array, y: Array, one: Array, other: Array, lanes: Number, target: Array,
    known: Array,
) -> None:  # fmt: skip
    """AND and OR of Kleene: decided by one part that is false, or true; else null if one is."""
    wanted = np.int64(decisive)
    for e in range(lanes):
        decided = (one[e] & (x[e] == wanted)) | (other[e] & (y[e] == wanted))
        target[e] = np.int64(decided) ^ 1 ^ wanted
        known[e] = decided | (one[e] & other[e]) | _only_too_long(one[e] | other[e])


@inner
def _better(
    operation: Number, x: Array, y: Array, real: Array, other: Array, one: Array, two: Array,
    lanes: Number, target: Array, known: Array,
) -> None:  # fmt: skip
    """The first value that is there, or the greater or smaller of two; nulls are passed over."""
    for e in range(lanes):
        if operation == WHOLE_GREATEST:
            beyond = y[e] > x[e]
        elif operation == WHOLE_LEAST:
            beyond = y[e] < x[e]
        elif operation == DOUBLE_GREATEST:  # NaN is above all others
            beyond = other[e] > real[e] or (other[e] != other[e] and real[e] == real[e])
        elif operation == DOUBLE_LEAST:
            beyond = other[e] < real[e] or (real[e] != real[e] and other[e] == other[e])
        else:
            beyond = False
        taken = two[e] != 0 and (one[e] == 0 or beyond)
        target[e] = y[e] if taken else x[e]
        known[e] = one[e] | two[e]


@inner
def _choice(
    truth: Array, known: Array, y: Array, one: Array, z: Array, other: Array, lanes: Number,
    target: Array, there: Array,
) -> None:  # fmt: skip
    """The second value where the condition is true, else the third."""
    for e in range(lanes):
        taken = known[e] & (truth[e] != 0)
        target[e] = y[e] if taken else z[e]
        there[e] = (one[e] if taken else other[e]) | _only_too_long(known[e])


@inner
def _only_too_long(known: Number) -> Number:
    """TOO_LONG if a value is, else 0."""
    return (known & 2) | ((known & 2) >> 1)
