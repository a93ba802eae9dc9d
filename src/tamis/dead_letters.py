"""Dead letters of files and tables: rows that could not be used, with the reason and the place.

Those of a broker are events that nobody acknowledged: see `tamis.broker.dead_letter`.
"""

import json
import re
from typing import Any, NamedTuple

from tamis.errors import ExpressionError, OptionError, TamisError, counted
from tamis.visible_text import visible, visible_lines

SHOWN = 5  # letters in a message
VALUE = 1000  # characters of a row that a letter keeps
BAD_ROW_TREATMENTS = ("keep", "fail")  # a job keeps them as dead letters and goes on, or fails
# The columns of a DataFrame of letters.
SCHEMA = "source string, row bigint, id string, reason string, line int, column int, value string"


class DeadLetter(NamedTuple):
    """A row that could not be used, and why."""

    source: str  # subscriptions or events
    row: int  # its position: partitions follow each other, with gaps between them
    id: str | None
    reason: str
    line: int | None = None  # of the place in a filter
    column: int | None = None
    value: str | None = None  # the filter, or the event

    def __str__(self) -> str:
        which = f"row {self.row}" if self.id is None else f"id {visible(self.id)}"
        reason = visible_lines(self.reason).replace("\n", "\n    ")
        return f"{self.source}, {which}: {reason}"


def filter_letter(row: int, subscription: Any, text: Any, error: TamisError) -> DeadLetter:
    """The letter about a bad subscription."""
    line, column, reason = None, None, str(error)
    if text is None:
        reason = "the filter is null"
    elif isinstance(error, ExpressionError):
        line, column = error.line, error.column
    if subscription is None:
        reason = "the id is null"
    named = None if subscription is None else valid(str(subscription))
    return DeadLetter("subscriptions", row, named, valid(reason), line, column, short_text(text))


def short_text(value: Any) -> str | None:
    """A value as a text that is not too long."""
    if value is None:
        return None
    text = value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False)
    return valid(text if len(text) <= VALUE else text[:VALUE] + "...")


def valid(text: str) -> str:
    """A text in which a question mark replaces everything that is not Unicode."""
    return text.encode(errors="replace").decode()


def listing(letters: list[DeadLetter], total: int) -> str:
    """The first letters, and how many there are, for a message."""
    lines = [f"{counted(total, 'row')} cannot be used:"]
    lines += [f"  {letter}" for letter in letters[:SHOWN]]
    if total > SHOWN:
        lines.append(f"  ... and {total - min(SHOWN, len(letters)):,} more")
    return "\n".join(lines)


class BadLimit(NamedTuple):
    """How many rows may be bad: a share of them, or a number of them."""

    share: float | None
    number: int | None

    @classmethod
    def of(cls, value: "BadLimit | str | int | None") -> "BadLimit | None":
        """The limit of ``"1%"``, ``"20"`` or 20; None means no limit."""
        if value is None or isinstance(value, BadLimit):
            return value
        found = re.fullmatch(r"\s*([0-9]{1,12}(?:\.[0-9]{1,12})?)\s*(%?)\s*", str(value))
        if found is None or (not found[2] and "." in found[1]) or isinstance(value, bool):
            raise OptionError(
                f"max_bad is a share or a number of rows, such as '1%' or 20, not {value!r}"
            )
        if found[2]:
            return cls(float(found[1]) / 100, None)
        return cls(None, int(found[1]))

    def __str__(self) -> str:
        return f"{self.number:,}" if self.share is None else f"{100 * self.share:g}%"

    def is_exceeded(self, bad: int, rows: int) -> bool:
        """Whether this many bad rows are too many."""
        return bad > (self.share * rows if self.share is not None else self.number or 0)

    def check(self, what: str, bad: int, rows: int, letters: list[DeadLetter]) -> None:
        """Raise an error if too many rows are bad; `what` they are, and the first `letters`."""
        if self.is_exceeded(bad, rows):
            raise TamisError(
                f"{what}: {bad:,} of {counted(rows, 'row')} cannot be used, and at most {self} may "
                f"be bad (max_bad); nothing was written.\n{listing(letters, bad)}"
            )
