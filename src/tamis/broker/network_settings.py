"""Settings of the links between brokers."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.broker.quantities import read_bytes, read_seconds
from tamis.broker.settings_table import Table, as_amount, as_share, as_text, one_of
from tamis.errors import OptionError
from tamis.routing.strategies import Merging, Odds, strategy_of

if TYPE_CHECKING:
    from tamis.broker.settings import Address

_NAME = re.compile(r"[A-Za-z0-9._-]{1,100}")


def check_broker_name(name: str) -> str:
    """The name of a broker, if it can be one."""
    if not _NAME.fullmatch(name):
        raise OptionError(
            "the name of a broker has 1 to 100 letters, digits, dots, hyphens and underscores, "
            f"not {name[:60]!r}"
        )
    return name


PROBABILITIES = ("traffic", "uniform")


@dataclass(frozen=True)
class MergingSettings:
    """When filters are merged, and which mergers are good enough."""

    policy: str = "size 8"
    rules: str = "full"
    threshold: float = 0.1  # the largest IMT of a merger
    candidates: str = "any"
    probabilities: str = "traffic"  # those of what is published, else of uniform values
    entry: float = 1.0  # bytes per second that one filter less in the table of a peer is worth
    bandwidth: float | None = None  # bytes per second of a link
    period: float = 30.0  # seconds after which peers are told again what is published

    def __post_init__(self) -> None:
        self.merging()
        if not self.period > 0:
            raise OptionError(f"the period of profiles must be above 0 s, not {self.period:g}")

    def merging(self, odds: Callable[[str], Odds | None] | None = None) -> Merging:
        """The same for routing, which asks for `odds` by the name of a peer."""
        return Merging(
            self.policy, self.threshold, self.rules, candidates=self.candidates,
            odds=odds if self.probabilities == "traffic" else None,
        )  # fmt: skip


# How each setting of merging is read.
MERGING: dict[str, Callable[[Any], Any]] = {
    "policy": as_text,
    "rules": as_text,
    "threshold": as_share,
    "candidates": as_text,
    "probabilities": one_of(PROBABILITIES),
    "entry": as_amount,
    "bandwidth": read_bytes,
    "period": read_seconds,
}


def read_merging(table: Table) -> MergingSettings:
    """How filters are merged, as ``[network.merging]`` says it."""
    given: dict[str, Any] = {key: table.take(key, read, None) for key, read in MERGING.items()}
    table.finish()
    known = {key: value for key, value in given.items() if value is not None}
    return table.problems.attempt(table.path, MergingSettings, **known) or MergingSettings()


@dataclass(frozen=True)
class PeerSettings:
    """A broker that is called."""

    address: "Address"
    secret: str | None = None  # None: that of the network


@dataclass(frozen=True)
class NetworkSettings:
    """Who a broker is to others, and which ones it calls."""

    name: str
    listen: "Address | None" = None
    peers: Mapping[str, PeerSettings] = field(default_factory=dict)
    secret: str = ""  # that both sides of a link have; empty: none is required
    authority: Path | None = None  # a PEM file: links are TLS, both sides have its certificates
    beat: float = 2.0  # seconds between signs of life
    patience: float = 10.0  # seconds without one, after which a link is given up
    strategy: str = "advertisements+covering"  # of `tamis.routing.strategies`
    merging: MergingSettings = field(default_factory=MergingSettings)

    def __post_init__(self) -> None:
        check_broker_name(self.name)
        for peer in self.peers:
            if check_broker_name(peer) == self.name:
                raise OptionError(f"broker {self.name!r} cannot be a peer of itself")
        strategy_of(self.strategy)
        if not 0 < self.beat < self.patience:
            raise OptionError(
                f"beat is above 0 and below patience, not {self.beat:g} and {self.patience:g}"
            )
