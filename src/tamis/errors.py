"""Every error that tamis raises on purpose.

::

    TamisError
    ├── OptionError            an argument that is not one of the choices
    ├── SchemaError            an invalid schema
    ├── TextError              something wrong in a text; has the place
    │   └── ExpressionError    a filter that cannot be used
    │       ├── ParseError     it does not follow the grammar
    │       ├── TypeMismatch   it does not fit the schema
    │       └── LimitError     it is too long, too deep or too big
    ├── EventError             an event that does not fit the schema
    ├── SubscriptionError      an id that is unknown or cannot be an id
    │   ├── UnknownSubscription  an id that is not subscribed; also a `KeyError`
    │   └── BulkError          several rows of one `subscribe_many`
    ├── CapacityError          an engine that cannot hold any more
    ├── RoutingError           a message that a broker cannot accept, an invalid network
    ├── BrokerError            a request that a broker refuses; has `status` and `code`
    │   ├── UnknownTopic       there is no such topic
    │   ├── UnknownPeer        there is no such broker next to this one
    │   ├── Conflict           it conflicts with what the broker has
    │   │   └── TopicExists    there is a topic of this name, and it is another one
    │   ├── Unauthenticated    the broker does not know who asks
    │   ├── Forbidden          this account may not do that
    │   ├── LimitReached       the account has, or sends, as much as it may
    │   └── Busy               not now: try again
    ├── SettingsError          a file of settings that cannot be used; has each place
    ├── BrokerUnreachable      no broker answers; also a `ConnectionError`
    ├── FileError              a file that cannot be read or written
    └── MissingDependency      an extra that is not installed
"""

import difflib
from collections.abc import Iterable, Sequence
from typing import Any

_EXCERPT = 72  # characters of a long line that an error shows around the place


class TamisError(Exception):
    """The base of all errors of tamis."""


class OptionError(TamisError):
    """An argument that is not one of the choices."""


class SchemaError(TamisError):
    """An invalid schema: an unknown type, a repeated name, an empty domain."""


class MissingDependency(TamisError):
    """An optional dependency that is needed and not installed."""


class CapacityError(TamisError):
    """An engine that cannot hold any more."""


class RoutingError(TamisError):
    """A message that a broker cannot accept, or an invalid network."""


class BrokerError(TamisError):
    """A request that a broker refuses.

    `status` is the status of the answer in HTTP, `code` a short word that programs can compare.
    """

    status = 400
    code = "refused"


class UnknownTopic(BrokerError):
    """A topic that the broker does not have."""

    status = 404
    code = "unknown-topic"


class UnknownPeer(BrokerError):
    """A broker that is not next to this one."""

    status = 404
    code = "unknown-peer"


class Conflict(BrokerError):
    """A request that conflicts with what the broker has already."""

    status = 409
    code = "conflict"


class TopicExists(Conflict):
    """A topic that exists and is another one than the one asked for."""

    code = "topic-exists"


class Unauthenticated(BrokerError):
    """A client of which the broker does not know who it is."""

    status = 401
    code = "unauthenticated"


class Forbidden(BrokerError):
    """Something that this account may not do."""

    status = 403
    code = "forbidden"


class LimitReached(BrokerError):
    """An account that has, or sends, as much as it may.

    `retry_after` is in how many seconds it may go on, or None: not by waiting.
    """

    status = 429
    code = "limit-reached"

    def __init__(self, problem: str, retry_after: float | None = None) -> None:
        super().__init__(problem)
        self.retry_after = retry_after

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.retry_after)


class Busy(BrokerError):
    """A broker that cannot do it now, because the disk is behind or full: try again."""

    status = 503
    code = "busy"


class BrokerUnreachable(TamisError, ConnectionError):
    """A broker that does not answer, or not any more."""


class FileError(TamisError):
    """A file that cannot be read or written."""


