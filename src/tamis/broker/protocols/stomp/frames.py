"""Frames: a command, headers, a body and a NUL byte.

The parser takes bytes in any pieces and keeps no more of them than its limits allow. It looks at
no byte one by one: line ends, heads and bodies are found by searches that continue where the last
one ended, so that a frame that comes in a thousand pieces costs as much as one that comes at once.

What differs between versions of the protocol:

======================  =====  =====  =====
..                        1.0    1.1    1.2
======================  =====  =====  =====
``\\n`` ``\\c`` ``\\\\``       no     yes    yes
``\\r``                     no     no     yes
lines may end in CR LF    no     no     yes
spaces around headers    cut    kept   kept
======================  =====  =====  =====

Until the version is agreed, lines may end in CR LF, and nothing is escaped: so it is with CONNECT
in every version.
"""

import re
from collections.abc import Iterable
from typing import NamedTuple

from tamis.errors import TamisError

VERSIONS = ("1.0", "1.1", "1.2")
WITH_BODY = frozenset({"SEND", "MESSAGE", "ERROR"})

_LINE_ENDS = re.compile(rb"(?:\r?\n)+")
_HEAD_END = {True: re.compile(rb"\n\r?\n"), False: re.compile(rb"\n\n")}
_LENGTH = re.compile(r"[0-9]{1,15}")
_COMMAND = re.compile(r"[A-Z]{1,20}")

_ESCAPED = {
    "1.0": {},
    "1.1": {"\\": "\\\\", "\n": "\\n", ":": "\\c"},
    "1.2": {"\\": "\\\\", "\r": "\\r", "\n": "\\n", ":": "\\c"},
}
_UNESCAPED = {
    version: {escape: char for char, escape in table.items()} for version, table in _ESCAPED.items()
}
_ESCAPE = re.compile(r"\\.?", re.DOTALL)
_SPECIAL = re.compile(r"[\\\r\n:]")


class FrameError(TamisError):
    """Bytes that are not a frame, or a frame that the protocol does not allow here."""


class Frame(NamedTuple):
    """One frame."""

    command: str
    headers: dict[str, str]  # of a name that comes several times, the first value
    body: bytes = b""


class FrameLimits(NamedTuple):
    """What one frame may take; a selector is a header, so heads can be long."""

    head: int = 16_000  # bytes of the command and the headers
    headers: int = 100
    body: int = 0  # bytes


