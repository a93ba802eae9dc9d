"""Options that several commands share."""

import argparse
import json
from pathlib import Path
from typing import Any

from tamis.dead_letters import BAD_ROW_TREATMENTS
from tamis.errors import FileError, OptionError, SchemaError
from tamis.schema import Schema
from tamis.semantics import NAMES


def add_schema(parser: argparse.ArgumentParser, otherwise: str) -> None:
    parser.add_argument(
        "--schema",
        metavar="SCHEMA",
        help=f"names and types of the attributes, or a JSON file with them (default: {otherwise})",
    )


def add_semantics(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--semantics",
        choices=NAMES,
        default="sql",
        help="what a missing attribute means (default: sql, as NULL)",
    )
    parser.add_argument(
        "--defaults",
        metavar="JSON",
        help='for --semantics default: a value for each attribute, {"price": -1, ...}',
    )


def add_duplicates(parser: argparse.ArgumentParser) -> None:
    """What happens to subscriptions with the same id."""
    parser.add_argument(
        "--duplicates",
        choices=("last", "error"),
        default="last",
        help="of several rows with the same id, use the last (default), or fail",
    )
    parser.add_argument(
        "--order", metavar="COLUMN", help="column of the subscriptions that says which row is later"
    )


def add_on_bad(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--on-bad",
        choices=BAD_ROW_TREATMENTS,
        default="keep",
        help="keep rows that cannot be used as dead letters and go on (default), or fail",
    )


def add_format(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--format",
        choices=("parquet", "json", "csv", "orc"),
        default="parquet",
        help="format of the output (default: parquet)",
    )


def add_report(parser: argparse.ArgumentParser, what: str) -> None:
    parser.add_argument("--report", metavar="FILE", help=f"write {what} as a page for browsers")


def check_report(report: str | None) -> None:
    """Refuse a place for a report that cannot be written, before anything else is done."""
    if report is not None and (
        Path(report).is_dir() or not Path(report).absolute().parent.is_dir()
    ):
        raise FileError(
            f"--report {report} cannot be written: it is a folder, or its folder does not exist"
        )


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON, for programs")


def allow_options_anywhere(parser: argparse.ArgumentParser) -> None:
    """Let options stand between positional arguments, of which the last may be left out.

    Otherwise argparse takes it for left out as soon as an option comes.
    """
    plain = parser.parse_known_args
    is_inside = False  # the intermixed way calls the plain one

    def parse(*given: Any, **more: Any) -> Any:
        nonlocal is_inside
        if is_inside:
            return plain(*given, **more)
        is_inside = True
        try:
            return parser.parse_known_intermixed_args(*given, **more)
        finally:
            is_inside = False

    parser.parse_known_args = parse  # type: ignore[method-assign]  # of this one parser


def read_schema(text: str) -> Schema:
    """The schema of ``--schema``: pairs of name and type, or a file."""
    if not text.lower().endswith(".json"):
        return Schema(_split_pairs(text))
    try:
        content = json.loads(Path(text).read_text(encoding="utf-8-sig"), object_pairs_hook=_Pairs)
    except OSError as error:
        raise OptionError(f"--schema {text}: {error.strerror}") from None
    except ValueError as error:
        raise OptionError(f"--schema {text} is not valid JSON: {error}") from None
    except RecursionError:
        raise OptionError(f"--schema {text} is nested too deeply") from None
    if not isinstance(content, _Pairs):
        raise OptionError(f'--schema {text}: expected an object {{"name": "type"}}')
    return Schema(content)


class _Pairs(list[tuple[str, str]]):
    """The names and values of a JSON object, including names that occur twice."""


def _split_pairs(text: str) -> list[tuple[str, str]]:
    """``a:int(1, 2),`b,c`:enum('x','y')`` split at commas outside brackets and backticks."""
    pairs = []
    start, colon, depth, quoted = 0, -1, 0, ""
    for position, character in enumerate(text + ","):
        if quoted:
            quoted = "" if character == quoted else quoted
        elif character == "`" or (
            character == "'" and depth
        ):  # outside parentheses, as in it's, it is a plain character
            quoted = character
        elif character in "()<>":
            depth += 1 if character in "(<" else -1
        elif character == ":" and not depth:
            colon = position
        if position == len(text) or (character == "," and not depth and not quoted):
            if colon < start:
                piece = text[start:position].strip()
                raise SchemaError(f"--schema: expected NAME:TYPE, got {piece!r}")
            pairs.append((text[start:colon].strip(), text[colon + 1 : position].strip()))
            start = position + 1
    return pairs


def read_defaults(text: str | None) -> dict[str, Any] | None:
    """The object of ``--defaults``."""
    if text is None:
        return None
    try:
        content = json.loads(text)
    except ValueError as error:
        raise OptionError(f"--defaults is not valid JSON: {error}") from None
    if not isinstance(content, dict):
        raise OptionError('--defaults: expected an object {"name": value}')
    return content
