"""Publishers over STOMP that are told what anybody wants."""

import pytest

from tamis.errors import UnknownTopic


@pytest.fixture
def topic(running, request):
    return running.create_topic(request.node.name).removeprefix("/topic/")


def subscribed(running, topic, id_, text):
    running.run(running.broker.put_subscription(running.account, topic, id_, text))


def wanted(client, topic):
    client.subscribe(f"/wanted/{topic}", "ack:client-individual", name="w")
    return client.frame("MESSAGE")


def confirm(client, message):
    client.send("ACK", f"id:{message.headers['ack']}", "receipt:ok")
    assert client.receipt() == "ok"
    return client.frame("MESSAGE")


def test_a_filter_is_confirmed_and_granted(running, topic):
    subscribed(running, topic, "a", "price < 5")
    client = running.raw()
    message = wanted(client, topic)
    assert message.body == b"price < 5"
    assert message.headers["destination"] == f"/wanted/{topic}"
    assert (message.headers["lease"], message.headers["semantics"]) == ("4", "sql")
    assert "granted" not in message.headers
    again = confirm(client, message)  # after a second
    assert again.headers["granted"] == "0"
    assert again.headers["version"] == message.headers["version"]
    client.disconnect()


def test_a_wider_subscription_waits_for_the_confirmation(running, topic):
    client = running.raw()
    message = wanted(client, topic)
    assert message.body == b"FALSE"
    again = confirm(client, message)
    assert again.headers["granted"] == "0"
    client.send("ACK", f"id:{again.headers['ack']}")
    subscriber = running.raw()
    subscriber.send("SUBSCRIBE", "id:s", f"destination:/topic/{topic}", "selector:price < 5",
                    "receipt:sub")  # fmt: skip
    wider = client.frame("MESSAGE")
    if wider.body == b"FALSE":  # the ACK came before the SUBSCRIBE by more than a second
        client.send("ACK", f"id:{wider.headers['ack']}")
        wider = client.frame("MESSAGE")
    assert wider.body == b"price < 5"
    client.send("ACK", f"id:{wider.headers['ack']}")
    assert subscriber.receipt() == "sub"
    client.disconnect()
    subscriber.disconnect()


def test_whoever_unsubscribes_is_not_waited_for(running, topic):
    client = running.raw()
    confirm(client, wanted(client, topic))
    client.send("UNSUBSCRIBE", "id:w", "receipt:end")
    assert client.receipt() == "end"
    known = running.broker._host.quenching._quenched[topic]
    assert not running.ask(lambda: len(known.leases))
    subscribed(running, topic, "a", "price < 5")
    client.disconnect()


def test_what_cannot_be_told_is_an_error(running, topic):
    client = running.raw()
    client.send("SUBSCRIBE", "id:w", f"destination:/wanted/{topic}")
    assert "what is wanted is confirmed" in client.error().headers["message"]
    client = running.raw()
    client.send("SUBSCRIBE", "id:w", "destination:/wanted/nothing", "ack:client")
    assert client.error().headers["code"] == UnknownTopic.code