class FrameParser:
    """Cuts bytes into frames. After a `FrameError` it is of no more use."""

    def __init__(self, limits: FrameLimits) -> None:
        self.limits = limits
        self.version: str | None = None  # None until it is agreed
        self._buffer = bytearray()
        self._at = 0  # where the next frame begins, or the body if `_open` has the head
        self._searched = 0  # up to here there is no end of what is searched for
        self._open: tuple[str, dict[str, str], int | None] | None = None

    def feed(self, data: bytes) -> None:
        """Take bytes; `next_frame` then gives the frames that they complete."""
        self._buffer += data

    @property
    def waiting(self) -> int:
        """How many bytes wait for the rest of their frame, or to be asked for."""
        return len(self._buffer) - self._at

    @property
    def inside(self) -> bool:
        """Whether a frame has begun and is not complete."""
        return self._open is not None or self.waiting > 0

    def next_frame(self) -> Frame | None:
        """The next frame, or None if it is not complete; raises a `FrameError`."""
        if self._open is None:
            self._open = self._next_head()
        found = None
        if self._open is not None:
            command, headers, length = self._open
            body = self._next_body(length)
            if body is not None:
                if body and command not in WITH_BODY:
                    raise FrameError(
                        f"a {command} frame has no body, this one has {len(body)} bytes"
                    )
                self._open = None
                self._searched = self._at
                found = Frame(command, headers, body)
        if found is None and self._at:
            del self._buffer[: self._at]
            self._searched = max(0, self._searched - self._at)
            self._at = 0
        return found

    def _next_head(self) -> tuple[str, dict[str, str], int | None] | None:
        buffer, at = self._buffer, self._at
        if at < len(buffer) and buffer[at] in b"\r\n":
            ends = _LINE_ENDS.match(buffer, at)  # heart-beats, and line ends after a frame
            if ends is not None:
                self._at = at = ends.end()
                self._searched = max(self._searched, at)
        takes_returns = self.version in {None, "1.2"}
        end = _HEAD_END[takes_returns].search(buffer, self._searched)
        size = (len(buffer) if end is None else end.start()) - at
        if size > self.limits.head:
            raise FrameError(
                f"the command and headers of a frame have more than {self.limits.head:,} bytes"
            )
        if end is None:
            if buffer.find(b"\0", self._searched) >= 0:
                raise FrameError(
                    "a frame ends before its empty line; headers end with an empty line"
                )
            self._searched = max(at, len(buffer) - 2)  # an end may have begun with these two
            return None
        head = buffer[at : end.start()]
        self._at = self._searched = end.end()
        if 0 in head:
            raise FrameError("a frame ends before its empty line; headers end with an empty line")
        try:
            return self._read_head(head.decode(), takes_returns)
        except UnicodeDecodeError as error:
            raise FrameError(
                f"the headers of a frame are not valid UTF-8: {error.reason} at byte {error.start}"
            ) from None

    def _read_head(self, head: str, takes_returns: bool) -> tuple[str, dict[str, str], int | None]:
        """The command, the headers and the length of the body, if it is told."""
        if takes_returns and "\r" in head:
            head = head.removesuffix("\r").replace("\r\n", "\n")
            if "\r" in head:
                raise FrameError(
                    "a carriage return is inside a line; in a header it is written \\r"
                )
        command, *lines = head.split("\n")
        if self.version == "1.0":
            command = command.strip()
        if not _COMMAND.fullmatch(command):
            raise FrameError(f"{_shown(command)} is not a command")
        if command in WITH_BODY and not self.limits.body:
            raise FrameError(f"the first frame is {command}, expected CONNECT")
        if len(lines) > self.limits.headers:
            raise FrameError(f"a frame has more than {self.limits.headers:,} headers")
        headers: dict[str, str] = {}
        for line in lines:
            name, colon, value = line.partition(":")
            if not colon or not name:
                raise FrameError(f"{_shown(line)} is not a header; a header is NAME:VALUE")
            if name not in headers:
                headers[name] = value
        if self.version == "1.0":
            headers = {n.strip(): v.strip() for n, v in reversed(headers.items())}
        elif "\\" in head and self.version is not None and command not in {"CONNECT", "CONNECTED"}:
            headers = self._unescaped(headers)
        length = headers.get("content-length")
        return command, headers, None if length is None else self._length(length)

    def _unescaped(self, headers: dict[str, str]) -> dict[str, str]:
        table = _UNESCAPED[self.version or "1.0"]

        def meant(found: re.Match[str]) -> str:
            escape = found[0]
            if escape not in table:
                known = " ".join(table)
                raise FrameError(f"a header has the escape {_shown(escape)}; there are {known}")
            return table[escape]

        found: dict[str, str] = {}
        for name, value in headers.items():
            found.setdefault(_ESCAPE.sub(meant, name), _ESCAPE.sub(meant, value))
        return found

    def _length(self, text: str) -> int:
        if not _LENGTH.fullmatch(text):
            raise FrameError(f"content-length is a number of bytes, not {_shown(text)}")
        length = int(text)
        if length > self.limits.body:
            raise FrameError(
                f"a body of {length:,} bytes is too long; the limit is {self.limits.body:,}"
            )
        return length

    def _next_body(self, length: int | None) -> bytes | None:
        """The body and its NUL, once all of it is there."""
        buffer, at = self._buffer, self._at
        if length is None:
            end = buffer.find(b"\0", self._searched)
            if (len(buffer) if end < 0 else end) - at > self.limits.body:
                limit = f"the limit is {self.limits.body:,} bytes"
                raise FrameError(
                    f"the body of a frame does not end with a NUL byte in time; {limit}"
                )
            if end < 0:
                self._searched = len(buffer)
                return None
        else:
            end = at + length
            if end >= len(buffer):
                return None
            if buffer[end]:
                raise FrameError(
                    f"after the {length:,} bytes that content-length tells, the frame does not end "
                    "with a NUL byte"
                )
        self._at = end + 1
        return bytes(buffer[at:end])


def escaped(text: str, version: str | None) -> str:
    """A name or a value as it is written in a header of a version."""
    if _SPECIAL.search(text) is None:
        return text
    table = _ESCAPED[version or "1.0"]
    if not table:  # 1.0 has no escapes, and a line end would begin another header
        return text.replace("\r", " ").replace("\n", " ")
    return _SPECIAL.sub(lambda found: table.get(found[0], found[0]), text)


def frame_bytes(
    command: str, headers: Iterable[tuple[str, str]], body: bytes = b"", version: str | None = None
) -> bytes:
    """The bytes of a frame."""
    own = None if command == "CONNECTED" else version
    lines = [command, *(f"{escaped(name, own)}:{escaped(value, own)}" for name, value in headers)]
    if body:
        lines.append(f"content-length:{len(body)}")
    head = "\n".join(lines).encode(errors="replace")
    return b"%b\n\n%b\0" % (head, body)


def _shown(text: str) -> str:
    return repr(text if len(text) <= 60 else text[:57] + "...")
