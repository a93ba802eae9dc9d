"""``tamis network``: the brokers of a network, as processes of this machine."""

import argparse
import contextlib
import re
import selectors
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tamis.errors import FileError

if TYPE_CHECKING:
    from tamis.broker.network_file import NetworkBroker, NetworkFile
    from tamis.broker.settings import Address

_DESCRIPTION = """\
Start all brokers that a file describes, each as a process of this machine with its own data, and
stop them together: for development, and for tests. For example:

  links = [["paris", "lyon"], ["lyon", "nice"]]
  [brokers.paris]
  http = "127.0.0.1:8420"
  [brokers.lyon]
  [brokers.nice]

The line "ready NAME http=HOST:PORT stomp=HOST:PORT listen=HOST:PORT" says that a broker accepts
connections, and the line "ready" that all do. Ctrl-C or SIGTERM stops them, and loses nothing.
"""
_READY = re.compile(r"ready (http=.*)\n")


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "network",
        help="run a network of brokers on this machine",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("file", metavar="FILE.toml", help="the brokers and their links")
    parser.add_argument(
        "--restart", action="store_true", help="start a broker again if its process ends"
    )
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Run all brokers until a signal comes."""
    from tamis.broker.network_file import read_network_file

    network = read_network_file(Path(options.file))
    stops = _Stops()
    with _processes(network) as processes:
        selector = selectors.DefaultSelector()
        selector.register(stops.reading, selectors.EVENT_READ, None)
        for process in processes:
            process.start(selector)
        waiting = {process.name for process in processes}
        while True:
            for key, _ in selector.select():
                if key.data is None:
                    return
                broker: _Process = key.data
                line = broker.line()
                found = _READY.fullmatch(line)
                if found is not None:
                    print(f"ready {broker.name} {found[1]}", flush=True)
                    waiting.discard(broker.name)
                    if not waiting:
                        print("ready", flush=True)
                elif not line:
                    broker.ended(selector, again=options.restart and broker.name not in waiting)


class _Stops:
    """Signals that end the command, as something to wait for."""

    def __init__(self) -> None:
        self.reading, writing = socket.socketpair()
        writing.setblocking(False)
        signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
        self._writing = writing
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: None)


class _Process:
    """The process of one broker."""

    def __init__(self, broker: "NetworkBroker", listen: "Address", more: list[str]) -> None:
        self.name = broker.name
        self._command = [
            sys.executable, "-m", "tamis", "serve", "--name", broker.name,
            "--data", str(broker.data), "--http", str(broker.http), "--stomp", str(broker.stomp),
            "--listen", str(listen), *more,
        ]  # fmt: skip
        if broker.config is not None:
            self._command += ["--config", str(broker.config)]
        self._process: subprocess.Popen[str] | None = None

    def start(self, selector: selectors.BaseSelector) -> None:
        # A session of its own: Ctrl-C comes to this process, which stops the brokers in turn.
        self._process = subprocess.Popen(  # noqa: S603 - this very program
            self._command, stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self._process.stdout is not None  # noqa: S101 - it was asked for
        selector.register(self._process.stdout, selectors.EVENT_READ, self)

    def line(self) -> str:
        assert self._process is not None  # noqa: S101 - it was started
        assert self._process.stdout is not None  # noqa: S101 - it was asked for
        return self._process.stdout.readline()

    def ended(self, selector: selectors.BaseSelector, *, again: bool) -> None:
        """Its output has ended: start it again, or fail."""
        assert self._process is not None  # noqa: S101 - it was started
        assert self._process.stdout is not None  # noqa: S101 - it was asked for
        selector.unregister(self._process.stdout)
        self._process.stdout.close()
        code = self._process.wait()
        problem = f"broker {self.name!r} ended with code {code}"
        if not again:
            raise FileError(f"{problem}; the others are stopped")
        print(f"tamis network: {problem}, and is started again", file=sys.stderr)
        self.start(selector)

    def stop(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.terminate()

    def wait(self) -> None:
        if self._process is not None:
            self._process.wait()


@contextlib.contextmanager
def _processes(network: "NetworkFile") -> Iterator[list[_Process]]:
    """The processes, not started yet; all of them have ended afterwards."""
    from tamis.broker.settings import Address

    listens = {}
    with contextlib.ExitStack() as taken:  # so that no port is found twice
        for name, broker in network.brokers.items():
            port = broker.listen.port
            if not port:
                one = taken.enter_context(socket.socket())
                one.bind((broker.listen.host, 0))
                port = one.getsockname()[1]
            listens[name] = Address(broker.listen.host, port)
    common = [] if network.strategy is None else ["--strategy", network.strategy]
    for key, value in network.merging.items():
        common += ["--merging", f"{key}={value}"]
    processes = []
    for name, broker in network.brokers.items():
        called = [other for one, other in network.links if one == name]
        peers = [part for other in called for part in ("--peer", f"{other}={listens[other]}")]
        processes.append(_Process(broker, listens[name], [*peers, *common]))
    try:
        yield processes
    finally:
        for process in processes:
            process.stop()
        for process in processes:
            process.wait()
