"""The settings of the compiler, in one place."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

import numba
from numba.core import event
from numba.core.dispatcher import Dispatcher
from numba.core.types import unliteral

from tamis.kernels.compilations import compilations
from tamis.kernels.compiler import KernelCompiler, PartCompiler
from tamis.kernels.kernel_cache import KernelCache

F = TypeVar("F", bound=Callable[..., Any])
Number = Any  # a whole number of the machine: an int, or one of numpy's

# Less to compile: nobody calls kernels from C, none of them divides by zero or makes arrays.
_LIGHT = {"no_cfunc_wrapper": True, "error_model": "numpy", "_nrt": False}
_njit: Any = numba.njit  # its types do not know all settings

event.register("numba:compile", compilations)  # type: ignore[no-untyped-call]  # numba's


def jit(function: F) -> F:
    """Compile on first call, without Python objects or the interpreter's lock; kept in files.

    It writes to arrays that it is given: to make arrays it would have to count who uses them, which
    takes time to compile. ``NUMBA_DISABLE_JIT=1`` runs the plain functions, for coverage and
    debugging.
    """
    made = _njit(nogil=True, pipeline_class=KernelCompiler, **_LIGHT)(function)
    if isinstance(made, Dispatcher):
        # Where `cache=True` puts numba's own.
        made._cache = KernelCache(function)  # type: ignore[attr-defined]  # noqa: SLF001
    return cast(F, made)


def inner(function: F) -> F:
    """Compile as a part of the kernels that call it.

    Python cannot call it: what would read the arguments takes longer to compile than most parts.
    """
    made = _njit(no_cpython_wrapper=True, pipeline_class=PartCompiler, **_LIGHT)(function)
    if isinstance(made, Dispatcher):
        _share_among_literals(made)
    return cast(F, made)


def _share_among_literals(made: Any) -> None:
    """Let the calls f(0) and f(n) have one compiled function; numba makes one for each literal."""
    template = made.get_call_template
    made.get_call_template = lambda args, keywords: template(tuple(map(unliteral, args)), keywords)
