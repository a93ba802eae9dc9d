"""Files of events and subscriptions, read by Spark's own readers.

The format is given by the extension: ``.parquet .json .jsonl .csv .xml``, the text formats also
compressed (``.jsonl.gz``). A path is a file, a folder of files of one format, a pattern
(``day=*/*.csv``) or an address (``hdfs://``, ``s3a://``), each as Spark reads them; ``table:NAME``
is a table of Spark's catalog.

**Rows that cannot be read** are rows: frames of text formats have a column ``_corrupt_record`` with
the text of such a row, which is null in all other rows.

**Types**, if no schema is given, are those that Spark infers, except for texts that look like a
time. Spark takes ``12:00`` for a timestamp, of today. Here only a date and a time to the second
(``2024-05-01T12:00:00``, or with a space; fractions and a zone may follow) become a timestamp, in
all text formats. A date alone becomes a date in CSV and XML, and stays a string in JSON.
"""

import glob
import re
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import unquote

from tamis.errors import FileError, OptionError, TamisError, choose, did_you_mean
from tamis.file_tables.input_files import (
    CODECS,
    CORRUPT,
    FORMATS,
    TABLE,
    extension,
    format_of,
)
from tamis.spark.files.json_documents import are_documents
from tamis.spark.files.known_columns import with_known
from tamis.spark.files.schema_drift import is_drift, merged_schema
from tamis.spark.session.failures import spark_errors
from tamis.spark.session.given_session import prepare

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

_ID_TYPES = ("tinyint", "smallint", "int", "bigint", "string")
_TIMESTAMPS = "yyyy-MM-dd['T'][' ']HH:mm:ss[.SSSSSSSSS][.SSSSSS][.SSS][.SS][.S][XXX]"

# Options of a reader, unless the caller gives others.
_OPTIONS: dict[str, dict[str, Any]] = {
    "parquet": {},
    "json": {},
    "jsonl": {},
    # RFC 4180; bad rows are found only if all columns are read, and headers have to agree.
    "csv": {"header": True, "escape": '"', "columnPruning": False, "enforceSchema": False},
    "xml": {},
}
_INFERENCE: dict[str, dict[str, Any]] = {
    "json": {"inferTimestamp": True, "timestampFormat": _TIMESTAMPS},
    "jsonl": {"inferTimestamp": True, "timestampFormat": _TIMESTAMPS},
    "csv": {"inferSchema": True, "timestampFormat": _TIMESTAMPS},
    "xml": {"inferSchema": True, "timestampFormat": _TIMESTAMPS},
}


def read_events(
    spark: "SparkSession",
    path: str | Path,
    *,
    format: str | None = None,
    schema: "StructType | str | None" = None,
    options: Mapping[str, Any] | None = None,
) -> "DataFrame":
    """The events of files as a frame.

    `options` are those of Spark's reader. An event of an XML file is an element ``event``, or what
    ``{"rowTag": ...}`` says. A ``.json`` file has one object per line, or one array or object over
    several lines.
    """
    prepare(spark)
    with spark_errors():
        name = _table(path)
        if name is not None:
            return spark.read.table(name)
        source = _source(spark, path, format)
        plan = _plan(spark, source, schema, {"rowTag": "event"} | dict(options or {}))
        return _batch(spark, source, plan)


def read_event_stream(  # noqa: PLR0913 - all but two by name
    spark: "SparkSession",
    path: str | Path,
    *,
    format: str | None = None,
    schema: "StructType | str | None" = None,
    options: Mapping[str, Any] | None = None,
    known: "StructType | None" = None,
    max_files: int | None = None,
    max_bytes: int | None = None,
) -> "DataFrame":
    """The events of files, present and future ones, as a streaming frame.

    Without a `schema` it is inferred from the files that are there; `known` are columns that other
    files had or will have, and, for text, their types. `max_files` or `max_bytes` bound a
    micro-batch. If no format is given for a folder, files with unknown extensions are ignored: they
    may be about to be renamed.
    """
    if max_files is not None and max_bytes is not None:
        raise OptionError("a micro-batch is bounded by max_files or by max_bytes, not by both")
    bounds = {"maxFilesPerTrigger": max_files, "maxBytesPerTrigger": max_bytes}
    bounds = {key: value for key, value in bounds.items() if value is not None}
    with spark_errors():
        name = _table(path)
        if name is not None:
            return spark.readStream.options(**bounds).table(name)
        source = _source(spark, path, format, watch=True)
        if schema is None and not source.files:
            raise FileError(f"{path} has no files to infer columns from; pass schema")
        plan = _plan(spark, source, schema, {"rowTag": "event"} | dict(options or {}))
        if schema is None and known is not None:
            plan = plan._replace(schema=with_known(plan.schema, known, source.format))
        reader = spark.readStream.format(_reader_of(source.format))
        reader = reader.options(**plan.options, **bounds).schema(plan.schema)
        return reader.load(_as_pattern(source))


