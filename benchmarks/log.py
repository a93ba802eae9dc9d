"""How fast a topic's log is: against SQLite as the log, and Arrow's files as segments.

    python benchmarks/log.py [--events N] [--rounds R] [--folder DIR]

The events are stock quotes as JSON texts. The first table publishes them in batches of several
sizes, each batch synced: frames, and a table of SQLite in WAL mode with full syncs. The second one
reads them back as columns for matching, and as records. Rates are events per second of processor
time, which the sync does not take; the first table has elapsed time as well. Ways are measured in
turn, round by round, and the median counts.
"""

import argparse
import json
import shutil
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import msgspec
import pyarrow as pa

from tamis.broker.log.active_file import ActiveFile
from tamis.broker.log.disk import LocalDisk
from tamis.broker.log.event_decoder import EventDecoder
from tamis.broker.log.file_limits import LogOptions
from tamis.broker.log.frames import NewRecord
from tamis.broker.log.record_table import record_table
from tamis.broker.log.topic_log import TopicLog
from tamis.events.event_reader import EventReader
from tamis.workloads import workload

BATCHES = (1, 10, 100, 1_000, 10_000)
MOST_SYNCS = 100  # of one measurement
ID_BATCH = 100

Times = tuple[float, float]  # elapsed and of the processor
Work = Callable[[], object]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    arguments.add_argument("--events", type=int, default=200_000)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--folder", type=Path, default=None)
    options = arguments.parse_args()
    source = workload("stock")
    table = source.events(options.events)
    records = [
        NewRecord(n, f"event-{n:012d}", b"", json.dumps(row, default=str).encode())
        for n, row in enumerate(table.to_pylist())
    ]
    size = sum(len(record.body) for record in records) / len(records)
    print(f"{len(records):,} events of {size:.0f} bytes, {len(source.schema)} attributes\n")
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        decoder = EventDecoder(source.schema)
        appending(Path(folder), decoder, records, options.rounds)
        reading(Path(folder), decoder, records, options.rounds)


# --- writing


def appending(
    folder: Path, decoder: EventDecoder, records: Sequence[NewRecord], rounds: int
) -> None:
    print(
        "| batch | frames | frames, processor | SQLite | SQLite, processor | ratio of processor |"
    )
    print("|---|---|---|---|---|---|")
    for size in BATCHES:
        count = min(len(records), size * MOST_SYNCS)
        batches = [records[n : n + size] for n in range(0, count, size)]
        ways: dict[str, Work] = {
            "frames": partial(append_frames, folder / "frames", decoder, batches),
            "SQLite": partial(append_rows, folder / "rows.db", batches),
        }
        found = measured(ways, rounds)
        rates = {name: [count / seconds for seconds in times] for name, times in found.items()}
        (log, log_cpu), (sqlite, sqlite_cpu) = rates["frames"], rates["SQLite"]
        print(
            f"| {size:,} | {log:,.0f} | {log_cpu:,.0f} | {sqlite:,.0f} | {sqlite_cpu:,.0f} "
            f"| {log_cpu / sqlite_cpu:.1f} |",
            flush=True,
        )


def append_frames(
    folder: Path, decoder: EventDecoder, batches: Sequence[Sequence[NewRecord]]
) -> TopicLog:
    shutil.rmtree(folder, ignore_errors=True)
    log = TopicLog.open(LocalDisk(), folder, decoder.schema, options=LogOptions(10**9, 10**9))
    for batch in batches:
        log.append(batch)
        log.sync()
    return log


def append_rows(path: Path, batches: Sequence[Sequence[NewRecord]]) -> None:
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
        (path.parent / name).unlink(missing_ok=True)
    with sqlite3.connect(path, isolation_level=None) as database:
        database.execute("PRAGMA journal_mode = WAL")
        database.execute("PRAGMA synchronous = FULL")
        database.execute(
            "CREATE TABLE records (offset INTEGER PRIMARY KEY, time INTEGER, id TEXT, "
            "headers BLOB, body BLOB)"
        )
        for batch in batches:
            database.execute("BEGIN")
            database.executemany(
                "INSERT INTO records (time, id, headers, body) VALUES (?, ?, ?, ?)", batch
            )
            database.execute("COMMIT")
    database.close()


# --- reading


