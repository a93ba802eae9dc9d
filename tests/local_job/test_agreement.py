"""Spark is the oracle: the local job gives the same folder, and reads files as Spark reads them."""

import csv
import json
import math
import random

import pyarrow as pa
import pyarrow.csv
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

from tamis.cli import main
from tamis.file_tables.file_table import FileTable
from tamis.file_tables.type_names import type_name
from tamis.spark.files.readers import read_events

SUBSCRIPTIONS = [
    ("cheap", "price < 10", 1, "ann"),
    ("ibm", "company = 'IBM' AND price >= 5", 2, "bob"),
    ("old", "at < TIMESTAMP '2024-01-02 00:00:00'", 3, "eve"),
    ("ibm", "company LIKE 'I%'", 1, "eve"),
    ("none", "price IS NULL", 1, None),
    ("bad", "prise < 10", 1, "ann"),
    ("worse", "price <", 1, "ann"),
    (None, "price < 10", 1, "ann"),
    ("cheap", None, 9, "bob"),
]
COMPANIES = ["IBM", "Dell", 'the "best", of all', "Ünï", None]


def events(seed):
    """Events of one form: some without an id, some with the same id."""
    rng = random.Random(seed)  # noqa: S311 - the same events every time
    for number in range(60):
        yield {
            "id": rng.choice([number, number, number, number - 1, None]),
            "company": rng.choice(COMPANIES),
            "price": rng.choice([None, rng.randint(0, 20), rng.random() * 20]),
            "at": rng.choice([None, f"2024-01-0{rng.randint(1, 3)}T10:00:00Z"]),
            "level": rng.randint(1, 5),
        }


def write_events(folder, extension, seed):
    """Two files of events, the later one with rows that cannot be read."""
    folder.mkdir()
    rows = list(events(seed))
    for name, part in (("a", rows[:40]), ("b", rows[40:])):
        path = folder / f"{name}.{extension}"
        if extension == "parquet":
            moments = pa.array([row.pop("at") for row in part])
            table = pa.Table.from_pylist(part).append_column(
                "at", pa.compute.strptime(moments, "%Y-%m-%dT%H:%M:%SZ", "us", error_is_null=True)
            )
            pq.write_table(table.set_column(2, "price", table["price"].cast(pa.float64())), path)
            continue
        bad = "" if name == "a" else BAD[extension]
        path.write_text(TEXTS[extension](part, bad), encoding="utf-8")


def as_csv(rows, bad):
    lines = [",".join(rows[0])]
    for row in rows:
        fields = ("" if v is None else str(v) for v in row.values())
        lines.append(",".join(f'"{v.replace(chr(34), chr(34) * 2)}"' if v else v for v in fields))
    return "\n".join(lines) + "\n" + bad


def as_xml(rows, bad):
    text = "<all>"
    for row in rows:
        fields = [f"<{k}>{v}</{k}>" for k, v in row.items() if v is not None]
        text += f"<event>{''.join(fields)}</event>\n"
    return f"{text}{bad}</all>"


TEXTS = {
    "csv": as_csv,
    "jsonl": lambda rows, bad: "".join(json.dumps(row) + "\n" for row in rows) + bad,
    "json": lambda rows, bad: json.dumps(rows, indent=1) + bad,
    "xml": as_xml,
}
BAD = {
    "csv": '7,IBM\n8,IBM,cheap,,1\n"9,IBM,5,,1\n10,IBM,5,,9\n',
    "jsonl": 'no JSON\n[]\n[{"id": 90, "price": 3}, {"id": 91}]\n{"id": 92, "price": "x"}\n5\n',
    "json": "",
    "xml": "<event><id>93</id><price>x</price></event>",
}
SCHEMA = "company:string,price:double,at:timestamp,level:int(1, 4)"


def write_subscriptions(path):
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([("id", "filter", "later", "owner"), *SUBSCRIPTIONS])


def read_matches(folder, form):
    files = sorted(path for path in folder.iterdir() if path.suffix == f".{form}")
    rows = []
    for path in files:
        match form:
            case "parquet":
                rows += pq.read_table(path).to_pylist()
            case "orc":
                rows += pa.orc.read_table(path).to_pylist()
            case "json":
                rows += [json.loads(line) for line in path.read_text("utf-8").splitlines()]
            case "csv":
                rows += list(csv.DictReader(path.read_text("utf-8").splitlines()))
    return sorted(json.dumps(row, default=str) for row in rows)


