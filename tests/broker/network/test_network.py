"""Brokers that are linked: what is acknowledged anywhere arrives everywhere, once, in order."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from broker_process import quiet_ports
from certificates import make_certificate
from linked_brokers import LinkedBroker, line, numbers, quote, run, shared, until
from tamis.broker.accounts import free_account
from tamis.broker.grants import Grants
from tamis.broker.network.messages import Reach
from tamis.broker.network.route_headers import ORIGIN, VIA
from tamis.broker.network.shared_topic import SharedTopic
from tamis.broker.records import NewEvent
from tamis.broker.settings import TlsFiles
from tamis.errors import Conflict
from tamis.routing.kinds import FilterKind

SECRET = "open sesame"  # noqa: S105 - of tests


def test_events_go_where_they_are_wanted_and_nowhere_else(tmp_path):
    async def test(first, middle, last):
        await last.subscribe("cheap", "price < 10")
        await middle.subscribe("mine", "symbol = 'M'")
        await first.publish(*(quote(n, price=float(n)) for n in range(20)))
        assert numbers(await last.take("cheap", 10)) == list(range(10))
        await last.publish(quote(100, 50.0, "M"), quote(101, 50.0))
        assert numbers(await middle.take("mine", 1)) == [100]
        # Only what was wanted has travelled.
        assert numbers(await last.stored()) == [*range(10), 100, 101]
        assert numbers(await middle.stored()) == [*range(10), 100]
        assert numbers(await first.stored()) == list(range(20))

    run(tmp_path, test, "b1", "b2", "b3")


def test_a_subscription_is_known_everywhere_when_it_is_acknowledged(tmp_path):
    async def test(first, _, last):
        for n in range(20):
            await last.subscribe(f"s{n}", f"number = {n}")
            await first.publish(quote(n))
            assert numbers(await last.take(f"s{n}", 1)) == [n]

    run(tmp_path, test, "b1", "b2", "b3")


def test_nothing_is_lost_while_brokers_are_away_and_nothing_comes_twice(tmp_path):
    async def test(first, middle, last):
        await last.subscribe("all", "TRUE")
        await first.publish(*map(quote, range(5)))
        await middle.stop()
        await first.publish(*map(quote, range(5, 10)))
        await middle.start()
        assert numbers(await last.take("all", 10)) == list(range(10))
        await last.stop()
        await first.publish(*map(quote, range(10, 15)))
        await until(lambda: middle.broker.network._shared["quotes"].topic.dispatched == 15)
        await first.stop()
        await last.start()
        assert numbers(await last.take("all", 5)) == list(range(10, 15))
        await first.start()
        await first.publish(quote(15))
        assert numbers(await last.take("all", 1)) == [15]
        assert numbers(await last.stored()) == list(range(16))

    run(tmp_path, test, "b1", "b2", "b3")


def test_what_was_sent_and_not_acknowledged_is_sent_again_and_known(tmp_path):
    async def test(first, last):
        await last.subscribe("all", "TRUE")
        place = first.broker.network._shared["quotes"]
        before = place.rows["b2"]
        await first.publish(*map(quote, range(5)))
        assert numbers(await last.take("all", 5)) == list(range(5))
        first.broker.network.linked("b2").close("a test")
        await until(lambda: not first.linked)
        place.rows["b2"] = before  # as if a crash came before it was written
        await until(lambda: first.linked)
        await first.publish(quote(5))
        assert numbers(await last.take("all", 1)) == [5]
        assert numbers(await last.stored()) == list(range(6))

    run(tmp_path, test, "b1", "b2")


def test_events_say_where_they_came_from_whatever_clients_claim(tmp_path):
    async def test(first, _, last):
        await last.subscribe("all", "TRUE")
        claimed = NewEvent(b'{"number": 1}', "one", {VIA: "b2", "color": "red"})
        await first.broker.publish(first.account, "quotes", [claimed])
        one = await last.broker.attach(last.account, "quotes", "all")
        (delivery,) = await one.take(1)
        assert delivery.record.id == "one"
        headers = delivery.record.headers.decode()
        assert f'"{ORIGIN}":"b1"' in headers
        assert f'"{VIA}":"b2"' in headers
        assert '"color":"red"' in headers

    run(tmp_path, test, "b1", "b2", "b3")


def test_the_same_id_at_two_brokers_is_one_event(tmp_path):
    async def test(first, last):
        await last.subscribe("all", "TRUE")
        await first.subscribe("all", "TRUE")
        for broker in (first, last):
            event = NewEvent(b'{"number": 1}', "same")
            await broker.broker.publish(broker.account, "quotes", [event])
        await first.publish(quote(2))
        assert numbers(await last.take("all", 2)) == [1, 2]
        assert numbers(await first.stored()) == [1, 2]

    run(tmp_path, test, "b1", "b2")


def test_filters_that_are_gone_cost_no_traffic(tmp_path):
    async def test(first, last):
        held = first.broker.network._shared["quotes"].routes

        def filters():
            return sorted(held._forwarding.subscriptions.of("b2").values())

        await last.subscribe("wide", "price < 10")
        await last.subscribe("narrow", "price < 5")
        assert filters() == ["price < 10"]
        await last.broker.delete_subscription(last.account, "quotes", "wide")
        await until(lambda: filters() == ["price < 5"])
        listening = await last.broker.attach_filter(last.account, "quotes", "price < 7")
        await until(lambda: filters() == ["price < 7"])
        await listening.close()
        await until(lambda: filters() == ["price < 5"])
        await last.stop()
        assert filters() == ["price < 5"]
        await last.start()
        await until(lambda: first.linked)
        await until(lambda: filters() == ["price < 5"])  # it is told again, then replaced

    run(tmp_path, test, "b1", "b2")


def test_topics_are_shared_and_widened_on_both_sides(tmp_path):
    async def test(first, _, last):
        await last.create(
            schema={"symbol": "string", "price": "double", "number": "int", "venue": "string"}
        )
        await until(lambda: first.broker.topic(first.account, "quotes").schema.get("venue"))
        await until(lambda: first.linked and last.linked)
        await last.subscribe("paris", "venue = 'Paris'")
        await first.publish(quote(1), quote(2) | {"venue": "Paris"})
        assert numbers(await last.take("paris", 1)) == [2]

    run(tmp_path, test, "b1", "b2", "b3")


def test_a_topic_with_another_meaning_is_not_shared_and_the_others_are(tmp_path):
    async def main():
        async with line(tmp_path, "b1", "b2") as (first, last):
            await first.stop()
            await last.create("odd", {"a": "string"})
            await first.start_alone()
            await first.create("odd", {"a": "int"})
            await first.create()
            await first.stop()
            await first.start()
            await until(lambda: first.linked)
            await shared(first, last)
            await last.subscribe("all", "TRUE")
            await first.publish(quote(1))
            assert numbers(await last.take("all", 1)) == [1]
            await last.subscribe("all", "TRUE", "odd")  # and does not wait for ever

    asyncio.run(main())


def test_a_link_that_closes_a_cycle_is_refused_with_the_path(tmp_path, caplog):
    async def test(first, _, last):
        closing = LinkedBroker(tmp_path, "b1", 0, {"b3": last.port})
        called = closing.settings.network.peers["b3"].address
        first.links.call("b3", called)
        await until(lambda: "would close a cycle" in caplog.text)
        assert "b3 - b2 - b1 - b3" in caplog.text or "b1 - b2 - b3 - b1" in caplog.text
        assert first.linked == {"b2"}

    run(tmp_path, test, "b1", "b2", "b3")


def test_a_peer_hears_of_links_that_came_up_while_it_was_greeted(tmp_path):
    class FakeLink:
        def __init__(self, peer):
            self.peer, self.sent = peer, []

        def send(self, *messages):
            self.sent += messages

        def close(self, _):
            pass

    async def main():
        one = LinkedBroker(tmp_path, "b1", 0, {})
        await one.start_alone()
        network = one.broker.network
        slow, quick = FakeLink("b2"), FakeLink("b3")
        greeted = network.paths(slow.peer)  # what the slow one is told first
        await network.joined(quick, Reach({"b3": ["b3"], "b4": ["b3", "b4"]}))
        await network.joined(slow, Reach({"b2": ["b2"]}))
        assert set(greeted) == {"b1"}
        assert [set(told.paths) for told in slow.sent] == [{"b1", "b3", "b4"}]
        for link in (slow, quick):
            await network.left(link, "a test")
        await one.stop()

    asyncio.run(main())


def test_subscriptions_travel_towards_those_who_may_publish_what_they_want(tmp_path):
    async def main():
        async with line(tmp_path, "b1", "b2") as (first, last):
            await first.stop()
            site = free_account("site")
            grants = Grants({"*": "symbol = 'A'"})
            object.__setattr__(site, "publish", grants)
            object.__setattr__(first.settings, "accounts", (site,))
            await first.start()
            await until(lambda: first.linked)
            await first.broker.create_topic(site, "quotes", {"symbol": "string", "number": "int"})
            await shared(first, last)
            await last.subscribe("a", "symbol = 'A'")
            await last.subscribe("b", "symbol = 'B'")
            held = first.broker.network._shared["quotes"].routes._forwarding.subscriptions
            assert list(held.of("b2").values()) == ["symbol = 'A'"]

    asyncio.run(main())


def test_a_peer_that_is_gone_for_good_is_forgotten(tmp_path):
    async def test(first, last):
        await last.subscribe("all", "TRUE")
        with pytest.raises(Conflict, match="is linked"):
            await first.broker.network.forget("b2")
        await last.stop()
        await first.publish(quote(1))
        await until(lambda: [one.lag for one in first.broker.network.peers()] == [1])
        await first.broker.network.forget("b2")
        assert first.broker.network.peers() == []
        await last.start()

    run(tmp_path, test, "b1", "b2")


def test_links_need_the_secret(tmp_path, caplog):
    async def main():
        async with line(tmp_path, "b1", "b2", secret=SECRET) as (first, _):
            stranger = LinkedBroker(tmp_path, "b3", 0, {"b1": first.port}, secret=SECRET[1:])
            await stranger.start()
            await until(lambda: "does not have the secret" in caplog.text)
            assert not stranger.linked
            await stranger.stop()

    asyncio.run(main())


def test_links_over_tls_need_certificates_on_both_sides(tmp_path, caplog):
    files = TlsFiles(*make_certificate(tmp_path))
    other = TlsFiles(*make_certificate(tmp_path, "other"))

    async def main():
        trusted = {"tls": files, "authority": files.certificate}
        async with line(tmp_path, "b1", "b2", **trusted) as (first, last):
            await first.create()
            await shared(first, last)
            await last.subscribe("all", "TRUE")
            await first.publish(quote(1))
            assert numbers(await last.take("all", 1)) == [1]
            strangers = {
                "b3": {},
                "b4": {"tls": other, "authority": files.certificate},
                "b5": {"tls": files, "authority": other.certificate},
            }
            for name, more in strangers.items():
                stranger = LinkedBroker(tmp_path, name, 0, {"b1": first.port}, **more)
                await stranger.start()
                await until(lambda: "no link to peer 'b1'" in caplog.text)
                assert not stranger.linked
                await stranger.stop()
                caplog.clear()

    asyncio.run(main())


def test_a_subscription_is_established_when_a_topic_that_is_new_is_open_everywhere(
    tmp_path, monkeypatch
):
    async def main():
        async with line(tmp_path, "b1", "b2", "b3") as (first, _, last):
            heard = asyncio.Event()

            async def open_later(topic, peer, road, open_now=SharedTopic.open):
                if topic is first.broker.network._shared["quotes"]:
                    await heard.wait()
                await open_now(topic, peer, road)

            monkeypatch.setattr(SharedTopic, "open", open_later)
            await last.create()
            await until(lambda: "quotes" in first.broker.network._shared)
            subscribing = asyncio.create_task(first.subscribe("all", "TRUE"))
            await asyncio.sleep(0.05)  # it would be done by now
            was_early = subscribing.done()
            heard.set()
            await subscribing
            assert not was_early
            await last.publish(quote(1))
            assert numbers(await first.take("all", 1)) == [1]

    asyncio.run(main())


def test_a_topic_that_the_other_side_declines_is_not_waited_for(tmp_path):
    async def main():
        async with line(tmp_path, "b1", "b2") as (first, last):
            await first.stop()
            await last.create("whole", {"a": "int"}, semantics="total")
            await first.start_alone()
            await first.create("whole", {"a": "int", "b": "int"}, semantics="total")
            await first.stop()
            await first.start()
            await until(lambda: first.linked)
            await first.subscribe("one", "a = 1", "whole")
            await last.subscribe("one", "a = 1", "whole")
            await first.publish({"a": 1, "b": 1}, topic="whole")
            assert await first.take("one", 1, "whole") == [{"a": 1, "b": 1}]

    asyncio.run(main())


def test_brokers_that_call_each_other_keep_one_link(tmp_path):
    async def main():
        ports = quiet_ports(2)
        first = LinkedBroker(tmp_path, "b1", ports[0], {"b2": ports[1]})
        last = LinkedBroker(tmp_path, "b2", ports[1], {"b1": ports[0]})
        async with asyncio.TaskGroup() as together:
            together.create_task(first.start())
            together.create_task(last.start())
        await until(lambda: first.linked and last.linked)
        await first.create()
        await shared(first, last)
        await last.subscribe("all", "TRUE")
        await first.publish(*map(quote, range(10)))
        assert numbers(await last.take("all", 10)) == list(range(10))
        await first.stop()
        await last.stop()

    asyncio.run(main())


def test_a_link_that_comes_up_while_a_broker_stops_is_closed(tmp_path):
    class Late:
        peer, reason = "b2", None

        def close(self, reason):
            self.reason = reason

    async def main():
        one = LinkedBroker(tmp_path, "b1", quiet_ports(1)[0], {})
        await one.start()
        await one.broker.network.stop()
        late = Late()
        await one.broker.network.joined(late, Reach({"b2": ["b2"]}))
        assert late.reason == "the broker stops"
        assert one.broker.network.linked("b2") is None
        await one.stop()

    asyncio.run(main())


def test_peers_are_told_filters_without_a_clock_and_the_subscribers_broker_decides(tmp_path):
    """b0 believes that it is another year, and passes on what b1 finds to be fresh."""
    schema = {"at": "timestamp", "number": "int"}

    async def main():
        async with line(tmp_path, "b0", "b1") as (first, last):
            await first.create(schema=schema)
            await shared(first, last)
            topic = first.broker._topics.get("quotes").topic
            topic.host = replace(topic.host, clock=lambda: 1_000_000_000.0)
            text = "number > 0 AND at > now() - INTERVAL 1 HOUR"
            await last.subscribe("fresh", text)
            routes = first.broker.network._shared["quotes"].routes
            assert list(routes.filters_of("b1", FilterKind.SUBSCRIPTION).values()) == ["number > 0"]
            now = datetime.now(UTC)
            ages = (timedelta(hours=h) for h in (2, 0, 30, 0))
            events = [{"at": (now - age).isoformat(), "number": n} for n, age in enumerate(ages, 1)]
            await first.publish({"at": now.isoformat(), "number": 0}, *events)
            assert numbers(await last.take("fresh", 2)) == [2, 4]
            assert numbers(await last.stored()) == [1, 2, 3, 4]
            await last.stop()
            await last.start()  # filters of the catalogue are passed on in the same way
            await shared(first, last)
            assert list(routes.filters_of("b1", FilterKind.SUBSCRIPTION).values()) == ["number > 0"]

    asyncio.run(main())


def test_a_filter_of_a_peer_with_a_clock_counts_as_true(tmp_path, caplog):
    async def main():
        async with line(tmp_path, "b0", "b1") as (first, last):
            await first.create(schema={"at": "timestamp", "number": "int"})
            await shared(first, last)
            assert first.broker.network._shared["quotes"]._text("at > now()") == "TRUE"

    asyncio.run(main())
    told = "a filter for topic 'quotes' is taken as TRUE: filters cannot use the clock here"
    assert told in caplog.text
