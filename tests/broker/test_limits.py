"""Limits of accounts, and the rate of what they publish in virtual time."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from tamis.broker.limits import AccountLimits, Usage
from tamis.errors import LimitReached, OptionError


def test_connections_and_subscriptions_are_counted():
    usage = Usage("desk", AccountLimits(connections=2, subscriptions=1))
    usage.connect()
    usage.connect()
    with pytest.raises(LimitReached, match="'desk' has 2 connections, and may have no more"):
        usage.connect()
    usage.disconnect()
    usage.connect()
    usage.subscribe()
    with pytest.raises(LimitReached, match="1 subscription, and"):
        usage.subscribe()
    usage.unsubscribe()
    usage.subscribe()
    assert (usage.connections, usage.subscriptions) == (2, 1)


def test_a_batch_larger_than_the_rate_is_sent_and_then_paid_for():
    usage = Usage("desk", AccountLimits(events_per_second=10))
    usage.publish(25, now=100.0)  # 10 are there, 15 are owed
    with pytest.raises(LimitReached, match="10 events per second") as reached:
        usage.publish(1, now=101.0)
    assert reached.value.retry_after == pytest.approx(0.6)
    assert pickle.loads(pickle.dumps(reached.value)).retry_after == reached.value.retry_after
    usage.publish(1, now=101.6)
    with pytest.raises(LimitReached):
        usage.publish(1, now=50.0)  # the clock was set back


@given(
    st.lists(st.tuples(st.integers(1, 30), st.floats(0, 3)), max_size=40),
    st.sampled_from([0.5, 1.0, 7.0, 100.0]),
)
def test_nobody_sends_more_than_the_rate_and_what_was_saved_up(sends, rate):
    usage, now, accepted, largest = Usage("desk", AccountLimits(events_per_second=rate)), 0.0, 0, 0
    for events, pause in sends:
        now += pause
        try:
            usage.publish(events, now)
        except LimitReached:
            continue
        accepted, largest = accepted + events, max(largest, events)
    assert accepted <= max(1.0, rate) + now * rate + largest + 1e-6


def test_without_a_rate_everything_may_be_sent():
    Usage("desk", AccountLimits()).publish(10**9, now=0.0)


@each(
    "wrong",
    [
        {"connections": 0},
        {"subscriptions": True},
        {"event_bytes": None},
        {"body_bytes": 1.5},
        {"events_per_second": 0},
        {"events_per_second": True},
    ],
)
def test_a_limit_that_is_none_is_refused(wrong):
    with pytest.raises(OptionError, match=next(iter(wrong))):
        AccountLimits(**wrong)
