"""``tamis serve``: the broker."""

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tamis.cli.options import add_json
from tamis.errors import OptionError

if TYPE_CHECKING:
    from tamis.broker.network_settings import MergingSettings, NetworkSettings
    from tamis.broker.settings import Address, Settings

_DESCRIPTION = """\
Run a broker: clients publish events and subscribe over HTTP and STOMP. Without options its data is
in ./tamis-data, it listens on this machine only, and everybody may do everything. Accounts, TLS,
limits and retention are in a file of settings (docs/broker.md). The line

  ready http=HOST:PORT stomp=HOST:PORT

on standard output says that it accepts connections; port 0 takes a free one. It logs to standard
error. Ctrl-C or SIGTERM stops it, and loses nothing; SIGHUP lets it read accounts, grants, limits
and the certificate of TLS again.
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "serve",
        help="run a broker",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--data", metavar="DIR", help="folder of the data (default: tamis-data)")
    parser.add_argument(
        "--http", metavar="HOST:PORT", help="address of HTTP (default: 127.0.0.1:8420)"
    )
    parser.add_argument(
        "--stomp", metavar="HOST:PORT", help="address of STOMP (default: 127.0.0.1:61613)"
    )
    parser.add_argument(
        "--name", metavar="NAME", help="name of the broker in its network (docs/network.md)"
    )
    parser.add_argument(
        "--listen", metavar="HOST:PORT", help="address where other brokers link to this one"
    )
    parser.add_argument(
        "--peer", "--peers", metavar="NAME=HOST:PORT", action="append", default=[],
        help="a broker to link to, and where it listens; several with commas, or several times",
    )  # fmt: skip
    parser.add_argument(
        "--strategy", metavar="NAME",
        help="what the broker tells its peers of filters (default: advertisements+covering)",
    )  # fmt: skip
    parser.add_argument(
        "--merging", metavar="KEY=VALUE", action="append", default=[],
        help="a setting of [network.merging], such as policy='every 10s'; several times for more",
    )  # fmt: skip
    parser.add_argument(
        "--config", metavar="FILE.toml", help="file of settings; options count more than the file"
    )
    parser.add_argument(
        "--check",
        action="store_true",
        help="only print what is wrong with the settings and where, or the settings",
    )
    add_json(parser)
    parser.set_defaults(run=run, misused=parser.error)


class Misuse(OptionError):
    """Options of the command line that make no sense."""


def run(options: argparse.Namespace) -> None:
    """Run the broker until a signal comes, or check its settings."""
    try:
        settings = read_options(options)
    except Misuse as error:
        options.misused(str(error))
    settings.check_exposure()
    if options.check:
        from tamis.broker.tls import server_context

        if settings.tls is not None:
            server_context(settings.tls)
        shown = shown_settings(settings)
        print(json.dumps(shown) if options.json else _as_text(shown))
        return
    from tamis.broker.server import serve

    serve(settings, lambda: read_options(options))


def read_options(options: argparse.Namespace) -> "Settings":
    """The settings of the file, and what the options say instead."""
    from tamis.broker.settings import Settings
    from tamis.broker.settings_file import read_settings

    settings = Settings() if options.config is None else read_settings(Path(options.config))
    try:
        return replace(settings, **_given(options, settings))
    except OptionError as error:
        raise Misuse(str(error)) from None


def _given(options: argparse.Namespace, settings: "Settings") -> dict[str, Any]:
    """The settings that options name."""
    given: dict[str, Any] = {}
    for name in ("http", "stomp"):
        text = getattr(options, name)
        if text is not None:
            given[name] = _address(f"--{name}", text)
    network = _network(options, settings)
    if network is not None:
        given["network"] = network
    if options.data is not None:
        given["data"] = Path(options.data)
    if options.log_level is not None:
        given["log_level"] = options.log_level
    return given


def _network(options: argparse.Namespace, settings: "Settings") -> "NetworkSettings | None":
    """The network of the file, and what the options say instead."""
    from tamis.broker.network_settings import NetworkSettings, PeerSettings

    known = settings.network
    if options.name is not None:
        known = (
            NetworkSettings(options.name) if known is None else replace(known, name=options.name)
        )
    if known is None:
        for option in ("listen", "peer", "strategy", "merging"):
            if getattr(options, option):
                raise OptionError(
                    f"--{option} is for a broker in a network, which has a name: give it a --name"
                )
        return None
    if options.strategy is not None:
        known = replace(known, strategy=options.strategy)
    known = replace(known, merging=_merging(options.merging, known.merging))
    if options.listen is not None:
        known = replace(known, listen=_address("--listen", options.listen))
    peers = dict(known.peers)
    for text in ",".join(options.peer).split(",") if options.peer else ():
        name, equals, place = text.partition("=")
        if not equals:
            raise OptionError(f"--peer: expected NAME=HOST:PORT, got {text!r}")
        before = peers.get(name)
        secret = None if before is None else before.secret
        peers[name] = PeerSettings(_address("--peer", place), secret)
    return replace(known, peers=peers)


def _merging(given: list[str], known: "MergingSettings") -> "MergingSettings":
    """What the file says of merging, and what the options say instead."""
    from tamis.broker.network_settings import MERGING

    for text in given:
        key, equals, value = text.partition("=")
        if not equals or key not in MERGING:
            raise OptionError(
                f"--merging: expected KEY=VALUE with one of {', '.join(MERGING)}, got {text!r}"
            )
        try:
            known = replace(known, **{key: MERGING[key](_value(value))})
        except OptionError as error:
            raise OptionError(f"--merging {text}: {error}") from None
    return known


def _value(text: str) -> Any:
    try:
        return float(text)
    except ValueError:
        return text


def _address(option: str, text: str) -> "Address":
    from tamis.broker.settings import Address

    try:
        return Address.read(text)
    except OptionError as error:
        raise OptionError(f"{option}: {error}") from None


def shown_settings(settings: "Settings") -> dict[str, Any]:
    """The settings for people and programs, without any secret.

    Unread grants are for topics of which the file has no schema.
    """
    from tamis.broker.grant_checks import unread

    limits = {account.name: vars(account.limits) for account in settings.new_accounts()}
    return {
        "data": str(settings.data.absolute()),
        "http": str(settings.http),
        "stomp": str(settings.stomp),
        "durability": settings.durability,
        "tls": None if settings.tls is None else str(settings.tls.certificate),
        "network": _shown_network(settings.network),
        "log": {"level": settings.log_level, "format": settings.log_format},
        "retention": vars(settings.retention),
        "topics": {
            name: {
                "schema": topic.schema,
                "semantics": topic.semantics,
                "retention": vars(settings.retention_of(name)),
            }
            for name, topic in settings.topics.items()
        },
        "accounts": {
            account.name: {
                "publish": account.publish.filters,
                "subscribe": account.subscribe.filters,
                "wider": account.wider,
                "topics": list(account.topics.filters),
                "metrics": account.metrics,
                "quench": account.quench,
                "limits": limits[account.name],
            }
            for account in settings.new_accounts()
        },
        "unread grants": unread(settings.accounts, settings.topics),
    }


def _shown_network(network: "NetworkSettings | None") -> dict[str, Any] | None:
    from tamis.broker.network_settings import MERGING

    if network is None:
        return None
    return {
        "name": network.name,
        "listen": None if network.listen is None else str(network.listen),
        "peers": {name: str(peer.address) for name, peer in network.peers.items()},
        "secret": "set" if network.secret else None,
        "authority": None if network.authority is None else str(network.authority),
        "beat": network.beat,
        "patience": network.patience,
        "strategy": network.strategy,
        "merging": {key: getattr(network.merging, key) for key in MERGING},
    }


def _as_text(shown: dict[str, Any], indent: str = "") -> str:
    lines = []
    for name, value in shown.items():
        if isinstance(value, dict) and value:
            lines += [f"{indent}{name}:", _as_text(value, indent + "  ")]
        else:
            text = "-" if value is None or value in ({}, []) else value
            lines.append(f"{indent}{name}: {text}")
    return "\n".join(lines)
