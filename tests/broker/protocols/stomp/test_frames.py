"""Frames: any pieces of bytes give the same frames, and any bytes an error at worst."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from tamis.broker.protocols.stomp.frames import (
    Frame,
    FrameError,
    FrameLimits,
    FrameParser,
    frame_bytes,
)

LIMITS = FrameLimits(head=1000, headers=10, body=500)


def parser(version="1.2", limits=LIMITS):
    made = FrameParser(limits)
    made.version = version
    return made


def read(data, version="1.2", cuts=(), limits=LIMITS):
    """The frames of bytes that come in pieces, and the error that ended them, if any."""
    reader, frames = parser(version, limits), []
    ends = [*sorted(cut for cut in cuts if cut < len(data)), len(data)]
    for start, end in zip([0, *ends], ends, strict=False):
        reader.feed(data[start:end])
        try:
            while (frame := reader.next_frame()) is not None:
                frames.append(frame)
        except FrameError as error:
            return frames, str(error)
    return frames, None


def read_one(data, version="1.2"):
    frames, error = read(data, version)
    assert error is None, error
    return frames[0]


@each(
    ("version", "data", "frame"),
    [
        ("1.2", b"SEND\ndestination:/topic/a\n\nbody\0", {"destination": "/topic/a"}),
        ("1.2", b"SEND\r\ndestination:/topic/a\r\n\r\nbody\0", {"destination": "/topic/a"}),
        ("1.2", b"SEND\na:1\r\nb:2\n\r\nbody\0", {"a": "1", "b": "2"}),
        ("1.2", b"\n\r\n\n\nSEND\na:1\n\nbody\0", {"a": "1"}),
        ("1.2", b"SEND\na:first\na:second\n\nbody\0", {"a": "first"}),
        ("1.2", b"SEND\na:x:y\n\nbody\0", {"a": "x:y"}),
        ("1.2", b"SEND\na:\n\nbody\0", {"a": ""}),
        ("1.2", b"SEND\na: x \n\nbody\0", {"a": " x "}),
        ("1.2", b"SEND\n\\c\\n:\\\\\\r\\\\n\n\nbody\0", {":\n": "\\\r\\n"}),
        ("1.1", b"SEND\na:\\c\\n\\\\\n\nbody\0", {"a": ":\n\\"}),
        ("1.1", b"SEND\na:x\r\n\nbody\0", {"a": "x\r"}),
        ("1.0", b"SEND\n a : \\n x \na:later\n\nbody\0", {"a": "\\n x"}),
        (None, b"SEND\na:\\n\r\n\r\nbody\0", {"a": "\\n"}),
        ("1.2", "SEND\nä:ö\n\nbody\0".encode(), {"ä": "ö"}),
    ],
)
def test_a_frame_is_read(version, data, frame):
    assert read_one(data, version) == Frame("SEND", frame, b"body")


def test_content_length_allows_nul_bytes_in_a_body():
    assert read_one(b"SEND\ncontent-length:3\n\na\0b\0").body == b"a\0b"


@each(
    ("data", "problem"),
    [
        (b"SEND\na:1\0", "ends before its empty line"),
        (b"SEND\na:1\0\n\n\0", "ends before its empty line"),
        (b"SEND\na\n\n\0", "NAME:VALUE"),
        (b"SEND\n:a\n\n\0", "NAME:VALUE"),
        (b"send\n\n\0", "not a command"),
        (b"\rSEND\n\n\0", "carriage return"),
        (b"SEND\na:b\rc\n\n\0", "carriage return"),
        (b"SEND\na:\\t\n\n\0", "escape"),
        (b"SEND\na:x\\\n\n\0", "escape"),
        (b"SEND\na:\xff\n\n\0", "not valid UTF-8"),
        (b"SEND\ncontent-length:-1\n\n\0", "number of bytes"),
        (b"SEND\ncontent-length:1e3\n\n\0", "number of bytes"),
        (b"SEND\ncontent-length:3\n\nabcd\0", "does not end with a NUL"),
        (b"SEND\ncontent-length:501\n\n", "too long; the limit is 500"),
        (b"SEND\n\n" + b"x" * 501, "the limit is 500 bytes"),
        (b"SEND\n\n" + b"x" * 501 + b"\0", "the limit is 500 bytes"),
        (b"SEND\n" + b"a:1\n" * 11 + b"\n\0", "more than 10 headers"),
        (b"SEND\na:" + b"x" * 1000, "more than 1,000 bytes"),
        (b"SEND\na:" + b"x" * 1000 + b"\n\n\0", "more than 1,000 bytes"),
        (b"BEGIN\ntransaction:a\n\nbody\0", "BEGIN frame has no body"),
    ],
)
def test_what_is_not_a_frame_is_an_error_that_says_why(data, problem):
    frames, error = read(data)
    assert not frames
    assert error is not None
    assert problem in error


def test_frames_before_a_bad_one_are_read():
    frames, error = read(b"SEND\n\na\0SEND\n\nb\0nonsense\n\n\0")
    assert [frame.body for frame in frames] == [b"a", b"b"]
    assert "not a command" in error


def test_heart_beats_are_not_kept():
    reader = parser()
    for _ in range(1000):
        reader.feed(b"\n\r\n")
        assert reader.next_frame() is None
    assert reader.waiting == 0
    assert not reader.inside


def test_a_frame_that_has_begun_is_told():
    reader = parser()
    for piece in (b"SE", b"ND\n", b"content-length:2\n\n", b"ab"):
        reader.feed(piece)
        assert reader.next_frame() is None
        assert reader.inside
    reader.feed(b"\0\n")
    assert reader.next_frame() == Frame("SEND", {"content-length": "2"}, b"ab")
    assert reader.next_frame() is None
    assert not reader.inside


@pytest.mark.parametrize("tail", [b"\0", b""])
def test_a_long_body_in_small_pieces_is_searched_once(tail):
    """Each byte is looked at a few times at most: a million pieces would take hours otherwise."""
    reader = parser(limits=FrameLimits(body=3_000_000))
    reader.feed(b"SEND\n\n")
    piece = b"x" * 10
    for _ in range(100_000):
        reader.feed(piece)
        assert reader.next_frame() is None
    reader.feed(tail)
    frame = reader.next_frame()
    assert (frame is None) == (not tail)
    assert reader.waiting == (0 if tail else 1_000_000)


texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)
names = texts.filter(bool)
headers = st.dictionaries(names.filter(lambda n: n != "content-length"), texts, max_size=5)
frames = st.tuples(st.just("SEND"), headers, st.binary(max_size=20)) | st.tuples(
    st.sampled_from(["BEGIN", "ACK"]), headers, st.just(b"")
)
cuts = st.lists(st.integers(0, 200), max_size=10)


@given(st.lists(frames, max_size=5), cuts)
def test_what_is_written_is_read_again_in_any_pieces(written, where):
    data = b"\n".join(frame_bytes(c, h.items(), b, "1.2") for c, h, b in written)
    found, error = read(data, cuts=where)
    assert error is None
    read_again = [(f.command, dict(f.headers), f.body) for f in found]
    for _, headers, body in read_again:
        assert headers.pop("content-length", None) == (str(len(body)) if body else None)
    assert read_again == written


frame_like = st.lists(
    st.sampled_from([
        b"SEND", b"CONNECT", b"\n", b"\r", b"\0", b":", b"\\", b"\\n", b"content-length:2", b"ab",
        b"a:b", b"\n\n", b"\r\n\r\n", b"\xff", b"content-length:", b"99999", b"x" * 600,
    ]) | st.binary(max_size=3), max_size=20,
).map(b"".join)  # fmt: skip


@given(
    frame_like, st.lists(st.integers(0, 700), max_size=10), st.sampled_from(["1.0", "1.1", "1.2"])
)
def test_any_bytes_in_any_pieces_give_the_same_frames_or_an_error(data, where, version):
    found, error = read(data, version, where)
    whole, whole_error = read(data, version)
    # Limits are seen earlier when fewer bytes have come; until then the frames are the same.
    assert found == whole[: len(found)]
    assert (error is None) == (whole_error is None)
