"""A program that matches in every way and says what it found, for a session elsewhere.

It is given the events, the subscriptions, changes of them, and the mode of the stream.
"""

import json
from pathlib import Path

import pyarrow.parquet as pq

TYPES = "id bigint, symbol string, price double, volume bigint"


def main(spark, given):
    from tamis.spark import MatchJob, compact, match, profile
    from tamis.spark.batch.output_folder import write_job

    events, subscriptions, *_ = given
    folder = Path.cwd()
    frame = spark.createDataFrame([tuple(event) for event in events], TYPES).repartition(4)
    table = spark.createDataFrame([tuple(one) for one in subscriptions], "id string, filter string")
    said = {"kind": type(spark).__module__}
    for mode in ("whole", "sharded"):
        job = MatchJob(frame, table, mode=mode)
        said[mode] = sorted(map(list, job.matches.collect()))
        summary = write_job(job, str(folder / mode))
        written = pq.read_table(folder / mode / "matches").to_pylist()
        said[f"{mode} written"] = sorted(list(row.values()) for row in written)
        said[f"{mode} counted"] = [summary.matches, summary.bad_subscriptions]
    counted = MatchJob(frame, table, mode="sharded", output="counts").matches
    said["counts"] = sorted(map(list, counted.collect()))
    if "connect" not in said["kind"]:  # which runs in one process, and tries no task again
        said["tried again"] = tried_again(match(frame, table), folder)
    said["profile"] = profile(frame).events
    smaller = compact(table, frame.drop("id"))
    restored = smaller.restore(match(frame, smaller.subscriptions), frame)
    said["restored"] = sorted(map(list, restored.collect()))
    said["duplicates"] = smaller.report.duplicates
    smaller.release()

    said["stream"] = streamed(spark, given, folder)
    return said


def streamed(spark, given, folder):
    """The matches of a stream whose subscriptions change half-way.

    None if this machine is too slow for it: Connect starts a process for each stream, and gives it
    ten seconds to load PySpark.
    """
    from tamis.spark import match_stream
    from tamis.spark.stream.query_start import LATE

    events, subscriptions, changes, mode = given
    (folder / "events").mkdir()
    (folder / "changes").mkdir()
    half = len(events) // 2
    names = ("id", "symbol", "price", "volume")
    for number, rows in enumerate((events[:half], events[half:])):
        lines = [json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows]
        (folder / f"events/{number}.json").write_text("".join(lines))
        held = subscriptions if number == 0 else changes
        lines = [json.dumps({"id": one, "filter": text}) + "\n" for one, text in held]
        (folder / f"changes/{number}.jsonl").write_text("".join(lines))
        stream = spark.readStream.schema(TYPES).json(str(folder / "events"))
        try:
            query = match_stream(
                stream,
                folder / "changes",
                folder / "out",
                checkpoint=folder / "checkpoint",
                trigger="available now",
                mode=mode,
            )
        except Exception as error:
            if LATE in str(error):
                return None
            raise
        query.awaitTermination()
    found = spark.read.parquet(str(folder / "out/matches")).select("event_id", "subscription")
    return sorted(map(list, found.collect()))


def tried_again(matches, folder):
    """What is in the files of a job whose tasks all fail once, after they have written."""
    from tamis.spark.parquet.job import write_matches
    from tamis.spark.parquet.worker import plain_matches

    def failing_at_first(batches):
        from pyspark import TaskContext

        yield from plain_matches(batches)
        if TaskContext.get().attemptNumber() == 0:
            raise OSError("the disk has gone")

    write_matches(matches, failing_at_first, "pairs", matches.schema, f"file:{folder}", "again")
    found = matches.sparkSession.read.parquet(str(folder / "again"))
    return sorted(map(list, found.collect()))
