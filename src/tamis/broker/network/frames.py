"""Frames: many messages at once, with their length and a checksum.

::

    length  4 bytes, big-endian: of the payload
    check   4 bytes, big-endian: CRC-32 of the payload
    head    4 bytes, big-endian: CRC-32 of the 8 bytes before
    payload an array of messages in MessagePack

The head has a checksum of its own, because a length that is damaged would be waited for.
TCP's own checksum misses one damaged segment in some ten thousand; this one, and TLS where it is
used, find what it misses. A frame that is damaged, too long or not understood ends the link:
nothing after it can be trusted, and everything that was not acknowledged is sent again.
"""

import struct
import zlib
from collections.abc import Sequence
from typing import Any, get_args

import msgspec

from tamis.broker.network.messages import OPTIONAL, Message
from tamis.errors import RoutingError

MOST_BYTES = 128_000_000  # of a payload
HELLO_BYTES = 10_000  # of a payload of somebody whose name is not proved yet
_HEAD = struct.Struct(">II")
_HEAD_CHECK = struct.Struct(">I")
_HEAD_BYTES = _HEAD.size + _HEAD_CHECK.size
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(list[Message]).decode
_decode_any = msgspec.msgpack.Decoder(list[list[Any]]).decode
_KINDS = frozenset(kind.__struct_config__.tag for kind in get_args(Message))


def frame_of(messages: Sequence[Message]) -> bytes:
    """A frame with some messages."""
    payload = _encode(messages)
    if len(payload) > MOST_BYTES:
        raise RoutingError(
            f"a frame has {len(payload):,} bytes, and at most {MOST_BYTES:,} can be sent"
        )
    head = _HEAD.pack(len(payload), zlib.crc32(payload))
    return head + _HEAD_CHECK.pack(zlib.crc32(head)) + payload


class FrameReader:
    """Finds the messages in bytes that come in pieces."""

    def __init__(self) -> None:
        self.most_bytes = HELLO_BYTES
        self._bytes = bytearray()

    def feed(self, data: bytes) -> None:
        """Take bytes as they come."""
        self._bytes += data

    def next(self) -> list[Message] | None:
        """The messages of the next frame, None if it is not complete.

        Raises a `RoutingError` if it is not a frame.
        """
        if len(self._bytes) < _HEAD_BYTES:
            return None
        (head_check,) = _HEAD_CHECK.unpack_from(self._bytes, _HEAD.size)
        if zlib.crc32(self._bytes[: _HEAD.size]) != head_check:
            raise RoutingError("not a frame, or one that was damaged on its way: its head is wrong")
        length, check = _HEAD.unpack_from(self._bytes)
        if length > self.most_bytes:
            raise RoutingError(
                f"a frame of {length:,} bytes is too long: at most {self.most_bytes:,}"
            )
        end = _HEAD_BYTES + length
        if len(self._bytes) < end:
            return None
        payload = bytes(self._bytes[_HEAD_BYTES:end])
        del self._bytes[:end]
        if zlib.crc32(payload) != check:
            raise RoutingError("a frame was damaged on its way: its checksum is wrong")
        try:
            return _messages(payload)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise RoutingError(f"a frame cannot be understood: {error}") from None


def _messages(payload: bytes) -> list[Message]:
    """The messages of a payload, without those that need not be understood and are not."""
    try:
        return _decode(payload)
    except msgspec.ValidationError:
        parts = _decode_any(payload)
        known = [part for part in parts if not _may_be_ignored(part)]
        if len(known) == len(parts):
            raise
        return _decode(_encode(known))


def _may_be_ignored(part: list[Any]) -> bool:
    kind = part[0] if part else None
    return isinstance(kind, str) and kind.startswith(OPTIONAL) and kind not in _KINDS
