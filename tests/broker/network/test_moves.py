"""Durable subscriptions that move to another broker: nothing is lost, and the order is kept."""

import asyncio
import json
from dataclasses import replace

import pytest

from linked_brokers import numbers, quote, run, until
from tamis.broker import sweep
from tamis.broker.accounts import free_account
from tamis.broker.grants import Grants
from tamis.broker.move_rows import ASKING, DONE
from tamis.broker.moved_backlog import MovedBacklog
from tamis.broker.network import moves
from tamis.broker.records import DeliveryOptions, NewEvent
from tamis.errors import Busy, Conflict, FileError, Forbidden, OptionError, UnknownSubscription


async def fetch(broker, origin, id_="all", text=None, **more):
    more = {"wait": 10.0} | more
    return await broker.broker.move_subscription(
        broker.account, "quotes", id_, origin, text, **more
    )


async def taken(broker, id_="all", most=1000, ack=True):
    """Numbers and attempts of what comes until nothing more is there; as many as `most`."""
    one = await broker.broker.attach(broker.account, "quotes", id_)
    found = []
    while len(found) < most:
        for delivery in await one.take(most - len(found)):
            number = json.loads(delivery.record.body)["number"]
            found.append((number, delivery.attempt))
            if ack:
                one.ack(delivery.record.offset)
    await one.close()
    return found


async def numbers_until(broker, last):
    """The numbers of what comes, up to one; all are acknowledged."""
    found = []
    while last not in found:
        found += [number for number, _ in await taken(broker, most=1)]
    return found


def is_gone(broker, id_="all"):
    try:
        broker.broker.subscription(broker.account, "quotes", id_)
    except UnknownSubscription:
        return True
    return False


def test_a_subscription_moves_with_what_it_has_not_got(tmp_path):
    async def test(first, _, last):
        await first.subscribe("all", "price < 5", options=DeliveryOptions(window=7))
        await first.publish(*map(quote, range(10)), quote(100, 9.0))
        assert await taken(first, most=3) == [(0, 1), (1, 1), (2, 1)]
        move = await fetch(last, "b1")
        assert (move.state, move.events, move.problem) == (DONE, 7, "")
        assert is_gone(first)
        info = last.broker.subscription(last.account, "quotes", "all")
        assert (info.filter, info.options.window, info.moving) == ("price < 5", 7, "")
        assert info.cursor == -7
        await first.publish(*map(quote, range(10, 15)))
        assert numbers(await last.take("all", 12)) == list(range(3, 15))
        await last.publish(quote(15))
        assert numbers(await last.take("all", 1)) == [15]
        assert numbers(await last.stored()) == list(range(10, 16))

    run(tmp_path, test, "b1", "b2", "b3")


def test_what_moves_keeps_the_time_at_which_it_was_stored(tmp_path):
    """The broker that it leaves has stored events long ago, as filters with now() see them."""

    async def test(first, last):
        topic = first.broker._topics.get("quotes").topic
        present = topic.host
        topic.host = replace(present, clock=lambda: 1_000_000_000.0)  # in 2001
        await first.subscribe("all", "number < 9 AND now() < TIMESTAMP '2002-01-01'")
        await first.publish(*map(quote, range(3)), quote(10))
        topic.host = present
        await first.publish(quote(4))
        move = await fetch(last, "b1")
        assert (move.state, move.events) == (DONE, 3)
        await first.publish(quote(5))
        assert numbers(await last.take("all", 3)) == [0, 1, 2]
        # It is stored at the present, and so it does not match.
        while 5 not in numbers(await last.stored()):  # noqa: ASYNC110 - nobody is there to tell
            await asyncio.sleep(0.01)
        again = last.broker._topics.get("quotes").topic
        again.host = replace(again.host, clock=lambda: 1_000_000_000.0)
        await first.publish(quote(6))
        assert numbers(await last.take("all", 1)) == [6]

    run(tmp_path, test, "b1", "b2")


@pytest.mark.parametrize("strategy", ["flooding", "simple", "advertisements+imperfect"])
def test_a_subscription_moves_whatever_the_strategy_of_routing_is(tmp_path, strategy):
    async def test(first, _, last):
        await first.subscribe("all", "price < 5")
        await first.publish(*map(quote, range(4)))
        assert (await fetch(last, "b1")).state == DONE
        await first.publish(quote(4))
        assert numbers(await last.take("all", 5)) == list(range(5))

    run(tmp_path, test, "b1", "b2", "b3", strategy=strategy)


