"""The log of a topic: every event once, in the order of arrival, safe before it is acknowledged.

A folder has the newest events in a file of frames (`active_file`), older ones in sealed segments
(`sealed_segment`), and two marks (`marks`). What holds:

* **Safe is safe.** What was appended before `sync` was called is found again once it has returned,
  whatever happens to the process or the power.
* **Only what is safe is read.** `read` and `offset_at` end at `synced_offset`.
* **An offset is given once.** After a failed sync, and after damage, offsets go on beyond those
  that somebody may have seen.
* **A failed call changes nothing**, with one exception: when `sync` fails, everything that was
  appended since the last one is gone, because nobody can say what of it is on the disk.
* **Damage is said.** `damage` has what was found when the log was opened, and what reading has
  found since. The intact rest is served, with gaps in the offsets.

Threads may do all of it at the same time.
"""

import errno
import logging
import threading
from bisect import bisect_right
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tamis.broker.log.active_file import ActiveFile
from tamis.broker.log.chunk import Chunk, no_events
from tamis.broker.log.damage import Damage
from tamis.broker.log.disk import Disk
from tamis.broker.log.event_decoder import EventDecoder
from tamis.broker.log.event_ids import IdRun, RecentIds, hashes_of
from tamis.broker.log.file_limits import LogLimits, LogOptions, due_files
from tamis.broker.log.frames import NewRecord
from tamis.broker.log.marks import SYNCED, write_first_mark, write_synced_mark
from tamis.broker.log.recovery import FoundLog, LogFile, find_log
from tamis.broker.log.sealed_segment import SealedSegment
from tamis.broker.log.segment_writer import seal
from tamis.schema import Schema

logger = logging.getLogger("tamis.broker")


class Expired(NamedTuple):
    """What was removed because it was too old or too much."""

    events: int
    bytes: int
    first_offset: int  # of what is left


