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
from numba.extending import intrinsic, models, overload, register_model

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


@intrinsic
def _load(_typing: Any, rows: Any, number: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _place(context, builder, arguments[1], signature.args[1], WORDS)
        kind = signature.args[0]
        found = builder.load(_address(context, builder, kind, arguments[0], place, _VECTOR))
        found.align = 8  # rows need not start at a multiple of their size
        return found

    return ROW(rows, number), generate


@intrinsic
def _store(_typing: Any, rows: Any, number: Any, row: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        place = _place(context, builder, arguments[1], signature.args[1], WORDS)
        kind = signature.args[0]
        address = _address(context, builder, kind, arguments[0], place, _VECTOR)
        builder.store(arguments[2], address).align = 8
        return context.get_dummy_value()

    return types.void(rows, number, row), generate


@intrinsic
def _empty_row(_typing: Any) -> Any:
    def generate(_context: Any, _builder: Any, _signature: Any, _arguments: Any) -> Any:
        return ir.Constant(_VECTOR, [0] * WORDS)

    return ROW(), generate


def _operation(name: str) -> Any:
    @intrinsic
    def call(_typing: Any, one: Any, other: Any) -> Any:
        def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            return getattr(builder, name)(*arguments)

        return ROW(one, other), generate

    return call


_and_rows, _or_rows, _xor_rows = _operation("and_"), _operation("or_"), _operation("xor")


@intrinsic
def _any_bit(_typing: Any, row: Any) -> Any:
    def generate(_context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
        words = builder.icmp_unsigned("!=", arguments[0], ir.Constant(_VECTOR, [0] * WORDS))
        byte = builder.bitcast(words, ir.IntType(8))
        return builder.icmp_unsigned("!=", byte, ir.Constant(ir.IntType(8), 0))

    return types.boolean(row), generate


@intrinsic
def _within_interval(_typing: Any, numbers: Any, start: Any, low: Any, span: Any) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
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

    return types.uint64(numbers, start, low, span), generate


@intrinsic
def _write_bit_places(
    _typing: Any, numbers: Any, start: Any, byte: Any, digits: Any, base: Any
) -> Any:
    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
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

    return types.void(numbers, start, byte, digits, base), generate


def _spread(builder: Any, number: Any, kind: Any) -> Any:
    """A vector that has the same number in every lane."""
    nothing_yet = ir.Constant(kind, ir.Undefined)
    single = builder.insert_element(nothing_yet, number, ir.Constant(ir.IntType(32), 0))
    everywhere = ir.Constant(ir.VectorType(ir.IntType(32), kind.count), [0] * kind.count)
    return builder.shuffle_vector(single, nothing_yet, everywhere)


# numba adds the first parameter of an intrinsic itself; hence the ignored types.


@overload(load_row, strict=False)
def _compiled_load_row(rows: Any, number: Any) -> Any:  # noqa: ARG001 - numba looks at the types
    return lambda rows, number: _load(rows, number)  # type: ignore[call-arg]


@overload(store_row, strict=False)
def _compiled_store_row(rows: Any, number: Any, row: Any) -> Any:  # noqa: ARG001 - as above
    return lambda rows, number, row: _store(rows, number, row)  # type: ignore[call-arg]


@overload(empty_row, strict=False)
def _compiled_empty_row() -> Any:
    return lambda: _empty_row()  # type: ignore[call-arg]


@overload(and_rows, strict=False)
def _compiled_and_rows(one: Any, other: Any) -> Any:  # noqa: ARG001 - as above
    return lambda one, other: _and_rows(one, other)


@overload(or_rows, strict=False)
def _compiled_or_rows(one: Any, other: Any) -> Any:  # noqa: ARG001 - as above
    return lambda one, other: _or_rows(one, other)


@overload(xor_rows, strict=False)
def _compiled_xor_rows(one: Any, other: Any) -> Any:  # noqa: ARG001 - as above
    return lambda one, other: _xor_rows(one, other)


@overload(any_bit, strict=False)
def _compiled_any_bit(row: Any) -> Any:  # noqa: ARG001 - as above
    return lambda row: _any_bit(row)  # type: ignore[call-arg]


@overload(within_interval, strict=False)
def _compiled_within_interval(numbers: Any, start: Any, low: Any, span: Any) -> Any:  # noqa: ARG001 - as above
    return lambda numbers, start, low, span: _within_interval(numbers, start, low, span)  # type: ignore[call-arg]


@overload(write_bit_places, strict=False)
def _compiled_write_bit_places(numbers: Any, start: Any, byte: Any, digits: Any, base: Any) -> Any:  # noqa: ARG001 - as above
    return lambda numbers, start, byte, digits, base: _write_bit_places(
        numbers, start, byte, digits, base
    )  # type: ignore[call-arg]
