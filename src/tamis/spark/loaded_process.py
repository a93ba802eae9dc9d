"""A process that loads what Python workers need while Spark's JVM is starting.

Spark starts its daemon of workers with the first task that runs Python, and the first job would
wait while the daemon loads. So the driver starts this process before the JVM. When Spark starts
the daemon (`worker_daemon`), that hands over its standard streams, environment and arguments: a
copy of the loaded process becomes the daemon, and the one that Spark started only waits for its
end. No job of Spark is needed for it, so nothing is in the way of a session that stops at once.

The socket on which it waits belongs to the driver's user alone. Where anything goes wrong, the
daemon loads by itself.
"""

import atexit
import importlib
import json
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

ADDRESS = "TAMIS_LOADED_PROCESS"  # the variable in which the JVM's children find the socket

# Variables that libraries read while they are loaded: they must be those of the daemon.
READ_AT_LOADING = ("NUMBA_", "OMP_", "OPENBLAS_", "MKL_", "ARROW_", "TAMIS_")
THREADS = "OMP_NUM_THREADS"  # which Spark sets to the cores of a task

LOADED = "loaded"  # the argument of a daemon that loads and calls `serve`

_DAEMON = "tamis.spark.worker_daemon"
_LENGTH = struct.Struct("!i")
_STREAMS = (0, 1, 2)

_started: str | None = None  # the address of the process that this driver has started


# --- in the driver


def start() -> str:
    """Start the process, once per driver; returns the address of its socket."""
    global _started  # noqa: PLW0603 - the process lives as long as the driver
    if _started is not None:
        return _started
    folder = tempfile.mkdtemp(prefix="tamis-loaded-")  # nobody else can enter it
    address = str(Path(folder, "socket"))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()  # before anybody can ask: whoever comes early waits
        process = subprocess.Popen(  # noqa: S603 - this Python, with a module of ours
            [sys.executable, "-m", _DAEMON, LOADED, str(listener.fileno())],
            stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            pass_fds=[listener.fileno()], start_new_session=True,
            env=os.environ | {THREADS: "1"},
        )  # fmt: skip
    atexit.register(_end, process, folder)
    _started = address
    return address


def _end(process: "subprocess.Popen[bytes]", folder: str) -> None:
    process.kill()
    process.communicate()
    shutil.rmtree(folder, ignore_errors=True)


# --- in the process that Spark has started as its daemon


def became_daemon() -> bool:
    """Let a loaded process be the daemon, and return when it ends; False if there is none."""
    address = os.environ.pop(ADDRESS, None)  # no business of workers
    if address is None:
        return False
    with socket.socket(socket.AF_UNIX) as connection:
        # An order to end must not come between the answer and our readiness to pass it on.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
        try:
            daemon = _handed_over(connection, address)
            if daemon is not None:
                signal.signal(signal.SIGTERM, lambda number, _: os.kill(daemon, number))
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if daemon is not None:
            with suppress(OSError):  # it was killed: that is an end, too
                connection.recv(1)
    return daemon is not None


def _handed_over(connection: socket.socket, address: str) -> int | None:
    """The number of the process that is the daemon now; None if there is none."""
    request = {"variables": dict(os.environ), "arguments": sys.argv, "paths": sys.path}
    with suppress(OSError):
        content = json.dumps(request | {"folder": str(Path.cwd())}).encode()
        connection.connect(address)
        socket.send_fds(connection, [_LENGTH.pack(len(content))], _STREAMS)
        connection.sendall(content)
        answer = connection.recv(_LENGTH.size)
        if len(answer) == _LENGTH.size:
            return int(_LENGTH.unpack(answer)[0])
    return None


# --- in the loaded process


def serve(number: int) -> None:
    """Make a daemon for whoever asks at a socket, until the driver has ended."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for the daemons
    with socket.socket(fileno=number) as listener:
        driver = 0  # our standard input, to which it never writes: what is heard is its end
        while driver not in select.select([driver, listener.fileno()], [], [])[0]:
            connection, _ = listener.accept()
            with connection, suppress(OSError, struct.error, ValueError):  # whoever asked has gone
                request, streams = _received(connection)
                if _is_ours(request["variables"]) and os.fork() == 0:
                    listener.close()
                    _become(connection, request, streams)
                for stream in streams:
                    os.close(stream)


def _received(connection: socket.socket) -> tuple[dict[str, Any], list[int]]:
    """What the daemon of Spark sends: its environment and arguments, and its streams."""
    start, streams, _, _ = socket.recv_fds(connection, _LENGTH.size, len(_STREAMS))
    with connection.makefile("rb") as file:
        content = file.read(_LENGTH.unpack(start)[0])
    return json.loads(content), streams


def _is_ours(variables: dict[str, str]) -> bool:
    """Whether libraries would load in the same way with the variables of the daemon."""

    def read(those: Mapping[str, str]) -> dict[str, str]:
        return {name: those[name] for name in those if name.startswith(READ_AT_LOADING)}

    return read(variables) == read(os.environ)


def _become(connection: socket.socket, request: dict[str, Any], streams: list[int]) -> NoReturn:
    """Be Spark's daemon."""
    code = 1
    try:
        for stream, given in zip(_STREAMS, streams, strict=True):
            os.dup2(given, stream)
            os.close(given)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.environ.clear()
        os.environ.update(request["variables"])
        os.chdir(request["folder"])
        sys.argv[:] = request["arguments"]
        sys.path[:] = request["paths"]
        importlib.invalidate_caches()
        connection.sendall(_LENGTH.pack(os.getpid()))
        from pyspark.daemon import manager

        manager()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    except BaseException:  # noqa: BLE001 - as Python does at the end of a process
        traceback.print_exc()
    finally:
        os._exit(code)
