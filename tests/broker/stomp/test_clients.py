"""Clients that others wrote: stomp.py and stompman, as they are."""

import asyncio
import json
import queue

import stomp
import stompman

EVENTS = [json.dumps({"symbol": "IBM", "price": price}) for price in (5, 50, 7)]


class Notes(stomp.ConnectionListener):
    """Notes what a stomp.py connection hears."""

    def __init__(self):
        self.messages, self.receipts, self.errors = queue.Queue(), queue.Queue(), queue.Queue()
        self.ended = queue.Queue()

    def on_message(self, frame):
        self.messages.put(frame)

    def on_receipt(self, frame):
        self.receipts.put(frame.headers["receipt-id"])

    def on_error(self, frame):
        self.errors.put(frame)

    def on_disconnected(self):
        self.ended.put(True)


def connection(running, kind=stomp.Connection12, **options):
    made = kind([("127.0.0.1", running.port)], **options)
    notes = Notes()
    made.set_listener("notes", notes)
    made.connect("guest", "guest", wait=True, headers={"client-id": "stomp.py"})
    return made, notes


def bodies(notes, count):
    return [json.loads(notes.messages.get().body)["price"] for _ in range(count)]


def test_stomp_py_publishes_and_subscribes_with_every_version(running):
    kinds = (stomp.Connection10, stomp.Connection11, stomp.Connection12)
    for number, kind in enumerate(kinds):
        topic = running.create_topic(f"stomp_py_{number}")
        client, notes = connection(running, kind)
        client.subscribe(topic, id="1", ack="auto", headers={"selector": "price < 10"})
        for event in EVENTS:
            client.send(topic, event, receipt=event)
        assert [notes.receipts.get() for _ in EVENTS] == EVENTS
        assert bodies(notes, 2) == [5, 7]
        client.disconnect(receipt="end")
        notes.ended.get()


def test_stomp_py_acknowledges_and_returns_to_a_durable_subscription(running):
    topic = running.create_topic("stomp_py_durable")
    headers = {"activemq.subscriptionName": "mine", "selector": "price < 10"}
    client, notes = connection(running)
    client.subscribe(topic, id="1", ack="client-individual", headers=headers)
    for event in EVENTS:
        client.send(topic, event)
    first, second = notes.messages.get(), notes.messages.get()
    client.nack(first.headers["ack"])
    again = notes.messages.get()
    assert (again.body, again.headers["redelivered"]) == (first.body, "true")
    client.ack(second.headers["ack"])
    client.disconnect(receipt="end")
    notes.ended.get()
    client, notes = connection(running)
    client.subscribe(topic, id="1", ack="client-individual", headers=headers)
    assert bodies(notes, 1) == [5]
    client.disconnect(receipt="end")
    notes.ended.get()


def test_stomp_py_commits_and_aborts_transactions(running):
    topic = running.create_topic("stomp_py_transactions")
    client, notes = connection(running)
    for event, end in ((EVENTS[0], client.abort), (EVENTS[1], client.commit)):
        name = client.begin()
        client.send(topic, event, transaction=name)
        end(name)
    client.disconnect(receipt="end")
    notes.ended.get()
    assert running.events("stomp_py_transactions") == [EVENTS[1].encode()]


def test_stomp_py_is_told_where_its_selector_is_wrong(running):
    topic = running.create_topic("stomp_py_errors")
    client, notes = connection(running)
    client.subscribe(topic, id="1", headers={"selector": "prise < 10"})
    error = notes.errors.get()
    assert "did you mean 'price'?" in error.headers["message"]
    assert "\n  prise < 10\n  ^^^^^" in error.body
    notes.ended.get()


def test_stomp_py_keeps_a_silent_connection_with_heart_beats(running):
    topic = running.create_topic("stomp_py_beats")
    beats = queue.Queue()
    client, notes = connection(running, heartbeats=(200, 200))
    notes.on_heartbeat = lambda: beats.put(True)
    for _ in range(2):
        beats.get()
    client.send(topic, EVENTS[0], receipt="alive")
    assert notes.receipts.get() == "alive"
    client.disconnect(receipt="end")
    notes.ended.get()


def test_stompman_publishes_subscribes_and_acknowledges(running):
    topic = running.create_topic("stompman")
    asyncio.run(use_stompman(running.port, topic))


async def use_stompman(port, topic):
    server = stompman.ConnectionParameters("127.0.0.1", port, "guest", "guest")
    async with stompman.Client([server]) as client:
        mine, manual = asyncio.Queue(), asyncio.Queue()
        first = await client.subscribe(
            topic, mine.put, ack="client", headers={"selector": "price < 10"},
            on_suppressed_exception=print,
        )  # fmt: skip
        second = await client.subscribe_with_manual_ack(
            topic, manual.put, ack="client-individual", headers={"selector": "price > 10"}
        )
        await client.send(EVENTS[0].encode(), topic, headers={"mine": "a:b\nc"})
        async with client.begin() as transaction:
            for event in EVENTS[1:]:
                await transaction.send(event.encode(), topic)
        got = [await mine.get(), await mine.get()]
        assert [message.body.decode() for message in got] == [EVENTS[0], EVENTS[2]]
        assert got[0].headers["mine"] == "a:b\nc"
        message = await manual.get()
        assert message.body.decode() == EVENTS[1]
        await message.ack()
        await first.unsubscribe()
        await second.unsubscribe()
