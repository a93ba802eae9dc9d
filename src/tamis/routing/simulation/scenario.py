"""Scenarios: everything that happens to a network from outside, as plain data.

A scenario has three parts. In the *storm* clients act and faults happen. Then all faults end; the
*calm* begins when the network has settled, and clients act again. At the end all clients leave.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from tamis.errors import FileError, RoutingError
from tamis.routing.simulation.topology import Edge, Topology
from tamis.routing.strategies import STRATEGIES
from tamis.semantics import NAMES as SEMANTICS

FAULT_LEVELS = ("none", "lossy", "crashing")
STORM, CALM = PHASES = ("storm", "calm")
VERBS = ("connect", "disconnect", "advertise", "unadvertise", "subscribe", "unsubscribe", "publish")
FAULT_KINDS = ("weather", "partition", "pause", "crash", "link")

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class ScenarioClient:
    """A client, its broker, and how it leaves at the end: after `leaves` seconds, politely or not.

    A polite client withdraws all its filters before it disconnects.
    """

    name: str
    broker: str
    leaves: float = 0.0
    polite: bool = False


@dataclass(frozen=True, slots=True)
class Action:
    """What a client does, `time` seconds into a phase.

    With `after`, the ``client/id`` of a request, it is `time` seconds after the first Ack to that
    request: routers go wrong in races between a new subscription and a new publication.
    """

    time: float
    client: str
    verb: str
    id: str = ""
    filter: str = ""
    event: dict[str, Any] = field(default_factory=dict)
    phase: str = STORM
    after: str = ""

    def __str__(self) -> str:
        """The line of a trace."""
        what = repr(self.filter) if self.filter else json.dumps(self.event) if self.event else ""
        return " ".join(word for word in (self.verb, self.id, what) if word)


@dataclass(frozen=True, slots=True)
class Fault:
    """A fault of the network, `time` seconds into the storm and for `duration` seconds.

    ========= ======================================================================================
    weather   `edges` lose, duplicate and hold up messages with the given probabilities
    partition `edges` lose everything
    pause     `broker` handles nothing; messages to it wait
    crash     `broker` forgets everything and returns empty; the neighbours in `told` hear LinkDown,
              and LinkUp when it returns
    link      the brokers in `told`, which share the one edge, hear LinkDown and then LinkUp
    ========= ======================================================================================
    """

    time: float
    kind: str
    duration: float
    edges: tuple[Edge, ...] = ()
    broker: str = ""
    told: tuple[str, ...] = ()
    loss: float = 0.0
    duplication: float = 0.0
    slowness: float = 0.0

    def __str__(self) -> str:
        """The line of a trace."""
        where = [self.broker] if self.broker else ["-".join(edge) for edge in self.edges]
        told = f", told to {' '.join(self.told)}" if self.told else ""
        odds = ""
        if self.kind == "weather":
            odds = f": loss {self.loss}, duplication {self.duplication}, slowness {self.slowness}"
        return f"{self.kind} of {' '.join(where)} for {self.duration:g} s{told}{odds}"


@dataclass(frozen=True, slots=True)
class Scenario:
    """Everything that decides how a simulation goes."""

    seed: int
    strategy: str
    semantics: str
    faulty: str  # one of FAULT_LEVELS: what may happen, and so which losses are excused
    brokers: tuple[str, ...]
    edges: tuple[Edge, ...]
    clients: tuple[ScenarioClient, ...]
    actions: tuple[Action, ...]
    faults: tuple[Fault, ...] = ()
    delay: tuple[float, float] = (0.01, 0.2)  # seconds from broker to broker
    t1: float = 1.0
    t2: float = 8.0
    merging: str = "size 8"  # when brokers look for mergers, if the strategy has them
    threshold: float = 0.1  # of imperfect mergers
    waiting: int = 100_000  # see `RouterLimits`
    early: int = 10_000  # see `RouterLimits`

    def topology(self) -> Topology:
        return Topology(self.brokers, self.edges)

    def to_dict(self) -> dict[str, Any]:
        """Plain data; clients, actions and faults without fields that have their default."""
        return {
            **asdict(self),
            "clients": [_non_defaults(client) for client in self.clients],
            "actions": [_non_defaults(action) for action in self.actions],
            "faults": [_non_defaults(fault) for fault in self.faults],
        }

    def save(self, path: str | Path) -> None:
        try:
            text = json.dumps(self.to_dict(), indent=1)
            Path(path).write_text(text + "\n", encoding="utf-8")
        except OSError as error:
            raise FileError(f"{path} cannot be written: {error.strerror}") from None


def load(path: str | Path) -> Scenario:
    """The scenario of a file that `Scenario.save` has written."""
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise FileError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise FileError(f"{path} is not a scenario: it is not JSON") from None
    try:
        return from_dict(content)
    except (TypeError, ValueError, KeyError, AttributeError) as error:
        raise FileError(f"{path} is not a scenario of tamis simulate: {error}") from None
    except RoutingError as error:
        raise FileError(f"{path}: {error}") from None


def from_dict(content: Mapping[str, Any]) -> Scenario:
    """The scenario of a dict from `to_dict`; raises a TypeError or ValueError for other dicts."""
    plain = dict(content)
    scenario = Scenario(
        **plain
        | {
            "brokers": tuple(plain["brokers"]),
            "edges": _edges(plain["edges"]),
            "delay": tuple(map(float, plain["delay"])),
            "clients": tuple(ScenarioClient(**one) for one in plain["clients"]),
            "actions": tuple(Action(**one) for one in plain["actions"]),
            "faults": tuple(
                Fault(**one | {"edges": _edges(one.get("edges", ())),
                               "told": tuple(one.get("told", ()))})
                for one in plain["faults"]
            ),
        }
    )  # fmt: skip
    _check(scenario)
    return scenario


def _edges(pairs: Any) -> tuple[Edge, ...]:
    return tuple((str(a), str(b)) for a, b in pairs)


def _check(scenario: Scenario) -> None:
    """Raise a ValueError if a name is unknown or a number is not one."""
    topology = scenario.topology()
    clients = {client.name for client in scenario.clients}
    for client in scenario.clients:
        _among("broker", client.broker, topology.brokers)
    for action in scenario.actions:
        _among("client", action.client, clients)
        _among("verb", action.verb, VERBS)
        _among("phase", action.phase, PHASES)
    for fault in scenario.faults:
        _among("fault", fault.kind, FAULT_KINDS)
        for broker in (*fault.told, *([fault.broker] if fault.broker else [])):
            _among("broker", broker, topology.brokers)
        for edge in fault.edges:
            _among("edge", edge, topology.edges)
    _among("kind of faults", scenario.faulty, FAULT_LEVELS)
    _among("strategy", scenario.strategy, STRATEGIES)
    _among("semantics", scenario.semantics, SEMANTICS)
    numbers: list[Any] = [scenario.t1, scenario.t2, *scenario.delay]
    numbers += [scenario.waiting, scenario.early, scenario.threshold]
    for fault in scenario.faults:
        numbers += [fault.time, fault.duration, fault.loss, fault.duplication, fault.slowness]
    numbers += [one.time for one in scenario.actions]
    numbers += [one.leaves for one in scenario.clients]
    if not all(isinstance(x, int | float) and 0 <= x < 1e9 for x in numbers):
        raise ValueError("times and probabilities must be numbers from 0 on")


def _among(what: str, name: Any, known: Any) -> None:
    if name not in known:
        raise ValueError(f"unknown {what} {name!r}")


def _non_defaults(one: Any) -> dict[str, Any]:
    """The fields of a client, an action or a fault that differ from their defaults."""
    plain = asdict(one)
    defaults = {f.name: f.default for f in fields(one)}
    return {name: value for name, value in plain.items() if value != defaults[name] and value != {}}