def reading(folder: Path, decoder: EventDecoder, records: Sequence[NewRecord], rounds: int) -> None:
    batches = [records[n : n + 1_000] for n in range(0, len(records), 1_000)]
    log = append_frames(folder / "frames", decoder, batches)
    append_rows(folder / "rows.db", batches)
    shutil.copytree(folder / "frames", folder / "sealed")
    options = LogOptions(1, 10**9)
    sealed = TopicLog.open(LocalDisk(), folder / "sealed", decoder.schema, options=options)
    start = time.process_time()
    while sealed.seal_if_due():
        pass
    sealing = len(records) / (time.process_time() - start)
    arrow = {name: write_arrow(folder / f"{name}.arrow", log, name) for name in ("zstd", "lz4")}
    reader = EventReader(decoder.schema)
    ways: dict[str, Work] = {
        "frames, JSON decoded": lambda: columns(log),
        "Parquet": lambda: columns(reopened(sealed, folder / "sealed", options)),
        **{f"Arrow, {name}": partial(arrow_columns, path) for name, path in arrow.items()},
        "SQLite, JSON decoded": lambda: sqlite_columns(folder / "rows.db", decoder),
        "JSON read one by one": lambda: [
            reader.row(msgspec.json.decode(one.body)) for one in records[: len(records) // 10]
        ],
        "records of frames": lambda: all_records(log),
        "records of Parquet": lambda: all_records(reopened(sealed, folder / "sealed", options)),
    }
    found = measured(ways, rounds)
    sizes = {
        "frames, JSON decoded": log.size, "Parquet": sealed.size,
        "SQLite, JSON decoded": (folder / "rows.db").stat().st_size,
        **{f"Arrow, {name}": path.stat().st_size for name, path in arrow.items()},
    }  # fmt: skip
    print("\n| read back | events per second of processor | bytes per event |\n|---|---|---|")
    for name, (_, cpu) in found.items():
        count = len(records) // 10 if name.endswith("one by one") else len(records)
        size = f"{sizes[name] / len(records):.0f}" if name in sizes else ""
        print(f"| {name} | {count / cpu:,.0f} | {size} |")
    print(f"\nsealing: {sealing:,.0f} events per second of processor")
    looking_up(log, sealed, records, rounds)
    opening(folder, decoder, rounds)


def reopened(log: TopicLog, folder: Path, options: LogOptions) -> TopicLog:
    """The same log with nothing in memory."""
    return TopicLog.open(LocalDisk(), folder, log.schema, options=LogOptions(options.segment_bytes))


def columns(log: TopicLog) -> int:
    found = at = 0
    while len((chunk := log.read(at, 16_384)).offsets):
        found += chunk.table.num_rows
        at = chunk.next_offset
    return found


def all_records(log: TopicLog) -> int:
    found = at = 0
    while len((chunk := log.read(at, 16_384)).offsets):
        found += len(chunk.records)
        at = chunk.next_offset
    return found


def write_arrow(path: Path, log: TopicLog, compression: str) -> Path:
    """The log as one file of Arrow, with the same columns and rows in a batch as a segment."""
    file = next(one for one in log._files if isinstance(one, ActiveFile))  # noqa: SLF001 - to compare
    rows = [one for frame in file.frames() for one in frame.records(range(frame.count))]
    options = pa.ipc.IpcWriteOptions(compression=compression)
    table = record_table(rows, file.decoder).table
    with pa.ipc.new_file(str(path), table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=16_384)
    return path


def arrow_columns(path: Path) -> int:
    """The attributes of all batches; those of the records are left where they are."""
    with pa.memory_map(str(path)) as source:
        names = pa.ipc.open_file(source).schema.names
        wanted = [n for n, name in enumerate(names) if name == "_offset" or name[0] != "_"]
        file = pa.ipc.open_file(source, options=pa.ipc.IpcReadOptions(included_fields=wanted))
        return sum(file.get_batch(n).num_rows for n in range(file.num_record_batches))


def sqlite_columns(path: Path, decoder: EventDecoder) -> int:
    found = 0
    with sqlite3.connect(path) as database:
        rows = database.execute("SELECT body FROM records ORDER BY offset")
        while bodies := [body for (body,) in rows.fetchmany(16_384)]:
            decoder.decode(b",".join(bodies), len(bodies), partial(list, bodies))
            found += len(bodies)
    database.close()
    return found


# --- ids, and the start


def looking_up(log: TopicLog, sealed: TopicLog, records: Sequence[NewRecord], rounds: int) -> None:
    new = [f"new-{n}" for n in range(ID_BATCH)]
    known = [record.id for record in records[:: max(1, len(records) // ID_BATCH)]][:ID_BATCH]
    for one in (log, sealed):
        one.find_ids(new)  # reads the index
    found = measured(
        {
            "not there, frames": lambda: [log.find_ids(new) for _ in range(20)],
            "not there, a segment": lambda: [sealed.find_ids(new) for _ in range(20)],
            "there, a segment": lambda: sealed.find_ids(known),
        },
        rounds,
    )
    print(f"\n| look up {ID_BATCH} ids | microseconds |\n|---|---|")
    for name, (_, cpu) in found.items():
        print(f"| {name} | {1e6 * cpu / (20 if name.startswith('not') else 1):,.0f} |")


def opening(folder: Path, decoder: EventDecoder, rounds: int) -> None:
    found = measured(
        {
            name: partial(TopicLog.open, LocalDisk(), folder / name, decoder.schema)
            for name in ("frames", "sealed")
        },
        rounds,
    )
    print("\n| open | milliseconds |\n|---|---|")
    for name, (_, cpu) in found.items():
        print(f"| {name} | {1e3 * cpu:,.1f} |")


def measured(ways: dict[str, Work], rounds: int) -> dict[str, Times]:
    """The medians of each way's times; ways take turns, so that all have the same weather."""
    times: dict[str, list[Times]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, work in ways.items():
            elapsed, cpu = time.perf_counter(), time.process_time()
            work()
            times[name].append((time.perf_counter() - elapsed, time.process_time() - cpu))
    return {
        name: (
            statistics.median(elapsed for elapsed, _ in found),
            statistics.median(cpu for _, cpu in found),
        )
        for name, found in times.items()
    }


if __name__ == "__main__":
    main()
