"""What raw clients say in STOMP, MQTT 3.1.1 and NATS, so that no client library is measured."""

import json
from dataclasses import dataclass

from broker_sections.stock_alerts import TOPIC

MQTT_TEXT = b"\x00\x04MQTT\x04\x02\x00\x00"


@dataclass(frozen=True)
class Wire:
    """A protocol: what opens a connection and subscribes, and what the broker answers to each."""

    opening: bytes
    opened: bytes
    subscribing: bytes
    subscribed: bytes

    def publication(self, body: bytes) -> bytes:
        """The bytes that publish a body."""
        raise NotImplementedError


class Stomp(Wire):
    """STOMP 1.2, to tamis and ActiveMQ."""

    def publication(self, body: bytes) -> bytes:
        return stomp_send(body)


class Mqtt(Wire):
    """MQTT at most once, to mosquitto."""

    def publication(self, body: bytes) -> bytes:
        return _packet(0x30, _text(TOPIC.encode()) + body)


class Nats(Wire):
    """NATS, to nats-server."""

    def publication(self, body: bytes) -> bytes:
        return b"PUB %b %d\r\n%b\r\n" % (TOPIC.encode(), len(body), body)


def stomp_frame(command: str, headers: dict[str, str], body: bytes = b"") -> bytes:
    """A frame of STOMP."""
    lines = "".join(f"{name}:{value}\n" for name, value in headers.items())
    return f"{command}\n{lines}\n".encode() + body + b"\x00"


def stomp_connect(**headers: str) -> bytes:
    """The frame that opens a connection of STOMP."""
    return stomp_frame("CONNECT", {"accept-version": "1.2", "host": "localhost"} | headers)


def stomp_subscribe(key: str, **headers: str) -> bytes:
    """The frame that subscribes, and asks for a receipt."""
    wanted = {"id": key, "destination": f"/topic/{TOPIC}", "ack": "auto", "receipt": f"s-{key}"}
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return stomp_frame("SUBSCRIBE", wanted | named)


def stomp_send(body: bytes, receipt: str | None = None) -> bytes:
    """The frame that publishes a body, as JSON."""
    asked = "" if receipt is None else f"receipt:{receipt}\n"
    return (
        f"SEND\ndestination:/topic/{TOPIC}\ncontent-type:application/json\n{asked}"
        f"content-length:{len(body)}\n\n"
    ).encode() + body + b"\x00"  # fmt: skip


def _packet(kind: int, content: bytes) -> bytes:
    """A packet of MQTT: kind, length in groups of 7 bits, content."""
    length = len(content)
    groups = bytearray()
    while True:
        length, group = divmod(length, 128)
        groups.append(group | (0x80 if length else 0))
        if not length:
            return bytes([kind]) + bytes(groups) + content


def _text(text: bytes) -> bytes:
    return len(text).to_bytes(2, "big") + text


def wire_of(contestant: str, number: int) -> Wire:
    """How to talk to a contestant; `number` makes the name of the client."""
    if contestant == "mosquitto":
        opening = _packet(0x10, MQTT_TEXT + _text(f"client{number}".encode()))
        subscribing = _packet(0x82, b"\x00\x01" + _text(TOPIC.encode()) + b"\x00")
        return Mqtt(opening, b"\x20\x02\x00\x00", subscribing, b"\x90\x03")
    if contestant == "nats-server":
        said = json.dumps({"verbose": False, "pedantic": False}).encode()
        subscribing = b"SUB %b 1\r\nPING\r\n" % TOPIC.encode()
        return Nats(b"CONNECT %b\r\nPING\r\n" % said, b"PONG\r\n", subscribing, b"PONG\r\n")
    return Stomp(stomp_connect(), b"CONNECTED", stomp_subscribe("0"), b"RECEIPT")
