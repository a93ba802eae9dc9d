"""Options that several commands share."""

import argparse
import json
from pathlib import Path
from typing import Any

from tamis.errors import OptionError, SchemaError
from tamis.schema import Schema
from tamis.semantics import NAMES


def add_schema(parser: argparse.ArgumentParser, otherwise: str) -> None:
    parser.add_argument(
        "--schema",
        metavar="SCHEMA",
        help=f"names and types of the attributes, or a JSON file with them (else: {otherwise})",
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


def add_json(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON, for machines")


def read_schema(text: str) -> Schema:
    """The schema of ``--schema``: pairs, or a file."""
    if text.lower().endswith(".json"):
        try:
            content = json.loads(Path(text).read_text(encoding="utf-8"))
        except OSError as error:
            raise OptionError(f"--schema {text}: {error.strerror}") from None
        except ValueError as error:
            raise OptionError(f"--schema {text} is no JSON: {error}") from None
        if not isinstance(content, dict):
            raise OptionError(f'--schema {text}: expected an object {{"name": "type"}}')
        return Schema(content)
    return Schema(_split_pairs(text))


def _split_pairs(text: str) -> list[tuple[str, str]]:
    """``a:int(1, 2),b:enum('x','y')`` at the commas outside parentheses and quotes."""
    pieces, depth, quoted, start = [], 0, False, 0
    for position, character in enumerate(text):
        if character == "'":
            quoted = not quoted
        elif not quoted and character in "()":
            depth += 1 if character == "(" else -1
        elif not quoted and depth == 0 and character == ",":
            pieces.append(text[start:position])
            start = position + 1
    pieces.append(text[start:])
    pairs = []
    for piece in pieces:
        name, colon, type_text = piece.rpartition(":") if "(" not in piece else piece.partition(":")
        if not colon:
            raise SchemaError(f"--schema: expected NAME:TYPE, got {piece.strip()!r}")
        pairs.append((name.strip(), type_text.strip()))
    return pairs


def read_defaults(text: str | None) -> dict[str, Any] | None:
    """The object of ``--defaults``."""
    if text is None:
        return None
    try:
        content = json.loads(text)
    except ValueError as error:
        raise OptionError(f"--defaults is no JSON: {error}") from None
    if not isinstance(content, dict):
        raise OptionError('--defaults: expected an object {"name": value}')
    return content
