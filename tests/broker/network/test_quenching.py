"""Quenching in a network: publishers wait for filters that come from far away."""

import asyncio

from linked_brokers import quote, run, until


async def quenched(broker, version=None):
    return await broker.broker.quench(broker.account, "quotes", "p", version, 0)


def test_a_subscription_far_away_waits_for_publishers_here(tmp_path):
    async def test(first, _, last):
        await last.subscribe("cheap", "price < 5")
        told = await quenched(first)
        assert told.filter == "price < 5"
        assert (await quenched(first, told.version)).granted
        subscribing = asyncio.create_task(last.subscribe("dear", "price > 8"))
        held = first.broker.network._shared["quotes"]
        await until(lambda: "price > 8" in held.wanted())
        await asyncio.wait([subscribing], timeout=0.1)
        assert not subscribing.done()
        wider = await quenched(first, told.version)
        assert (wider.filter, wider.granted) == ("price < 5 OR price > 8", False)
        assert (await quenched(first, wider.version)).granted
        await subscribing
        await first.publish(quote(1, 9.0))
        assert len(await last.take("dear", 1)) == 1

    run(tmp_path, test, "b1", "b2", "b3")


def test_filters_of_peers_that_are_away_count(tmp_path):
    async def test(first, last):
        await last.subscribe("cheap", "price < 5")
        await last.stop()
        await first.stop()
        await first.start()
        assert (await quenched(first)).filter == "price < 5"
        await last.start()

    run(tmp_path, test, "b1", "b2")


def test_what_is_wanted_no_more_far_away_is_dropped_again(tmp_path):
    async def test(first, last):
        await last.subscribe("cheap", "price < 5")
        await last.subscribe("dear", "price > 8")
        told = await quenched(first)
        await last.broker.delete_subscription(last.account, "quotes", "cheap")
        one = first.broker._host.quenching._quenched["quotes"]
        await until(lambda: one.stamp != told.version)
        assert (await quenched(first)).filter == "price > 8"

    run(tmp_path, test, "b1", "b2")


def test_with_flooding_everything_may_be_wanted(tmp_path):
    async def test(first, last):
        await last.subscribe("cheap", "price < 5")
        assert (await quenched(first)).filter == "TRUE"

    run(tmp_path, test, "b1", "b2", strategy="flooding")
