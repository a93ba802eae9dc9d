"""``tamis account``: makes a token or the hash of a password, and the lines for the settings."""

import argparse
import getpass
import json
import re
import sys

from tamis.cli.options import add_json
from tamis.errors import OptionError

_DESCRIPTION = """\
Make an account for tamis serve: print the lines for the file of settings on standard output, and
the token, which nobody can find out later, on standard error. The account may do nothing yet;
docs/broker.md tells how grants are written.

  tamis account desk >> tamis.toml
"""


def add_parser(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "account",
        help="make a token or the hash of a password for an account of the broker",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("name", metavar="NAME", help="the name of the account")
    parser.add_argument(
        "--password",
        action="store_true",
        help="ask for a password, or read it from standard input, instead of making a token",
    )
    add_json(parser)
    parser.set_defaults(run=run)


def run(options: argparse.Namespace) -> None:
    """Print the lines of the settings, and the token."""
    from tamis.broker.accounts import new_token, password_hash, token_hash

    if not options.name.isprintable() or not options.name.strip():
        raise OptionError(f"an account has a name that can be read, not {options.name!r}")
    token = None if options.password else new_token()
    if token is None:
        setting = f"password = {json.dumps(password_hash(_password()))}"
    else:
        setting = f'tokens = ["{token_hash(token)}"]'
    bare = re.fullmatch(r"[A-Za-z0-9_-]+", options.name) is not None
    name = options.name if bare else json.dumps(options.name, ensure_ascii=False)
    lines = f"\n[accounts.{name}]\n{setting}"
    if options.json:
        print(json.dumps({"account": options.name, "token": token, "toml": lines.strip()}))
        return
    print(lines, flush=True)
    if token is not None:
        print(f"the token of {options.name}, shown only now: {token}", file=sys.stderr)


def _password() -> str:
    if not sys.stdin.isatty():
        password = sys.stdin.readline().rstrip("\r\n")
    else:
        password = getpass.getpass("password: ")
        if getpass.getpass("again: ") != password:
            raise OptionError("the two passwords are not the same")
    if not password:
        raise OptionError("the password is empty")
    return password
