"""What a broker's errors are to clients: a status of HTTP, and a short word for programs.

The errors themselves are in `tamis.errors`, because clients raise the same ones.
"""

from tamis.errors import (
    BrokerError,
    Busy,
    CapacityError,
    Conflict,
    EventError,
    ExpressionError,
    Forbidden,
    LimitError,
    LimitReached,
    OptionError,
    SchemaError,
    SubscriptionError,
    TamisError,
    TopicExists,
    Unauthenticated,
    UnknownPeer,
    UnknownSubscription,
    UnknownTopic,
)

__all__ = [
    "BrokerError",
    "Busy",
    "Conflict",
    "Forbidden",
    "LimitReached",
    "TopicExists",
    "Unauthenticated",
    "UnknownPeer",
    "UnknownSubscription",
    "UnknownTopic",
    "kind_of",
    "status_and_code",
]

_OF_BROKER = (
    UnknownTopic, UnknownPeer, Conflict, TopicExists, Unauthenticated, Forbidden, LimitReached,
    Busy,
)  # fmt: skip
# Of several that fit, the first one counts.
_OTHERS: tuple[tuple[type[TamisError], int, str], ...] = (
    (UnknownSubscription, 404, "unknown-subscription"),
    (SubscriptionError, 400, "bad-subscription"),
    (LimitError, 413, "filter-too-large"),
    (ExpressionError, 400, "bad-filter"),
    (EventError, 400, "bad-event"),
    (SchemaError, 400, "bad-schema"),
    (OptionError, 400, "bad-option"),
    (CapacityError, 503, "busy"),
)


# Of filters and events clients need more than a message: the place, the rows.
_BY_CODE: dict[str, type[TamisError]] = {
    code: kind for kind, _, code in _OTHERS if not issubclass(kind, ExpressionError | EventError)
} | {kind.code: kind for kind in _OF_BROKER}


def kind_of(code: str) -> type[TamisError] | None:
    """The error that a short word stands for; None if it is unknown, or about filters or events."""
    return _BY_CODE.get(code)


def status_and_code(error: TamisError) -> tuple[int, str]:
    """The status of HTTP and the short word for an error; (500, "failed") for an unexpected one."""
    if isinstance(error, BrokerError):
        return error.status, error.code
    for kind, status, code in _OTHERS:
        if isinstance(error, kind):
            return status, code
    return 500, "failed"
