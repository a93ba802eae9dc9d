"""What covering and merging save: the filters that a neighbour is told, and would be told."""

from collections.abc import Iterable
from typing import NamedTuple

from tamis.relations.tables import CoverTable
from tamis.routing.filter_cache import FilterCache

FILTER_BYTES = 16  # that a filter takes beside its text, about


class Amount(NamedTuple):
    """Filters, and the bytes that announcing them takes."""

    entries: int
    bytes: int


class Savings(NamedTuple):
    """What a neighbour would be told of all subscriptions, and what it was told."""

    all: Amount  # every subscription that concerns it
    covering: Amount  # only those that no other one covers
    announced: Amount  # what it was told in fact, mergers among them
    mergers: int


def amount_of(texts: Iterable[str]) -> Amount:
    """How much some filters are."""
    sizes = [len(text.encode()) + FILTER_BYTES for text in texts]
    return Amount(len(sizes), sum(sizes))


def savings_of(
    wanted: list[str], announced: list[str], mergers: int, cache: FilterCache
) -> Savings:
    """What is saved where all of `wanted` are wanted; this may take long, a thread may call it."""
    table: CoverTable[str] = CoverTable(cache.semantics)
    for text in wanted:
        table.insert(text, cache.parse(text))
    return Savings(amount_of(wanted), amount_of(table.roots), amount_of(announced), mergers)
