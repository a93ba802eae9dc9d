"""Files of events and subscriptions, read by Spark's readers."""

import datetime as dt
import gzip

import pyarrow as pa
import pytest

from tamis.errors import FileError, OptionError, TamisError
from tamis.spark.files.readers import read_event_stream, read_events, read_subscriptions
from tamis.spark.session.failures import spark_errors

pytestmark = pytest.mark.spark


def rows(frame):
    with spark_errors():
        return sorted((tuple(row) for row in frame.collect()), key=str)


def types(frame):
    return {field.name: field.dataType.simpleString() for field in frame.schema}


JAN = dt.datetime(2024, 1, 1, 10, 0)  # noqa: DTZ001 - what Spark gives for UTC


def test_lines_of_json_that_cannot_be_read_are_rows(spark, put):
    path = put("e.jsonl", '{"a": 1, "at": "2024-01-01T10:00:00Z"}\nno JSON\n{"a": 2.5}\n')
    frame = read_events(spark, path)
    assert types(frame) == {"a": "double", "at": "timestamp", "_corrupt_record": "string"}
    assert rows(frame) == [(1.0, JAN, None), (2.5, None, None), (None, None, "no JSON")]
    frame = read_events(spark, path, schema="a INT, at STRING")
    assert (None, None, '{"a": 2.5}') in rows(frame)


def test_only_a_date_with_a_time_becomes_a_timestamp(spark, put):
    texts = {
        "a": "2024-01-01T10:00:00+00:00",
        "b": "2024-01-01 10:00:00.0",
        "c": "2024-01-01T10:00:00.000",
        "d": "12:00",
        "e": "2024",
        "f": "2024-01-01",
    }
    as_json = ", ".join(f'"{name}": "{text}"' for name, text in texts.items())
    found = types(read_events(spark, put("e.jsonl", f"{{{as_json}}}\n")))
    assert [found[name] for name in "abcdef"] == ["timestamp"] * 3 + ["string"] * 3
    csv = ",".join(texts) + "\n" + ",".join(texts.values()) + "\n"
    found = types(read_events(spark, put("e.csv", csv)))
    assert [found[name] for name in "abcdef"] == ["timestamp"] * 3 + ["string", "int", "date"]


def test_rows_of_csv_with_too_many_or_too_few_fields_are_found(spark, put):
    frame = read_events(spark, put("e.csv", 'id,s,x\n1,"a ""b"", c",1\n2,x\n3,x,3,4\n'))
    assert types(frame) == {"id": "int", "s": "string", "x": "int", "_corrupt_record": "string"}
    assert rows(frame) == [
        (1, 'a "b", c', 1, None),
        (2, "x", None, "2,x"),
        (3, "x", 3, "3,x,3,4"),
    ]
    # They are found, too, by whoever asks for other columns.
    assert rows(frame.select("id", "_corrupt_record"))[1] == (2, "2,x")


def test_csv_files_have_to_agree_about_their_header(spark, put):
    put("two/1.csv", "id,x\n1,2\n")
    folder = put("two/2.csv", "x,id\n1,2\n").parent
    with pytest.raises(FileError, match="CSV header does not conform to the schema"):
        rows(read_events(spark, folder))


def test_json_is_an_object_a_line_or_one_document(spark, put):
    lines = put("lines.json", '{"a": 1}\n{"a": 2}\n')
    document = put("document.json", '[\n{"a": 1},\n{"a": 2}\n]\n')
    assert rows(read_events(spark, lines)) == rows(read_events(spark, document))
    assert rows(read_events(spark, document)) == [(1, None), (2, None)]
    with pytest.raises(
        FileError, match=r"one object per line \(.*lines.json\), others with one doc"
    ):
        read_events(spark, lines.parent)
    document.write_text('{\n"a": 1}\n{\n"a": 2}\n', encoding="utf-8")
    with pytest.raises(FileError, match="has several JSON values"):
        read_events(spark, document)


