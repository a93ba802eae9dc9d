"""Counting and finding the bits of 64-bit words; in compiled code each is one instruction."""

from typing import Any

from numba.core import types

from tamis.kernels.instructions import instructions_of
from tamis.kernels.jit import Number

EVERY_BIT = 2**64 - 1


def count_ones(word: Number) -> int:
    """How many bits of a word are set."""
    return int(word).bit_count()


def first_one(word: Number) -> int:
    """The place of the lowest bit that is set, in a word that is not 0."""
    whole = int(word)
    return (whole & -whole).bit_length() - 1


@instructions_of(count_ones, types.int64)
def _count_ones(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    return builder.ctpop(context.cast(builder, arguments[0], signature.args[0], types.uint64))


@instructions_of(first_one, types.int64)
def _first_one(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
    word = context.cast(builder, arguments[0], signature.args[0], types.uint64)
    return builder.cttz(word, context.get_constant(types.boolean, True))  # not for 0
