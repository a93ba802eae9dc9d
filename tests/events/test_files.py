import datetime as dt
import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tamis import EventError, FileError, Schema
from tamis.events.event_reader import EventReader
from tamis.events.files import read_records

READER = EventReader(Schema({"company": "string", "price": "double", "address.city": "string"}))
IBM = ("IBM", 5.0, None)
DELL = ("Dell", 20.5, None)
XML_EVENTS = """
<event> <company> IBM </company> <price> 5 </price> </event>
<event> <company> Dell </company> <price> 20.5 </price> </event>
"""


@pytest.fixture
def write(tmp_path):
    """Writes a file and gives its path."""

    def write_file(name, content):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


def read(path):
    """The rows of a file, or the problem where a record has one."""
    found = []
    for record in read_records(path):
        try:
            found.append(record.row(READER))
        except EventError as error:
            found.append(str(error))
    return found


# --- every format


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("e.json", '[{"company": "IBM", "price": 5}, {"company": "Dell", "price": 20.5}]'),
        ("e.jsonl", '{"company": "IBM", "price": 5}\n{"company": "Dell", "price": 20.5}\n'),
        ("e.jsonl", '\n{"company": "IBM", "price": 5}\r\n  \n{"company": "Dell", "price": 20.5}'),
        ("e.JSONL", '{"company": "IBM", "price": 5}\n{"company": "Dell", "price": 20.5}\n'),
        ("e.csv", "company,price\nIBM,5\nDell,20.5\n"),
        ("e.csv", 'price,company\r\n5,"IBM"\r\n\r\n20.5,Dell'),
        ("e.xml", f"<all>{XML_EVENTS}</all>"),
        ("e.xml", XML_EVENTS),
    ],
)
def test_two_events_in_every_format_of_text(write, name, content):
    assert read(write(name, content)) == [IBM, DELL]


def test_two_events_in_parquet(tmp_path):
    path = tmp_path / "e.parquet"
    pq.write_table(pa.table({"company": ["IBM", "Dell"], "price": [5.0, 20.5]}), path)
    assert read(path) == [IBM, DELL]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("e.json", '{"company": "IBM", "price": 5}'),
        ("e.xml", "<company>IBM</company> <price>5</price>"),
        ("e.xml", "<event><company>IBM</company> <price>5</price></event>"),
        ("e.xml", "<?xml version='1.0'?><e><company>IBM</company><price>5</price></e>"),
        ("e.xml", "<all><e><company>IBM</company><price>5</price></e></all>"),
    ],
)
def test_a_file_of_one_event(write, name, content):
    assert read(write(name, content)) == [IBM]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("e.json", '[{"company": "IBM", "price": 5}]'),
        ("e.jsonl", '{"company": "IBM", "price": 5}'),
        ("e.csv", "company,price\nIBM,5"),
        ("e.xml", "<e><company>IBM</company><price>5</price></e>"),
    ],
)
def test_a_byte_order_mark_is_not_part_of_the_content(write, name, content):
    assert read(write(name, b"\xef\xbb\xbf" + content.encode())) == [IBM]


@pytest.mark.parametrize(
    ("name", "content"),
    [("e.json", "[]"), ("e.jsonl", ""), ("e.csv", ""), ("e.csv", "company\n"), ("e.xml", "")],
)
def test_a_file_without_events(write, name, content):
    assert read(write(name, content)) == []


def test_a_parquet_file_without_events(tmp_path):
    path = tmp_path / "e.parquet"
    pq.write_table(pa.table({"price": pa.array([], pa.float64())}), path)
    assert read(path) == []


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("e.json", '[{"address": {"city": "Paris"}}]'),
        ("e.jsonl", '{"address": {"city": "Paris"}}'),
        ("e.xml", "<all><e><address><city>Paris</city></address></e></all>"),
    ],
)
def test_nested_records(write, name, content):
    assert read(write(name, content)) == [(None, None, "Paris")]


def test_parquet_keeps_types(tmp_path):
    path = tmp_path / "e.parquet"
    day = dt.datetime(2024, 1, 1, tzinfo=dt.UTC)
    table = pa.table({"at": [day], "n": pa.array([5], pa.uint8()), "r": [{"s": "5"}]})
    pq.write_table(table, path)
    (record,) = read_records(path)
    reader = EventReader(Schema({"at": "timestamp", "n": "int", "r.s": "string"}))
    assert record.row(reader) == (1_704_067_200_000_000, 5, "5")


def test_csv_with_quotes_commas_and_line_breaks(write):
    path = write("e.csv", 'company,price\n"a, ""b""\nc",1\n')
    assert read(path) == [('a, "b"\nc', 1.0, None)]


