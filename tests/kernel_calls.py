"""Calls of parts of kernels, which only other kernels can call."""

from collections.abc import Callable
from typing import Any

from tamis.kernels.jit import jit


def from_python(part: Callable[..., Any]) -> Callable[..., Any]:
    """A part of kernels, compiled so that Python can call it."""
    return jit(part.py_func) if hasattr(part, "py_func") else part
