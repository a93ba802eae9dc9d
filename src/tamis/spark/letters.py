"""Dead letters: rows that could not be used, with the reason and the place."""

import json
from typing import Any, NamedTuple

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
    line, column = None, None
    if isinstance(error, ExpressionError):
        line, column = error.line, error.column
    return Letter(
        "subscriptions", row, None if subscription is None else str(subscription), str(error),
        line, column, cut(text),
    )  # fmt: skip


def cut(value: Any) -> str | None:
    """A value as a text that is not too long."""
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    return text if len(text) <= VALUE else text[:VALUE] + "..."


def listing(letters: list[Letter], total: int) -> str:
    """The first letters, for people."""
    lines = [f"{counted(total, 'row')} cannot be used:"]
    lines += [f"  {letter}" for letter in letters[:SHOWN]]
    if total > SHOWN:
        lines.append(f"  ... and {total - min(SHOWN, len(letters)):,} more")
    return "\n".join(lines)
