"""Counting and finding the bits of 64-bit words; in compiled code each is one instruction."""

from typing import Any

from numba.core import types
from numba.extending import intrinsic, overload

from tamis.kernels.jit import Number

EVERY_BIT = 2**64 - 1


def count_ones(word: Number) -> int:
    """How many bits of a word are set."""
    return int(word).bit_count()


def first_one(word: Number) -> int:
    """The place of the lowest bit that is set, in a word that is not 0."""
    whole = int(word)
    return (whole & -whole).bit_length() - 1


def _instruction(name: str, *more: bool) -> Any:
    @intrinsic
    def call(_typing: Any, _word: Any) -> Any:
        def generate(context: Any, builder: Any, _signature: Any, arguments: Any) -> Any:
            flags = [context.get_constant(types.boolean, one) for one in more]
            return getattr(builder, name)(arguments[0], *flags)

        return types.uint64(types.uint64), generate

    return call


_ctpop = _instruction("ctpop")
_cttz = _instruction("cttz", True)


@overload(count_ones)
def _count_ones(word: Any) -> Any:  # noqa: ARG001 - numba looks at the type
    def implementation(word: Any) -> Any:
        return types.int64(_ctpop(types.uint64(word)))

    return implementation


@overload(first_one)
def _first_one(word: Any) -> Any:  # noqa: ARG001 - numba looks at the type
    def implementation(word: Any) -> Any:
        return types.int64(_cttz(types.uint64(word)))

    return implementation
