"""Dead letters: rows that could not be used, with the reason and the place."""

import json
from typing import Any, NamedTuple

import pyarrow as pa

from tamis.errors import ExpressionError, TamisError, counted

SHOWN = 5
VALUE = 1000  # characters of a row that a letter keeps
# Of a DataFrame of them.
SCHEMA = "source string, row bigint, id string, reason string, line int, column int, value string"


class Letter(NamedTuple):
    """A row that could not be used, and why."""

    source: str  # subscriptions or events
    row: int  # its position: partitions one behind the other, with gaps between them
    id: str | None
    reason: str
    line: int | None = None  # of the place in a filter
    column: int | None = None
    value: str | None = None  # the filter, or the event

    def __str__(self) -> str:
        which = f"row {self.row}" if self.id is None else f"id {self.id}"
        reason = self.reason.replace("\n", "\n    ")
        return f"{self.source}, {which}: {reason}"


def filter_letter(row: int, subscription: Any, text: Any, error: TamisError) -> Letter:
    """About a subscription."""
    line, column, reason = None, None, str(error)
    if text is None:
        reason = "the filter is null"
    elif isinstance(error, ExpressionError):
        line, column = error.line, error.column
    if subscription is None:
        reason = "the id is null"
    named = None if subscription is None else valid(str(subscription))
    return Letter("subscriptions", row, named, valid(reason), line, column, cut(text))


def cut(value: Any) -> str | None:
    """A value as a text that is not too long."""
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    return valid(text if len(text) <= VALUE else text[:VALUE] + "...")


def valid(text: str) -> str:
    """A text without what is no Unicode."""
    return text.encode(errors="replace").decode()


def texts_of(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column; bytes that are no UTF-8 become surrogates, which no reader takes."""
    try:
        values: list[Any] = column.to_pylist()
    except UnicodeDecodeError:
        return [
            None if text is None else text.decode(errors="surrogateescape")
            for text in column.cast(pa.binary()).to_pylist()
        ]
    return values


def shown(value: pa.Scalar) -> Any:
    """A value in Python's types; as a text, if it is none that they can hold."""
    if pa.types.is_struct(value.type) and value.is_valid:
        return {name: shown(inner) for name, inner in value.items()}
    try:
        return value.as_py()
    except UnicodeDecodeError:
        is_text = pa.types.is_string(value.type) or pa.types.is_large_string(value.type)
        if is_text:
            return value.as_buffer().to_pybytes().decode(errors="replace")
    except (OverflowError, ValueError):  # a date beyond Python's calendar
        if hasattr(value, "value"):
            return f"{value.type} {value.value}"
    return f"a value of type {value.type}"


def listing(letters: list[Letter], total: int) -> str:
    """The first letters, for people."""
    lines = [f"{counted(total, 'row')} cannot be used:"]
    lines += [f"  {letter}" for letter in letters[:SHOWN]]
    if total > SHOWN:
        lines.append(f"  ... and {total - min(SHOWN, len(letters)):,} more")
    return "\n".join(lines)
