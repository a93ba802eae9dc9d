"""What a folder holds of a log: which files count, what is lost, and what is left over.

Nothing is changed here, so a log can be looked at while its broker runs (`tamis.spark` does).
"""

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from tamis.broker.log.active_file import SUFFIX, ActiveFile
from tamis.broker.log.damage import Damage
from tamis.broker.log.disk import Disk
from tamis.broker.log.event_decoder import EventDecoder
from tamis.broker.log.marks import FIRST, SYNCED, TEMPORARY, DamagedMark, read_mark
from tamis.broker.log.sealed_segment import (
    IDS_SUFFIX,
    NAME,
    DamagedSegment,
    RowGroups,
    SealedSegment,
    ids_name,
)

LogFile = ActiveFile | SealedSegment

_ACTIVE_NAME = re.compile(r"(\d{20})" + re.escape(SUFFIX))


@dataclass
class FoundLog:
    """A log as it was found."""

    files: list[LogFile] = field(default_factory=list)  # in the order of their offsets
    damage: list[Damage] = field(default_factory=list)
    leftovers: list[Path] = field(default_factory=list)  # files that do not count any more
    first_offset: int = 0
    next_offset: int = 0
    after: int = 0  # where what counts ends; nothing between it and `next_offset` does
    synced: int = 0  # what is known to be safe; what was found beyond it has to be synced


class _Part(NamedTuple):
    """A file with its place in the log; a segment that cannot be opened is its damage."""

    after: int  # where what is before it ends
    content: LogFile | Damage

    @property
    def end(self) -> int:
        return self.content.end


def find_log(disk: Disk, folder: Path, decoder: EventDecoder, groups: RowGroups) -> FoundLog:
    """Find the files of a log, and what is wrong with them."""
    log = FoundLog()
    names = sorted(disk.names(folder))
    log.leftovers = [folder / name for name in names if name.endswith(TEMPORARY)]
    first = _mark(disk, folder, FIRST, "where the log begins", log)
    marked = _mark(disk, folder, SYNCED, "whether the end of the log is complete", log)
    parts = _segments(disk, folder, names, first or 0, groups, log)
    parts = _active_files(disk, folder, names, parts, decoder, log)
    needed = {ids_name(p.after, p.end) for p in parts}
    log.leftovers += [
        folder / name for name in names if name.endswith(IDS_SUFFIX) and name not in needed
    ]
    if first is None:  # nobody knows better than the files
        first = min((part.after for part in parts), default=0)
    log.first_offset = first
    _put_together(sorted(parts, key=lambda part: part.content.first), log)
    _look_at_end(marked or 0, log)
    return log


def _mark(disk: Disk, folder: Path, name: str, what: str, log: FoundLog) -> int | None:
    """The number of a mark, 0 if there is none; None if it is damaged, which is said."""
    try:
        return read_mark(disk, folder, name) or 0
    except DamagedMark:
        log.damage.append(Damage(name, 0, 0, f"its checksum is wrong, so it is not known {what}"))
        return None


def _segments(
    disk: Disk, folder: Path, names: list[str], first_offset: int, groups: RowGroups, log: FoundLog
) -> list[_Part]:
    parts = []
    for name in names:
        found = NAME.fullmatch(name)
        if found is None:
            continue
        path, first, end = folder / name, int(found[1]), int(found[2])
        if end <= first_offset:
            log.leftovers.append(path)  # expired
            continue
        try:
            parts.append(_Part(first, SealedSegment(disk, path, groups)))
        except DamagedSegment as error:
            parts.append(_Part(first, Damage(name, first, end, str(error))))
    return parts


def _active_files(
    disk: Disk, folder: Path, names: list[str], segments: list[_Part], decoder: EventDecoder,
    log: FoundLog,
) -> list[_Part]:  # fmt: skip
    """All parts: the files of frames that no segment has replaced, and the segments.

    A segment that cannot be opened is not needed if what it was made of is still there.
    """
    parts = {part.after: part for part in segments}
    for name in names:
        found = _ACTIVE_NAME.fullmatch(name)
        if found is None:
            continue
        first = int(found[1])
        sealed = [part for part in segments if part.after <= first < part.end]
        if any(isinstance(part.content, SealedSegment) for part in sealed):
            log.leftovers.append(folder / name)
            continue
        file = ActiveFile.recover(disk, folder / name, first, decoder)
        for part in sealed:
            if isinstance(part.content, Damage) and part.after in parts:
                log.leftovers.append(folder / part.content.file)
                del parts[part.after]
        parts[first] = _Part(file.after, file)
    return list(parts.values())


def _put_together(parts: list[_Part], log: FoundLog) -> None:
    """Walk through the parts: each says where the one before it ends."""
    position = log.first_offset
    for after, content in parts:
        while log.files and log.files[-1].end > after:  # what could not be synced
            position = after
            if not _cut(log.files[-1], after):
                break
            log.leftovers.append(log.files.pop().path)
        before = log.files[-1] if log.files else None
        if after > position:
            log.damage.append(_missing(before, position, after))
        position = max(position, content.end)
        if isinstance(content, Damage):
            log.damage.append(content)
            continue
        log.damage += content.damage
        log.files.append(content)
    log.after = log.next_offset = position
    log.leftovers += [file.path for file in log.files if _is_unneeded(file, log)]
    log.files = [file for file in log.files if not _is_unneeded(file, log)]
    if log.files and log.files[-1].first == position:
        log.next_offset += 1  # the next file cannot have the same name


def _is_unneeded(file: LogFile, log: FoundLog) -> bool:
    """Whether a file has expired, or neither has records nor says that others do not count."""
    if file.end <= log.first_offset:
        return True
    return isinstance(file, ActiveFile) and file.after == file.first == file.end


def _cut(file: LogFile, end: int) -> bool:
    """Leave out the records of a file from an offset on; returns whether none is left."""
    if isinstance(file, ActiveFile):
        file.cut(end)
    return file.first >= end


def _missing(before: LogFile | None, first: int, end: int) -> Damage:
    if not isinstance(before, ActiveFile):
        return Damage("a file", first, end, "it is missing")
    torn = f", and {before.torn:,} bytes after them are not a whole frame" if before.torn else ""
    before.is_damaged = True
    return Damage(before.path.name, first, end, f"it ends at offset {first}{torn}")


def _look_at_end(marked: int, log: FoundLog) -> None:
    last = log.files[-1] if log.files else None
    end = log.next_offset
    if marked > end:
        log.damage.append(_missing(last, end, marked))
        log.after = log.next_offset = marked
    elif isinstance(last, ActiveFile) and last.torn:
        reason = f"{last.torn:,} bytes at its end are not a whole frame: it was being written"
        log.damage.append(Damage(last.path.name, end, end, reason))
    log.synced = min(marked, end)