def has_files(spark: "SparkSession", path: str | Path) -> bool:
    """Whether a folder of events has a file that a stream would read; a table counts as one."""
    if _table(path) is not None:
        return True
    with spark_errors():
        listed = spark.read.format("binaryFile").load(_path_for_spark(str(path))).inputFiles()
    return any(extension(unquote(file))[1:] in FORMATS for file in listed)


def read_subscriptions(
    spark: "SparkSession",
    path: str | Path,
    format: str | None = None,
) -> "DataFrame":
    """The subscriptions of files as a frame with the columns ``id`` and ``filter``, and any others.

    Ids of a CSV file are integers if all of them are, else strings. A subscription of an XML file
    is an element ``subscription``. A row that cannot be read has no filter.
    """
    from pyspark.sql import functions as f

    with spark_errors():
        name = _table(path)
        if name is not None:
            frame = spark.read.table(name)
        else:
            source = _source(spark, path, format)
            options = {"rowTag": "subscription"}
            if source.format == "csv":
                options["multiLine"] = "true"  # filters are quoted, and some have several lines
            plan = _plan(spark, source, None, options)
            if source.format == "csv":
                plan = plan._replace(schema=_of_subscriptions(plan.schema))
            frame = _batch(spark, source, plan)
        _check_subscriptions(frame, str(path))
        if CORRUPT not in frame.columns:
            return frame
        whole = f.when(f.col(CORRUPT).isNull(), f.col("filter"))
        return frame.withColumn("filter", whole)


class _Source(NamedTuple):
    """Files to read."""

    name: str  # as the user names them
    path: str  # as Spark names them
    format: str
    files: list[str]  # each of them
    only: dict[str, str]  # an option for the reader: which files of a folder to read


class _ReadPlan(NamedTuple):
    """How to read files."""

    schema: "StructType"
    options: dict[str, Any]


def _table(path: str | Path) -> str | None:
    """The name of a table of the catalog, None if the path is not one."""
    text = str(path)
    return text[len(TABLE) :] if text.startswith(TABLE) else None


def _source(
    spark: "SparkSession",
    path: str | Path,
    format: str | None,
    *,
    watch: bool = False,
) -> _Source:
    name = str(path)
    if format is not None:
        choose("format", format, FORMATS)
    known = _path_for_spark(name)
    # Spark lists the files wherever they are; nothing is read.
    listed = spark.read.format("binaryFile").load(known).inputFiles()
    files = [unquote(file) for file in listed]
    if format is not None:
        return _Source(name, known, format, files, {})
    if not watch:
        return _Source(name, known, format_of(name, files), files, {})
    files = [file for file in files if extension(file)[1:] in FORMATS]
    found = format_of(name, files)
    endings = ",".join(f"{found}{codec}" for codec in ("", *CODECS))
    return _Source(name, known, found, files, {"pathGlobFilter": f"*.{{{endings}}}"})


def _as_pattern(source: _Source) -> str:
    """A folder or a pattern, which Spark's streams need; for one file, a pattern of its name."""
    names = {PurePosixPath(path).name for path in (*source.files, source.name)}
    is_file = len(source.files) == 1 and len(names) == 1 and not Path(source.name).is_dir()
    return f"{source.path[:-1]}[{source.path[-1]}]" if is_file else source.path


def _path_for_spark(name: str) -> str:
    """An absolute path of this machine, escaped: Spark takes [ and { for patterns."""
    if re.match(r"^[a-z][a-z0-9+.-]+:", name, re.IGNORECASE):
        return name
    path = Path(name).expanduser()
    if path.exists():
        return _literally(str(path.absolute()))
    return str(path.absolute()) if glob.glob(str(path)) else name  # noqa: PTH207 - a pattern


def _literally(path: str) -> str:
    return re.sub(r"([\[\]{}*?,\\])", r"\\\1", path)


def _reader_of(format: str) -> str:
    return "json" if format == "jsonl" else format


def _plan(
    spark: "SparkSession",
    source: _Source,
    schema: "StructType | str | None",
    given: dict[str, Any],
) -> _ReadPlan:
    """How to read files: with a given schema, or with the one that they have."""
    if source.format != "xml":
        given.pop("rowTag")
    options = _OPTIONS[source.format] | source.only | given
    if source.format == "parquet":
        return _ReadPlan(
            _struct(spark, schema) or _schema_of_parquet(spark, source, options), options
        )
    options = {"columnNameOfCorruptRecord": CORRUPT} | options
    if source.format == "json" and "multiLine" not in options and source.files:
        options["multiLine"] = are_documents(
            spark.read.options(**source.only), source.path, source.name
        )
    found = _struct(spark, schema)
    if found is None:
        options = _INFERENCE[source.format] | options
        found = _inferred(spark, source, options)
    return _ReadPlan(_with_corrupt(found, options, _row_format(source, found, schema)), options)


