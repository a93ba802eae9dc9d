"""The log of versions: which subscriptions a micro-batch is matched with, also after a restart.

Everything is in a folder beside Spark's own checkpoint::

    id.json                   the name of the checkpoint, which its output folder knows as well
    events.json               the columns of the events, see `event_columns`
    versions/00000003.json    a version of the subscriptions: what changed since the one before
    rules/00000003.tamis      all subscriptions of a version, compiled, for some versions
    shards/00000003.json      of a version in shards: their plan, and two tables of Spark,
    shards/00000003/          the compiled shards, and
    subscriptions/00000003/   the subscriptions themselves
    batches/00000017.json     the version and the moment that a micro-batch is pinned to
    commits/00000017.json     the numbers of a micro-batch that is done

A file is written aside and renamed, so it is complete or not there. A version is written before any
micro-batch is pinned to it, and a micro-batch is pinned before it is matched: if the query dies in
between, it does the rest again with the same result.
"""

import json
import uuid
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from tamis.dead_letters import DeadLetter
from tamis.errors import FileError
from tamis.spark.compile.sent_rules import Changes
from tamis.spark.files.folders import Folder

FORMAT = 2  # of the folder; another number means that files are written in another way
KEPT = 100  # micro-batches that are remembered, as many as Spark's own log keeps


@dataclass(frozen=True)
class Version:
    """The subscriptions at a moment."""

    number: int
    position: Any  # how far the changelog was read
    is_base: bool  # all subscriptions are in a compiled file of this version
    changes: Changes = field(default_factory=dict)  # since the version before, unless it is a base
    letters: tuple[DeadLetter, ...] = ()  # about bad changes
    bad: int = 0  # how many changes were bad
    ids: str | None = None  # the type of the ids, for Spark; None before the first subscription
    schema: Mapping[str, str] = field(default_factory=dict)  # attributes and their types
    subscriptions: int = 0  # how many there are
    is_sharded: bool = False  # if it is a base


class Pin(NamedTuple):
    """What a micro-batch is matched with."""

    version: int
    moment: int  # when its events arrive, in microseconds since 1970


