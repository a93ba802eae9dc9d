"""A catalogue in memory that outlives its process, and can fail.

It keeps what SQLite keeps with a log that is synced at every commit (WAL, FULL): a commit that has
returned is there after any crash, one that was under way is there as a whole or not at all. One
that failed is not there; but as long as no other one was made, a crash can bring it back, because
its pages may have reached the disk nevertheless.
"""

import sqlite3
from collections.abc import Iterable
from pathlib import Path
from random import Random
from typing import Any

from tamis.broker.catalogue import Catalogue
from tamis.broker.catalogue_change import CatalogueChange
from tamis.broker.simulation.simulated_disk import Stopped


class _Tables(sqlite3.Connection):
    """A database in memory; it is not closed with the process that uses it."""

    def close(self) -> None:
        """It stays."""


class SimulatedCatalogue:
    """What the disk has of a catalogue."""

    def __init__(self, random: Random) -> None:
        self.failing = 0.0  # the probability that a commit fails
        self.stop_after: int | None = None  # commits until one of them ends the process
        self.random = random
        self.failures = 0
        self._tables = sqlite3.connect(":memory:", isolation_level=None, factory=_Tables)
        self._doubtful: list[CatalogueChange] = []

    def open(self) -> Catalogue:
        """The catalogue, for a process that starts."""
        self.stop_after = None
        doubtful, self._doubtful = self._doubtful, []
        catalogue = _Failing(self)
        if doubtful and self.random.random() < 0.5:
            catalogue.commit(doubtful)
        return catalogue

    def connect(self, *_: object, **__: object) -> sqlite3.Connection:
        """The tables."""
        return self._tables

    def stops(self) -> bool:
        """Whether this commit ends the process."""
        if self.stop_after is None:
            return False
        self.stop_after -= 1
        return self.stop_after <= 0

    def before(self, changes: list[CatalogueChange]) -> None:
        """Fail, or not."""
        if self.failing and self.random.random() < self.failing:
            self.failures += 1
            self._doubtful = changes
            raise sqlite3.OperationalError("disk I/O error")
        self._doubtful = []

    def rows(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        """The rows that a statement finds, for an onlooker."""
        return self._tables.execute(statement, values).fetchall()


class _Failing(Catalogue):
    """The catalogue of one process."""

    def __init__(self, disk: SimulatedCatalogue) -> None:
        self._disk = disk
        super().__init__(Path("/simulated/catalogue.sqlite"), disk.connect)

    def commit(self, changes: Iterable[CatalogueChange]) -> None:
        """Make changes, all or none."""
        changes, disk = list(changes), self._disk
        is_last = disk.stops()
        if is_last and disk.random.random() < 0.5:
            raise Stopped
        disk.before(changes)
        super().commit(changes)
        if is_last:
            raise Stopped