def test_an_empty_field_of_csv_is_missing(write):
    assert read(write("e.csv", "company,price\n,1\nIBM,\n")) == [
        (None, 1.0, None),
        ("IBM", None, None),
    ]


# --- records that cannot be read


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("e.jsonl", '{"company": "IBM", "price": 5}\n{"price": \n', "the event is not valid JSON"),
        ("e.jsonl", '{"company": "IBM", "price": 5}\n[1]\n', "an event is a JSON object"),
        ("e.jsonl", b'{"company": "IBM", "price": 5}\n"\xff"\n', "line 2 is not valid UTF-8"),
        ("e.jsonl", '{"company": "IBM", "price": 5}\n{"a": 1, "a": 2}', "names 'a' twice"),
        ("e.json", '[{"company": "IBM", "price": 5}, 7]', "expected an object {...}, got int"),
        ("e.csv", "company,price\nIBM,5\nDell\n", "line 3 has 1 field, the header has 2"),
        ("e.csv", "company,price\nIBM,5\nDell,1,2\n", "line 3 has 3 fields, the header has 2"),
        ("e.csv", "company,price\nIBM,5\nDell,cheap\n", "attribute price expects double"),
        (
            "e.xml",
            "<a><e><company>IBM</company><price>5</price></e><e><price>1</price><price/></e></a>",
            "names 'price' twice",
        ),
        (
            "e.xml",
            "<a><e><company>IBM</company><price>5</price></e><e><x>1</x>junk</e></a>",
            "the text 'junk' is in no element",
        ),
        ("e.jsonl", '{"company": "IBM", "price": 5}\n{"price": 1e999}', "too large for a double"),
        ("e.csv", "company,price\nIBM,5\nDell,1e999\n", "it is too large for a double"),
    ],
)
def test_a_bad_record_does_not_hide_the_good_ones(write, name, content, problem):
    good, bad = read(write(name, content))
    assert good == IBM
    assert problem in bad


# --- files that cannot be read


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        (
            "e.json",
            "",
            r"e\.json is not valid JSON: .*a file with one object per line ends in \.jsonl",
        ),
        ("e.json", '{"a": 1}\n{"a": 2}\n', r"ends in \.jsonl"),
        ("e.json", "[" * 100_000, "nested too deeply"),
        ("e.json", b'["\xff"]', r"e\.json is not valid UTF-8: .* at byte 2"),
        ("e.csv", b"company\n\xff\n", r"e\.csv is not valid UTF-8"),
        ("e.csv", "a,b,a\n1,2,3\n", "the header names a column twice: a, b, a"),
        ("e.csv", 'a\n"x\n', r"e\.csv, line 2: "),
        ("e.xml", "<a><b></a>", r"e\.xml: the event is not valid XML"),
        ("e.xml", "<!DOCTYPE a [<!ENTITY x 'y'>]><a><b>&x;</b></a>", r"e\.xml: "),
        ("e.xml", b"<a>\xff</a>", r"e\.xml is not valid UTF-8"),
        ("e.xml", "<a><b><i>1</i></b> junk</a>", r"e\.xml: the text 'junk' is in no element"),
        ("e.json", '[{"price": 1e999}]', r"e\.json: the number 1e999 is too large"),
        ("e.parquet", b"", r"e\.parquet is not a readable Parquet file"),
        ("e.parquet", b"PAR1 nothing of use PAR1", r"e\.parquet is not a readable Parquet file"),
        ("e.parquet", "company,price\n", r"e\.parquet is not a readable Parquet file"),
        ("e.txt", "", r"the extension '\.txt' is unknown; files end in \.parquet \.json \.jsonl"),
        ("e", "", "the extension '' is unknown"),
        ("e.csv.gz", "", r"the extension '\.gz' is unknown"),
    ],
)
def test_a_file_that_cannot_be_read(write, name, content, message):
    with pytest.raises(FileError, match=message):
        read(write(name, content))


def test_a_truncated_parquet_file(tmp_path):
    path = tmp_path / "e.parquet"
    pq.write_table(pa.table({"price": list(range(1000))}), path)
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(FileError, match=r"e\.parquet"):
        read(path)


@pytest.mark.parametrize("name", ["e.csv", "e.json", "e.jsonl", "e.xml", "e.parquet"])
def test_a_file_that_is_not_there(tmp_path, name):
    with pytest.raises(FileError, match="does not exist"):
        read(tmp_path / name)


def test_a_folder_is_not_a_file(tmp_path):
    folder = tmp_path / "e.csv"
    folder.mkdir()
    with pytest.raises(FileError, match="is a folder, expected a file"):
        read(folder)


def test_a_path_may_be_a_string(write):
    path = write("e.json", json.dumps({"company": "IBM", "price": 5}))
    assert read(str(path)) == [IBM]
