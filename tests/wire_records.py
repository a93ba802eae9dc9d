"""The bytes of the messages between brokers, as they were when a version was made.

``python tests/wire_records.py`` prints those of now, for `tests/broker/network/wire_version_1.txt`.
A version that was released is never recorded again: what changes then is another version, with a
file of its own.
"""

import sys
from pathlib import Path

from tamis.broker.network.frames import frame_of
from tamis.broker.network.messages import (
    Beat,
    Declined,
    Deleted,
    Established,
    Events,
    Filters,
    Goodbye,
    Hello,
    Message,
    Move,
    Moved,
    MovedEvent,
    Offer,
    Part,
    ProfileWanted,
    Proof,
    Reach,
    Relayed,
    SentEvent,
    SideProfile,
    Stored,
)

FILE = Path(__file__).parent / "broker" / "network" / "wire_version_1.txt"
MESSAGES: tuple[Message, ...] = (
    Hello(1, 1, "paris", "lyon", bytes(range(32))),
    Proof(bytes(range(32, 64))),
    Reach({"paris": ["paris"], "nice": ["paris", "nice"]}),
    Beat(),
    Goodbye("the broker stops", is_final=True),
    Offer("quotes", {"price": "double", "symbol": "string"}, "default", {"price": 1.5}, ["a.1.7"]),
    Declined("quotes", "it has other defaults here"),
    Filters("quotes", "subscription", True, {"1.7": "price < 10"}, ["1.3", "1.4"]),
    Part("quotes", "subscription", {"1.8": "price < 20"}),
    Established("quotes", ["1.7", "1.3"]),
    Events("quotes", 300, [SentEvent("a-1", b'{"tamis-origin":"nice"}', b'{"price": 2.5}')]),
    Stored("quotes", 2**40),
    Deleted("quotes", ["a.1.7", "b.1.3"]),
    Relayed("lyon", "nice", Stored("quotes", 7)),
    ProfileWanted("quotes", is_wanted=True),
    SideProfile("quotes", bytes(range(16))),
    Move("paris", "nice", "quotes", "guest", "cheap", "more", 41),
    Moved(
        "nice",
        "paris",
        "quotes",
        "guest",
        "cheap",
        "more",
        41,
        57,
        True,
        [MovedEvent(1_700_000_000_000_000, "a-1", b"", b'{"price": 2.5}', 2, True)],
        "price < 10",
        {"window": 5},
        3,
        "",
    ),
)


def recorded() -> dict[str, bytes]:
    """The frame of each message in the file, by the kind."""
    lines = FILE.read_text(encoding="utf-8").split("\n")
    parts = [line.split() for line in lines if line and not line.startswith("#")]
    return {kind: bytes.fromhex(text) for kind, text in parts}


def main() -> None:
    for message in MESSAGES:
        sys.stdout.write(f"{type(message).__name__} {frame_of([message]).hex()}\n")


if __name__ == "__main__":
    main()
