"""The settings of the compiler, in one place."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba

F = TypeVar("F", bound=Callable[..., Any])
Number = Any  # a whole number of the machine: an int, or one of numpy's


def jit(function: F) -> F:
    """Compile on first call, without Python objects or the interpreter's lock; kept on disk.

    ``NUMBA_DISABLE_JIT=1`` runs the plain functions, for coverage and debugging.
    """
    return cast(F, numba.njit(cache=True, nogil=True)(function))
