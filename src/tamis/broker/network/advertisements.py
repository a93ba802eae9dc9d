"""What the accounts of this broker may publish to a topic, as it is announced to others.

Publishers need not know about networks: what an account may publish is its advertisement.
"""

import logging
from collections.abc import Iterable

from tamis.broker.accounts import Account
from tamis.broker.network.routes import Routes
from tamis.errors import TamisError
from tamis.routing.filter_cache import FilterCache

logger = logging.getLogger("tamis.broker")


class Advertisements:
    """The advertisements of one topic: each filter that some account has as its grant, once."""

    def __init__(self, topic: str, cache: FilterCache, routes: Routes) -> None:
        self._topic = topic
        self._cache = cache
        self._routes = routes
        self._ids: dict[str, str] = {}  # by the filters

    def missing(self, accounts: Iterable[Account]) -> list[str]:
        """The filters of accounts that are not announced."""
        return [text for text in self._filters(accounts) if text not in self._ids]

    def put(self, id_: str, text: str) -> None:
        """Announce a filter, under an id that is new."""
        self._ids[text] = id_
        self._routes.advertise(id_, text)

    def keep(self, accounts: Iterable[Account]) -> None:
        """Withdraw the filters that no account has as its grant any more."""
        kept = self._filters(accounts)
        for text in [text for text in self._ids if text not in kept]:
            self._routes.unadvertise(self._ids.pop(text))

    def _filters(self, accounts: Iterable[Account]) -> dict[str, None]:
        found: dict[str, None] = {}
        for account in accounts:
            text = account.publish.find(self._topic)
            if text is not None:
                try:
                    found[str(self._cache.parse(text))] = None
                except TamisError as error:  # then it may publish nothing
                    logger.warning("what %r may publish is not a filter: %s", account.name, error)
        return found
