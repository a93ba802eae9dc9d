"""Quenching: what was acknowledged to a subscriber is never dropped at the source."""

import asyncio
import os
from dataclasses import replace

import pytest

from brokers import Clock, open_broker, with_broker
from quenched_run import is_caught, play
from tamis import parse
from tamis.broker import quenching
from tamis.broker.accounts import Account, token_hash
from tamis.broker.grants import Grants
from tamis.broker.quench_leases import Lease, Leases
from tamis.broker.quenching import Quenching
from tamis.client.quench_filter import QuenchFilter
from tamis.errors import Forbidden, OptionError

SEEDS = int(os.environ.get("TAMIS_SEEDS", "8"))


def test_nothing_is_dropped_that_an_acknowledged_subscription_matches(tmp_path):
    runs = [play(tmp_path, seed) for seed in range(SEEDS)]
    assert sum(run.dropped for run in runs) > 20
    assert sum(run.waited for run in runs) > 5


async def _at_once(*_):
    """Broken: nobody waits for publishers."""


def _any_version(self, publisher, _, until):
    """Broken: who confirms an old version counts as knowing the current one."""
    self._by_publisher[publisher] = Lease(1 << 60, until)


def _from_the_answer(self, answer, confirmed_at):
    """Broken: the lease is counted from when it is known, not from before it was asked for."""
    _answered(self, answer, confirmed_at + 10.0)


_answered = QuenchFilter.answered


def _always(self, _):
    """Broken: a publisher does not look at its clock."""
    return self.valid_until > float("-inf")


def _nobody(_):
    """Broken: a broker that starts again knows of no publisher."""
    return {}


def _no_sleepers(*_):
    """Broken: subscriptions that nobody listens to do not count."""
    return []


def _forget_added(*_):
    """Broken: a new filter waits for the next look at all filters."""


BROKEN = [
    (Quenching, "_told", _at_once),
    (Leases, "confirm", _any_version),
    (QuenchFilter, "answered", _from_the_answer),
    (QuenchFilter, "is_valid", _always),
    (quenching, "quenched", _nobody),
    (quenching, "local_filters", _no_sleepers),
    (quenching.QuenchedTopic, "widen", _forget_added),
]


@pytest.mark.parametrize("broken", BROKEN, ids=lambda broken: broken[2].__name__)
def test_what_is_broken_on_purpose_is_caught(tmp_path, monkeypatch, broken):
    monkeypatch.setattr(*broken)
    assert is_caught(tmp_path, range(100))


def quenched(broker, guest, version=None, wait=0.0, name="p"):
    return broker.quench(guest, "quotes", name, version, wait)


def test_a_publisher_is_told_what_anybody_wants_and_when_that_changes(tmp_path):
    async def use(broker, guest):
        assert (await quenched(broker, guest)).filter == "FALSE"
        await broker.put_subscription(guest, "quotes", "a", "price < 5")
        told = await quenched(broker, guest)
        assert (told.filter, told.granted) == ("price < 5", False)
        told = await quenched(broker, guest, told.version)
        assert told.granted
        waiting = asyncio.create_task(quenched(broker, guest, told.version, wait=10))
        await asyncio.sleep(0)
        listening = asyncio.create_task(broker.attach_filter(guest, "quotes", "price > 8"))
        wider = await waiting
        assert (wider.filter, wider.granted) == ("price < 5 OR price > 8", True)
        assert not listening.done()
        await quenched(broker, guest, wider.version)
        await (await listening).close()
        assert (await broker.wanted(guest, "quotes")).filter == "price < 5 OR price > 8"
        one = broker._host.quenching._quenched["quotes"]
        broker._host.quenching._refresh_now(one)
        await one.refreshing
        assert (await broker.wanted(guest, "quotes")).filter == "price < 5"

    with_broker(tmp_path, use)


def test_a_filter_that_comes_during_a_refresh_is_in_the_summary(tmp_path):
    async def use(broker, guest):
        await broker.put_subscription(guest, "quotes", "a", "price < 5")
        told = await quenched(broker, guest)
        one = broker._host.quenching._quenched["quotes"]
        one.is_dirty = True
        broker._host.quenching._refresh_now(one)
        for _ in range(3):  # until the filters have been taken, and are being summed up
            await asyncio.sleep(0)
        assert one.refreshing is not None
        one.widen(parse("price > 8", broker._topics.get("quotes").topic.schema),
                  broker._topics.get("quotes").topic)  # fmt: skip
        await one.refreshing
        assert (await broker.wanted(guest, "quotes")).filter == "price < 5 OR price > 8"
        assert told.filter == "price < 5"

    with_broker(tmp_path, use)


