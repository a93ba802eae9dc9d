"""Counting and finding the bits of 64-bit words, and the smaller of two numbers.

In compiled code each is an instruction or two.
"""

from typing import Any

from numba.core import types

from tamis.kernels.instructions import instructions_of
from tamis.kernels.jit import Number


def count_ones(word: Number) -> int:
    """How many bits of a word are set."""
    return int(word).bit_count()


def first_one(word: Number) -> int:
    """The place of the lowest bit that is set, in a word that is not 0."""
    whole = int(word)
    return (whole & -whole).bit_length() - 1


def smaller(one: Number, other: Number) -> int:
    """The smaller of two whole numbers, as `min`, of which numba compiles one for each use."""
    return min(int(one), int(other))


def larger(one: Number, other: Number) -> int:
    """The larger of two whole numbers."""
    return max(int(one), int(other))


@instructions_of(count_ones, types.int64)
def _count_ones(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.ctpop(context.cast(builder, arguments[0], signature.args[0], types.uint64))


@instructions_of(first_one, types.int64)
def _first_one(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    word = context.cast(builder, arguments[0], signature.args[0], types.uint64)
    return builder.cttz(word, context.get_constant(types.boolean, True))  # not for 0


@instructions_of(smaller, types.int64)
def _smaller(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    one, other = _whole(context, builder, signature, arguments)
    return builder.select(builder.icmp_signed("<", one, other), one, other)


@instructions_of(larger, types.int64)
def _larger(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    one, other = _whole(context, builder, signature, arguments)
    return builder.select(builder.icmp_signed(">", one, other), one, other)


def _whole(context: Any, builder: Any, signature: Any, arguments: Any) -> list[Any]:
    pairs = zip(arguments, signature.args, strict=True)
    return [context.cast(builder, value, kind, types.int64) for value, kind in pairs]
