"""tamis: content-based publish/subscribe.

A subscription is what you would write after WHERE. For every event, tamis finds every subscription
that it satisfies.
"""

import importlib
from typing import TYPE_CHECKING, Any

from tamis.errors import (
    BrokerError,
    BrokerUnreachable,
    BulkError,
    Busy,
    CapacityError,
    Conflict,
    EventError,
    ExpressionError,
    FileError,
    Forbidden,
    LimitError,
    LimitReached,
    MissingDependency,
    OptionError,
    ParseError,
    RoutingError,
    SchemaError,
    SubscriptionError,
    TamisError,
    TopicExists,
    TypeMismatch,
    Unauthenticated,
    UnknownPeer,
    UnknownSubscription,
    UnknownTopic,
)
from tamis.explanation import Explanation
from tamis.language.expression import Expression, parse
from tamis.matcher import Matcher
from tamis.schema import Schema

if TYPE_CHECKING:
    from tamis import aio
    from tamis.client.blocking import connect
    from tamis.dead_letters import DeadLetter
    from tamis.matches import Matches
    from tamis.profiles import Profile
    from tamis.relations.covering import covers
    from tamis.relations.merging import merge

__version__ = "0.1.0.dev0"

__all__ = [
    "BrokerError",
    "BrokerUnreachable",
    "BulkError",
    "Busy",
    "CapacityError",
    "Conflict",
    "DeadLetter",
    "EventError",
    "Explanation",
    "Expression",
    "ExpressionError",
    "FileError",
    "Forbidden",
    "LimitError",
    "LimitReached",
    "Matcher",
    "Matches",
    "MissingDependency",
    "OptionError",
    "ParseError",
    "Profile",
    "RoutingError",
    "Schema",
    "SchemaError",
    "SubscriptionError",
    "TamisError",
    "TopicExists",
    "TypeMismatch",
    "Unauthenticated",
    "UnknownPeer",
    "UnknownSubscription",
    "UnknownTopic",
    "__version__",
    "aio",
    "connect",
    "covers",
    "merge",
    "parse",
]


# Imported on first use, because they import Arrow or much code, which is slow.
_MODULES = {
    "DeadLetter": "tamis.dead_letters",
    "Matches": "tamis.matches",
    "Profile": "tamis.profiles",
    "connect": "tamis.client.blocking",
    "covers": "tamis.relations.covering",
    "merge": "tamis.relations.merging",
}


def __getattr__(name: str) -> Any:
    """A public name that is imported on first use."""
    if name == "aio":
        return importlib.import_module("tamis.aio")
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module(_MODULES[name]), name)
