"""Strategies of routing between brokers on sockets: what goes where, and what is counted."""

import asyncio

import pytest

from cases import each
from linked_brokers import line, until
from tamis.broker.network_settings import MergingSettings
from tamis.errors import UnknownPeer
from tamis.routing.kinds import FilterKind
from tamis.routing.strategies import STRATEGIES

RANGES = [(n, n + 7) for n in range(0, 50, 10)]
EXACT = [name for name in STRATEGIES if name not in {"flooding", "advertisements+imperfect"}]


def routes(one):
    return one.broker.network._shared["quotes"].routes


def state(one, peer):
    return next(state for state in one.broker.network.peers() if state.name == peer)


def announced(one, peer):
    """The subscriptions that a broker has announced to a peer."""
    return sorted(routes(one).peers[peer].announcers[FilterKind.SUBSCRIPTION].announced())


async def subscribe(one):
    """Subscribe to all ranges, and let mergers be made."""
    for low, high in RANGES:
        await one.subscribe(f"s{low}", f"number BETWEEN {low} AND {high}")
    one.broker.network.tick()


async def check_deliveries(publisher, subscriber, count=60):
    await publisher.publish(*({"symbol": "X", "price": 1.0, "number": n} for n in range(count)))
    for low, high in RANGES:
        found = await subscriber.take(f"s{low}", high - low + 1)
        assert [event["number"] for event in found] == list(range(low, high + 1))


def run(folder, test, *strategies, policy="size 2"):
    """Run a test with brokers in a line, each with its strategy."""

    async def main():
        own = {f"b{n}": {"strategy": name} for n, name in enumerate(strategies)}
        async with line(
            folder, *own, own=own, merging=MergingSettings(policy, "paper", 0.5)
        ) as brokers:
            await brokers[0].create()
            await until(lambda: all(map(is_open, brokers)))
            await test(*brokers)

    def is_open(one):
        shared = one.broker.network._shared.get("quotes")
        return shared is not None and all(map(shared.routes.is_ready, one.linked))

    asyncio.run(main())


@each("strategy", EXACT)
def test_only_what_is_wanted_travels(strategy, tmp_path):
    async def test(first, _, last):
        await subscribe(last)
        await check_deliveries(first, last)
        assert len(await last.stored()) == 40
        assert state(last, "b1").traffic.events_received == 40
        assert state(first, "b1").traffic.events_sent == 40
        assert state(last, "b1").traffic.false_positives == 0

    run(tmp_path / strategy, test, *[strategy] * 3)


def test_flooding_has_no_filters_and_sends_everything(tmp_path):
    async def test(first, middle, last):
        await subscribe(last)
        assert announced(last, "b1") == announced(middle, "b0") == ["TRUE"]
        await check_deliveries(first, last)
        assert len(await last.stored()) == 60
        assert state(first, "b1").filters_held == 2  # TRUE of each kind
        await until(lambda: state(last, "b1").traffic.false_positives == 20)
        assert state(middle, "b0").traffic.false_positives == 0  # for all it knows

    run(tmp_path, test, "flooding", "flooding", "flooding")


def test_imperfect_mergers_are_few_and_what_they_let_through_is_counted(tmp_path):
    async def test(first, last):
        await subscribe(last)
        await until(lambda: len(announced(last, "b0")) < len(RANGES))
        await until(lambda: state(first, "b1").filters_held == state(last, "b0").filters_announced)
        await check_deliveries(first, last)
        more = len(await last.stored()) - 40
        assert more > 0
        await until(lambda: state(last, "b0").traffic.false_positives == more)

    run(tmp_path, test, "advertisements+imperfect", "advertisements+imperfect")


@each(
    "strategies",
    [
        ("advertisements+covering", "flooding", "simple"),
        ("flooding", "advertisements+perfect", "flooding"),
        ("simple", "advertisements", "advertisements+imperfect"),
        ("simple", "advertisements+covering", "flooding"),
    ],
)
def test_brokers_of_different_strategies_lose_nothing(strategies, tmp_path):
    async def test(first, _, last):
        await subscribe(last)
        await check_deliveries(first, last)
        await subscribe(first)
        await check_deliveries(last, first)

    run(tmp_path / "-".join(strategies), test, *strategies)


def test_what_covering_and_merging_save_is_told(tmp_path):
    async def test(first, last):
        await subscribe(last)
        await last.subscribe("covered", "number BETWEEN 1 AND 3")
        await until(lambda: len(announced(last, "b0")) < len(RANGES))
        await until(lambda: state(first, "b1").filters_held == state(last, "b0").filters_announced)
        peer, found = await last.broker.savings(last.account, "b0")
        assert peer.name == "b0"
        savings = found["quotes"]
        assert (savings.all.entries, savings.covering.entries) == (6, 5)
        assert savings.all.bytes > savings.covering.bytes > savings.announced.bytes > 0
        assert savings.announced.entries == len(announced(last, "b0"))
        assert savings.mergers >= 1
        _, other = await first.broker.savings(first.account, "b1")
        assert other["quotes"].all.entries == 0
        with pytest.raises(UnknownPeer, match="there is no peer 'b9'"):
            await first.broker.savings(first.account, "b9")

    run(tmp_path, test, "advertisements+imperfect", "advertisements+imperfect")


def test_a_period_is_kept_by_the_brokers_clock(tmp_path):
    async def test(_, last):
        await last.subscribe("low", "number BETWEEN 0 AND 4")
        await last.subscribe("high", "number < 2")
        await until(lambda: announced(last, "b0") == ["number <= 4"])

    strategy = "advertisements+imperfect"
    run(tmp_path, test, strategy, strategy, policy="every 200ms")


def test_traffic_is_counted_over_all_links_to_a_peer(tmp_path):
    async def test(first, last):
        before = vars(state(first, "b1").traffic).copy()
        assert before["bytes_sent"] > 100
        assert before["frames_received"] > 2
        await last.stop()
        await last.start()
        await until(lambda: first.linked and last.linked)
        after = vars(state(first, "b1").traffic).copy()
        text = first.broker.metrics.text()
        assert all(after[name] >= before[name] for name in before)
        assert after["bytes_sent"] > before["bytes_sent"]
        assert f'tamis_peer_bytes_sent_total{{peer="b1"}} {after["bytes_sent"]}' in text
        assert "# TYPE tamis_peer_bytes_sent_total counter" in text
        held = 'tamis_peer_filters{peer="b1",which="held"} 1\n'  # what was held before goes last
        await until(lambda: held in first.broker.metrics.text())

    run(tmp_path, test, "advertisements", "advertisements")