def contents(out, form):
    """Everything in a folder, in an order that does not depend on who wrote it."""
    letters = []
    for path in (out / "dead_letters").glob("*.json"):
        letters += [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    # Spark numbers rows of several files with gaps.
    letters = sorted(json.dumps({**one, "row": 0}, sort_keys=True) for one in letters)
    summary = json.loads((out / "summary.json").read_text("utf-8"))
    for name in ("letters", "ran_on", "out"):
        del summary[name]
    return {
        "names": sorted(path.name for path in out.iterdir()), "summary": summary,
        "matches": read_matches(out / "matches", form), "letters": letters,
    }  # fmt: skip


CASES = {
    "csv": ["--schema", SCHEMA, "--keep-rules", "owner", "--order", "later"],
    "jsonl": ["--output", "lists", "--keep", "company", "--format", "json", "--schema", SCHEMA],
    "json": ["--output", "counts", "--format", "orc", "--keep-id-name"],
    "xml": ["--format", "csv", "--keep", "at", "--schema", SCHEMA],
    "parquet": ["--semantics", "default", "--defaults",
                '{"id": 0, "company": "", "price": 0, "at": "2024-01-01", "level": 1}'],
}  # fmt: skip


@pytest.mark.parametrize("extension", CASES)
def test_both_jobs_write_the_same_folder(spark, tmp_path, capsys, extension):
    assert spark is not None
    write_events(tmp_path / "events", extension, seed=len(extension))
    write_subscriptions(tmp_path / "s.csv")
    options = CASES[extension]
    form = options[options.index("--format") + 1] if "--format" in options else "parquet"
    found = {}
    for name, more in (("spark", []), ("local", ["--local"])):
        out = tmp_path / name
        paths = [str(tmp_path / "s.csv"), str(tmp_path / "events"), "--out", str(out)]
        assert main(["match", *paths, *options, *more]) == 0, capsys.readouterr().err
        found[name] = contents(out, form)
    assert found["local"]["summary"]["events"] >= 60
    assert found["local"]["summary"]["bad_events"] > 0
    assert found["local"]["summary"]["matches"] > 0
    assert found["local"] == found["spark"]


# --- reading


NUMBERS = """1 -5 +7 007 2147483648 9223372036854775808 1.5 1e5 1E-3 .5 5. 1d 1.5f NaN Infinity inf
Inf 0x10 1_000 -0 99999999999999999999999999999999999999999 12345678901234567890.5 0.1e400 --5"""
TIMES = """2024-01-01 2024-1-1 2024-05 2024 12:00 2024-01-01T10:00:00 2024-01-01T10:00:00.1234
2024-01-01T10:00:00Z 2024-01-01T10:00:00+01:00 2024-01-01T10:00:00+0100 2024-02-30 2024-01-01T
2024-02-30T10:00:00 10:00:00 2024-13-01"""
WORDS = 'true FALSE yes abc null é "" "x,y" "a""b" ab"c "a"b'
TOKENS = [*NUMBERS.split(), *TIMES.split(), *WORDS.split(), " 5", "5 ", "2024-01-01 10:00:00"]
JSON_VALUES = [
    "1", "-5", "1.5", "1e5", "1.0", "9223372036854775808", "true", "null", "1.50",
    "12345678901234567890.5",
    '"x"', '""', '"2024-01-01"', '"2024-01-01T10:00:00"', '"2024-01-01 10:00:00Z"', '"12:00"',
    '{"a": 1}', '{"a":"x", "b": 1.50}', "{}", "[]", "[1, 2]", '[1, "x"]', '[{"a":1},{"b":2}]',
    '"NaN"', "NaN", '"é"', "'x'", "[null]", '{"a":null}', '"true"', "1.10E+2",
    "99999999999999999999999999999999999999999999",
]  # fmt: skip


def plain(value):
    """A value that can be compared."""
    if isinstance(value, float):
        return "NaN" if math.isnan(value) else value
    if isinstance(value, dict):
        return {name: plain(inner) for name, inner in value.items()}
    if isinstance(value, list):
        return [plain(inner) for inner in value]
    return value


def both(spark, path):
    frame, table = read_events(spark, path), FileTable(path, row_tag="event")
    types = {field.name: field.dataType.simpleString() for field in frame.schema}
    rows = [plain(row) for row in frame.toArrow().to_pylist()]
    mine = {field.name: type_name(field.type) for field in table.schema}
    return (types, rows), (mine, [plain(r) for b in table.batches() for r in b.to_pylist()])


def columns_of(values, seed):
    """Columns of one value each, and columns of two values."""
    rng = random.Random(seed)  # noqa: S311 - the same columns every time
    columns = [(value, value) for value in values]
    columns += [tuple(rng.sample(values, 2)) for _ in range(60)]
    return columns


@pytest.mark.parametrize("extension", ["csv", "jsonl", "xml"])
def test_odd_values_have_the_types_and_values_that_spark_finds(spark, tmp_path, extension):
    path = tmp_path / f"odd.{extension}"
    if extension == "csv":
        columns = columns_of(TOKENS, 1)
        rows = [",".join(f"c{n}" for n in range(len(columns)))]
        rows += [",".join(pair[row] for pair in columns) for row in (0, 1, 0)]
        rows += ["1,2,3", "", ","]
        path.write_text("\n".join(rows), encoding="utf-8")
    elif extension == "jsonl":
        columns = columns_of(JSON_VALUES, 2)
        rows = [
            "{" + ", ".join(f'"c{n}": {pair[row]}' for n, pair in enumerate(columns)) + "}"
            for row in (0, 1, 0)
        ]
        rows += ['{"c0": 1', "", "no JSON", "5", '[{"c0": 5}, {"c1": 6}]', '{"c0": 7} junk', "{}"]
        path.write_text("\n".join(rows), encoding="utf-8")
    else:
        words = [word for word in TOKENS if word and '"' not in word]
        words += ["", "<b>1</b>", "<b>1</b><c>x</c>", "<b>1</b><b>2</b>", "<![CDATA[x<y]]>", "&lt;"]
        words += ['<b y="1">2</b>', "x<b>1</b>y", "<b/>"]
        columns = columns_of(words, 3)
        text = "<all>"
        for row in (0, 1, 0):
            fields = (f"<c{n}>{pair[row]}</c{n}>" for n, pair in enumerate(columns))
            text += f"<event>{''.join(fields)}</event>"
        path.write_text(text + "<event><c0>5</c1></event></all>", encoding="utf-8")
    (types, rows), (mine, found) = both(spark, path)
    odd = {name: (columns[int(name[1:])], kind, mine[name]) for name, kind in types.items()
           if name in mine and kind != mine[name]}  # fmt: skip
    assert odd == {}
    assert list(types) == list(mine)
    assert len(rows) == len(found)
    for one, other in zip(rows, found, strict=True):
        differing = {name: (one[name], other[name]) for name in one if one[name] != other[name]}
        assert differing == {}
