"""What a client asks for over a socket, and what it gets."""

import json

from stomp_brokers import stomp_broker
from tamis.broker.accounts import Account, free_account, password_hash, token_hash
from tamis.broker.grants import Grants
from tamis.language.expression import MATCHES_ALL


def prices(frames):
    return [json.loads(frame.body)["price"] for frame in frames]


def event(price, **more):
    return json.dumps({"price": price, **more})


def test_events_come_to_those_whose_selector_they_match(running):
    topic = running.create_topic("selectors")
    cheap, dear, every, sender = (running.raw() for _ in range(4))
    cheap.subscribe(topic, "selector:price < 10")
    dear.subscribe(topic, "selector:price >= 10")
    every.subscribe(topic)
    sender.publish(topic, event(1), event(20), event(3))
    assert prices(cheap.messages(2)) == [1, 3]
    assert prices(dear.messages(1)) == [20]
    assert prices(every.messages(3)) == [1, 20, 3]
    for client in (cheap, dear, every, sender):
        client.disconnect()


def test_selectors_look_into_arrays_and_maps_and_compare_decimals_exactly(running):
    schema = "price decimal(6, 2), tags array<string>, props map<string, int>"
    topic = running.create_topic("nested", schema)
    red, big, sum_, sender = (running.raw() for _ in range(4))
    red.subscribe(topic, "selector:array_contains(tags, 'red')")
    big.subscribe(topic, "selector:props['size'] > 5")
    sum_.subscribe(topic, "selector:price * 3 = 0.3")
    bodies = [event(0.1, tags=["red"]), event(0.2, props={"size": 9}), event("0.10", tags=[])]
    sender.publish(topic, *bodies)
    assert [json.loads(frame.body) for frame in red.messages(1)] == [json.loads(bodies[0])]
    assert [json.loads(frame.body) for frame in big.messages(1)] == [json.loads(bodies[1])]
    assert prices(sum_.messages(2)) == [0.1, "0.10"]
    for client in (red, big, sum_, sender):
        client.disconnect()


def test_many_frames_in_one_piece_are_confirmed_in_order(running):
    topic = running.create_topic("pipelined")
    client = running.raw()
    frames = [f"SEND\ndestination:{topic}\nreceipt:{n}\n\n{event(n)}\0" for n in range(1000)]
    client.send_bytes("".join(frames).encode())
    assert [client.receipt() for _ in range(1000)] == [str(n) for n in range(1000)]
    assert [json.loads(body)["price"] for body in running.events("pipelined")] == list(range(1000))
    client.disconnect()


def test_connections_and_frames_are_counted(running):
    topic = running.create_topic("counted")
    metrics = running.broker.metrics
    before = metrics.requests.of("stomp", "publish").value
    client = running.raw()
    client.publish(topic, event(1), event(2))
    assert metrics.requests.of("stomp", "publish").value == before + 2
    assert metrics.connections.of("stomp").value == len(running.service.connections) >= 1
    client.disconnect()


def test_a_bad_selector_is_an_error_with_its_place(running):
    topic = running.create_topic("bad_selectors")
    client = running.raw()
    client.send("SUBSCRIBE", "id:a", f"destination:{topic}", "selector:price < < 10", "receipt:7")
    error = client.error()
    assert error.headers["receipt-id"] == "7"
    assert (error.headers["code"], error.headers["column"]) == ("bad-filter", "9")
    assert "\n  price < < 10\n          ^" in error.body.decode()


def test_a_refused_event_is_an_error_and_the_others_are_stored(running):
    topic = running.create_topic("refused")
    client = running.raw()
    bodies = [event(1), event("cheap"), event(3)]
    client.send_bytes("".join(
        f"SEND\ndestination:{topic}\nreceipt:{n}\n\n{body}\0" for n, body in enumerate(bodies)
    ).encode())  # fmt: skip
    found = [client.frame()]
    while found[-1].command == "RECEIPT":
        found.append(client.frame())
    assert found[-1].headers["receipt-id"] == "1"
    assert "price" in found[-1].headers["message"]
    confirmed = [frame.headers["receipt-id"] for frame in found[:-1]]
    stored = [json.loads(body)["price"] for body in running.events("refused")]
    assert [bodies[int(one)] for one in confirmed] == [event(price) for price in stored]
    assert "0" in confirmed


def test_an_unknown_topic_is_an_error(running):
    running.create_topic("known")
    for frame in ("SEND", "SUBSCRIBE"):
        client = running.raw()
        body = "{}" if frame == "SEND" else ""
        client.send(frame, "id:a", "destination:/topic/knwon", "receipt:1", body=body)
        error = client.error()
        assert error.headers["code"] == "unknown-topic"
        assert "did you mean 'known'" in error.body.decode()


