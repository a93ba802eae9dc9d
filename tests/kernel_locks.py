"""One process compiles a kernel, and the others wait and load it from numba's cache.

Without this, the processes of a test run that starts with an empty cache would all compile the same
kernels at the same time, which takes longer than most of the suite.
"""

import fcntl
from pathlib import Path
from typing import Any


def install() -> None:
    """Let numba hold a lock file per kernel while it loads or compiles it."""
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.dispatcher import Dispatcher

    compile_kernel = Dispatcher.compile
    held: set[str] = set()  # a kernel that calls itself is compiled inside its own compilation

    def compile_once(self: Any, signature: Any) -> Any:
        folder = self._cache.cache_path
        name = f"{self.py_func.__module__}.{self.py_func.__qualname__}"
        # Numba's own lock comes first: a thread that waited for it with a file locked could wait
        # for a thread that waits for the file. Kernels do not call each other in circles, so
        # processes that hold files do not wait for each other in circles, either.
        with global_compiler_lock:
            if folder is None or name in held:
                return compile_kernel(self, signature)
            Path(folder).mkdir(parents=True, exist_ok=True)
            held.add(name)
            try:
                with Path(folder, f"{name}.lock").open("w") as file:
                    fcntl.flock(file, fcntl.LOCK_EX)
                    return compile_kernel(self, signature)
            finally:
                held.discard(name)

    Dispatcher.compile = compile_once
