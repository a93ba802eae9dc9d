"""tamis: content-based publish/subscribe.

A subscription is what one would write after WHERE. For every event, tamis finds every subscription
that it satisfies.
"""

from typing import TYPE_CHECKING, Any

from tamis.errors import (
    BulkError,
    CapacityError,
    EventError,
    ExpressionError,
    FileError,
    LimitError,
    MissingDependency,
    OptionError,
    ParseError,
    SchemaError,
    SubscriptionError,
    TamisError,
    TypeMismatch,
)
from tamis.explanation import Explanation
from tamis.language.expression import Expression, parse
from tamis.matcher import Matcher
from tamis.schema import Schema

if TYPE_CHECKING:
    from tamis.profiles import Profile

__version__ = "0.1.0.dev0"

__all__ = [
    "BulkError",
    "CapacityError",
    "EventError",
    "Explanation",
    "Expression",
    "ExpressionError",
    "FileError",
    "LimitError",
    "Matcher",
    "MissingDependency",
    "OptionError",
    "ParseError",
    "Profile",
    "Schema",
    "SchemaError",
    "SubscriptionError",
    "TamisError",
    "TypeMismatch",
    "__version__",
    "parse",
]


def __getattr__(name: str) -> Any:
    """A profile is imported when it is asked for: it needs Arrow, which is heavy."""
    if name != "Profile":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from tamis.profiles import Profile

    return Profile
