"""Frames: any messages, in any pieces; what is damaged is noticed."""

import contextlib
import zlib

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.broker.network.frames import FrameReader, frame_of
from tamis.broker.network.messages import Beat, Events, Filters, Hello, Reach, SentEvent, Stored
from tamis.errors import RoutingError

TEXTS = st.text(max_size=5)
MESSAGES = st.one_of(
    st.builds(Hello, st.integers(0, 9), st.integers(0, 9), TEXTS, TEXTS, st.binary(max_size=9)),
    st.builds(Reach, st.dictionaries(TEXTS, st.lists(TEXTS, max_size=3), max_size=3)),
    st.builds(
        Filters, TEXTS, TEXTS, st.booleans(), st.dictionaries(TEXTS, TEXTS, max_size=3),
        st.lists(TEXTS, max_size=3),
    ),
    st.builds(
        Events, TEXTS, st.integers(0, 2**62),
        st.lists(st.builds(SentEvent, TEXTS, st.binary(max_size=9), st.binary(max_size=9))),
    ),
    st.builds(Stored, TEXTS, st.integers(0, 2**62)),
    st.just(Beat()),
)  # fmt: skip


def read(pieces):
    reader, found = FrameReader(), []
    for piece in pieces:
        reader.feed(piece)
        while (messages := reader.next()) is not None:
            found.append(messages)
    return found


@settings(max_examples=50)
@given(st.lists(st.lists(MESSAGES, max_size=3), max_size=4), st.integers(1, 40))
def test_messages_come_as_they_were_sent_in_whatever_pieces(frames, size):
    data = b"".join(map(frame_of, frames))
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    assert read(pieces) == frames


@settings(max_examples=100)
@given(st.lists(MESSAGES, min_size=1, max_size=2), st.data())
def test_a_flipped_bit_is_noticed(messages, data):
    frame = bytearray(frame_of(messages))
    place = data.draw(st.integers(0, 8 * len(frame) - 1))
    frame[place // 8] ^= 1 << place % 8
    with pytest.raises(RoutingError):
        read([bytes(frame)])


@settings(max_examples=50)
@given(st.binary(max_size=200))
def test_any_bytes_are_a_frame_or_an_error(data):
    with contextlib.suppress(RoutingError):
        read([data])


def test_a_frame_that_is_too_long_is_refused_before_it_has_come():
    reader = FrameReader()
    head = b"\xff" * 8
    reader.feed(head + zlib.crc32(head).to_bytes(4, "big"))
    with pytest.raises(RoutingError, match="too long"):
        reader.next()


def test_a_frame_may_be_as_long_as_is_allowed():
    frame = frame_of([Stored("quotes", 7)])
    reader = FrameReader()
    reader.most_bytes = len(frame) - 12  # without its head
    reader.feed(frame)
    assert reader.next() == [Stored("quotes", 7)]
    reader.most_bytes -= 1
    reader.feed(frame)
    with pytest.raises(RoutingError, match="too long"):
        reader.next()


def test_fields_of_a_later_version_are_ignored():
    payload = msgspec.msgpack.encode([["Stored", "quotes", 7, "new in version 2"]])
    head = len(payload).to_bytes(4, "big") + zlib.crc32(payload).to_bytes(4, "big")
    frame = head + zlib.crc32(head).to_bytes(4, "big") + payload
    assert read([frame]) == [[Stored("quotes", 7)]]
