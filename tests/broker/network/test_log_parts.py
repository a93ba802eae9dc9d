"""Parts of the log for peers: from memory and from the log they are the same, and made once."""

from types import SimpleNamespace

import numpy as np
import pyarrow as pa

import tamis
from tamis.broker.log.chunk import Chunk
from tamis.broker.log.frames import NewRecord
from tamis.broker.network import log_parts
from tamis.broker.network.log_parts import FreshPart, LogParts, ReadPart
from tamis.broker.records import Record

SCHEMA = {"price": "int"}
FROM_B = b'{"tamis-origin":"c","tamis-via":"b"}'


class FakeTopic:
    """A topic whose log is a list; at most `most` events are read from it at once."""

    def __init__(self, most=1_000):
        self.records = []
        self.followers = []
        self.reads = 0
        self.log = SimpleNamespace(read=self.read)
        self._most = most

    @property
    def dispatched(self):
        return len(self.records)

    def new_matcher(self):
        return tamis.Matcher(SCHEMA)

    def publish(self, *prices, headers=b""):
        first = self.dispatched
        new = [NewRecord(7, "", headers, b'{"price": %d}' % price) for price in prices]
        self.records += [Record(first + n, *one) for n, one in enumerate(new)]
        for call in self.followers:
            call(first, new, [(price,) for price in prices])

    def read(self, start, events, _bytes):
        self.reads += 1
        some = self.records[start : start + min(events, self._most)]
        prices = [int(one.body.split()[1][:-1]) for one in some]
        offsets = np.array([one.offset for one in some], np.int64)
        table = pa.table({"price": pa.array(prices, pa.int64())})
        return Chunk(offsets, table, start + len(some), lambda rows: [some[n] for n in rows])


class FakeReader:
    def __init__(self, position=0):
        self.position = position
        self.told = 0

    def more_came(self):
        self.told += 1


def filters(text="price > 2"):
    matcher = tamis.Matcher(SCHEMA)
    matcher.subscribe("f", text)
    return matcher


def found(part, wanted, start):
    part.load()
    return part.matching(wanted, start)


def test_what_is_at_hand_is_what_the_log_has():
    topic = FakeTopic()
    near, far = LogParts(topic), LogParts(topic)
    near.join(FakeReader())
    for prices in ((1, 2, 3), (4,), (5, 0, 6)):
        topic.publish(*prices)
    far.join(FakeReader())
    for start in range(topic.dispatched):
        near._last = far._last = None  # so that each part begins there
        fresh, read = near.part(start), far.part(start)
        assert (type(fresh), type(read)) == (FreshPart, ReadPart)
        for wanted in (filters(), filters("price = 7"), tamis.Matcher(SCHEMA), None):
            assert found(fresh, wanted, start) == found(read, wanted, start)
        assert fresh.stop == read.stop == topic.dispatched
    assert [one.offset for one in found(near.part(4), filters(), 4)] == [4, 6]


def test_readers_of_one_place_share_a_part():
    topic = FakeTopic()
    parts = LogParts(topic)
    topic.publish(1, 2, 3, 4)
    first, second = FakeReader(), FakeReader(2)
    parts.join(first)
    parts.join(second)
    part = parts.part(0)
    assert parts.part(2) is part
    assert [one.offset for one in found(part, filters(), 0)] == [2, 3]
    assert [one.offset for one in found(part, filters("price > 3"), 2)] == [3]
    assert [one.offset for one in found(part, None, 2)] == [2, 3]
    assert topic.reads == 1


def test_events_of_one_peer_are_known_before_anything_is_done():
    topic = FakeTopic()
    parts = LogParts(topic)
    parts.join(FakeReader())
    topic.publish(1, 2, headers=FROM_B)
    part = parts.part(0)
    assert part.is_all_from("b")
    assert not part.is_all_from("c")
    topic.publish(3)
    parts._last = None
    assert not parts.part(0).is_all_from("b")
    assert parts.part(2) is parts.part(0)
    assert not LogParts(topic).part(0).is_all_from("b")  # nobody has looked yet


def test_what_all_have_passed_is_let_go():
    topic = FakeTopic()
    parts = LogParts(topic)
    first, second = FakeReader(), FakeReader()
    parts.join(first)
    parts.join(second)
    topic.publish(1, 2)
    parts.part(0)
    first.position = 2
    parts.let_go()
    assert isinstance(parts.part(0), FreshPart)
    second.position = 2
    parts.let_go()
    assert isinstance(parts.part(0), ReadPart)
    assert (first.told, second.told) == (1, 1)
    parts.leave(first)
    parts.leave(second)
    assert not topic.followers


def test_too_much_is_not_kept_at_hand(monkeypatch):
    monkeypatch.setattr(log_parts, "FRESH_BYTES", 300)
    topic = FakeTopic()
    parts = LogParts(topic)
    parts.join(FakeReader())
    topic.publish(1, 2)
    topic.publish(3, 4)
    assert isinstance(parts.part(0), ReadPart)
    parts._last = None
    assert isinstance(parts.part(2), FreshPart)


def test_a_part_ends_where_the_log_gives_no_more_at_once():
    topic = FakeTopic(most=3)
    parts = LogParts(topic)
    topic.publish(*range(8))
    parts.join(FakeReader())
    part = parts.part(0)
    assert part.stop == 8
    assert [one.offset for one in found(part, None, 0)] == [0, 1, 2]
    assert part.stop == 3
    assert parts.part(3) is not part