def _row_format(source: _Source, found: "StructType", given: Any) -> dict[str, Any]:
    """What `tamis.spark.tables.event_table` needs to say what is wrong with an unreadable row."""
    partitions = {
        part.partition("=")[0] for file in source.files for part in PurePosixPath(file).parts[:-1]
        if "=" in part
    }  # fmt: skip
    columns = [name for name in found.names if name not in partitions | {CORRUPT}]
    return {"format": source.format, "columns": columns, "is_inferred": given is None}


def _struct(spark: "SparkSession", schema: "StructType | str | None") -> "StructType | None":
    return spark.createDataFrame([], schema).schema if isinstance(schema, str) else schema


def _inferred(spark: "SparkSession", source: _Source, options: dict[str, Any]) -> "StructType":
    if not source.files:
        raise FileError(f"{source.name} has no files")
    reader = spark.read.format(_reader_of(source.format)).options(**options)
    schema = reader.load(source.path).schema
    if schema.names and not all(name.isprintable() and "�" not in name for name in schema.names):
        raise FileError(
            f"{source.name} is not text: {schema.names[0][:40]!r} is not the name of a column"
        )
    if set(schema.names) - {options["columnNameOfCorruptRecord"]}:
        return schema
    if schema.names:
        raise FileError(f"{source.name} has nothing that can be read as {source.format}")
    row = f"element <{options['rowTag']}>" if source.format == "xml" else "row"
    hint = "; name another one with the option rowTag" if source.format == "xml" else ""
    raise FileError(f"{source.name} has no {row} to infer columns from{hint}")


def _with_corrupt(
    schema: "StructType", options: dict[str, Any], row_format: dict[str, Any]
) -> "StructType":
    """The schema, and the column for rows that cannot be read, if such rows are kept."""
    from pyspark.sql.types import StringType, StructField, StructType

    corrupt = options["columnNameOfCorruptRecord"]
    fields = [field for field in schema if field.name != corrupt]
    if str(options.get("mode", "PERMISSIVE")).upper() != "PERMISSIVE":
        return StructType(fields)
    return StructType([*fields, StructField(corrupt, StringType(), metadata=row_format)])


def _schema_of_parquet(
    spark: "SparkSession", source: _Source, options: dict[str, Any]
) -> "StructType":
    if not source.files:
        raise FileError(f"{source.name} has no files")
    merging = {"mergeSchema": True} | options
    base = {} if re.search(r"(?<!\\)[*?\[{]", source.path) else {"basePath": source.path}

    def read(files: Sequence[str]) -> "StructType":
        reader = spark.read.options(**base, **merging)
        with spark_errors():
            return reader.parquet(*(_literally(file) for file in files)).schema

    try:
        with spark_errors():
            return spark.read.options(**merging).parquet(source.path).schema
    except TamisError as error:
        if not is_drift(error):
            raise
    return merged_schema(source.name, source.files, read)


def _batch(spark: "SparkSession", source: _Source, plan: _ReadPlan) -> "DataFrame":
    reader = spark.read.format(_reader_of(source.format)).options(**plan.options)
    frame = reader.schema(plan.schema).load(source.path)
    corrupt = plan.options.get("columnNameOfCorruptRecord")
    if _reader_of(source.format) != "json" or plan.options.get("multiLine"):
        return frame
    if corrupt not in frame.columns:
        return frame
    # Spark silently leaves out a line with an empty array; it is a row that cannot be read.
    lines = spark.read.options(**source.only).text(source.path)
    empty = lines.where(r"length(value) < 100 AND value RLIKE '^\\s*\\[\\s*\\]\\s*$'")
    if not empty.limit(1).count():
        return frame
    return frame.unionByName(empty.withColumnRenamed("value", corrupt), allowMissingColumns=True)


def _of_subscriptions(schema: "StructType") -> "StructType":
    """The types of a CSV file: a filter TRUE is not a boolean, and an id 1.5 is a text."""
    from pyspark.sql.types import StringType, StructField, StructType

    def field(known: "StructField") -> "StructField":
        is_text = known.name == "filter" or (
            known.name == "id" and known.dataType.simpleString() not in _ID_TYPES
        )
        return StructField(known.name, StringType()) if is_text else known

    return StructType([field(known) for known in schema])


def _check_subscriptions(frame: "DataFrame", name: str) -> None:
    check_subscription_types({f.name: f.dataType.simpleString() for f in frame.schema}, name)


def check_subscription_types(types: Mapping[str, str], name: str) -> None:
    """Refuse subscriptions without ids and filters of the right types; `name` names the files."""
    for column, expected in (("id", _ID_TYPES), ("filter", ("string",))):
        if column not in types:
            hint = did_you_mean(column, [each for each in types if each != CORRUPT])
            raise FileError(
                f"{name}: expected the columns id and filter, found no {column}; {hint}"
            )
        if types[column] not in expected:
            wanted = "integers or strings" if column == "id" else "strings"
            raise FileError(f"{name}: {column} is {types[column]}, expected {wanted}")
