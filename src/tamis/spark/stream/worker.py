"""Subscriptions that change, as the workers of a stream see them.

A worker has the compiled file of some version, and makes the changes since then in its own matcher:
a change costs microseconds there, and nothing is compiled or sent anew. The next micro-batch brings
all changes since the file again, of which the worker makes those that it has not made yet.
"""

from collections import OrderedDict
from dataclasses import dataclass
from typing import NamedTuple

from tamis.matcher import Matcher
from tamis.spark.stream.versions import Changes

OPENED = 2  # matchers that a worker keeps


class Held(NamedTuple):
    """A matcher, and the changes that were made in it."""

    matcher: Matcher
    made: Changes


_held: "OrderedDict[str, Held]" = OrderedDict()


@dataclass(frozen=True)
class Live:
    """Finds the subscriptions of a version in a worker."""

    name: str  # of the file, as the session has published it
    changes: Changes

    def __call__(self) -> Matcher:
        from pyspark import SparkFiles

        held = _held.pop(self.name, None)
        # A micro-batch that comes again may be of an older version: then it is begun anew.
        if held is None or not held.made.keys() <= self.changes.keys():
            held = Held(Matcher.load(SparkFiles.get(self.name), options={"threads": 1}), {})
        make(held, self.changes)
        _held[self.name] = held
        while len(_held) > OPENED:
            _held.popitem(last=False)
        return held.matcher


def make(held: Held, changes: Changes) -> None:
    """Make the changes that were not made yet."""
    nothing = object()
    new = {
        subscription: text
        for subscription, text in changes.items()
        if held.made.get(subscription, nothing) != text
    }
    for subscription, text in new.items():
        if text is None and subscription in held.matcher:
            held.matcher.unsubscribe(subscription)
    held.matcher.subscribe_many([pair for pair in new.items() if pair[1] is not None])
    held.made.update(changes)
