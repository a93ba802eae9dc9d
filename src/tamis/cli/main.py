"""The main function of the command line: arguments, exit codes and errors.

Exit codes: 0 done, 1 failed, 2 misuse.
"""

import argparse
import os
import sys
from collections.abc import Sequence

from tamis import __version__
from tamis.cli import compact, demo, explain, match, profile, simulate, stream, warm
from tamis.errors import TamisError
from tamis.visible_text import visible_lines

_EPILOG = """\
a schema is NAME:TYPE,NAME:TYPE,... with the types int, double, string, bool, timestamp,
int(LOW, HIGH) and enum('A', 'B'), or the name of a JSON file with {"NAME": "TYPE", ...}

exit codes: 0 done, 1 failed, 2 misuse
"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code."""
    parser = build_parser()
    options = parser.parse_args(arguments)
    if options.command is None:
        parser.print_help()
        return 2
    try:
        options.run(options)
        sys.stdout.flush()
    except TamisError as error:
        print(f"tamis {options.command}: {visible_lines(str(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of the output is gone; Python must not complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return 0


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = argparse.ArgumentParser(
        prog="tamis",
        description="Find, for every event, every subscription it satisfies.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"tamis {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")
    for module in (demo, match, stream, profile, compact, simulate, explain, warm):
        module.add_parser(commands)
    return parser
