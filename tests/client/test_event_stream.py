from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from tamis.client import event_stream
from tamis.client.event_stream import EventStream, Message
from tamis.errors import BrokerError

THREE = [Message("message", None, data) for data in (b"a", b"b", b"c")]


@each(
    ("text", "expected"),
    [
        (b"data: 1\n\n", [Message("message", None, b"1")]),
        (b"id: 7\ndata: {}\n\n", [Message("message", "7", b"{}")]),
        (b"event: dropped\ndata:x\n\n", [Message("dropped", None, b"x")]),
        (b"data: a\ndata: b\n\n", [Message("message", None, b"a\nb")]),
        (b"data: a\r\n\r\ndata: b\r\rdata: c\n\n", THREE),
        (b": comment\n\n:\n\nid: 3\n\n", []),
        (b"data: a", []),
        (b"\n\n\ndata: a\n\n", [Message("message", None, b"a")]),
    ],
)  # fmt: skip
def test_messages(text, expected):
    assert EventStream().feed(text) == expected


@given(
    st.lists(st.sampled_from([b"data: 1", b"id: 2", b"event: e", b":", b"\n", b"\r\n", b"\r"])),
    st.lists(st.integers(0, 60)),
)
def test_pieces_of_any_size_give_the_same(lines, cuts):
    text = b"".join(lines)
    places = sorted({0, len(text), *(cut for cut in cuts if cut < len(text))})
    stream = EventStream()
    found = [message for begin, end in pairwise(places) for message in stream.feed(text[begin:end])]
    # A carriage return at the end may be half of a line break.
    assert found + stream.feed(b"\n") == EventStream().feed(text + b"\n")


def test_a_message_that_does_not_end_is_an_error(monkeypatch):
    monkeypatch.setattr(event_stream, "MOST_WAITING", 10)
    with pytest.raises(BrokerError, match="more than 10 bytes"):
        EventStream().feed(b"data: " + b"x" * 10)