def test_a_filter_that_is_covered_waits_for_nobody(tmp_path):
    async def use(broker, guest):
        await broker.put_subscription(guest, "quotes", "a", "price < 5")
        told = await quenched(broker, guest)
        await quenched(broker, guest, told.version)
        await broker.put_subscription(guest, "quotes", "b", "price < 3")
        assert (await quenched(broker, guest, told.version)).granted

    with_broker(tmp_path, use)


def test_whoever_says_that_it_drops_nothing_is_not_waited_for(tmp_path):
    async def use(broker, guest):
        told = await quenched(broker, guest)
        await quenched(broker, guest, told.version)
        subscribing = asyncio.create_task(broker.put_subscription(guest, "quotes", "a", "TRUE"))
        await asyncio.wait([subscribing], timeout=0.05)
        assert not subscribing.done()
        broker.quench_no_more(guest, "quotes", "p")
        await subscribing

    with_broker(tmp_path, use)


def test_a_broker_that_starts_again_waits_until_nobody_can_drop(tmp_path):
    async def main():
        clock = Clock()
        for is_last in (False, True):
            broker = await open_broker(tmp_path, clock)
            guest = broker.accounts.guest
            await broker.create_topic(guest, "quotes", "price double")
            if is_last:
                work = broker.put_subscription(guest, "quotes", "a", "TRUE")
                subscribing = asyncio.create_task(work)
                await asyncio.wait([subscribing], timeout=0.05)
                assert not subscribing.done()
                clock.seconds += quenching.LEASE
                await subscribing
            else:
                told = await quenched(broker, guest)
                await quenched(broker, guest, told.version)
            await broker.close()

    asyncio.run(main())


def test_a_topic_that_nobody_quenches_any_more_costs_nothing(tmp_path):
    async def main():
        clock = Clock()
        broker = await open_broker(tmp_path, clock)
        guest = broker.accounts.guest
        await broker.create_topic(guest, "quotes", "price double")
        await quenched(broker, guest)
        known = broker._host.quenching
        await known._look_after(known._quenched["quotes"])
        assert not known._quenched
        assert quenching.quenched(broker._catalogue) == {}
        await broker.close()

    asyncio.run(main())


def test_attributes_that_are_added_are_told(tmp_path):
    async def use(broker, guest):
        await broker.put_subscription(guest, "quotes", "a", "price < 5")
        told = await quenched(broker, guest)
        await broker.create_topic(guest, "quotes", "symbol string, price double, venue string")
        again = await quenched(broker, guest, told.version)
        assert not again.granted
        assert "venue" in again.schema

    with_broker(tmp_path, use)


def account(**more):
    tokens = frozenset([token_hash("secret")])
    grants = {"publish": Grants({"quotes": "price < 10"}), "quench": True} | more
    return Account("desk", tokens=tokens, **grants)


def test_an_account_is_told_what_is_wanted_of_that_which_it_may_publish(tmp_path):
    admin = replace(account(), name="admin", publish=Grants({"*": "TRUE"}), tokens=frozenset(),
                    subscribe=Grants({"*": "TRUE"}), topics=Grants({"*": "TRUE"}))  # fmt: skip
    desk, shy, mute = account(), account(quench=False), account(publish=Grants())
    subscriber = replace(admin, name="s", subscribe=Grants({"*": "symbol = 'A'"}))

    async def main():
        broker = await open_broker(tmp_path, accounts=(admin, desk, subscriber))
        await broker.create_topic(admin, "quotes", "symbol string, price double")
        await broker.put_subscription(subscriber, "quotes", "a", "price > 50 OR price < 3")
        await broker.put_subscription(admin, "quotes", "b", "price > 20")
        told = await quenched(broker, desk)
        assert told.filter == "(price > 50 OR price < 3) AND symbol = 'A'"
        with pytest.raises(Forbidden, match="quench = true"):
            await quenched(broker, shy)
        with pytest.raises(Forbidden, match="may not publish"):
            await broker._host.quenching.look(mute, broker._topics.get("quotes"))
        await broker.close()

    asyncio.run(main())


def test_bad_requests_are_refused(tmp_path):
    async def use(broker, guest):
        with pytest.raises(OptionError, match="a publisher is named"):
            await quenched(broker, guest, name="\n")
        with pytest.raises(OptionError, match="wait is a number"):
            await quenched(broker, guest, wait=11)

    with_broker(tmp_path, use)
