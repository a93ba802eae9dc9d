"""Reads the file of ``tamis network``: the brokers of a network on this machine, and their links.

::

    data = "three-data"                  # a folder for each broker is made in it
    config = "common.toml"               # settings of all brokers, if they have some
    strategy = "advertisements+perfect"  # of all brokers: [network] strategy of their settings
    links = [["paris", "lyon"], ["lyon", "nice"]]

    [merging]                            # of all brokers: [network.merging] of their settings
    policy = "every 10s"

    [brokers.paris]
    http = "127.0.0.1:8420"              # what is left out takes a free port
    [brokers.lyon]
    config = "lyon.toml"                 # instead of the common one
    [brokers.nice]
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tamis.broker.network_settings import check_broker_name, read_merging
from tamis.broker.settings import Address
from tamis.broker.settings_file import readable_file, text_of, toml_of
from tamis.broker.settings_table import Problems, Table, as_list, as_text, as_texts, one_of
from tamis.errors import OptionError, SettingsError
from tamis.routing.strategies import STRATEGIES

FREE = Address("127.0.0.1", 0)


@dataclass(frozen=True)
class NetworkBroker:
    """One broker of the network."""

    name: str
    data: Path
    http: Address = FREE
    stomp: Address = FREE
    listen: Address = FREE
    config: Path | None = None


@dataclass(frozen=True)
class NetworkFile:
    """A network on this machine."""

    brokers: dict[str, NetworkBroker]
    links: list[tuple[str, str]]  # the first one calls the second
    strategy: str | None = None  # of all brokers; None: each has its own
    merging: Mapping[str, object] = field(default_factory=dict)  # what is said of it, for all


def read_network_file(path: Path) -> NetworkFile:
    """The network of a file; a `SettingsError` has everything that is wrong with it."""
    text = text_of(path)
    content = toml_of(text, path)
    problems = Problems(text)
    found = _network(Table(problems, (), content), path.absolute())
    if problems.found:
        problems.found.sort(key=lambda problem: problem.start)
        raise SettingsError(str(path), problems.found)
    return found


def _network(top: Table, path: Path) -> NetworkFile:
    folder = path.parent
    data = top.take("data", lambda value: folder / as_text(value), folder / f"{path.stem}-data")
    common = top.take("config", lambda value: readable_file(folder, value), None)
    tables = top.table("brokers")
    brokers = {
        name: _broker(tables.inner(name, tables.content[name]), name, data / name, common, folder)
        for name in tables.content
    }
    if not brokers:
        top.problems.add(("brokers",), "the network has no brokers: add [brokers.NAME]")
    none: list[tuple[str, str]] = []
    links = top.take("links", lambda value: _links(value, brokers), none)
    strategy = top.take("strategy", one_of(STRATEGIES), None)
    merging = top.table("merging")
    read_merging(merging)
    top.finish()
    return NetworkFile(brokers, links, strategy, merging.content)


def _broker(
    table: Table, name: str, data: Path, common: Path | None, folder: Path
) -> NetworkBroker:
    table.problems.attempt(table.path, check_broker_name, name)
    broker = NetworkBroker(
        name,
        table.take("data", lambda value: folder / as_text(value), data),
        table.take("http", Address.read, FREE),
        table.take("stomp", Address.read, FREE),
        table.take("listen", Address.read, FREE),
        table.take("config", lambda value: readable_file(folder, value), common),
    )
    table.finish()
    return broker


def _links(value: object, brokers: Iterable[str]) -> list[tuple[str, str]]:
    """Pairs of brokers that form no cycle."""
    known = set(brokers)
    group = {name: name for name in known}  # of brokers that are linked so far

    def root(name: str) -> str:
        while group[name] != name:
            name = group[name]
        return name

    found = []
    for pair in as_list(value):
        names = as_texts(pair)
        if len(names) != 2:
            raise OptionError(f"a link has two brokers, not {pair!r}")
        for name in names:
            if name not in known:
                raise OptionError(f"there is no broker {name!r}: add [brokers.{name}]")
        one, other = names
        if root(one) == root(other):
            raise OptionError(f"the link of {one!r} and {other!r} would close a cycle")
        group[root(one)] = root(other)
        found.append((one, other))
    return found
