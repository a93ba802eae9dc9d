"""Plain functions in whose place the compiler puts instructions of its own choice.

numba also offers this as `overload` and `intrinsic`. With those it compiles a function around the
instructions for each combination of types, which takes longer than compiling most kernels.
"""

import inspect
from collections.abc import Callable
from typing import Any

from numba.core import types
from numba.extending import lower_builtin, type_callable

Generator = Callable[[Any, Any, Any, Any], Any]  # context, builder, signature, arguments


def instructions_of(function: Callable[..., Any], result: types.Type) -> Callable[..., Generator]:
    """Decorates what generates the instructions of a function, whose result has a type."""

    def typing(_context: Any) -> Callable[..., types.Type]:
        def typed(*_arguments: types.Type) -> types.Type:
            return result

        typed.__signature__ = inspect.signature(function)  # type: ignore[attr-defined]  # for numba
        return typed

    def register(generate: Generator) -> Generator:
        type_callable(function)(typing)
        parameters = [types.Any] * len(inspect.signature(function).parameters)
        lower_builtin(function, *parameters)(generate)  # type: ignore[no-untyped-call]  # numba's
        return generate

    return register
