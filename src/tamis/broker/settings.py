"""Settings of a broker: where its data is, where it listens, who may use it.

Without a file of settings it listens on this machine only and everybody is the account ``guest``.
`settings_file.py` reads a file.
"""

import ipaddress
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tamis.broker.accounts import Account, Accounts
from tamis.broker.limits import AccountLimits
from tamis.broker.network_settings import NetworkSettings
from tamis.broker.records import Retention
from tamis.errors import OptionError, choose

HTTP_PORT, STOMP_PORT = 8420, 61613
DURABILITIES = ("sync", "written")
LOG_LEVELS = ("debug", "info", "warning", "error")
LOG_FORMATS = ("json", "text")


class Address(NamedTuple):
    """A host and a port; port 0 is a free one."""

    host: str
    port: int

    @classmethod
    def read(cls, text: object) -> "Address":
        """The address that ``HOST:PORT`` or ``[IPV6]:PORT`` names."""
        if not isinstance(text, str):
            raise OptionError(f"expected an address HOST:PORT, got {text!r}")
        host, colon, port = text.strip().rpartition(":")
        bracketed = host.startswith("[") and host.endswith("]")
        if not colon or not host or (":" in host and not bracketed):
            raise OptionError(
                f"expected an address HOST:PORT, such as 127.0.0.1:{HTTP_PORT} or "
                f"[::1]:{HTTP_PORT}, got {text!r}"
            )
        if not (port.isascii() and port.isdecimal() and len(port) <= 5 and int(port) < 2**16):
            raise OptionError(f"the port of {text!r} is not a number from 0 to 65535")
        return cls(host[1:-1] if bracketed else host, int(port))

    @property
    def is_loopback(self) -> bool:
        """Whether only programs of this machine reach it."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class TlsFiles(NamedTuple):
    """The files of a certificate, with those that lead to a known authority, and of its key."""

    certificate: Path
    key: Path


USUAL_HTTP = Address("127.0.0.1", HTTP_PORT)
USUAL_STOMP = Address("127.0.0.1", STOMP_PORT)


@dataclass(frozen=True)
class TopicSettings:
    """A topic that a file of settings names; with a schema it is created when the broker starts."""

    schema: Mapping[str, str] | None = None
    semantics: str = "sql"
    defaults: Mapping[str, Any] | None = None
    retention: Retention | None = None


@dataclass(frozen=True)
class Settings:
    """Everything a broker has to be told; all of it can be left out."""

    data: Path = Path("tamis-data")
    http: Address = USUAL_HTTP
    stomp: Address = USUAL_STOMP
    # When a publication is acknowledged: "sync", it survives a power failure; "written", it
    # survives the end of the process, and the operating system writes it to the disk when it likes.
    durability: str = "sync"
    tls: TlsFiles | None = None
    insecure: bool = False  # allows other machines to connect without TLS
    accounts: tuple[Account, ...] = ()
    limits: AccountLimits = field(
        default_factory=AccountLimits
    )  # of accounts that have none of their own
    retention: Retention = field(default_factory=Retention)  # of topics that have none
    topics: Mapping[str, TopicSettings] = field(default_factory=dict)
    network: NetworkSettings | None = None  # None: a broker on its own
    log_level: str = "info"
    log_format: str = "json"

    def __post_init__(self) -> None:
        choose("durability", self.durability, DURABILITIES)
        choose("log level", self.log_level, LOG_LEVELS)
        choose("log format", self.log_format, LOG_FORMATS)

    def new_accounts(self) -> Accounts:
        """The accounts, or the free account ``guest`` if there are none."""
        return Accounts(self.accounts, self.limits)

    def retention_of(self, topic: str) -> Retention:
        """How much of a topic is kept if the topic itself says nothing."""
        named = self.topics.get(topic)
        return self.retention if named is None or named.retention is None else named.retention

    def check_exposure(self) -> None:
        """Refuse to listen to other machines without accounts, or without TLS."""
        for problem in self.exposures().values():
            raise OptionError(problem)

    def exposures(self) -> dict[str, str]:
        """Why an address must not be listened on, by the name of its setting."""
        problems = {}
        for name, address in (("http", self.http), ("stomp", self.stomp)):
            if address.is_loopback:
                continue
            if not self.accounts:
                problems[name] = (
                    f"{name} = {address} is open to other machines, and there are no accounts: "
                    "everybody could read and write everything; make one with "
                    "tamis account NAME, or listen on 127.0.0.1"
                )
            elif self.tls is None and not self.insecure:
                problems[name] = (
                    f"{name} = {address} is open to other machines, and there is no TLS: tokens "
                    "and events could be read on the way; set certificate and key in [tls], or "
                    "insecure = true if something in front of the broker does TLS"
                )
        return problems | self._network_exposures()

    def _network_exposures(self) -> dict[str, str]:
        network = self.network
        if network is None:
            return {}
        problems = {}
        if network.authority is not None and self.tls is None:
            problems["network"] = (
                "authority is set, and there is no [tls]: links between brokers need the "
                "certificate and the key of this broker"
            )
        if network.listen is not None and not network.listen.is_loopback:
            if network.authority is None and not network.secret:
                problems["listen"] = (
                    f"listen = {network.listen} is open to other machines, and any broker could "
                    "link to this one; set secret or authority in [network]"
                )
            elif network.authority is None and not self.insecure:
                problems["listen"] = (
                    f"listen = {network.listen} is open to other machines, and there is no TLS "
                    "between brokers; set authority in [network], or insecure = true if something "
                    "else protects the way"
                )
        return problems
