"""Grants: which events an account may publish and receive, as filters.

An account has at most one filter for publishing to a topic, and one for subscribing to it. A
subscription is within the grant iff the grant covers its filter. A wider filter is narrowed by AND
or refused, as the account's settings say. So no event outside the grant is ever delivered.

Narrowing joins the two trees, not their texts: what is written in one filter cannot change how the
other is read. ``f AND g`` matches exactly what both match, in all four semantics; in strict
semantics because it needs the attributes of both. For the same reason ``f OR g`` would match less
than the two, so the entries of an account are not added up: the most specific one counts.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tamis.errors import ExpressionError, Forbidden, OptionError
from tamis.language import ast
from tamis.language.expression import MATCHES_ALL, Expression, parse
from tamis.schema import Schema

if TYPE_CHECKING:
    from tamis.broker.accounts import Account
    from tamis.matcher import Matcher

PUBLISHED = "publish"  # the only subscription of a `publish_matcher`


class Grants:
    """The filter that an account has for each topic, by the topic's name or a pattern.

    A pattern is the beginning of a name and ``*``. The name itself counts more than a pattern, and
    a long pattern more than a short one.

    >>> grants = Grants({"*": "price < 10", "quotes.*": "TRUE"})
    >>> grants.find("quotes.us"), grants.find("news")
    ('TRUE', 'price < 10')
    """

    def __init__(self, filters: Mapping[str, str] = {}) -> None:
        self.filters = dict(filters)
        for topic in self.filters:
            if "*" in topic[:-1]:
                raise OptionError(
                    f"{topic!r}: a star stands at the end of a pattern, for the rest of the name"
                )
        starts = [topic[:-1] for topic in self.filters if topic.endswith("*")]
        self._starts = sorted(starts, key=len, reverse=True)

    def key(self, topic: str) -> str | None:
        """The name or pattern that counts for a topic, or None: nothing is granted."""
        if topic in self.filters and not topic.endswith("*"):
            return topic
        return next((f"{start}*" for start in self._starts if topic.startswith(start)), None)

    def find(self, topic: str) -> str | None:
        """The text of the filter for a topic, or None: nothing is granted."""
        key = self.key(topic)
        return None if key is None else self.filters[key]

    def __bool__(self) -> bool:
        return bool(self.filters)

    def __repr__(self) -> str:
        return f"Grants({self.filters})"


# `filter`, though Python has one: it is what the table of subscriptions calls it.
def narrowed(
    account: "Account", topic: str, schema: Schema, semantics: str = "sql",
    filter: str | Expression | None = None,
    *, defaults: Mapping[str, Any] | None = None,
) -> Expression:  # fmt: skip
    """What an account gets if it asks with a filter: the same, or the filter and its grant.

    Without a filter it asks for everything that it may have. Raises `Forbidden` if the account has
    no grant for the topic, or if its settings refuse what is wider than the grant.
    """
    grant = subscribe_grant(account, topic, schema)
    if filter is None:
        return parse(MATCHES_ALL, schema) if grant is None else grant
    if isinstance(filter, Expression):
        asked = filter if filter.schema == schema else Expression(filter.tree, schema)
    else:
        asked = parse(filter, schema)
    if grant is None:
        return asked
    from tamis.relations.covering import counterexample, covers

    if covers(grant, asked, semantics=semantics, defaults=defaults):
        return asked
    if account.wider == "refuse":
        outside = counterexample(grant, asked, semantics=semantics, defaults=defaults)
        example = "" if outside is None else f"; for example, {outside} is outside it"
        raise Forbidden(
            f"the filter is wider than what account {account.name!r} may receive from topic "
            f"{topic!r}, which is: {grant}{example}"
        )
    return Expression(ast.And((asked.tree, grant.tree)), schema)


def subscribe_grant(account: "Account", topic: str, schema: Schema) -> Expression | None:
    """The filter of what an account may receive from a topic; None: everything."""
    return _grant(account, "receive from", account.subscribe, topic, schema)


def publish_grant(account: "Account", topic: str, schema: Schema) -> Expression | None:
    """The filter of what an account may publish to a topic; None: everything."""
    return _grant(account, "publish to", account.publish, topic, schema)


def publish_matcher(
    account: "Account", topic: str, schema: Schema, semantics: str = "sql", *,
    defaults: Mapping[str, Any] | None = None,
) -> "Matcher | None":  # fmt: skip
    """A matcher that finds the events which an account may publish to a topic; None: all of them.

    Its only subscription is `PUBLISHED`. Raises `Forbidden` if the account may publish nothing.
    """
    grant = publish_grant(account, topic, schema)
    if grant is None:
        return None
    from tamis.matcher import Matcher

    matcher = Matcher(schema, semantics=semantics, defaults=defaults)
    matcher.subscribe(PUBLISHED, grant)
    return matcher


def _grant(
    account: "Account", action: str, grants: Grants, topic: str, schema: Schema
) -> Expression | None:
    text = grants.find(topic)
    if text is None:
        raise forbidden(account, action, topic)
    if text == MATCHES_ALL:
        return None
    try:
        # What an account may do would change by itself, and peers are told it as an advertisement.
        return Expression(parse(text, schema.without_clock()).tree, schema)
    except ExpressionError as error:
        raise Forbidden(
            f"what account {account.name!r} may {action} topic {topic!r} is a filter that does not "
            f"fit the topic's schema: {error}"
        ) from None


def forbidden(account: "Account", action: str, topic: str) -> Forbidden:
    """The error about a topic without a grant, the same whether there is such a topic or not."""
    return Forbidden(f"account {account.name!r} may not {action} topic {topic!r}")
