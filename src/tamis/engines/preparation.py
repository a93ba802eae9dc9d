"""Compiling the kernels of matching in the background, for those who need not wait for them.

A process compiles them at most once, and not at all if they are kept from an earlier one. The
thread that compiles is stopped, after the kernel at hand, before the process ends or forks: a fork
would have a copy of the compiler's lock, held by a thread that it does not have.
"""

import atexit
import logging
import os
import threading
from functools import cached_property

from tamis.kernels import kernel_cache
from tamis.kernels.compilations import CompilationStopped, compilations

logger = logging.getLogger("tamis")


class Preparation:
    """The kernels that a rehearsal calls, compiled or being compiled."""

    def __init__(self, rehearsal: str) -> None:
        self._rehearsal = rehearsal
        self._mark = kernel_cache.done(rehearsal)
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_done = False

    @cached_property
    def _were_kept(self) -> bool:
        """Whether this process found them compiled."""
        marks = {self._mark, kernel_cache.done("matching")}  # which is all of them
        return bool(kernel_cache.config.DISABLE_JIT) or any(
            kernel_cache.read(mark) is not None for mark in marks
        )

    def is_done(self) -> bool:
        """Whether all is compiled."""
        return self._is_done or self._were_kept

    def start(self) -> None:
        """Let a thread compile, unless all is compiled or one is at work."""
        with self._lock:
            is_busy = self._thread is not None and self._thread.is_alive()
            if not self.is_done() and not is_busy:
                self._thread = threading.Thread(
                    target=self._compile, name="tamis-compiling", daemon=True
                )
                self._thread.start()

    def wait(self) -> None:
        """Return when all is compiled."""
        while not self.is_done():
            self.start()
            thread = self._thread
            if thread is not None:
                thread.join()

    def stop(self) -> None:
        """Return when no thread is at work; `start` starts one again."""
        with self._lock:
            if self._thread is not None and self._thread is not threading.current_thread():
                compilations.stop(self._thread)
                self._thread.join()
                self._thread = None

    def _compile(self) -> None:
        from tamis.engines import rehearsal

        try:
            getattr(rehearsal, f"rehearse_{self._rehearsal}")()
            folder = kernel_cache.written_folder()
            if folder is not None:
                kernel_cache.write(self._mark, b"", folder)
        except CompilationStopped:
            return
        except Exception:  # a thread has nobody to raise it to
            # Kernels are then compiled by whoever calls them first.
            logger.exception("the kernels could not be compiled in the background")
        self._is_done = True


preparation = Preparation("matching")
batch_preparation = Preparation("batches")  # for those who never match a single event
for _one in (preparation, batch_preparation):
    atexit.register(_one.stop)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=_one.stop)
