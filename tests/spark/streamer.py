"""A program that matches a stream of files until all is done: `test_killing` kills it.

Usage: python streamer.py ROOT, where ROOT has the folders events and changes.
"""

import sys
from pathlib import Path


def main(root: Path) -> None:
    from tamis.spark import match_stream, spark_session

    spark = spark_session(
        "tamis-streamer",
        master="local[2]",
        conf={"spark.ui.showConsoleProgress": "false", "spark.sql.shuffle.partitions": "2"},
    )
    events = (
        spark.readStream.schema("id bigint, kind string, value double")
        .option("maxFilesPerTrigger", 1)
        .json(str(root / "events"))
    )
    print("started", flush=True)  # noqa: T201 - the test waits for it
    query = match_stream(
        events,
        str(root / "changes"),
        str(root / "out"),
        checkpoint=root / "checkpoint",
        trigger="available now",
    )
    query.awaitTermination()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
