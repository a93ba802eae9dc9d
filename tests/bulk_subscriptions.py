"""Ids and filters in bulk, and what can be seen of a matcher that took them."""

from stocks import SMALL, stock_filters, stock_rows
from tamis import Matcher

EVENTS = [dict(zip(SMALL, row, strict=True)) for row in stock_rows(2, 20)]


def named(size, kind=str, seed=1, first=0):
    """Ids and filters."""
    return [(kind(n), text) for n, text in enumerate(stock_filters(seed, size), first)]


def state(matcher):
    """All that can be seen of a matcher, and what engine and store say of their sizes."""
    return (
        [(name, str(matcher.get(name))) for name in matcher],
        len(matcher),
        matcher.engine,
        matcher._held.engine.statistics()["subscriptions"],
        matcher._held.subscriptions.next_handle,
        matcher._held.subscriptions.kind,
        [matcher.match(event) for event in EVENTS[:4]],
        matcher.match_batch(EVENTS, "lists").to_pydict(),
    )


def but_for_the_engine(seen):
    return [part for part in seen if part not in ("naive", "sliced")]


def oracle(pairs):
    """A matcher to which the same came one by one."""
    matcher = Matcher(SMALL, "naive")
    for name, text in pairs:
        matcher.subscribe(name, text)
    return matcher


def same(matcher, pairs, events=EVENTS[:5]):
    expected = oracle(pairs)
    assert list(matcher) == list(expected)
    some = list(expected)[:: len(expected) // 200 + 1]
    assert [matcher.get(name) for name in some] == [expected.get(name) for name in some]
    lists = expected.match_batch(events, "lists").to_pydict()
    assert matcher.match_batch(events, "lists").to_pydict() == lists
    assert [matcher.match(event) for event in events[:3]] == lists["subscriptions"][:3]
    assert len(matcher) == len(expected) == matcher._held.engine.statistics()["subscriptions"]