def test_headers_are_the_event_if_the_body_is_not_json(running):
    topic = running.create_topic("header_events")
    client = running.raw()
    client.subscribe(topic, "selector:price < 10 AND symbol = 'IBM'")
    client.send("SEND", f"destination:{topic}", "price:3.5", "symbol:IBM", "x:y", body="hello")
    (message,) = client.messages(1)
    assert message.body == b"hello"
    assert message.headers["x"] == "y"
    assert running.events("header_events") == [b'{"symbol":"IBM","price":3.5}']
    client.send("SEND", f"destination:{topic}", "price:cheap", "receipt:1", body="hello")
    assert "price" in client.error().headers["message"]


def test_an_event_id_is_stored_once(running):
    topic = running.create_topic("ids")
    client = running.raw()
    for _ in range(2):
        client.send("SEND", f"destination:{topic}", "event-id:a:b", "receipt:1", body=event(1))
        assert client.receipt()
    assert len(running.events("ids")) == 1
    client.subscribe(topic, "from:earliest")
    assert client.frame("MESSAGE").headers["event-id"] == "a:b"
    client.disconnect()


def test_a_subscription_can_start_in_the_past(running):
    topic = running.create_topic("past")
    client = running.raw()
    client.publish(topic, *(event(n) for n in range(5)))
    client.subscribe(topic, "from:3", name="offset")
    assert prices(client.messages(2)) == [3, 4]
    client.subscribe(topic, "from:earliest", "selector:price > 2", name="all")
    assert prices(client.messages(2)) == [3, 4]
    client.send("SUBSCRIBE", "id:bad", f"destination:{topic}", "from:yesterday")
    assert "yesterday" in client.error().body.decode()


def test_acknowledged_one_by_one(running):
    topic = running.create_topic("individual")
    durable = ("ack:client-individual", "durable-subscription-name:d")
    client = running.raw(client_id="one")
    client.subscribe(topic, *durable)
    client.publish(topic, *(event(n) for n in range(4)))
    messages = client.messages(4)
    for number in (0, 2):
        client.send("ACK", f"id:{messages[number].headers['ack']}", "receipt:a")
        assert client.receipt()
    client.disconnect()
    client = running.raw(client_id="one")
    client.subscribe(topic, *durable)
    again = client.messages(2)
    assert prices(again) == [1, 3]
    assert all(frame.headers["redelivered"] == "true" for frame in again)
    client.disconnect()


def test_acknowledged_up_to_here(running):
    topic = running.create_topic("cumulative")
    durable = ("ack:client", "activemq.subscriptionName:d")
    client = running.raw(client_id="two")
    client.subscribe(topic, *durable)
    client.publish(topic, *(event(n) for n in range(5)))
    messages = client.messages(5)
    client.send("ACK", f"id:{messages[0].headers['ack']}")
    client.send("ACK", f"id:{messages[2].headers['ack']}", "receipt:a")
    assert client.receipt()
    client.disconnect()
    client = running.raw(client_id="two")
    client.subscribe(topic, *durable)
    assert prices(client.messages(2)) == [3, 4]
    client.disconnect()


def test_what_is_refused_comes_again_with_its_count(running):
    topic = running.create_topic("nacks")
    client = running.raw(client_id="three")
    client.subscribe(topic, "ack:client", "durable-subscription-name:d")
    client.publish(topic, *(event(n) for n in range(3)))
    messages = client.messages(3)
    client.send("NACK", f"id:{messages[1].headers['ack']}")
    again = client.messages(2)
    assert prices(again) == [0, 1]
    assert [frame.headers["attempt"] for frame in again] == ["2", "2"]
    client.disconnect()


def test_acknowledged_automatically_comes_once(running):
    topic = running.create_topic("automatic")
    client = running.raw(client_id="four")
    client.subscribe(topic, "durable-subscription-name:d")
    client.publish(topic, event(1), event(2))
    assert prices(client.messages(2)) == [1, 2]
    client.disconnect()
    other = running.raw()
    other.publish(topic, event(3))
    client = running.raw(client_id="four")
    client.subscribe(topic, "durable-subscription-name:d")
    assert prices(client.messages(1)) == [3]
    client.disconnect()
    other.disconnect()


def test_a_durable_subscription_is_deleted_by_its_name(running):
    topic = running.create_topic("deleted")
    client = running.raw(client_id="five")
    client.subscribe(topic, "durable-subscription-name:d")
    client.send("UNSUBSCRIBE", "id:s", "receipt:1")
    assert client.receipt()
    find = running.broker.subscription
    assert running.ask(lambda: find(running.account, "deleted", "five.d")).durable
    client.send("UNSUBSCRIBE", "id:s", "durable-subscription-name:d", "receipt:2")
    assert client.receipt()
    client.send("UNSUBSCRIBE", "id:s", "durable-subscription-name:d", "receipt:3")
    assert client.error().headers["code"] == "unknown-subscription"