def test_what_was_sent_and_not_acknowledged_comes_again_and_says_so(tmp_path):
    async def test(first, last):
        await first.subscribe("all", "TRUE")
        await first.publish(*map(quote, range(6)))
        listening = await first.broker.attach(first.account, "quotes", "all")
        sent = await listening.take(4)
        listening.ack(sent[1].record.offset)
        await fetch(last, "b1")
        assert "moves to broker 'b2'" in listening.closed_because
        assert await taken(last, most=5) == [(0, 2), (2, 2), (3, 2), (4, 1), (5, 1)]

    run(tmp_path, test, "b1", "b2")


def test_an_event_that_both_brokers_have_comes_once(tmp_path):
    async def test(first, last):
        await first.subscribe("all", "TRUE")
        await last.subscribe("other", "TRUE")
        await first.publish(*map(quote, range(5)))
        await last.publish(quote(5))  # without an id of its publisher
        await until(lambda: first.broker.topic(first.account, "quotes").next_offset == 6)
        assert numbers(await last.take("other", 6))
        # What was stored at the new broker before the move, after which it goes on: as if an
        # event came there again by another way.
        await fetch(last, "b1")
        found = last.broker._topics.get("quotes")
        backlog = found.subscriptions.moves.backlog("guest", "all")
        records = await last.broker.read(last.account, "quotes", most=100)
        assert [backlog.is_new(record) for record in records] == [False] * 6
        await first.publish(quote(6))
        assert numbers(await last.take("all", 7)) == list(range(7))

    run(tmp_path, test, "b1", "b2")


def test_a_subscription_moves_back_and_keeps_what_it_brought(tmp_path):
    async def test(first, last):
        await first.subscribe("all", "TRUE")
        await first.publish(*map(quote, range(6)))
        await fetch(last, "b1")
        assert await taken(last, most=2) == [(0, 1), (1, 1)]
        await last.publish(quote(6))
        await fetch(first, "b2")
        await first.publish(quote(7))
        assert numbers(await first.take("all", 6)) == list(range(2, 8))
        assert is_gone(last)

    run(tmp_path, test, "b1", "b2")


def test_an_old_broker_that_is_away_is_waited_for_and_new_events_are_kept(tmp_path):
    async def test(first, middle, last):
        await first.subscribe("all", "TRUE")
        await first.publish(*map(quote, range(3)))
        await first.stop()
        with pytest.raises(Busy, match="cannot be reached"):
            await fetch(last, "b1", wait=0.1)
        assert not last.broker.network.moves._answers  # nobody waits for one any more
        move = await fetch(last, "b1", text="TRUE", wait=0.1)
        assert move.state == ASKING
        with pytest.raises(Busy, match="still moves here"):
            await last.broker.attach(last.account, "quotes", "all")
        assert last.broker.subscription(last.account, "quotes", "all").moving == "from b1"
        await middle.publish(quote(3))
        await last.stop()
        await last.start()
        await middle.publish(quote(4))
        await first.start()
        assert (await fetch(last, "b1")).state == DONE
        assert numbers(await last.take("all", 5)) == list(range(5))

    run(tmp_path, test, "b1", "b2", "b3")


def test_events_that_are_on_their_way_to_the_old_broker_are_not_lost(tmp_path):
    async def test(first, middle, last):
        await first.subscribe("all", "TRUE")
        await first.stop()
        await middle.publish(*map(quote, range(200)))  # before the new broker holds anything
        move = await fetch(last, "b1", text="TRUE", wait=0.1)
        assert move.state == ASKING
        await first.start()
        assert (await fetch(last, "b1")).state == DONE
        assert numbers(await last.take("all", 200)) == list(range(200))

    run(tmp_path, test, "b1", "b2", "b3")


