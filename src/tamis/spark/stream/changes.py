"""What changes of subscriptions do.

A change is a row of ``id``, ``filter`` and perhaps ``op``: ``delete`` removes the subscription,
``upsert`` (or ``insert``, ``update``, or nothing) adds or replaces it. Without an ``op``, a row
without a filter removes. Changes count in their order; a bad one changes nothing.
"""

from collections.abc import Iterable
from typing import Any

from tamis.dead_letters import DeadLetter, filter_letter
from tamis.errors import OptionError, TamisError
from tamis.matcher_settings import MatcherSettings
from tamis.spark.compile.sent_rules import Changes
from tamis.spark.dead_letters.worker import explained

UPSERTS, DELETES = ("upsert", "insert", "update"), ("delete", "remove")
UNREADABLE = "unreadable row"  # the `op` of a row that Spark could not read


def is_removal(subscription: Any, text: Any, op: str | None) -> bool:
    """Whether a change removes its subscription; an error about a change that makes no sense."""
    if op == UNREADABLE:
        raise OptionError("the row cannot be read")
    if op is not None and op not in UPSERTS + DELETES:
        raise OptionError(f"unknown op {op!r}; there is {', '.join(UPSERTS + DELETES)}")
    if op not in DELETES and not (op is None and text is None):
        return False
    if subscription is None:
        raise OptionError("the change has no id")
    return True


def changes_of(
    rows: Iterable[tuple[Any, Any, str | None]], settings: MatcherSettings
) -> tuple[Changes, list[DeadLetter]]:
    """The changes that rows of (id, filter, op) make in their order, and letters about bad ones."""
    found: Changes = {}
    letters: list[DeadLetter] = []
    matcher = settings.matcher()
    for row, (subscription, text, op) in enumerate(rows):
        try:
            if is_removal(subscription, text, op):
                new = None
            else:
                matcher.subscribe(subscription, text)  # refuses a bad filter
                new = text
            found.pop(subscription, None)
            found[subscription] = new
        except TamisError as error:
            letter = filter_letter(row, subscription, text, error)
            letters.append(explained(letter, settings.skipped))
    return found, letters
