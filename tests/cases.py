"""Many small cases in one test.

A parametrised test is worth its cost where a case takes long or needs fixtures of its own. Tables
of one-line cases are loops instead: all cases are tried, and each one that fails is named.
"""

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any

import pytest

LONGEST_NAME = 300  # characters of a case's name in a failure


def each(names: str | tuple[str, ...], cases: Iterable[Any]) -> Callable[..., Any]:
    """Make a test that runs the decorated one on every case, and fails with all that failed.

    It is called like `pytest.mark.parametrize`, can be stacked like it, and takes `pytest.param`.
    The test's other arguments are fixtures, which all cases share.
    """
    keys = [name.strip() for name in names.split(",")] if isinstance(names, str) else list(names)
    table = [_arguments(keys, case) for case in cases]

    def decorate(function: Callable[..., None]) -> Callable[..., None]:
        @wraps(function)
        def test(**others: object) -> None:
            failures = []
            for arguments in table:
                try:
                    function(**others, **arguments)
                except (Exception, pytest.fail.Exception) as failure:  # noqa: BLE001 - all of them
                    failures.append(_named(failure, arguments))
            if failures:
                message = f"{len(failures)} of {len(table)} cases failed"
                raise BaseExceptionGroup(message, failures)

        signature = inspect.signature(function)
        rest = [one for name, one in signature.parameters.items() if name not in keys]
        # pytest reads the fixtures of a test from its signature.
        test.__signature__ = signature.replace(parameters=rest)  # type: ignore[attr-defined]  # see above
        assert len(rest) + len(keys) == len(signature.parameters), function.__name__
        assert table, f"{function.__name__} has no cases"
        return test

    return decorate


def _arguments(keys: list[str], case: Any) -> dict[str, Any]:
    """The arguments of one case, by name."""
    values = getattr(case, "values", None) if hasattr(case, "marks") else None
    if values is None:
        values = [case] if len(keys) == 1 else case
    return dict(zip(keys, values, strict=True))


def _named(failure: BaseException, arguments: dict[str, Any]) -> BaseException:
    name = ", ".join(f"{key}={value!r}" for key, value in arguments.items())
    failure.add_note(f"case: {name[:LONGEST_NAME]}")
    return failure
