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
    "UnknownSubscription",
    "UnknownTopic",
    "status_and_code",
]

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


def status_and_code(error: TamisError) -> tuple[int, str]:
    """The status of HTTP and the short word for an error; (500, "failed") for an unexpected one."""
    if isinstance(error, BrokerError):
        return error.status, error.code
    for kind, status, code in _OTHERS:
        if isinstance(error, kind):
            return status, code
    return 500, "failed"
