"""tamis: content-based publish/subscribe.

A subscription is what one would write after WHERE. For every event, tamis finds every subscription
that it satisfies.
"""

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
    "Schema",
    "SchemaError",
    "SubscriptionError",
    "TamisError",
    "TypeMismatch",
    "__version__",
    "parse",
]
