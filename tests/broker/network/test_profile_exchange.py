"""What brokers tell each other about events, and which mergers that allows."""

import asyncio

import pytest

from linked_brokers import line, until
from tamis.broker.network import profile_exchange, side_profiles
from tamis.broker.network.profile_exchange import Rate
from tamis.broker.network_settings import MergingSettings
from tamis.routing.kinds import FilterKind

FAST = MergingSettings("size 2", "paper", 1.0, period=0.05)
IMPERFECT = "advertisements+imperfect"


@pytest.fixture(autouse=True)
def _often(monkeypatch):
    monkeypatch.setattr(side_profiles, "PAUSE", 0.02)
    monkeypatch.setattr(side_profiles, "MOST_TIME", 1.0)


def exchange(one):
    return one.broker.network._shared["quotes"]._profiles


def announced(one, peer):
    routes = one.broker.network._shared["quotes"].routes
    return sorted(routes.peers[peer].announcers[FilterKind.SUBSCRIPTION].announced())


async def publish(one, *numbers):
    await one.publish(*({"symbol": "X", "price": 1.0, "number": n} for n in numbers))


def run(folder, test, *strategies, merging=FAST):
    async def main():
        own = {f"b{n}": {"strategy": name} for n, name in enumerate(strategies)}
        async with line(folder, *own, own=own, merging=merging) as brokers:
            await brokers[0].create()
            await until(lambda: all("quotes" in one.broker.network._shared for one in brokers))
            await test(*brokers)

    asyncio.run(main())


def test_profiles_are_told_through_brokers_that_do_not_need_them(tmp_path):
    async def test(first, middle, last):
        await until(lambda: "b1" in exchange(first)._asking)
        assert "b0" not in exchange(middle)._asking  # the first one merges nothing
        await publish(first, *[7] * 90, *range(10))
        await publish(middle, *[8] * 100)
        await until(lambda: exchange(last).odds("b1") is not None)
        sides = exchange(last).profiles.sides

        def share(number):
            return sides["b1"].profile.frequency("number", number).likely

        await until(lambda: min(share(7), share(8)) > 0.3)
        assert share(3) < 0.02
        assert sides["b1"].size > 30
        assert sides["b1"].rate > 0.1
        assert exchange(first).profiles.sides == {}

    run(tmp_path, test, "simple", "advertisements+covering", IMPERFECT)


def test_nobody_looks_at_events_for_nobody(tmp_path):
    async def test(first, last):
        await publish(first, *range(50))
        for one in (first, last):
            one.broker.network.tick()
            assert exchange(one).profiles._looks == 0
            assert exchange(one)._asked == set()

    run(tmp_path, test, "advertisements+covering", "advertisements+perfect",
        merging=MergingSettings(probabilities="uniform"))  # fmt: skip


def test_traffic_decides_which_mergers_are_made_and_which_stay(tmp_path):
    async def test(first, last):
        await publish(first, *range(100, 150))
        await until(lambda: exchange(last).odds("b0") is not None)
        await last.subscribe("low", "number < 10")
        await last.subscribe("high", "number = 30")
        # Nothing from 10 to 29 is published, so nothing more comes.
        await until(lambda: announced(last, "b0") == ["number <= 30"])
        await publish(first, *[20] * 200)
        await until(lambda: announced(last, "b0") == ["number < 10", "number = 30"])
        last.broker.network.tick()
        assert announced(last, "b0") == ["number < 10", "number = 30"]

    run(tmp_path, test, "simple", IMPERFECT)


def test_what_was_told_is_known_after_a_restart(tmp_path):
    async def test(first, last):
        await publish(first, *range(100))
        await until(lambda: exchange(last).odds("b0") is not None)
        before = exchange(last).profiles.sides["b0"].profile.events
        assert before
        await first.stop()
        await last.stop()
        await last.start()
        assert exchange(last).odds("b0") is not None
        assert exchange(last).profiles.sides["b0"].profile.events
        await first.start()
        assert exchange(first).profiles.ours.profile.events
        await until(lambda: first.linked and last.linked)

    run(tmp_path, test, "simple", IMPERFECT)


def test_a_price_depends_on_rates_sizes_and_the_bandwidth(tmp_path):
    async def test(first, last):
        await publish(first, *range(100))
        one = exchange(last)
        await until(lambda: one.odds("b0") is not None)
        one._rates_of("b0").filters._amount = 0.0
        side = one.profiles.sides["b0"]
        cost = side.rate * (side.size + profile_exchange.EVENT_BYTES)
        assert one.price("b0") == pytest.approx(1 / cost)
        one.profiles.sides["b0"] = side._replace(size=2 * side.size + profile_exchange.EVENT_BYTES)
        assert one.price("b0") == pytest.approx(1 / (2 * cost))
        object.__setattr__(one._settings, "bandwidth", 1.0)  # everything is used
        assert one.price("b0") == 0.0

    run(tmp_path, test, "simple", IMPERFECT, merging=MergingSettings("size 2", period=0.05))


def test_a_rate_counts_what_is_new_more():
    rate = Rate(0.0)
    for second in range(1, 101):
        rate.add(5.0, float(second))
    assert rate.per_second(100.0) == pytest.approx(5.0, rel=0.02)
    later = 100.0 + side_profiles.HALF_LIFE
    assert rate.per_second(later) < 0.5
    old = rate.per_second(later)
    rate.add(1000.0, later)
    assert rate.per_second(later) > old + 0.9
