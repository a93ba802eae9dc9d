"""A log as tables, for those who read it beside its broker, or after it has stopped.

Nothing is changed. Sealed segments stay files, which their readers find by name; what is not sealed
yet is decoded. A running broker may seal and remove files meanwhile: then it is looked at again.
"""

from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from tamis.broker.log.active_file import ActiveFile
from tamis.broker.log.damage import Damage
from tamis.broker.log.disk import Disk, LocalDisk
from tamis.broker.log.event_decoder import EventDecoder
from tamis.broker.log.marks import SYNCED
from tamis.broker.log.record_table import record_table
from tamis.broker.log.recovery import find_log
from tamis.broker.log.sealed_segment import RowGroups, SealedSegment
from tamis.errors import FileError
from tamis.schema import Schema

ATTEMPTS = 5


class SealedFile(NamedTuple):
    """A sealed segment, with the schema of its events."""

    path: Path
    schema: Schema


class Tail(NamedTuple):
    """Events that are not sealed yet, with their schema; the columns are those of segments."""

    table: pa.Table
    schema: Schema


class LogSnapshot(NamedTuple):
    """A log at one moment: its segments, then its tail, in the order of the offsets."""

    schema: Schema  # all attributes that any event has
    sealed: list[SealedFile]
    tail: list[Tail]
    damage: list[Damage]


def log_snapshot(folder: Path, disk: Disk | None = None) -> LogSnapshot:
    """The log of a folder as it is now, as far as it is safe."""
    disk = LocalDisk(most_open=4) if disk is None else disk
    for _ in range(ATTEMPTS):
        try:
            return _look(disk, folder)
        except FileNotFoundError:
            if not folder.is_dir():
                break
    else:
        raise FileError(f"{folder} changes faster than it can be read; try again")
    raise FileError(f"{folder} is not the log of a topic: there is no such folder")


def _look(disk: Disk, folder: Path) -> LogSnapshot:
    nothing = EventDecoder(Schema({}))
    log = find_log(disk, folder, nothing, RowGroups())
    # Without the mark nobody knows what is safe; a broker that stopped has left it.
    end = log.synced if SYNCED in disk.names(folder) and log.synced else log.next_offset
    sealed = [SealedFile(f.path, f.schema) for f in log.files if isinstance(f, SealedSegment)]
    tail = []
    for file in log.files:
        if isinstance(file, ActiveFile):
            frames = [frame for frame in file.frames() if frame.first < end]
            records = [one for frame in frames for one in frame.records(range(frame.count))]
            if records:
                table = record_table(records, file.decoder).table
                tail.append(Tail(table, file.decoder.schema))
    schema = Schema({})
    for one in (*(part.schema for part in sealed), *(part.schema for part in tail)):
        schema = schema.with_attributes(one)
    return LogSnapshot(schema, sealed, tail, log.damage)
