"""The messages between two brokers, version 1.

======== ============================================================================
phase    messages
======== ============================================================================
greeting Hello, then Proof, each way; then Reach
topics   Deleted; Offer or Declined; each topic that both have is *open* on the link
filters  Part, Filters (advertisements, subscriptions), answered by Established
events   Events, answered by Stored; both may come inside of Relayed
profiles ProfileWanted, answered by SideProfile from time to time; both need not be understood
moves    Move, answered by Moved; brokers between pass them on (`moves.py`)
always   Reach, Beat, Goodbye
======== ============================================================================

A message is an array: the name of its kind, then its fields in this order. A later version may add

* fields at the end. Earlier versions ignore them, and do not send them: so an added field has
  a default, which means what was meant before it was there;
* kinds that matter: it sends them only where `Link.version` says that they are known (the Hello
  says which versions a broker speaks). A kind that is not known ends the link;
* kinds that need not be understood: their names begin with ``?`` (`OPTIONAL`), and whoever does not
  know one ignores it.

Kinds and fields never change otherwise. `tests/broker/network/wire_version_1.txt` has the bytes.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

LOWEST, HIGHEST = 1, 1  # the versions that this software speaks
OPTIONAL = "?"  # begins the name of a kind that may be ignored by a broker that does not know it


class TaggedMessage(msgspec.Struct, frozen=True, array_like=True, tag=True):
    """A message between brokers."""


class Hello(TaggedMessage, frozen=True):
    """Who speaks, which versions, whom it wants to reach ("": anybody), and a number used once."""

    lowest: int
    highest: int
    name: str
    wanted: str
    nonce: bytes


class Proof(TaggedMessage, frozen=True):
    """That the sender has the secret of the two; empty if there is none."""

    proof: bytes


class Reach(TaggedMessage, frozen=True):
    """All brokers on the sender's side of the link, each with the path that leads to it."""

    paths: Mapping[str, Sequence[str]]


class Beat(TaggedMessage, frozen=True):
    """The sender lives."""


class Goodbye(TaggedMessage, frozen=True):
    """The sender closes the link, and why; `is_final` if trying again does not help."""

    reason: str
    is_final: bool = False


class Offer(TaggedMessage, frozen=True):
    """The sender has a topic."""

    topic: str
    schema: Mapping[str, str]
    semantics: str
    defaults: Mapping[str, Any] | None
    births: Sequence[str] = ()  # see `deletions.py`


class Declined(TaggedMessage, frozen=True):
    """A topic cannot be shared, and why."""

    topic: str
    reason: str


class Deleted(TaggedMessage, frozen=True):
    """A topic with these births was deleted."""

    topic: str
    births: Sequence[str]


class Filters(TaggedMessage, frozen=True):
    """Filters of one kind that came and went; `is_full`: they are all that the sender has."""

    topic: str
    kind: str
    is_full: bool
    added: Mapping[str, str]  # texts by their ids, which are never used again
    removed: Sequence[str]


class Part(TaggedMessage, frozen=True):
    """Some of all filters of one kind that the sender has; the last ones come in `Filters`."""

    topic: str
    kind: str
    added: Mapping[str, str]


class Established(TaggedMessage, frozen=True):
    """What was announced, or withdrawn, with these ids is done here and beyond."""

    topic: str
    ids: Sequence[str]


class SentEvent(NamedTuple):
    """An event on its way, as its sender keeps it."""

    id: str
    headers: bytes
    body: bytes


class Events(TaggedMessage, frozen=True):
    """Events of a topic, in the order of the sender's log."""

    topic: str
    last: int  # the sender's offset of the last one
    events: Sequence[SentEvent]


class Stored(TaggedMessage, frozen=True):
    """Everything up to an offset of the other side is safe."""

    topic: str
    last: int


class Relayed(TaggedMessage, frozen=True):
    """What one broker says to another that is some links away: passed on towards it."""

    to: str
    sender: str
    content: Events | Stored


class ProfileWanted(TaggedMessage, frozen=True, tag="?ProfileWanted"):
    """Whether the sender wants to be told what is published on the other side."""

    topic: str
    is_wanted: bool


class SideProfile(TaggedMessage, frozen=True, tag="?SideProfile"):
    """What is published on the sender's side: a profile as `side_profiles.Side` packs it."""

    topic: str
    packed: bytes


class Move(TaggedMessage, frozen=True, tag="?Move"):
    """A broker asks another one for a durable subscription; see `moves.py`."""

    target: str  # the broker that has it
    sender: str  # the broker that it moves to
    topic: str
    account: str
    id: str
    step: str  # "look", "begin", "more" or "done"
    after: int = 0  # "more": the offset of the target up to which everything came


class MovedEvent(NamedTuple):
    """An event that a subscription has not acknowledged."""

    time: int
    id: str
    headers: bytes
    body: bytes
    attempts: int
    is_unsure: bool


class Moved(TaggedMessage, frozen=True, tag="?Moved"):
    """The answer to a Move."""

    target: str  # the broker that has asked
    sender: str
    topic: str
    account: str
    id: str
    step: str
    asked: int = 0  # `after` of what was asked
    after: int = 0  # the offset up to which everything was looked at
    is_last: bool = False  # there is nothing after it
    events: Sequence[MovedEvent] = ()
    filter: str = ""
    options: Mapping[str, Any] = {}
    expired: int = 0  # events that were removed before the subscription got them
    problem: str = ""  # why the subscription cannot be had; nothing else counts then


Message = (
    Hello | Proof | Reach | Beat | Goodbye | Offer | Declined | Filters | Part | Established
    | Events | Stored | Relayed | Deleted | ProfileWanted | SideProfile | Move | Moved
)  # fmt: skip


def cut(filters: Filters | Part, most: int) -> Iterator[Filters | Part]:
    """The same filters in messages of at most `most` characters, or of one filter."""
    topic, kind = filters.topic, filters.kind
    is_full = isinstance(filters, Part) or filters.is_full
    added: dict[str, str] = {}
    size = 0
    for id_, text in filters.added.items():
        size += len(text) + len(id_)
        if added and size > most:
            yield Part(topic, kind, added) if is_full else Filters(topic, kind, False, added, ())
            added, size = {}, len(text) + len(id_)
        added[id_] = text
    if isinstance(filters, Part):
        yield Part(topic, kind, added)
    else:
        yield Filters(topic, kind, is_full, added, filters.removed)