def test_a_document_that_breaks_off_is_one_row(spark, put):
    text = '[\n{"a": 1},\n{"a":'
    frame = read_events(spark, put("e.json", text), schema="a INT")
    assert rows(frame) == [(None, text)]


def test_xml_is_read_by_its_row_tag(spark, put):
    path = put(
        "e.xml", "<all><event><a>1</a></event><row><b>x</b></row><event><a></b></event></all>"
    )
    frame = read_events(spark, path)
    assert (1, None) in rows(frame)
    assert len(rows(frame)) == 2
    assert types(read_events(spark, path, options={"rowTag": "row"}))["b"] == "string"
    with pytest.raises(FileError, match=r"has no element <event> .* the option rowTag"):
        read_events(spark, put("f.xml", "<all><row><a>1</a></row></all>"))


def test_compressed_files_and_odd_names_are_read(spark, put):
    path = put("o d/{x},[1]%20.jsonl.gz", gzip.compress(b'{"a": 1}\n'))
    assert rows(read_events(spark, path)) == [(1, None)]
    assert rows(read_events(spark, path.parent)) == [(1, None)]
    with pytest.raises(FileError, match=r"/b\.jsonl\.gz cannot be read: "):
        read_events(spark, put("b.jsonl.gz", '{"a": 1}\n'))


def test_relative_paths_are_those_of_this_process(spark, put, monkeypatch):
    monkeypatch.chdir(put("here/e.csv", "a\n1\n").parent.parent)
    assert rows(read_events(spark, "here")) == rows(read_events(spark, "her?/*.csv")) == [(1, None)]


def test_tables_are_read_by_name(spark):
    spark.sql("SELECT 1 AS id, 'a < 1' AS filter").createOrReplaceTempView("rules")
    assert rows(read_events(spark, "table:rules")) == [(1, "a < 1")]
    assert rows(read_subscriptions(spark, "table:rules")) == [(1, "a < 1")]
    with pytest.raises(TamisError, match="`nothing` cannot be found"):
        read_events(spark, "table:nothing")


def test_parquet_files_that_drifted_apart_are_read_as_one(spark, put):
    put("e/day=1/x.parquet", pa.table({"a": pa.array([1], pa.int32()), "b": [1.5]}))
    put("e/day=2/x.parquet", pa.table({"a": pa.array([2], pa.int64()), "c": ["x"]}))
    last = put("e/day=3/x.parquet", pa.table({"b": pa.array([2], pa.int32())}))
    frame = read_events(spark, last.parent.parent)
    assert types(frame) == {"a": "bigint", "b": "double", "c": "string", "day": "int"}
    assert rows(frame) == [(1, 1.5, None, 1), (2, None, "x", 2), (None, 2.0, None, 3)]


def test_parquet_files_without_a_type_in_common_name_the_column(spark, put):
    put("e/1.parquet", pa.table({"r": [{"a": 1}]}))
    folder = put("e/2.parquet", pa.table({"r": [{"a": "x"}]})).parent
    expected = r"column r\.a is bigint in some files, such as .*/1.parquet, and string in others"
    with pytest.raises(FileError, match=expected):
        read_events(spark, folder)


def test_files_that_are_not_what_they_should_be(spark, put, tmp_path):
    (tmp_path / "empty").mkdir()
    put("mixed/a.csv", "a\n1\n")
    put("mixed/b.jsonl", "{}\n")
    for path, problem in (
        (tmp_path / "nothing.csv", r"/nothing.csv does not exist"),
        (tmp_path / "empty", "has no files"),
        (tmp_path / "mixed", r"several extensions \(.csv, .jsonl\)"),
        (put("e.txt", "x"), "the extension '.txt' is unknown"),
        (
            put("e.parquet", b"PAR1 and nothing else"),
            r"/e.parquet cannot be read: is not a Parquet",
        ),
        (put("e.csv", bytes(range(256)) * 4), "is not text"),
        (put("empty.csv", ""), "has no row to infer columns from"),
        (put("bad.jsonl", "x\ny\n"), "has nothing that can be read as jsonl"),
        (
            "s3a://bucket/e.csv",
            "does not have the class org.apache.hadoop.fs.s3a.S3AFileSystem; add its package",
        ),
    ):
        with pytest.raises(FileError, match=problem):
            read_events(spark, path)
    with pytest.raises(OptionError, match="did you mean 'csv'"):
        read_events(spark, tmp_path, format="cvs")


