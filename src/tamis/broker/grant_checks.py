"""Grants of a file of settings, read as far as the file says what their topics look like.

Topics may also be made later, or elsewhere in the network. Of a grant for these alone, only what is
wrong whatever the types of its attributes are can be found; `unread` names such grants.
"""

from collections.abc import Iterable, Iterator, Mapping

from tamis.broker.accounts import Account
from tamis.broker.grants import Grants
from tamis.broker.settings import TopicSettings
from tamis.errors import ExpressionError, ParseError, SchemaError
from tamis.language.expression import MATCHES_ALL, parse
from tamis.language.tokens import TokenKind, tokenize
from tamis.schema import Schema

Topics = Mapping[str, TopicSettings]

_TYPES = ("double", "string", "bool", "timestamp")
_NAMES = {TokenKind.NAME, TokenKind.QUOTED}


def check_grant(grants: Grants, key: str, topics: Topics) -> None:
    """Raise an `ExpressionError` if the filter under a key is wrong for a topic that it is for."""
    text = grants.filters[key]
    schemas = list(_schemas(grants, key, topics))
    for schema in schemas:
        parse(text, schema.without_clock())
    if not schemas:
        _check_without_schema(text)


def unread(accounts: Iterable[Account], topics: Topics) -> list[str]:
    """The grants that are for no topic of the file, by their names in the file."""
    return [
        f"accounts.{account.name}.{action}.{key}"
        for account in accounts
        for action, grants in (("publish", account.publish), ("subscribe", account.subscribe))
        for key, text in grants.filters.items()
        if text != MATCHES_ALL and not any(_schemas(grants, key, topics))
    ]


def _schemas(grants: Grants, key: str, topics: Topics) -> Iterator[Schema]:
    """What the topics look like for which a key counts, and no more specific one does."""
    for name, topic in topics.items():
        if topic.schema is not None and grants.key(name) == key:
            yield Schema(topic.schema)


def _check_without_schema(text: str) -> None:
    """Raise a `ParseError` if a filter cannot be read, of whatever types its attributes are."""
    for kind in _TYPES:
        try:
            parse(text, Schema(dict.fromkeys(_paths(text), kind)))
        except ParseError:
            raise
        except (ExpressionError, SchemaError):  # it may be right with other types
            continue
        return


def _paths(text: str) -> list[str]:
    """The names in a filter that may be attributes, with dots."""
    paths = [""]
    for token in tokenize(text):
        if token.kind in _NAMES or (token.text == "." and paths[-1]):
            paths[-1] += token.text.strip("`")
        elif paths[-1]:
            paths.append("")
    return [path for path in paths if path]
