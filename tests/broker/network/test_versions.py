"""Two versions of the software can talk: the bytes are fixed, and what is added later is legal."""

import asyncio
import contextlib
import struct
import zlib
from typing import get_args

import msgspec
import pytest

from broker_process import quiet_ports
from linked_brokers import LOCAL, LinkedBroker, until
from tamis.broker.network.frames import FrameReader, frame_of
from tamis.broker.network.link import NONCE, Link, LinkState, Manners
from tamis.broker.network.messages import HIGHEST, Message, Stored
from tamis.errors import RoutingError
from wire_records import MESSAGES, recorded

FIELDS = {
    kind.__struct_config__.tag: [field.required for field in msgspec.structs.fields(kind)]
    for kind in get_args(Message)
}


def read(frame):
    reader = FrameReader()
    reader.feed(frame)
    return reader.next()


def framed(*messages):
    """A frame of arrays, as another version would send it."""
    payload = msgspec.msgpack.encode(messages)
    head = struct.pack(">II", len(payload), zlib.crc32(payload))
    return head + struct.pack(">I", zlib.crc32(head)) + payload


def test_the_bytes_of_version_1_are_what_they_were():
    """Whoever changes them makes a version 2, and leaves the file of version 1 as it is."""
    assert {type(one).__name__ for one in MESSAGES} == {one.__name__ for one in get_args(Message)}
    now = {type(one).__name__: frame_of([one]) for one in MESSAGES}
    assert now == recorded()


def test_what_version_1_has_sent_is_understood():
    for message in MESSAGES:
        assert read(recorded()[type(message).__name__]) == [message]


def test_fields_at_the_end_are_ignored_or_have_a_default():
    for message in MESSAGES:
        array = msgspec.msgpack.decode(msgspec.msgpack.encode(message))
        assert read(framed([*array, {"new": 1}, None])) == [message]
        required = FIELDS[array[0]]
        assert required == sorted(required, reverse=True), f"{array[0]}: a default, then none"
        (shorter,) = read(framed(array[: 1 + sum(required)]))
        assert type(shorter) is type(message)


def test_a_kind_that_need_not_be_understood_is_ignored_and_another_one_is_not():
    stored = ["Stored", "quotes", 7]
    assert read(framed(["?Weather", "sunny", 3], stored, ["?Weather"])) == [Stored("quotes", 7)]
    assert read(framed(["?Weather", "sunny", 3])) == []
    for wrong in (["Weather", "sunny"], [7], [], ["Stored", "quotes", "seven"]):
        with pytest.raises(RoutingError, match="cannot be understood"):
            read(framed(["?Weather", "sunny"], wrong))


def link(name, versions, *, is_caller):
    nonce = name[-1:].encode() * NONCE
    return Link(Manners(name, {}, versions=versions), "", nonce, 0.0, is_caller=is_caller)


def test_the_highest_version_that_both_know_is_spoken():
    cases = {((1, 1), (1, 2)): 1, ((1, 3), (2, 2)): 2, ((2, 9), (1, 5)): 5}
    for (ours, theirs), spoken in cases.items():
        one, other = link("b1", ours, is_caller=True), link("b2", theirs, is_caller=False)
        while said := (one.take_bytes(), other.take_bytes()):
            if not any(said):
                break
            other.receive(said[0], 0.0)
            one.receive(said[1], 0.0)
        assert (one.state, one.version, other.version) == (LinkState.PROVED, spoken, spoken)
    one, other = link("b1", (1, 1), is_caller=True), link("b2", (2, 3), is_caller=False)
    one.receive(other.take_bytes(), 0.0)
    assert one.is_final
    assert one.closed_because == "b1 speaks versions 1 to 1, b2 2 to 3"


def newer(message):
    """A message as software of a later version sends it to us: more fields, and more messages."""
    kind, *fields = message
    if kind == "Hello":
        fields[1] = HIGHEST + 1
        return [[kind, *fields]]
    return [["?Weather", "sunny"], [kind, *fields, {"since": HIGHEST + 1}]]


def older(message):
    """A message as software sends it that knows no field with a default."""
    return [message[: 1 + sum(FIELDS[message[0]])]]


class Translator:
    """Stands between two brokers: what the caller says comes as if it had another version."""

    def __init__(self, port, target, translate):
        self.port, self.target, self.translate = port, target, translate
        self.carried = 0
        self.tasks = set()

    async def start(self):
        self.server = await asyncio.start_server(self.carry, LOCAL, self.port)

    async def carry(self, reader, writer):
        self.tasks.add(asyncio.current_task())
        there, back = await asyncio.open_connection(LOCAL, self.target)
        try:
            async with asyncio.TaskGroup() as both:
                both.create_task(self.pass_on(reader, back, self.translate))
                both.create_task(self.pass_on(there, writer, lambda message: [message]))
        except* (OSError, EOFError):
            pass
        finally:
            self.tasks.discard(asyncio.current_task())
            for one in (writer, back):
                one.transport.abort()

    async def pass_on(self, reader, writer, translate):
        while True:
            head = await reader.readexactly(12)
            payload = await reader.readexactly(int.from_bytes(head[:4], "big"))
            said = [part for one in msgspec.msgpack.decode(payload) for part in translate(one)]
            self.carried += len(said)
            writer.write(framed(*said))

    async def stop(self):
        self.server.close()
        for task in self.tasks:
            task.cancel()
        if self.tasks:
            await asyncio.wait(self.tasks)


@pytest.mark.parametrize("translate", [newer, older])
def test_brokers_of_two_versions_share_topics_filters_and_events(tmp_path, translate, caplog):
    async def main():
        ours, theirs, between = quiet_ports(3)
        first = LinkedBroker(tmp_path, "b1", ours, {})
        last = LinkedBroker(tmp_path, "b2", theirs, {"b1": between})
        translator = Translator(between, ours, translate)
        async with contextlib.AsyncExitStack() as stack:
            for one in (first, last, translator):
                await one.start()
                stack.push_async_callback(one.stop)
            await until(lambda: first.linked and last.linked)
            await last.create()
            await until(lambda: first.broker.network._shared)
            await first.subscribe("here", "number < 5")
            await last.subscribe("there", "number >= 5")
            for one in (first, last):
                await one.publish(*({"number": n, "symbol": one.name} for n in range(10)))
            here = await first.take("here", 10)
            there = await last.take("there", 10)
            for found, wanted in ((here, range(5)), (there, range(5, 10))):
                for name in ("b1", "b2"):
                    assert [e["number"] for e in found if e["symbol"] == name] == list(wanted)
        assert translator.carried > 10

    asyncio.run(main())
    assert "cannot be understood" not in caplog.text
