"""A row of 512 bits as one value, which the compiler keeps in one or two SIMD registers.

numba has no such type. What LLVM makes of loops over eight words is up to ten times slower, because
it checks for overlap at run time and takes the words one by one. Without the compiler, a row is an
array of 8 words.

`within_interval` compares 64 numbers with an interval at once and returns a word of bits.
`write_bit_places` goes the other way: it writes the numbers of the bits of a byte.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.extending import models, register_model

from tamis.kernels.instructions import instructions_of
from tamis.kernels.jit import Number

Array = np.ndarray[Any, Any]
Row = Any  # a value of 512 bits

WORDS = 8  # of 64 bits, in a row
LANES = 64  # numbers that are compared at once

_WORD = ir.IntType(64)
_VECTOR = ir.VectorType(_WORD, WORDS)
_NUMBERS = ir.VectorType(ir.IntType(32), LANES)
_PLACES = ir.VectorType(ir.IntType(8), 8)
_EIGHT = ir.VectorType(ir.IntType(32), 8)


class RowType(types.Type):
    """The type of a row in compiled code."""

    def __init__(self) -> None:
        super().__init__(name="Row512")


ROW = RowType()


@register_model(RowType)
class _RowModel(models.PrimitiveModel):
    def __init__(self, manager: Any, kind: Any) -> None:
        super().__init__(manager, kind, _VECTOR)  # type: ignore[no-untyped-call]  # numba's


# --- the functions as they run without the compiler


def load_row(rows: Array, number: Number) -> Row:
    """Row `number` of rows[row, word]."""
    return rows[number].copy()


def store_row(rows: Array, number: Number, row: Row) -> None:
    """Write row `number` of rows[row, word]."""
    rows[number] = row


def empty_row() -> Row:
    """A row without any bit."""
    return np.zeros(WORDS, np.uint64)


def and_rows(one: Row, other: Row) -> Row:
    """The bits that are set in both rows."""
    return one & other


def or_rows(one: Row, other: Row) -> Row:
    """The bits that are set in at least one of the rows."""
    return one | other


def xor_rows(one: Row, other: Row) -> Row:
    """The bits that are set in exactly one of the rows."""
    return one ^ other


def combine_rows(one: Row, other: Row, is_or: Number) -> Row:
    """The rows ORed if `is_or` is 1, ANDed if it is 0; without a branch."""
    return one | other if is_or else one & other


def any_bit(row: Row) -> bool:
    """Whether any bit of a row is set."""
    return bool(row.any())


def within_interval(numbers: Array, start: Number, low: Number, span: Number) -> Number:
    """Bit k says whether 0 <= numbers[start + k] - low < span; 64 unsigned numbers of 32 bits."""
    part = numbers[start : start + LANES].astype(np.int64)
    held = (part - int(low)) & 0xFFFFFFFF
    held = np.concatenate([held < int(span), np.zeros(LANES - part.size, np.bool_)])
    return np.packbits(held, bitorder="little").view(np.uint64)[0]


def write_bit_places(
    numbers: Array, start: Number, byte: Number, digits: Array, base: Number
) -> None:
    """Write base + digits[byte, k] to numbers[start + k], for all eight k.

    digits[byte] has the places of the bits that are set in the byte, then arbitrary numbers, whose
    places in numbers[*] the next call overwrites.
    """
    numbers[start : start + 8] = digits[byte].astype(np.int64) + int(base)


# --- the instructions that the compiler puts in their place


def _address(context: Any, builder: Any, kind: Any, array: Any, place: Any, vector: Any) -> Any:
    data = context.make_array(kind)(context, builder, array).data
    return builder.bitcast(builder.gep(data, [place]), vector.as_pointer())


def _place(context: Any, builder: Any, number: Any, kind: Any, width: int) -> Any:
    whole = context.cast(builder, number, kind, types.int64)
    return builder.mul(whole, ir.Constant(_WORD, width))


@instructions_of(load_row, ROW)
def _load_row(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    place = _place(context, builder, arguments[1], signature.args[1], WORDS)
    kind = signature.args[0]
    found = builder.load(_address(context, builder, kind, arguments[0], place, _VECTOR))
    found.align = 8  # rows need not start at a multiple of their size
    return found


@instructions_of(store_row, types.void)
def _store_row(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    place = _place(context, builder, arguments[1], signature.args[1], WORDS)
    address = _address(context, builder, signature.args[0], arguments[0], place, _VECTOR)
    builder.store(arguments[2], address).align = 8
    return context.get_dummy_value()


@instructions_of(empty_row, ROW)
def _empty_row(_context: Any, _builder: Any, _signature: Any, _arguments: Any) -> Any:
    return ir.Constant(_VECTOR, [0] * WORDS)


@instructions_of(and_rows, ROW)
def _and_rows(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
    return builder.and_(*arguments)


@instructions_of(or_rows, ROW)
def _or_rows(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
    return builder.or_(*arguments)


@instructions_of(xor_rows, ROW)
def _xor_rows(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
    return builder.xor(*arguments)


@instructions_of(combine_rows, ROW)
def _combine_rows(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    one, other, is_or = arguments
    bit = context.cast(builder, is_or, signature.args[2], types.int64)
    ones = _spread(builder, builder.neg(bit), _VECTOR)  # all bits, or none
    # The majority of three bits: of two bits and 1 it is OR, of two bits and 0 it is AND.
    both, either = builder.and_(one, other), builder.or_(one, other)
    return builder.or_(both, builder.and_(either, ones))


@instructions_of(any_bit, types.boolean)
def _any_bit(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
    words = builder.icmp_unsigned("!=", arguments[0], ir.Constant(_VECTOR, [0] * WORDS))
    byte = builder.bitcast(words, ir.IntType(8))
    return builder.icmp_unsigned("!=", byte, ir.Constant(ir.IntType(8), 0))


@instructions_of(within_interval, types.uint64)
def _within_interval(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    kinds = signature.args
    place = _place(context, builder, arguments[1], kinds[1], 1)
    found = builder.load(_address(context, builder, kinds[0], arguments[0], place, _NUMBERS))
    found.align = 4
    low, span = (
        _spread(builder, context.cast(builder, arguments[k], kinds[k], types.uint32), _NUMBERS)
        for k in (2, 3)
    )
    inside = builder.icmp_unsigned("<", builder.sub(found, low), span)
    return builder.bitcast(inside, _WORD)


@instructions_of(write_bit_places, types.void)
def _write_bit_places(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    kinds = signature.args
    row = _place(context, builder, arguments[2], kinds[2], 8)
    bits = builder.load(_address(context, builder, kinds[3], arguments[3], row, _PLACES))
    bits.align = 1
    first = _spread(builder, context.cast(builder, arguments[4], kinds[4], types.int32), _EIGHT)
    found = builder.add(builder.zext(bits, _EIGHT), first)
    place = _place(context, builder, arguments[1], kinds[1], 1)
    address = _address(context, builder, kinds[0], arguments[0], place, _EIGHT)
    builder.store(found, address).align = 4
    return context.get_dummy_value()


def _spread(builder: Any, number: Any, kind: Any) -> Any:
    """A vector that has the same number in every lane."""
    nothing_yet = ir.Constant(kind, ir.Undefined)
    single = builder.insert_element(nothing_yet, number, ir.Constant(ir.IntType(32), 0))
    everywhere = ir.Constant(ir.VectorType(ir.IntType(32), kind.count), [0] * kind.count)
    return builder.shuffle_vector(single, nothing_yet, everywhere)