def test_a_begin_that_overtakes_events_would_lose_them(tmp_path, monkeypatch):
    """The test before can fail."""

    async def overtake(self, message, _):
        self._network.towards(message.target).send(message)

    async def test(first, middle, last):
        await first.subscribe("all", "TRUE")
        held = middle.broker.network._shared["quotes"]._open["b1"]
        monkeypatch.setattr(moves.Moves, "_follow_events", overtake)
        monkeypatch.setattr(type(held.departures), "_look", lambda _: asyncio.sleep(10))
        await middle.publish(quote(0))
        move = await fetch(last, "b1")
        assert (move.state, move.events) == (DONE, 0)

    run(tmp_path, test, "b1", "b2", "b3")


def test_large_backlogs_come_in_parts(tmp_path, monkeypatch):
    monkeypatch.setattr("tamis.broker.subscription_moves.MOST_EVENTS", 100)
    monkeypatch.setattr("tamis.broker.moved_backlog.AT_ONCE", 30)

    async def test(first, last):
        await first.subscribe("all", "number >= 100")
        await first.publish(*map(quote, range(1000)))
        await fetch(last, "b1")
        await first.publish(quote(1000))
        assert numbers(await last.take("all", 901)) == list(range(100, 1001))

    run(tmp_path, test, "b1", "b2")


def test_what_cannot_move_is_said_and_changes_nothing(tmp_path):
    async def test(first, last):
        with pytest.raises(Conflict, match=r"broker 'b1' says: .* has no subscription 'nothing'"):
            await fetch(last, "b1", "nothing")
        assert is_gone(last, "nothing")
        await first.subscribe("all", "TRUE")
        with pytest.raises(OptionError, match="this is broker 'b1'"):
            await fetch(first, "b1")
        await last.subscribe("all", "TRUE")
        with pytest.raises(Conflict, match="there is a subscription 'all' here already"):
            await fetch(last, "b1")
        await first.subscribe("passing", "TRUE", durable=False)
        move = await fetch(last, "b1", "passing")
        assert "is not durable" in move.problem
        assert not is_gone(first)

    run(tmp_path, test, "b1", "b2")


def test_both_brokers_ask_whether_the_account_may(tmp_path):
    async def test(first, last):
        await first.subscribe("all", "TRUE")
        await first.publish(*map(quote, range(6)))
        stranger = free_account("stranger")
        with pytest.raises(Conflict, match="there is no account 'stranger' here"):
            await last.broker.move_subscription(stranger, "quotes", "all", "b1")
        object.__setattr__(first.account, "subscribe", Grants({"*": "number < 3"}))
        move = await fetch(last, "b1")
        assert (move.state, move.events) == (DONE, 3)
        assert numbers(await last.take("all", 3)) == [0, 1, 2]
        await last.subscribe("mine", "TRUE")
        object.__setattr__(first.account, "subscribe", Grants())
        with pytest.raises(Forbidden, match="may not receive"):
            await fetch(first, "b2", "mine")
        object.__setattr__(last.account, "subscribe", Grants())
        with pytest.raises(Conflict, match=r"broker 'b2' says: .* may not receive"):
            await fetch(first, "b2", "mine")

    run(tmp_path, test, "b1", "b2")


def test_the_same_question_again_has_the_same_answer(tmp_path):
    async def test(first, last):
        await first.subscribe("all", "TRUE")
        await first.publish(quote(0))
        done = await fetch(last, "b1")
        assert await fetch(last, "b1") == done
        assert numbers(await last.take("all", 1)) == [0]
        await last.broker.delete_subscription(last.account, "quotes", "all")
        assert last.broker._catalogue.rows("SELECT * FROM moved_events") == []

    run(tmp_path, test, "b1", "b2")


def test_acknowledging_what_came_along_goes_on_with_the_log(tmp_path):
    async def test(first, last):
        await last.publish(quote(1000), quote(1001))
        await first.subscribe("all", "TRUE")
        await first.publish(*map(quote, range(3)))
        await fetch(last, "b1")
        await last.broker.ack(last.account, "quotes", "all", -1)  # nobody listens
        await first.publish(quote(3))
        assert numbers(await last.take("all", 1)) == [3]

    run(tmp_path, test, "b1", "b2")


