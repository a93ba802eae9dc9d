"""Options of the commands that talk to a broker: where it is, and who asks."""

import argparse
import os
from typing import TYPE_CHECKING, Any

from tamis.cli.options import add_json

if TYPE_CHECKING:
    from tamis.client.blocking import Connection

URL_VARIABLE, TOKEN_VARIABLE = "TAMIS_URL", "TAMIS_TOKEN"


def add_broker(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("broker")
    group.add_argument(
        "--url",
        metavar="URL",
        help=f"address of the broker (default: {URL_VARIABLE}, or http://127.0.0.1:8420)",
    )
    group.add_argument(
        "--token",
        metavar="TOKEN",
        help="who you are, to a broker with accounts; others on this machine can see the "
        f"arguments of a command, but not the variable {TOKEN_VARIABLE}",
    )


def finish_action(parser: argparse.ArgumentParser, run: Any) -> None:
    """Add the options that all actions of a command have, and what an action calls."""
    add_broker(parser)
    add_json(parser)
    parser.set_defaults(run=run)


def connected(options: argparse.Namespace, *, patience: float | None = None) -> "Connection":
    """The connection to the broker that the options or the environment name."""
    from tamis.client.blocking import connect
    from tamis.client.connection import PATIENCE, URL

    return connect(
        options.url or os.environ.get(URL_VARIABLE) or URL,
        options.token or os.environ.get(TOKEN_VARIABLE) or None,
        patience=PATIENCE if patience is None else patience,
    )
