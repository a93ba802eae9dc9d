"""Random runs of a log on a simulated disk, and the oracle that watches them.

The oracle knows what was appended, what a sync has confirmed, and what was ever read. After each
restart it reads the whole log and compares.
"""

import json
from pathlib import Path
from random import Random

from tamis import Schema
from tamis.broker.log.file_limits import LogOptions
from tamis.broker.log.frames import NewRecord
from tamis.broker.log.sealed_segment import RowGroups
from tamis.broker.log.topic_log import TopicLog
from tamis.broker.records import Record
from tamis.broker.simulation.simulated_disk import SimulatedDisk, Stopped

FOLDER = Path("/topics/quotes")
SCHEMAS = [
    Schema({"n": "int"}),
    Schema({"n": "int", "text": "string"}),
    Schema({"n": "int", "text": "string", "price": "double"}),
]
SECOND = 1_000_000


class Violation(AssertionError):
    """The log has broken a promise."""


def demand(condition, *what):
    if not condition:
        raise Violation(*what)


class LogRun:
    """One run: steps of a log, ends of its process, and what the oracle knows."""

    def __init__(self, seed, open_log=TopicLog.open, disk_type=SimulatedDisk):
        self.random = Random(seed)  # noqa: S311 - a run is to be repeated
        self.disk = disk_type(self.random)
        self.open_log = open_log
        self.schema = 0  # index
        self.now = 0
        self.first = 0  # before it, everything has expired
        self.given = {}  # offset: every (record, schema) that was appended there
        self.safe = {}  # offset: the record that must be there
        self.absent = set()  # offsets without an event, although a later one was read
        self.appended = []  # offsets that wait for a sync
        self.first_possible = 0  # where an expiry that was interrupted may have led to
        self.lost_schema = False
        self.number = 0
        self.log = None

    def play(self, steps=40):
        self.start()
        for _ in range(steps):
            if self.random.random() < 0.12:
                self.disk.stop_after(self.random.randint(1, 8))
            self.disk.failing_syncs = 0.4 if self.random.random() < 0.1 else 0.0
            is_full = self.random.random() < 0.1
            self.disk.capacity = self.disk.used + self.random.randint(0, 150) if is_full else None
            step = self.random.choices(
                (self.publish, self.append, self.seal, self.expire, self.widen, self.look,
                 self.stop),
                (10, 4, 3, 1, 0.5, 2, 1),
            )[0]  # fmt: skip
            try:
                step()
            except Stopped:
                self.restart()
            except OSError:
                pass  # the next step finds the log in order
        self.restart()
        return self

    # --- steps

    def start(self):
        options = LogOptions(segment_events=12, most_active_files=4, row_groups=RowGroups(100_000))
        self.log = self.open_log(self.disk, FOLDER, SCHEMAS[self.schema], options=options)

    def stop(self):
        self.confirm(self.log.close)
        self.restart()

    def restart(self):
        self.appended = []
        self.disk.failing_syncs, self.disk.capacity = 0.0, None
        while True:
            self.disk.restart(power_failed=self.random.random() < 0.6)
            if self.random.random() < 0.15:
                self.disk.stop_after(self.random.randint(1, 6))
            try:
                self.start()
            except Stopped:
                continue
            break
        self.disk.restart(power_failed=False)
        self.look()

    def publish(self):
        self.append()
        self.confirm()

    def append(self):
        new = [self.new_record() for _ in range(self.random.randint(1, 5))]
        first = self.log.next_offset
        for offset, one in enumerate(new, first):  # it may be there even if the call fails
            self.given.setdefault(offset, []).append((Record(offset, *one), self.schema))
        demand(self.log.append(new) == first, "append gave another offset")
        self.appended += range(first, first + len(new))

    def confirm(self, sync=None):
        offsets, self.appended = self.appended, []
        if sync is None:
            self.log.sync(offsets[-1] + 1)
        else:
            sync()
        for offset in offsets:
            self.safe[offset] = self.given[offset][-1][0]

    def new_record(self):
        self.number += 1
        self.now += self.random.randint(0, SECOND)
        event = {"n": self.number, "text": "x" * self.random.randint(0, 30), "price": 0.5}
        # Some ids come again; some are not given.
        name = self.random.choice(("", f"id{self.number}", f"id{self.random.randint(0, 50)}"))
        headers = b'{"a": "b"}' if self.random.random() < 0.2 else b""
        return NewRecord(self.now, name, headers, json.dumps(event).encode())

    def seal(self):
        self.log.seal_if_due(self.now + self.random.choice((0, 4000 * SECOND)))

    def expire(self):
        most = self.random.randint(10, 60)
        before = len(self.everything())
        # A call that fails may have written the mark, which counts after the next restart.
        before_call, self.first_possible = self.first_possible, self.log.next_offset
        gone = self.log.expire(self.now, max_events=most)
        demand(before - gone.events >= min(before, most), "too much has expired")
        self.first_possible, self.first = max(before_call, gone.first_offset), gone.first_offset

    def widen(self):
        self.schema = min(self.schema + 1, len(SCHEMAS) - 1)
        self.log.widen(SCHEMAS[self.schema])

    # --- the oracle

    def everything(self):
        return [record for record, _ in self.rows()]

    def rows(self):
        at = 0
        while True:
            chunk = self.log.read(at, self.random.choice((1, 7, 1000)))
            if not len(chunk.offsets):
                demand(chunk.next_offset >= self.log.synced_offset, "reading ends early")
                return
            rows = chunk.table.to_pylist()
            demand(len(rows) == len(chunk.offsets), "the columns have other rows")
            yield from zip(chunk.records, rows, strict=True)
            demand(chunk.next_offset > chunk.offsets[-1] >= at, "reading does not go on")
            at = chunk.next_offset

    def look(self):
        """Compare what can be read with what must be, and what may be."""
        log, found = self.log, {}
        for record, row in self.rows():
            given = [schema for one, schema in self.given.get(record.offset, ()) if one == record]
            demand(given, "nobody has published", record)
            demand(record.offset not in found, "it is there twice", record)
            demand([*found, -1][-1] < record.offset or not found, "not in order", record)
            found[record.offset] = record
            self.compare(record, row, given)
        demand(self.first <= log.first_offset, "what has expired is back", log.first_offset)
        demand(
            log.first_offset <= max(self.first, self.first_possible),
            "what has not expired is gone", log.first_offset,
        )  # fmt: skip
        self.first = log.first_offset
        self.safe = {at: one for at, one in self.safe.items() if at >= self.first}
        for offset, record in self.safe.items():
            demand(found.get(offset) == record, "lost", record, log.damage)
            demand(offset < log.next_offset, "an offset will be given again", offset)
        for damage in log.damage:
            lost = set(range(damage.first, damage.end))
            demand(not lost & set(self.safe), "damage that is none", damage)
        demand(not self.absent & found.keys(), "it came after others were read", log.damage)
        self.absent = set(range(self.first, log.synced_offset)) - found.keys()
        # What a subscriber could have read must stay, even if nobody has confirmed it.
        self.safe |= found
        self.look_for_ids(found)

    def compare(self, record, row, schemas):
        event = json.loads(record.body)
        row.pop("_offset")
        # A file may have lost its schema, and be sealed with that of the log.
        self.lost_schema |= any("its schema" in damage.reason for damage in self.log.damage)
        if self.lost_schema:
            schemas = [*schemas, *range(self.schema + 1)]
        expected = [{name: event[name] for name in SCHEMAS[n]} for n in schemas]
        demand(row in expected, "other values", record, row)

    def look_for_ids(self, found):
        ids = sorted({record.id for record in found.values()} | {f"id{n}" for n in range(50)})
        offsets = {}
        for offset, record in found.items():
            if record.id:
                offsets.setdefault(record.id, offset)
        answer = self.log.find_ids(ids)
        waiting = {one: at for one, at in answer.items() if at >= self.log.synced_offset}
        expected = {**waiting, **offsets}
        demand(answer.keys() == expected.keys(), "ids", answer, expected)
        for one, at in answer.items():
            demand(at in waiting.values() or found[at].id == one, "another id", one, at)
