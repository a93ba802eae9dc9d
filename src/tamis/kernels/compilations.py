"""The compilations of this process: counted, and announced to whoever waits at a terminal."""

import gc
import sys
import threading
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any
from weakref import WeakSet

from numba.core import event

NOTICE = "tamis compiles its kernels for this processor, once; this takes a few seconds ..."
_ERASED = "\r\x1b[K"


class CompilationStopped(Exception):
    """A thread was to compile no more kernels."""


@dataclass
class Compilations(event.Listener):
    """Counts the kernels that numba compiles here; numba compiles one at a time."""

    count: int = 0  # of kernels that Python calls, with the parts that they call
    seconds: float = 0.0
    _began: list[float] = field(default_factory=list)  # of those that are being compiled
    _is_shown: bool = False
    _collected: bool = True  # whether garbage was collected before
    _stopped: "WeakSet[threading.Thread]" = field(default_factory=WeakSet)

    def stop(self, thread: threading.Thread) -> None:
        """Let a thread compile no more kernels after the one at hand."""
        self._stopped.add(thread)

    def on_start(self, event: Any) -> None:
        if not _is_ours(event):
            return
        if not self._began and sys.stderr is not None and sys.stderr.isatty():
            self._show(NOTICE)
            self._is_shown = True
        if not self._began:
            self._collected = gc.isenabled()
            gc.disable()  # compiling makes many objects, of which few are garbage
        self._began.append(perf_counter())
        if threading.current_thread() in self._stopped:
            raise CompilationStopped

    def on_end(self, event: Any) -> None:
        if not _is_ours(event):
            return
        began = self._began.pop()
        if not self._began:
            if self._collected:
                gc.enable()
            self.count += 1
            self.seconds += perf_counter() - began
            if self._is_shown:
                self._show(_ERASED)
                self._is_shown = False

    def _show(self, text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()


def _is_ours(event: Any) -> bool:
    module: str = event.data["dispatcher"].py_func.__module__
    return module.startswith("tamis.")


compilations = Compilations()
