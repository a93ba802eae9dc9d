"""Refusals of a broker, as the errors of the library."""

import json
import re
from collections.abc import Sequence
from typing import Any

from tamis.broker.errors import kind_of
from tamis.broker.records import Refusal
from tamis.errors import (
    BrokerError,
    Busy,
    EventError,
    ExpressionError,
    Forbidden,
    LimitError,
    LimitReached,
    TamisError,
    Unauthenticated,
)

_BY_STATUS: dict[int, type[BrokerError]] = {
    401: Unauthenticated,
    403: Forbidden,
    429: LimitReached,
    503: Busy,
}
_PLACE = re.compile(r" \(line \d+, column \d+\)$")
_SHOWN = 200  # characters of an answer that is not a broker's


class RefusedEvents(EventError):
    """Events that a broker refused, all of them; `refused` has the row and the reason of each."""

    def __init__(self, refused: Sequence[Refusal]) -> None:
        first = refused[0]
        more = f" (and {len(refused) - 1:,} more events)" if len(refused) > 1 else ""
        super().__init__(first.reason + more, first.row if more else None)
        self.refused = refused

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.refused,)


def error_of(status: int, body: bytes, filter_text: str | None = None) -> TamisError:
    """The error that an answer with this status and body stands for.

    `filter_text` is the filter of the request, of which the answer has only the place.
    """
    answer = _parsed(body)
    if answer is None:
        text = body.decode("utf-8", "replace").strip()[:_SHOWN]
        found = _BY_STATUS.get(status, BrokerError)(
            f"the broker answered {status}" + (f": {text}" if text else "")
        )
        found.status = status
        return found
    code, message = str(answer.get("error", "")), str(answer.get("message", ""))
    if "line" in answer and "column" in answer and filter_text is not None:
        return _expression_error(code, message, filter_text, answer["line"], answer["column"])
    if code == "bad-event":
        return _event_error(message, answer)
    kind = kind_of(code)
    if kind is not None:
        return kind(message)
    other = _BY_STATUS.get(status, BrokerError)(message or f"the broker answered {status}")
    other.status = status
    other.code = code or other.code
    return other


def _parsed(body: bytes) -> dict[str, Any] | None:
    try:
        answer = json.loads(body)
    except ValueError:
        return None
    return answer if isinstance(answer, dict) and "message" in answer else None


def _expression_error(
    code: str, message: str, text: str, line: Any, column: Any
) -> ExpressionError:
    """The error in a filter, with the place drawn under the text that this client sent."""
    problem = _PLACE.sub("", message.split("\n", 1)[0])
    lines = text.split("\n")
    start = sum(len(one) + 1 for one in lines[: int(line) - 1]) + int(column) - 1
    kind = LimitError if code == "filter-too-large" else ExpressionError
    carets = re.search(r"\n *(\^+)$", message)
    return kind(problem, text, start, start + len(carets[1]) if carets else start + 1)


def _event_error(message: str, answer: dict[str, Any]) -> EventError:
    refused = answer.get("refused")
    if isinstance(refused, list) and refused:
        return RefusedEvents([Refusal(int(one["row"]), str(one["reason"])) for one in refused])
    return EventError(message)