class Versions:
    """The folder of the log."""

    def __init__(self, root: str | Path) -> None:
        self.root = str(root)
        self._folder = Folder(root)

    def open(self) -> str:
        """Make the folder unless it is there; returns the name of the checkpoint."""
        self._folder.make("versions", "rules", "shards", "subscriptions", "batches", "commits")
        if not self._folder.exists("id.json"):
            self._write("id.json", {"id": uuid.uuid4().hex, "format": FORMAT})
        return self.owner() or ""

    def owner(self) -> str | None:
        """The name of the checkpoint, None if the folder is not there yet."""
        if not self._folder.exists("id.json"):
            return None
        found = self._read("id.json")
        if found.get("format", 1) != FORMAT:
            raise FileError(
                f"the checkpoint {self._folder.path} has the format {found.get('format', 1)}, and "
                f"this version of tamis reads {FORMAT}; go on with the version that wrote it, or "
                "start with a new checkpoint and a new output folder"
            )
        return str(found["id"])

    # --- columns of the events

    def read_events(self) -> dict[str, Any] | None:
        """What was written about the events when the query was last started, None if never."""
        return self._read("events.json") if self._folder.exists("events.json") else None

    def write_events(self, facts: Mapping[str, Any]) -> None:
        """Write down facts about the events."""
        self._write("events.json", dict(facts))

    # --- versions

    def newest(self) -> int:
        """The number of the last version, 0 if there is none."""
        return max(self._numbers("versions"), default=0)

    def get(self, number: int) -> Version:
        """One version."""
        found = self._read(_place("versions", number))
        changes = {pair[0]: pair[1] for pair in found.pop("changes")}
        letters = tuple(DeadLetter(*letter) for letter in found.pop("letters"))
        return Version(**found, changes=changes, letters=letters)

    def add(self, version: Version, rules: Path | None = None) -> None:
        """Add a new version; a base comes with its compiled file."""
        if rules is not None:
            self._folder.put(_rules(version.number), rules)
        record = asdict(version)
        record["changes"] = list(version.changes.items())  # JSON would make strings of integers
        record["letters"] = [list(letter) for letter in version.letters]
        self._write(_place("versions", version.number), record)

    def fetch_rules(self, number: int, target: Path) -> None:
        """Copy the compiled file of a base to this machine."""
        self._folder.get(_rules(number), target)

    def table(self, kind: str, number: int) -> str:
        """Where Spark reads and writes a table of a version: ``shards`` or ``subscriptions``."""
        # Hadoop takes what follows file: as it is, unescaped.
        root = f"file:{self._folder.local}" if self._folder.is_local else self.root
        return f"{root}/{kind}/{number:08}"

    def read_plan(self, number: int) -> dict[str, Any]:
        """The plan of the shards of a version."""
        return self._read(_place("shards", number))

    def write_plan(self, number: int, plan: Mapping[str, Any]) -> None:
        """Write down the plan of the shards of a version."""
        self._write(_place("shards", number), dict(plan))

    def put_subscriptions(self, number: int, source: Path) -> None:
        """Copy a Parquet file of subscriptions to where Spark finds it as their table."""
        self._folder.make(f"subscriptions/{number:08}")
        self._folder.put(f"subscriptions/{number:08}/part.parquet", source)

    def since_base(self, number: int) -> tuple[int, Changes]:
        """The last base up to a version, and the changes since then."""
        chain: list[Version] = []
        while True:
            version = self.get(number)
            if version.is_base:
                break
            chain.append(version)
            number -= 1
        changes: Changes = {}
        for version in reversed(chain):
            for subscription, text in version.changes.items():
                changes.pop(subscription, None)  # a later change goes to the end
                changes[subscription] = text
        return number, changes

    # --- micro-batches

    def pinned(self, batch: int) -> Pin | None:
        """What a micro-batch is matched with, None if that is not decided yet."""
        name = _place("batches", batch)
        if not self._folder.exists(name):
            return None
        found = self._read(name)
        # Before filters had a clock, no moment was written; what it is makes no difference then.
        return Pin(int(found["version"]), int(found.get("moment", 0)))

    def pin(self, batch: int, pin: Pin) -> None:
        """Match a micro-batch with a version at a moment, now and whenever it is repeated."""
        self._write(_place("batches", batch), pin._asdict())

    def commit(self, batch: int, facts: Mapping[str, Any]) -> None:
        """Write down the numbers of a micro-batch, and delete what is not needed any more.

        Only the last micro-batch can be repeated, so older bases are of no use.
        """
        self._write(_place("commits", batch), dict(facts))
        if batch % KEPT == 0:
            for kind in ("batches", "commits"):
                for old in self._numbers(kind)[:-KEPT]:
                    self._folder.delete(_place(kind, old))
        files = [int(name.removesuffix(".tamis")) for name in self._folder.names("rules")]
        bases = sorted({*files, *self._numbers("shards")})
        for old in bases[:-2]:
            self._folder.delete(_rules(old))
            self._folder.delete(_place("shards", old))
            for kind in ("shards", "subscriptions"):
                self._folder.delete_folder(f"{kind}/{old:08}")
        for old in self._numbers("versions") if len(bases) > 2 else ():
            if old < bases[-2]:
                self._folder.delete(_place("versions", old))

    def committed(self, batch: int) -> dict[str, Any] | None:
        """The numbers of a micro-batch, None if it is not done, or was done long ago."""
        name = _place("commits", batch)
        return self._read(name) if self._folder.exists(name) else None

    # --- files

    def _numbers(self, kind: str) -> list[int]:
        return [int(name.removesuffix(".json")) for name in self._folder.names(kind)]

    def _write(self, name: str, content: Any) -> None:
        self._folder.write(name, json.dumps(content).encode())

    def _read(self, name: str) -> dict[str, Any]:
        try:
            content = json.loads(self._folder.read(name))
        except ValueError:
            content = None
        if not isinstance(content, dict):
            raise FileError(f"{self._folder.path}/{name} is damaged; start with a new checkpoint")
        return content


def log_of(checkpoint: str | Path) -> Versions:
    """The log beside Spark's own checkpoint."""
    return Versions(f"{str(checkpoint).rstrip('/')}/tamis")


def _place(kind: str, number: int) -> str:
    return f"{kind}/{number:08}.json"


def _rules(number: int) -> str:
    return f"rules/{number:08}.tamis"
