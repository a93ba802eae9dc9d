"""Connections between simulated processes, as asyncio uses them."""

import asyncio
from random import Random

import pytest

from tamis.broker.simulation.virtual_time import VirtualTime
from tamis.broker.simulation.wires import HIGH, Wires


class Pair:
    """Two processes with a connection, and what one end got."""

    def __init__(self, seed=1):
        self.time, self.wires = VirtualTime(), Wires(Random(seed))  # noqa: S311 - to be repeated
        self.one, self.two = (self.time.process(name, self.wires) for name in ("one", "two"))
        self.got, self.error, self.is_ended = b"", None, False
        self.two.create_task(asyncio.start_server(self.take, "anywhere", 7))
        self.run(0.1)
        opening = self.one.create_task(asyncio.open_connection("anywhere", 7))
        self.run(0.1)
        self.reader, self.writer = opening.result()

    @property
    def conduit(self):
        return self.wires.conduit("one", "two")

    async def take(self, reader, _):
        try:
            while data := await reader.read(1 << 16):
                self.got += data
        except OSError as error:
            self.error = error
        self.is_ended = True

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.one.end()
        self.two.end()

    def run(self, seconds):
        self.time.run(lambda: False, self.time.now + seconds)


SENT = bytes(range(200))


def test_bytes_arrive_in_order_and_then_the_end():
    with Pair() as pair:
        for n in range(0, 200, 10):
            pair.writer.write(SENT[n : n + 10])
        pair.writer.close()
        pair.run(1.0)
        assert (pair.got, pair.is_ended, pair.error) == (SENT, True, None)


def test_a_cut_keeps_some_of_what_is_on_its_way_and_tells_both_ends():
    lengths = set()
    for seed in range(40):
        with Pair(seed) as pair:
            for n in range(0, 200, 10):
                pair.writer.write(SENT[n : n + 10])
            pair.conduit.cut(silently=False)
            pair.run(1.0)
            assert SENT.startswith(pair.got)
            assert isinstance(pair.error, ConnectionResetError)
            assert isinstance(pair.reader.exception(), ConnectionResetError)
            lengths.add(len(pair.got))
    assert len(lengths) > 10
    assert any(length % 10 for length in lengths)


def test_a_silent_wire_tells_nobody_and_stops_the_sender():
    with Pair() as pair:
        pair.conduit.cut(silently=True)
        pair.writer.write(bytes(HIGH))
        waiting = pair.one.create_task(pair.writer.drain())
        pair.run(100.0)
        assert (pair.got, pair.is_ended) == (b"", False)
        assert not waiting.done()


def test_nobody_is_reached_over_a_road_that_is_cut():
    with Pair() as pair:
        pair.conduit.cut(silently=False)
        calling = pair.one.create_task(asyncio.open_connection("anywhere", 7))
        pair.run(1.0)
        with pytest.raises(OSError, match="no way"):
            calling.result()


def test_the_end_of_a_process_is_told_to_the_other():
    with Pair() as pair:
        pair.one.end()
        pair.run(1.0)
        assert isinstance(pair.error, ConnectionResetError)


def test_damage_changes_one_byte():
    with Pair() as pair:
        pair.conduit.damages = 1
        pair.writer.write(SENT)
        pair.run(1.0)
        assert sum(a != b for a, b in zip(pair.got, SENT, strict=True)) == 1