def test_whoever_listens_later_takes_over_and_the_other_is_told(running):
    topic = running.create_topic("taken_over")
    first, second = running.raw(client_id="six"), running.raw(client_id="six")
    first.subscribe(topic, "durable-subscription-name:d")
    second.subscribe(topic, "durable-subscription-name:d")
    assert "subscription 's' ended" in first.error().headers["message"]
    second.publish(topic, event(1))
    assert prices(second.messages(1)) == [1]
    second.disconnect()


def test_a_transaction_is_published_as_a_whole_or_not_at_all(running):
    topic = running.create_topic("transactions")
    client = running.raw()
    tx = "transaction:t"
    client.send("BEGIN", tx)
    client.send("SEND", f"destination:{topic}", tx, "receipt:1", body=event(1))
    assert client.receipt()
    assert running.events("transactions") == []
    client.send("ABORT", tx, "receipt:2")
    assert client.receipt()
    client.send("BEGIN", tx)
    for n in (2, 3):
        client.send("SEND", f"destination:{topic}", tx, body=event(n))
    client.send("COMMIT", tx, "receipt:3")
    assert client.receipt() == "3"
    assert running.events("transactions") == [event(2).encode(), event(3).encode()]
    client.send("BEGIN", tx)
    for n in (4, "five"):
        client.send("SEND", f"destination:{topic}", tx, body=event(n))
    client.send("COMMIT", tx, "receipt:4")
    error = client.error()
    assert error.headers["receipt-id"] == "4"
    assert len(running.events("transactions")) == 2


def test_acknowledgements_of_a_transaction_count_when_it_is_committed(running):
    topic = running.create_topic("acked_together")
    durable = ("ack:client-individual", "durable-subscription-name:d")
    client = running.raw(client_id="seven")
    client.subscribe(topic, *durable)
    client.publish(topic, event(1), event(2))
    first, second = client.messages(2)
    client.send("BEGIN", "transaction:kept")
    client.send("BEGIN", "transaction:lost")
    client.send("ACK", f"id:{first.headers['ack']}", "transaction:kept")
    client.send("ACK", f"id:{second.headers['ack']}", "transaction:lost")
    client.send("COMMIT", "transaction:kept", "receipt:1")
    assert client.receipt()
    client.disconnect()
    client = running.raw(client_id="seven")
    client.subscribe(topic, *durable)
    assert prices(client.messages(1)) == [2]
    client.disconnect()


def test_older_clients_are_understood(running):
    topic = running.create_topic("older")
    client = running.raw(version="1.0")
    client.send("SUBSCRIBE", f"destination: {topic}", "ack: client", "receipt: 1")
    assert client.receipt() == "1"
    client.publish(topic, event(1))
    (message,) = client.messages(1)
    assert "subscription" not in message.headers
    client.send("ACK", f"message-id: {message.headers['message-id']}", "receipt: 2")
    assert client.receipt()
    client.disconnect()


def test_a_client_may_close_its_side_after_the_last_frame(running):
    topic = running.create_topic("half_closed")
    client = running.raw()
    client.send("SEND", f"destination:{topic}", "receipt:1", body=event(1))
    client.socket.shutdown(1)
    assert client.receipt() == "1"
    assert client.frame_or_end() is None
    client.socket.close()


def test_accounts_are_asked_for_and_kept_to_their_grants(tmp_path):
    ann = Account(
        "ann", password=password_hash("secret:1"), tokens=frozenset({token_hash("token")}),
        subscribe=Grants({"*": MATCHES_ALL}),
    )  # fmt: skip
    with stomp_broker(tmp_path, accounts=(ann, free_account("root"))) as running:
        running.account = next(one for one in running.broker.accounts if one.name == "root")
        topic = running.create_topic("guarded")
        for headers in ({"login": "ann", "passcode": "secret:1"}, {"passcode": "token"},
                        {"Authorization": "Bearer token"}):  # fmt: skip
            running.raw(**headers).disconnect()
        for headers in ([], ["login:ann", "passcode:wrong"], ["login:bob", "passcode:x"]):
            client = running.raw(version=None)
            client.send("CONNECT", "accept-version:1.2", *headers)
            assert client.error().headers["code"] == "unauthenticated"
        client = running.raw(login="ann", passcode="token")
        client.send("SEND", f"destination:{topic}", body=event(1))
        assert client.error().headers["code"] == "forbidden"
    assert ann.usage.connections == 0
