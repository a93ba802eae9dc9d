"""The main function of the command line: arguments, exit codes, the log and errors.

Exit codes: 0 done, 1 failed, 2 misuse, 130 interrupted.
"""

import argparse
import json
import logging
import os
import sys
from collections.abc import Sequence
from typing import Any, NoReturn

from tamis import __version__
from tamis.cli import (
    account,
    compact,
    demo,
    explain,
    match,
    network,
    papers,
    peer,
    profile,
    publish,
    serve,
    simulate,
    stream,
    subscribe,
    topic,
    warm,
)
from tamis.errors import EventError, ExpressionError, SettingsError, TamisError
from tamis.visible_text import visible_lines

DONE, FAILED, MISUSE, INTERRUPTED = 0, 1, 2, 130

_EPILOG = """\
a schema is NAME:TYPE,NAME:TYPE,... with the types int, double, string, bool, timestamp,
int(LOW, HIGH) and enum('A', 'B'), or the name of a JSON file with {"NAME": "TYPE", ...}

exit codes: 0 done, 1 failed, 2 misuse (nothing was done), 130 interrupted by Ctrl-C; with --json,
an error is also an object on standard output: {"command": ..., "error": {"kind", "message", ...}}
"""
_LEVELS = ("debug", "info", "warning", "error")
_COMMANDS = {
    module.__name__.rpartition(".")[2]: module
    for module in (
        demo, match, stream, profile, compact, simulate, explain, warm, papers, serve, account,
        topic, publish, subscribe, network, peer,
    )
}  # fmt: skip


class _JsonParser(argparse.ArgumentParser):
    """A parser that reports misuse as JSON as well."""

    def error(self, message: str) -> NoReturn:
        print_error(self.prog.partition(" ")[2] or None, "Misuse", message)
        super().error(message)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    given = sys.argv[1:] if arguments is None else list(arguments)
    parser = build_parser(given[0] if given else None, is_json="--json" in given)
    options = parser.parse_args(given)
    if options.command is None:
        parser.print_help()
        return MISUSE
    set_log_level(options.log_level)
    is_json = getattr(options, "json", False)
    try:
        options.run(options)
        sys.stdout.flush()
    except TamisError as error:
        if is_json:
            print_error(options.command, type(error).__name__, str(error), **_place(error))
        print(f"tamis {options.command}: {visible_lines(str(error))}", file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        if is_json:
            print_error(options.command, "Interrupted", "interrupted")
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader of the output is gone; Python must not complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    return DONE


def print_error(command: str | None, kind: str, message: str, **place: Any) -> None:
    """Print an error as JSON, in one line."""
    error = {"kind": kind, "message": message} | place
    print(json.dumps({"command": command, "error": error}), flush=True)


def _place(error: TamisError) -> dict[str, Any]:
    """Where in a filter, a batch or a file the error is, for those that know."""
    if isinstance(error, ExpressionError):
        return {"line": error.line, "column": error.column, "filter": error.text}
    if isinstance(error, SettingsError):
        problems = [
            {"line": one.line, "column": one.column, "message": one.problem, "hint": one.hint}
            for one in error.problems
        ]
        return {"file": error.file, "problems": problems}
    return {"row": error.row} if isinstance(error, EventError) and error.row is not None else {}


def set_log_level(level: str | None) -> None:
    """Let tamis log to standard error from a level on; without one, warnings and errors."""
    logging.getLogger("tamis").setLevel(logging.NOTSET if level is None else level.upper())
    if level is not None:
        logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")


def build_parser(command: str | None = None, *, is_json: bool = False) -> argparse.ArgumentParser:
    """The parser of one command, or of all of them if there is no such command.

    With `is_json` it reports misuse as JSON as well. The options of some commands are known only
    to modules that take a while to import.
    """
    kind = _JsonParser if is_json else argparse.ArgumentParser
    parser = kind(
        prog="tamis",
        description="Find, for every event, every subscription it satisfies.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"tamis {__version__}")
    commands = parser.add_subparsers(
        dest="command", metavar="COMMAND", title="commands", parser_class=kind
    )
    for module in (_COMMANDS[command],) if command in _COMMANDS else _COMMANDS.values():
        module.add_parser(commands)
    for one in commands.choices.values():
        one.add_argument(
            "--log-level",
            choices=_LEVELS,
            help="log what is being done to standard error, from this level on; Spark logs, too",
        )
    return parser