def test_what_came_along_and_cannot_be_read_is_read_again(tmp_path, monkeypatch):
    monkeypatch.setattr(sweep, "RETRY", 0.01)
    read, failures = MovedBacklog.read, iter([FileError("the disk fails")])

    def fail_once(self, offset):
        for failure in failures:
            raise failure
        return read(self, offset)

    async def test(first, last):
        await first.subscribe("all", "TRUE")
        await first.publish(*map(quote, range(3)))
        await fetch(last, "b1")
        monkeypatch.setattr(MovedBacklog, "read", fail_once)
        assert numbers(await last.take("all", 3)) == [0, 1, 2]

    run(tmp_path, test, "b1", "b2")


def test_another_filter_counts_for_what_came_along(tmp_path):
    async def test(first, last):
        await first.subscribe("all", "TRUE")
        await first.publish(*map(quote, range(6)))
        await fetch(last, "b1")
        await last.subscribe("all", "number >= 4")
        assert numbers(await last.take("all", 2)) == [4, 5]

    run(tmp_path, test, "b1", "b2")


STEPS = [
    ("old", "depart"),
    ("old", "part"),
    ("new", "arrive"),
    ("new", "store"),
    ("new", "finish"),
    ("new", "done"),
]


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize(("side", "step"), STEPS, ids=lambda part: part)
def test_a_crash_in_any_step_loses_nothing(tmp_path, monkeypatch, side, step, when):
    """A broker that dies there does nothing more; it is started again on its data."""
    from tamis.broker.subscription_moves import SubscriptionMoves

    monkeypatch.setattr("tamis.broker.subscription_moves.MOST_EVENTS", 4)
    monkeypatch.setattr(moves, "ANSWER", 0.5)
    monkeypatch.setattr(moves, "PAUSE", 0.05)
    real = getattr(SubscriptionMoves, step)

    async def test(first, last):
        dying = first if side == "old" else last
        died = asyncio.Event()

        async def die(self, *arguments, **more):
            is_it = self._topic.host is dying.broker._host
            if died.is_set() or not is_it:
                return await real(self, *arguments, **more)
            if when == "after":
                await real(self, *arguments, **more)
            died.set()
            return await asyncio.Event().wait()  # nothing more happens there

        await first.subscribe("all", "TRUE")
        await first.publish(*map(quote, range(10)))
        assert await taken(first, most=2) == [(0, 1), (1, 1)]
        monkeypatch.setattr(SubscriptionMoves, step, die)
        moving = asyncio.create_task(fetch(last, "b1"))
        await died.wait()
        moving.cancel()
        await asyncio.wait([moving])
        await first.publish(quote(10))
        await dying.stop()
        await dying.start()
        await until(lambda: first.linked and last.linked)
        move = await fetch(last, "b1")
        assert move.state == DONE
        await first.publish(quote(11))
        got = await numbers_until(last, 11)
        # What it had acknowledged may come again: who was stopped does not know it.
        assert [number for number in got if number > 1] == list(range(2, 12))
        assert is_gone(first)

    run(tmp_path, test, "b1", "b2")


def test_an_old_broker_whose_catalogue_fails_is_asked_again_to_forget(tmp_path, monkeypatch):
    """A simulated network found that it said so without having forgotten."""
    monkeypatch.setattr(moves, "ANSWER", 0.3)
    monkeypatch.setattr(moves, "PAUSE", 0.01)

    async def test(first, last):
        await first.subscribe("all", "TRUE")
        commits, failed = first.broker._host.commits, []
        commit = commits.commit

        async def fail_once(*changes):
            if not failed and any("DELETE FROM subscriptions" in one.statement for one in changes):
                failed.append(changes)
                raise Busy("the catalogue cannot be written")
            await commit(*changes)

        commits.commit = fail_once
        move = await fetch(last, "b1")
        assert (move.state, len(failed)) == (DONE, 1)
        assert is_gone(first)
        await first.publish(quote(1))
        assert numbers(await last.take("all", 1)) == [1]

    run(tmp_path, test, "b1", "b2")


def test_the_id_of_an_event_is_not_taken_for_an_offset(tmp_path):
    async def test(first, last):
        await first.subscribe("all", "TRUE")
        event = NewEvent(b'{"number": 1}', "1")
        await first.broker.publish(first.account, "quotes", [event])
        await last.publish(quote(0))
        await fetch(last, "b1")
        await last.publish(quote(2))  # it has no id, and offset 1
        assert sorted(numbers(await last.take("all", 3))) == [0, 1, 2]

    run(tmp_path, test, "b1", "b2")
