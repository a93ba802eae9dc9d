"""The contestants: brokers, each a process of its own with an empty data folder.

Those of others are the Debian packages activemq, mosquitto and nats-server. One that is not
installed is named and left out.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from broker_sections.stopwatch import cpu_seconds

PATIENCE = 120.0  # seconds for a broker to start
HOST = "127.0.0.1"
ACTIVEMQ = Path("/usr/share/activemq/bin/activemq.jar")

# Everything that would slow it down and is not needed is off: management, persistence of topics
# without durable subscribers happens anyway only in memory. Limits of memory are the machine's.
_ACTIVEMQ_XML = """\
<beans xmlns="http://www.springframework.org/schema/beans"
  xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance"
  xsi:schemaLocation="http://www.springframework.org/schema/beans
  http://www.springframework.org/schema/beans/spring-beans-2.0.xsd
  http://activemq.apache.org/schema/core http://activemq.apache.org/schema/core/activemq-core.xsd">
  <broker xmlns="http://activemq.apache.org/schema/core" useJmx="false" brokerName="bench"
      dataDirectory="{folder}/data" advisorySupport="false">
    <persistenceAdapter><kahaDB directory="{folder}/data/kahadb"/></persistenceAdapter>
    <systemUsage><systemUsage><memoryUsage><memoryUsage limit="1 gb"/></memoryUsage>
    </systemUsage></systemUsage>
    <transportConnectors>
      <transportConnector name="stomp"
        uri="stomp+nio://127.0.0.1:{port}?transport.hbGracePeriodMultiplier=2"/>
    </transportConnectors>
  </broker>
</beans>
"""


@dataclass
class Server:
    """A broker that runs."""

    name: str
    process: "subprocess.Popen[str]"
    folder: Path
    stomp: int = 0  # ports
    http: int = 0
    other: int = 0
    seconds: float = 0.0  # from the start of the process until it accepted connections
    log: Path = field(default=Path(os.devnull))

    @property
    def url(self) -> str:
        """The address for HTTP."""
        return f"http://{HOST}:{self.http}"

    def resident(self) -> int:
        """Bytes of memory that the process holds."""
        text = Path(f"/proc/{self.process.pid}/smaps_rollup").read_text(encoding="utf-8")
        return 1024 * next(int(line.split()[1]) for line in text.splitlines() if "Pss:" in line)

    def cpu(self) -> float:
        """Seconds of processor time that the process has used."""
        return cpu_seconds(self.process.pid)


def missing() -> dict[str, str]:
    """The contestants that are not installed, with what is missing."""
    found = {}
    if not ACTIVEMQ.is_file() or shutil.which("java") is None:
        found["activemq"] = "Debian package activemq, or Java"
    for name in ("mosquitto", "nats-server"):
        if _program(name) is None:
            found[name] = f"Debian package {name}"
    return found


@contextmanager
def running(name: str, *, folder: Path | None = None) -> Iterator[Server]:
    """The broker of this name, started, and stopped at the end; `folder` keeps its data."""
    with tempfile.TemporaryDirectory(prefix=f"bench-{name}-") as temporary:
        server = _STARTS[name](folder or Path(temporary))
        try:
            yield server
        finally:
            _stop(server)


def _stop(server: Server) -> None:
    server.process.send_signal(signal.SIGTERM)
    try:
        server.process.wait(PATIENCE)
    except subprocess.TimeoutExpired:
        server.process.kill()
        server.process.wait()


def _tamis(folder: Path) -> Server:
    begun = time.perf_counter()
    log = folder / "server.log"
    with log.open("a", encoding="utf-8") as errors:
        process = subprocess.Popen(  # noqa: S603 - our own
            [sys.executable, "-m", "tamis", "serve", "--data", str(folder / "data"),
             "--http", f"{HOST}:0", "--stomp", f"{HOST}:0"],
            stdout=subprocess.PIPE, stderr=errors, text=True,
        )  # fmt: skip
    line = process.stdout.readline().split() if process.stdout is not None else []
    if not line or line[0] != "ready":
        process.kill()
        raise SystemExit(f"tamis serve did not start: {log.read_text(encoding='utf-8')}")
    ports = dict(word.split("=", 1) for word in line[1:])
    http, stomp = (int(ports[kind].rpartition(":")[2]) for kind in ("http", "stomp"))
    seconds = time.perf_counter() - begun
    return Server("tamis", process, folder, stomp, http, seconds=seconds, log=log)


def _activemq(folder: Path) -> Server:
    port = _free_port()
    (folder / "conf").mkdir()
    settings = folder / "conf" / "activemq.xml"
    settings.write_text(_ACTIVEMQ_XML.format(folder=folder, port=port), encoding="utf-8")
    places = {"home": "/usr/share/activemq", "base": folder, "conf": folder / "conf",
              "data": folder / "data"}  # fmt: skip
    command = ["java", "-Xmx2g", *(f"-Dactivemq.{key}={place}" for key, place in places.items()),
               "-jar", str(ACTIVEMQ), "start", f"xbean:file:{settings}"]  # fmt: skip
    return _started("activemq", command, folder, port, stomp=port)


def _mosquitto(folder: Path) -> Server:
    port = _free_port()
    settings = folder / "mosquitto.conf"
    # Without these limits it drops messages for readers that are behind.
    settings.write_text(
        f"listener {port} {HOST}\nallow_anonymous true\nmax_queued_messages 0\n"
        "max_queued_bytes 0\nset_tcp_nodelay true\n", encoding="utf-8",
    )  # fmt: skip
    return _started("mosquitto", [_program("mosquitto") or "", "-c", str(settings)], folder, port)


def _nats(folder: Path) -> Server:
    port = _free_port()
    settings = folder / "nats.conf"
    settings.write_text(f"host: {HOST}\nport: {port}\nmax_pending: 1GB\n", encoding="utf-8")
    command = [_program("nats-server") or "", "-c", str(settings)]
    return _started("nats-server", command, folder, port)


_STARTS = {"tamis": _tamis, "activemq": _activemq, "mosquitto": _mosquitto, "nats-server": _nats}


def _started(name: str, command: list[str], folder: Path, port: int, stomp: int = 0) -> Server:
    begun = time.perf_counter()
    log = folder / "server.log"
    with log.open("w", encoding="utf-8") as output:
        process = subprocess.Popen(  # noqa: S603 - the contestants
            command, stdout=output, stderr=subprocess.STDOUT, text=True, cwd=folder
        )
    while time.perf_counter() - begun < PATIENCE and process.poll() is None:
        with socket.socket() as probe:
            probe.settimeout(1)
            if probe.connect_ex((HOST, port)) == 0:
                seconds = time.perf_counter() - begun
                return Server(name, process, folder, stomp, other=port, seconds=seconds, log=log)
        time.sleep(0.05)
    process.kill()
    raise SystemExit(f"{name} did not start: {log.read_text(encoding='utf-8')[-2000:]}")


def _program(name: str) -> str | None:
    return shutil.which(name, path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])