class TextError(TamisError):
    """Something wrong at a place of a text.

    `problem` is one sentence, `text` the whole text, `start` and `end` the place in it, `line` and
    `column` the same place counted from one, and `hint` says what to do about it, or is None.
    """

    def __init__(
        self, problem: str, text: str, start: int, end: int | None = None, hint: str | None = None
    ) -> None:
        super().__init__(problem)
        self.problem = problem
        self.text = text
        self.start = min(start, len(text))
        self.end = max(self.start, min(len(text) if end is None else end, len(text)))
        self.hint = hint
        self.line = text.count("\n", 0, self.start) + 1
        self.column = self.start - (text.rfind("\n", 0, self.start) + 1) + 1

    def __str__(self) -> str:
        hint = f"; {self.hint}" if self.hint else ""
        where = f"line {self.line}, column {self.column}"
        return f"{self.problem}{hint} ({where})\n{self._drawing()}"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problem, self.text, self.start, self.end, self.hint)

    def _drawing(self) -> str:
        """The line with the error and carets under the place, shortened to fit a screen."""
        line_start = self.start - (self.column - 1)
        line_end = self.text.find("\n", line_start)
        line_end = len(self.text) if line_end < 0 else line_end
        left = max(line_start, self.start - _EXCERPT // 2)
        right = min(line_end, left + _EXCERPT)
        before = "..." if left > line_start else ""
        after = "..." if right < line_end else ""
        shown = "".join(c if c.isprintable() else " " for c in self.text[left:right])
        carets = max(1, min(self.end, right) - self.start)
        indent = " " * (len(before) + self.start - left)
        return f"  {before}{shown}{after}\n  {indent}{'^' * carets}"


class ExpressionError(TextError):
    """A filter that cannot be used; `text` is the filter."""


class ParseError(ExpressionError):
    """A filter that does not follow the grammar."""


class TypeMismatch(ExpressionError):
    """A filter that does not fit the schema."""


class LimitError(ExpressionError):
    """A filter that is too long, too deep or too big."""


class SettingsError(TamisError):
    """A file of settings that cannot be used. `problems` has what is wrong, and where."""

    def __init__(self, file: str, problems: Sequence[TextError]) -> None:
        super().__init__(file, problems)
        self.file = file
        self.problems = list(problems)

    def __str__(self) -> str:
        return "\n".join(f"{self.file}: {problem}" for problem in self.problems)


class EventError(TamisError):
    """An event that does not fit the schema. `row` is its number in a batch, or None."""

    def __init__(self, problem: str, row: int | None = None) -> None:
        super().__init__(problem)
        self.problem = problem
        self.row = row

    def __str__(self) -> str:
        return self.problem if self.row is None else f"event {self.row}: {self.problem}"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.problem, self.row)

    def at(self, row: int) -> "EventError":
        """The same error, about a row of a batch."""
        return EventError(self.problem, row)


class SubscriptionError(TamisError):
    """A subscription id that is unknown, taken, or cannot be an id."""


class UnknownSubscription(SubscriptionError, KeyError):
    """A subscription id that is not subscribed."""

    __str__ = Exception.__str__  # a KeyError would show its message in quotes


class BulkError(SubscriptionError):
    """Rows of one `subscribe_many` call that cannot be used; none of its rows was subscribed.

    `failures` has (row, id, error) for each of them.
    """

    SHOWN = 10

    def __init__(self, failures: Sequence[tuple[int, Any, TamisError]], total: int) -> None:
        super().__init__(failures, total)
        self.failures = list(failures)
        self.total = total

    def __str__(self) -> str:
        count = len(self.failures)
        total = counted(self.total, "subscription")
        lines = [f"{count:,} of {total} cannot be used; none was subscribed"]
        for row, subscription, error in self.failures[: self.SHOWN]:
            text = str(error).replace("\n", "\n    ")
            lines.append(f"  row {row}, id {subscription!r}: {text}")
        if count > self.SHOWN:
            lines.append(f"  ... and {count - self.SHOWN} more, in .failures of this error")
        return "\n".join(lines)


def did_you_mean(name: str, known: Iterable[str], *, listed: bool = True) -> str | None:
    """A hint for an unknown name: the most similar known name, or a list of the known names."""
    names = list(known)
    folded = {candidate.casefold(): candidate for candidate in names}
    close = difflib.get_close_matches(name.casefold()[:100], list(folded), n=1, cutoff=0.6)
    if close:
        return f"did you mean {folded[close[0]]!r}?"
    if not names or not listed:
        return None
    some = ", ".join(repr(candidate) for candidate in names[:10])
    return f"available: {some}" + (", ..." if len(names) > 10 else "")


def unknown_attribute(name: str, known: Iterable[str]) -> str:
    """The message about a name that is not in a schema."""
    hint = did_you_mean(name, known)
    return f"unknown attribute {name!r}" + (f"; {hint}" if hint else "")


def counted(count: int, noun: str, many: str | None = None) -> str:
    """``1 row``, ``2 rows``."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {many or noun + 's'}"


def choose(what: str, value: str, choices: Iterable[str]) -> str:
    """The value if it is one of the choices; otherwise raises an `OptionError` that lists them."""
    listed = list(choices)
    if value in listed:
        return value
    close = difflib.get_close_matches(str(value), listed, n=1)
    hint = f"did you mean {close[0]!r}? " if close else ""
    raise OptionError(f"unknown {what} {value!r}; {hint}choices: {', '.join(listed)}")
