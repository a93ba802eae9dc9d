"""A stack of its own for a call that needs more of Python's stack than the caller has left.

Filters are read, printed, compared and evaluated by recursion, whose depth `language/limits.py`
bounds. A caller deep in its own recursion may still have less than that left.
"""

import functools
import threading
from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


def with_deep_stack(function: Callable[P, R]) -> Callable[P, R]:
    """The same function, which is called again in a thread if the stack was too short.

    Only for functions that change nothing before they return, and take no lock.
    """

    @functools.wraps(function)
    def call(*args: P.args, **named: P.kwargs) -> R:
        try:
            return function(*args, **named)
        except RecursionError:
            return called_deeply(function, *args, **named)

    return call


def called_deeply(function: Callable[P, R], *args: P.args, **named: P.kwargs) -> R:
    """The result of a call in a thread, which has a whole stack."""
    answer: list[Any] = []
    failure: list[BaseException] = []

    def run() -> None:
        try:
            answer.append(function(*args, **named))
        except BaseException as error:  # noqa: BLE001 - it is raised in the caller's thread
            failure.append(error)

    thread = threading.Thread(target=run, name="tamis-deep-stack")
    thread.start()
    thread.join()
    if failure:
        raise failure[0]
    found: R = answer[0]
    return found
