"""Whether ``.json`` files have one object per line, or one document over several lines.

Spark can read both, but does not find out which it is. If it takes a file of lines for a document,
it reads the first line and silently drops the others; so every file is checked.
"""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from tamis.errors import FileError
from tamis.spark.session.failures import shown_path

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, DataFrameReader


def are_documents(reader: "DataFrameReader", path: str, name: str) -> bool:
    """Whether each of the files is one document; files of both kinds are an error."""
    kinds = {row["document"]: row["file"] for row in _kinds(reader, path).collect()}
    if len(kinds) > 1:
        raise FileError(
            f"{name} has files with one object per line ({shown_path(kinds[False])}), others with "
            f"one document over several lines ({shown_path(kinds[True])}); read them separately, "
            "and name the former .jsonl"
        )
    if True not in kinds:
        return False
    text = reader.text(path, wholetext=True).selectExpr("_metadata.file_path AS file", "value")
    more = text.mapInArrow(_with_more, "file string").limit(1).collect()
    if more:
        raise FileError(
            f"{shown_path(more[0]['file'])} has several JSON values over several lines, expected "
            "an array of them, or a .jsonl file with one object per line"
        )
    return True


def _kinds(reader: "DataFrameReader", path: str) -> "DataFrame":
    """For each kind, the name of one such file.

    The first line decides: in a document it opens a bracket or a brace and does not close it.
    """
    from pyspark.sql import functions as f

    lines = reader.text(path).selectExpr(
        "_metadata.file_path AS file",
        "_metadata.file_block_start AS start",
        "monotonically_increasing_id() AS place",
        "trim(BOTH ' \\t\\r\\n\\ufeff' FROM value) AS value",
    )
    # The rows of one part of a file are in order; the parts are not.
    opening = lines.filter("start = 0 AND value <> ''").groupBy("file")
    first = opening.agg(f.expr("min_by(value, place)").alias("value"))
    kinds = first.selectExpr(
        "file",
        "startswith(value, '{') AND json_object_keys(value) IS NULL"
        " OR startswith(value, '[') AND json_array_length(value) IS NULL AS document",
    )
    return kinds.groupBy("document").agg(f.min("file").alias("file"))


def _with_more(batches: Iterator[Any]) -> Iterator[Any]:
    """The names of files in which something follows the first value."""
    import pyarrow as pa

    decoder = json.JSONDecoder()
    for batch in batches:
        found = []
        for file, text in zip(batch["file"].to_pylist(), batch["value"].to_pylist(), strict=True):
            whole = text.strip("\ufeff \t\r\n")
            try:
                _, end = decoder.raw_decode(whole)
            except (ValueError, RecursionError):
                continue  # one row that cannot be read: nothing of it is dropped
            if whole[end:].strip():
                found.append(file)
        yield pa.record_batch({"file": pa.array(found, pa.string())})