class TopicLog:
    """The log of one topic, in a folder of its own."""

    def __init__(
        self, disk: Disk, folder: Path, decoder: EventDecoder, found: FoundLog, options: LogOptions
    ) -> None:
        self.damage = found.damage
        self._disk = disk
        self._folder = folder
        self._options = options
        self._decoder = decoder
        self._lock = threading.RLock()  # of what follows
        self._files: tuple[LogFile, ...] = tuple(found.files)
        self._active: ActiveFile | None = None  # the last one, if this process has made it
        self._first = found.first_offset
        self._next = self._synced = found.next_offset
        self._after = found.after  # where what counts ends, if no file is begun yet
        self._unsynced: list[ActiveFile] = []
        self._failed: list[tuple[int, int]] = []  # offsets whose sync has failed
        self._recent: RecentIds | None = None  # made when somebody first looks for an id
        self._syncing = threading.Lock()
        self._sealing = threading.Lock()

    @classmethod
    def open(
        cls, disk: Disk, folder: Path, schema: Schema, *, options: LogOptions | None = None,
        least_next_offset: int = 0,
    ) -> "TopicLog":  # fmt: skip
        """The log of a folder, which is made if it is not there.

        `least_next_offset` is an offset before which somebody has seen every one: new events get
        none below it, even if the files that knew are gone.
        """
        options = LogOptions() if options is None else options
        disk.make_folder(folder)
        decoder = EventDecoder(schema)
        found = find_log(disk, folder, decoder, options.row_groups)
        if found.next_offset < least_next_offset:
            reason = "the end of the log is missing"
            found.damage.append(Damage(folder.name, found.next_offset, least_next_offset, reason))
            found.after = found.next_offset = least_next_offset
        cls._make_safe(disk, folder, found)
        return cls(disk, folder, decoder, found, options)

    @staticmethod
    def _make_safe(disk: Disk, folder: Path, found: FoundLog) -> None:
        """Make safe what a killed process has left unsynced; then remove what is left over."""
        unsafe = [f for f in found.files if isinstance(f, ActiveFile) and f.end > found.synced]
        for file in unsafe:
            file.write_again(found.synced)
        if unsafe or found.leftovers:
            disk.sync_folder(folder)
        for path in found.leftovers:
            with suppress(FileNotFoundError):
                disk.remove(path)
        if found.synced < found.next_offset:
            write_synced_mark(disk, folder, found.next_offset)

    @property
    def first_offset(self) -> int:
        """The offset of the oldest event that has not expired."""
        return self._first

    @property
    def next_offset(self) -> int:
        """The offset that the next event gets."""
        return self._next

    @property
    def synced_offset(self) -> int:
        """Everything before it is safe."""
        return self._synced

    @property
    def schema(self) -> Schema:
        """The attributes with which events are read when they are appended."""
        return self._decoder.schema

    @property
    def size(self) -> int:
        """The bytes of all files with events."""
        return sum(file.size for file in self._files)

    # --- writing

    def append(self, records: Sequence[NewRecord]) -> int:
        """Write records at the end, as one frame; returns the offset of the first.

        They are safe, and can be read, after `sync`. An `OSError` leaves the log as it was.
        """
        with self._lock:
            first = self._next
            if not records:
                return first
            active = self._active
            if active is None or self._options.is_full([active]):
                active = ActiveFile.begin(
                    self._disk, self._folder, first, min(self._after, first), self._decoder
                )
                # One that stayed empty, on a full disk, has the same name and is replaced.
                path = active.path
                self._files = (*(file for file in self._files if file.path != path), active)
                self._unsynced = [*(file for file in self._unsynced if file.path != path), active]
                self._active = active
            active.append(records)
            if active not in self._unsynced:
                self._unsynced.append(active)
            self._next = self._after = active.end
            if self._recent is not None:
                self._recent.add(first, [record.id for record in records])
            return first

    def sync(self, end: int | None = None) -> None:
        """Wait until everything that was appended is safe.

        With `end`, it also fails if the event just before this offset was given up because the sync
        of another thread has failed.
        """
        with self._syncing:
            with self._lock:
                waiting, goal = tuple(self._unsynced), self._next
                if end is not None and any(first < end <= last for first, last in self._failed):
                    raise OSError(errno.EIO, "an earlier sync of the log failed", str(self._folder))
            if not waiting:
                return
            try:
                for file in waiting:
                    self._disk.sync(file.path)
                if any(file.first >= self._synced for file in waiting):  # new names
                    self._disk.sync_folder(self._folder)
            except OSError:
                self._give_up()
                raise
            with self._lock:
                self._synced = goal
                self._unsynced = [file for file in self._unsynced if file.end > goal]
            write_synced_mark(self._disk, self._folder, goal)

    def _give_up(self) -> None:
        """Forget what was appended since the last sync; its offsets are not used again."""
        with self._lock:
            self._failed.append((self._synced, self._next))
            for file in self._unsynced:
                file.cut(self._synced)
            self._files = tuple(file for file in self._files if file.end > file.first)
            self._unsynced, self._active = [], None
            # Nobody may read on beyond them until a new file says that they do not count.
            self._after = self._synced
            if self._recent is not None:
                self._recent.keep_between(0, self._after)

    def widen(self, schema: Schema) -> None:
        """Take events with more attributes from now on; older ones do not have them."""
        with self._lock:
            if schema != self._decoder.schema:
                self._decoder = EventDecoder(schema)
                self._active = None  # all events of a file have one schema

    # --- reading

    def read(self, start: int, most_events: int = 10_000, most_bytes: int = 8_000_000) -> Chunk:
        """Some events from an offset on, at least one if there is one; `next_offset` goes on.

        Offsets of events that have expired, or are lost, are left out. At the end of what is safe
        the chunk is empty, and its `next_offset` is `synced_offset`.
        """
        with self._lock:
            files, stop = self._files, self._synced
            start = max(start, self._first)
        at = max(0, bisect_right(files, start, key=lambda file: file.first) - 1)
        for file in files[at:]:
            if start >= stop:
                break
            if file.end <= start:
                continue
            chunk = self._read_file(file, start, min(stop, file.end), most_events, most_bytes)
            if len(chunk.offsets):
                return chunk
            start = chunk.next_offset
        return no_events(max(start, stop))

    def _read_file(
        self, file: LogFile, start: int, stop: int, most_events: int, most_bytes: int
    ) -> Chunk:
        try:
            chunk = file.read(max(start, file.first), stop, most_events, most_bytes)
        except FileNotFoundError:
            with self._lock:
                if file in self._files:
                    raise
            return self._read_again(start, stop, most_events, most_bytes)
        self._take_damage(file)
        return chunk

    def _read_again(self, start: int, stop: int, most_events: int, most_bytes: int) -> Chunk:
        """Read what was in a file that was sealed or has expired meanwhile."""
        chunk = self.read(start, most_events, most_bytes)
        return chunk if len(chunk.offsets) else no_events(max(stop, chunk.next_offset))

    def _take_damage(self, file: LogFile) -> None:
        if not file.damage:
            return
        with self._lock:
            new = [one for one in file.damage if one not in self.damage]
            self.damage += new
        for one in new:
            logger.error("%s: %s", self._folder.name, one)

    def offset_at(self, time: int) -> int:
        """The first offset whose event came at a time or later, else `synced_offset`."""
        with self._lock:
            files, stop = self._files, self._synced
        for file in files:
            if file.last_time >= time:
                found = file.offset_at(time)
                if found is not None:
                    return min(max(found, self._first), stop)
        return stop

    def find_ids(self, ids: Sequence[str]) -> dict[str, int]:
        """The offsets of those ids that the log has: of all events that have not expired.

        An offset from `synced_offset` on is not safe yet.
        """
        with self._lock:
            recent = self._recent_ids()
            latest = {one: recent.latest(one) for one in ids}
            found = {one: offset for one, offset in latest.items() if offset is not None}
            runs: list[IdRun] = list(recent.runs())
            segments = [file for file in self._files if isinstance(file, SealedSegment)]
        others = [one for one in dict.fromkeys(ids) if one and one not in found]
        if not others:
            return found
        hashes = hashes_of(others)
        for segment in segments:
            runs.append(segment.ids())
            self._take_damage(segment)
        at: list[tuple[int, int]] = [
            pair for run in runs for pair in run.candidates(hashes) if pair[1] >= self._first
        ]
        ids_at = self._ids_at(sorted({offset for _, offset in at}))
        for number, offset in sorted(at):
            if ids_at.get(offset) == others[number]:  # the hash alone proves nothing
                found.setdefault(others[number], offset)
        return found

    def _recent_ids(self) -> RecentIds:
        if self._recent is None:
            self._recent = RecentIds()
            for file in self._files:
                if isinstance(file, ActiveFile):
                    for records in file.frames():
                        self._recent.add(records.first, records.ids())
        return self._recent

    def _ids_at(self, offsets: Sequence[int]) -> dict[int, str]:
        """The ids of events, synced or not; those that cannot be read are left out."""
        found: dict[int, str] = {}
        with self._lock:
            files = self._files
        for file in files:
            inside = [offset for offset in offsets if file.first <= offset < file.end]
            try:
                found.update(file.ids_at(inside))
            except FileNotFoundError:
                if file in self._files:
                    raise
                return self._ids_at(offsets)  # it was sealed meanwhile
            self._take_damage(file)
        return found

    # --- sealing and expiring

    def seal_if_due(self, now: int | None = None) -> bool:
        """Seal the oldest files of frames if they are large or many enough, or old.

        Returns whether some were. `now` is the time in microseconds; without it, no file is old.
        Meanwhile, events can be appended and read.
        """
        with self._sealing:
            with self._lock:
                if self._active is not None and self._options.is_due([self._active], now):
                    self._active = None
                files = due_files(self._files, self._closed_end(), now, self._options)
            if not files:
                return False
            first, end = files[0].after, files[-1].end
            path = seal(self._disk, self._folder, files, first, end)
            segment = SealedSegment(self._disk, path, self._options.row_groups)
            with self._lock:
                if files[0] not in self._files:  # expired meanwhile
                    with suppress(FileNotFoundError):
                        self._disk.remove(path)
                    return False
                kept = [file for file in self._files if file not in files]
                self._files = tuple(sorted([*kept, segment], key=lambda file: file.first))
                if self._recent is not None:
                    self._recent.keep_between(end, self._next)
            self._leave(files)
            return True

    def _closed_end(self) -> int:
        """The offset before which no file changes any more."""
        return self._synced if self._active is None else min(self._synced, self._active.first)

    def _leave(self, files: Sequence[LogFile]) -> None:
        """Remove files that do not count any more; those that were damaged are put aside."""
        for file in files:
            with suppress(OSError):  # what cannot be removed now is left over when it is opened
                if isinstance(file, ActiveFile) and file.is_damaged:
                    self._disk.rename(file.path, file.path.with_name(f"{file.path.name}.damaged"))
                    continue
                self._disk.remove(file.path)
                if isinstance(file, SealedSegment):
                    self._disk.remove(file.ids_path)

    def expire(
        self, now: int, max_age: float | None = None, max_bytes: int | None = None,
        max_events: int | None = None,
    ) -> Expired:  # fmt: skip
        """Remove the oldest files of which every event is beyond one of the limits.

        `now` is in microseconds, `max_age` in seconds. An event that is within all limits stays,
        and so does everything in one file with it: up to one and a half times as much as the limits
        say. A call that fails may be found done when the log is opened again.
        """
        with self._lock:
            limits = LogLimits(now, max_age, max_bytes, max_events)
            if self._active is not None and limits.are_near(self._active):
                self._active = None
            # What is not safe yet may still be given up; it makes no other event expire.
            unsafe = self._next - self._synced
            gone = limits.files_beyond(self._files, self._closed_end(), unsafe)
            if not gone:
                return Expired(0, 0, self._first)
            first = gone[-1].end
            removed = Expired(sum(f.events for f in gone), sum(f.size for f in gone), first)
            write_first_mark(self._disk, self._folder, first)
            self._first = first
            self._files = self._files[len(gone) :]
            if self._recent is not None:
                self._recent.keep_between(first, self._next)
        self._leave(gone)
        return removed

    def close(self) -> None:
        """Sync what was appended, and write down that it is all."""
        self.sync()
        with suppress(OSError):
            write_synced_mark(self._disk, self._folder, self._synced)
            self._disk.sync(self._folder / SYNCED)

    def remove(self) -> None:
        """Remove all files of the log: its topic was deleted."""
        with self._lock:
            for name in self._disk.names(self._folder):
                self._disk.remove(self._folder / name)
            self._disk.sync_folder(self._folder)
            self._files, self._active, self._unsynced = (), None, []
