"""A broker in a process of its own, started by the command as a user would."""

import contextlib
import itertools
import os
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Self

READY = re.compile(r"ready http=(\S+):(\d+) stomp=(\S+):(\d+)(?: listen=\S+)?\n")


# Each process of a run of tests has ports of its own, and takes another one each time: between
# looking at a port and using it, nobody else takes it. The system gives ports from 32,768 on.
_PER_PROCESS = 2_500
_FIRST_PORT = 20_000 + _PER_PROCESS * (
    int(os.environ.get("PYTEST_XDIST_WORKER", "gw4").removeprefix("gw")) % 5
)
_turns = itertools.count(os.getpid() * 11)


def quiet_ports(count: int) -> list[int]:
    """Free ports that the system gives to nobody else.

    A client that tries to connect to a port of a dead server would otherwise be given this very
    port for its own end, and be connected to itself.
    """
    found: list[int] = []
    while len(found) < count:
        port = _FIRST_PORT + next(_turns) % _PER_PROCESS
        with contextlib.suppress(OSError), socket.socket() as one:
            one.bind(("127.0.0.1", port))
            found.append(port)
    return found


class BrokerProcess:
    """``tamis serve`` with its data in a folder; it can be killed, and started again."""

    def __init__(self, folder: Path, *arguments: str, http: int = 0, stomp: int = 0) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.http, self.stomp = http, stomp
        self.deaths: list[str] = []  # that nobody has asked for
        self._arguments = arguments
        self._process: subprocess.Popen[str] | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.http}"

    @property
    def log(self) -> str:
        """What it has logged, in all of its lives."""
        return (self.folder / "log").read_text(encoding="utf-8", errors="replace")

    def spawn(self) -> None:
        """Start the process, and do not wait until it is ready."""
        command = [
            sys.executable, "-m", "tamis", "serve", "--data", str(self.folder / "data"),
            "--http", f"127.0.0.1:{self.http}", "--stomp", f"127.0.0.1:{self.stomp}",
            *self._arguments,
        ]  # fmt: skip
        with (self.folder / "log").open("a", encoding="utf-8") as log:
            self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)

    def wait(self) -> None:
        """Wait until it is ready."""
        assert self._process is not None
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        found = READY.fullmatch(line)
        if found is None:
            self.kill()
            raise AssertionError(f"the broker did not start: {line!r}\n{self.log[-3000:]}")
        self.http, self.stomp = int(found[2]), int(found[4])

    def start(self) -> None:
        """Start the process, and wait until it is ready."""
        self.spawn()
        self.wait()

    def send(self, number: signal.Signals) -> None:
        """Send a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        """End it as a crash does."""
        if self._process is not None:
            code = self._process.poll()
            if code is not None:
                self.deaths.append(f"{self.folder.name} ended by itself, with {code}")
            self._process.kill()
            self._end()

    def stop(self) -> int:
        """Ask it to stop, and return its exit code."""
        self.send(signal.SIGTERM)
        return self._end()

    def _end(self) -> int:
        assert self._process is not None
        self._process.communicate()
        code, self._process = self._process.returncode, None
        return code

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()