def run(frame, tmp_path, name):
    """Everything that a stream gives at once: the number of batches, and the rows."""
    out = str(tmp_path / name)
    writer = frame.writeStream.format("parquet").option("checkpointLocation", out + ".state")
    query = writer.trigger(availableNow=True).start(out)
    query.awaitTermination()
    return len(query.recentProgress), rows(frame.sparkSession.read.parquet(out))


def test_streams_have_the_schema_of_the_files_that_are_there(spark, put, tmp_path):
    put("in/1.jsonl", '{"a": 1}\nno JSON\n')
    put("in/2.jsonl", '{"a": 2}\n')
    folder = put("in/3.jsonl.tmp", '{"a": 3').parent  # on its way to its name
    frame = read_event_stream(spark, folder, max_files=1)
    assert run(frame, tmp_path, "out") == (2, [(1, None), (2, None), (None, "no JSON")])


def test_one_file_is_a_stream_too(spark, put, tmp_path):
    path = put("e.csv", "a,b\n1,x\n")
    put("e2.csv", "a,b\n2,x\n")
    frame = read_event_stream(spark, path)
    assert run(frame, tmp_path, "out") == (1, [(1, "x", None)])


def test_a_stream_of_files_that_are_to_come_needs_a_schema(spark, tmp_path):
    with pytest.raises(FileError, match="has no files to infer columns from; pass schema"):
        read_event_stream(spark, tmp_path, format="csv")
    frame = read_event_stream(spark, tmp_path, format="csv", schema="a INT")
    assert frame.isStreaming
    assert types(frame) == {"a": "int", "_corrupt_record": "string"}
    with pytest.raises(OptionError, match="not by both"):
        read_event_stream(spark, tmp_path, format="csv", max_files=1, max_bytes=1)


def test_subscriptions_of_csv(spark, put):
    text = "id,filter,owner\n1,\"a < 1 AND\nb = 'x, y'\",me\n2,TRUE,you\n3,a IN (1, 2),me\n"
    frame = read_subscriptions(spark, put("rules.csv", text))
    assert types(frame)["id"] == "int"
    # The third is cut off at its comma: a row that cannot be read has no filter.
    assert rows(frame.select("id", "filter", "owner", "_corrupt_record")) == [
        (1, "a < 1 AND\nb = 'x, y'", "me", None),
        (2, "TRUE", "you", None),
        (3, None, " 2)", "3,a IN (1, 2),me"),
    ]


@pytest.mark.parametrize(("ids", "kind"), [("1,2", "int"), ("1,x", "string"), ("1,1.5", "string")])
def test_ids_of_csv_are_integers_if_all_are(spark, put, ids, kind):
    text = "id,filter\n" + "".join(f"{each},TRUE\n" for each in ids.split(","))
    found = types(read_subscriptions(spark, put("rules.csv", text)))
    assert (found["id"], found["filter"]) == (kind, "string")


def test_subscriptions_need_an_id_and_a_filter(spark, put):
    for name, text, problem in (
        ("a.csv", "id,filtre\n1,TRUE\n", "found no filter; did you mean 'filtre'"),
        ("b.jsonl", '{"id": 1.5, "filter": "TRUE"}', "id is double, expected integers or strings"),
        ("c.jsonl", '{"id": 1, "filter": true}', "filter is boolean, expected strings"),
    ):
        with pytest.raises(FileError, match=problem):
            read_subscriptions(spark, put(name, text))
    path = put("d.xml", "<s><subscription><id>a</id><filter>x &lt; 1</filter></subscription></s>")
    assert rows(read_subscriptions(spark, path).select("id", "filter")) == [("a", "x < 1")]
