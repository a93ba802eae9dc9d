"""A program that matches in every way and says what it found: as JSON, in its last line.

Usage: python everything.py CONF FOLDER, where CONF is a JSON object of Spark's settings. What it is
given comes as JSON on the standard input: the events, the subscriptions, and changes of them.
"""

import json
import sys
from pathlib import Path

TYPES = "id bigint, symbol string, price double, volume bigint"


def main(conf: dict[str, str], folder: Path) -> dict[str, object]:
    from tamis.spark import MatchJob, compact, match, match_stream, profile, spark_session

    events, subscriptions, changes = json.load(sys.stdin)
    spark = spark_session(conf=conf)
    frame = spark.createDataFrame([tuple(event) for event in events], TYPES).repartition(4)
    table = spark.createDataFrame([tuple(one) for one in subscriptions], "id string, filter string")
    said: dict[str, object] = {"kind": type(spark).__module__}
    for mode in ("whole", "sharded"):
        job = MatchJob(frame, table, mode=mode)
        said[mode] = sorted(map(list, job.matches.collect()))
        said[f"{mode} letters"] = job.dead_letters.count()
        said[f"{mode} counts"] = sorted(
            map(list, MatchJob(frame, table, mode=mode, output="counts").matches.collect())
        )
    said["profile"] = profile(frame).events
    smaller = compact(table, frame.drop("id"))
    restored = smaller.restore(match(frame, smaller.subscriptions), frame)
    said["restored"] = sorted(map(list, restored.collect()))
    said["duplicates"] = smaller.report.duplicates
    smaller.release()

    (folder / "events").mkdir()
    (folder / "changes").mkdir()
    half = len(events) // 2
    names = ("id", "symbol", "price", "volume")
    for number, rows in enumerate((events[:half], events[half:])):
        lines = [json.dumps(dict(zip(names, row, strict=True))) + "\n" for row in rows]
        (folder / f"events/{number}.json").write_text("".join(lines))
        given = subscriptions if number == 0 else changes
        lines = [json.dumps({"id": one, "filter": text}) + "\n" for one, text in given]
        (folder / f"changes/{number}.jsonl").write_text("".join(lines))
        stream = spark.readStream.schema(TYPES).json(str(folder / "events"))
        query = match_stream(
            stream,
            folder / "changes",
            folder / "out",
            checkpoint=folder / "checkpoint",
            trigger="available now",
        )
        query.awaitTermination()
    found = spark.read.parquet(str(folder / "out/matches")).select("event_id", "subscription")
    said["stream"] = sorted(map(list, found.collect()))
    spark.stop()
    return said


if __name__ == "__main__":
    answer = main(json.loads(sys.argv[1]), Path(sys.argv[2]))
    print("said " + json.dumps(answer))  # noqa: T201 - for whoever started it
