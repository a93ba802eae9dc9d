import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tamis.cli import main
from tamis.cli import match as command

SUBSCRIPTIONS = [("ann", "price < 10"), ("bob", "company IN ('IBM', 'Dell')")]
EVENTS = [("IBM", 5.0), ("Dell", 20.5), ("Acer", 5.0)]
PAIRS = {"event": [0, 0, 1, 2], "subscription": ["ann", "bob", "bob", "ann"]}


def write_subscriptions(path, rows=SUBSCRIPTIONS):
    records = [{"id": name, "filter": text} for name, text in rows]
    write_records(path, records)


def write_events(path, rows=EVENTS):
    write_records(path, [{"company": company, "price": price} for company, price in rows])


def write_records(path, records):
    """Records of one form, in the format that the extension says."""
    match path.suffix:
        case ".parquet":
            pq.write_table(pa.Table.from_pylist(records), path)
            return
        case ".json":
            text = json.dumps(records)
        case ".jsonl":
            text = "".join(json.dumps(record) + "\n" for record in records)
        case ".csv":
            rows = [records[0].keys(), *(record.values() for record in records)]
            text = "".join(",".join(f'"{field}"' for field in row) + "\n" for row in rows)
        case ".xml":
            text = "<all>"
            for record in records:
                fields = (f"<{k}>{str(v).replace('<', '&lt;')}</{k}>" for k, v in record.items())
                text += f"<one>{''.join(fields)}</one>"
            text += "</all>"
    path.write_text(text, encoding="utf-8")


class Place:
    """A folder with two files, and what the command makes of them."""

    def __init__(self, folder, capsys):
        self.folder = folder
        self.capsys = capsys
        self.subscriptions = folder / "subscriptions.csv"
        self.events = folder / "events.csv"
        self.out = folder / "out"
        write_subscriptions(self.subscriptions)
        write_events(self.events)

    def write(self, name, content):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def call(self, *options):
        paths = [str(self.subscriptions), str(self.events)]
        code = main(["match", *paths, "--out", str(self.out), *options])
        return code, self.capsys.readouterr()

    def run(self, *options):
        """The text of a run that succeeds; in a pipe nothing but it is shown."""
        code, output = self.call(*options)
        assert output.err == ""
        assert code == 0
        return output.out

    def fail(self, *options):
        """The message of a run that fails, which leaves nothing behind."""
        before = sorted(self.folder.rglob("*"))
        code, output = self.call(*options)
        assert code == 1
        assert output.out == ""
        assert output.err.startswith("tamis match: ")
        assert sorted(self.folder.rglob("*")) == before
        return output.err

    def matches(self):
        return pq.read_table(self.out / "matches.parquet").to_pydict()

    def summary(self):
        return json.loads((self.out / "summary.json").read_text(encoding="utf-8"))

    def letters(self):
        lines = (self.out / "dead_letters.jsonl").read_text(encoding="utf-8").splitlines()
        return [json.loads(line) for line in lines]


@pytest.fixture
def place(tmp_path, capsys):
    return Place(tmp_path, capsys)


# --- what comes out


def test_a_run_without_troubles(place):
    text = place.run()
    assert place.matches() == PAIRS
    assert sorted(path.name for path in place.out.iterdir()) == ["matches.parquet", "summary.json"]
    assert text.splitlines() == [
        "subscriptions  2",
        "events         3",
        "matches        4",
        "dead letters   0",
        "engine         naive",
        "semantics      sql",
        f"out            {place.out}",
    ]


def test_the_summary_counts(place):
    place.run()
    assert place.summary() == {
        "subscriptions": 2,
        "events": 3,
        "matches": 4,
        "dead_letters": 0,
        "engine": "naive",
        "semantics": "sql",
        "out": str(place.out),
    }


def test_the_answer_for_machines_is_the_summary(place):
    text = place.run("--json")
    assert json.loads(text) == place.summary()
    assert text.count("\n") == 1


def test_matches_as_lists(place):
    place.run("--output", "lists")
    assert place.matches() == {
        "event": [0, 1, 2],
        "subscriptions": [["ann", "bob"], ["bob"], ["ann"]],
    }
    assert place.summary()["matches"] == 4


def test_matches_as_counts(place):
    place.run("--output", "counts")
    assert place.matches() == {"event": [0, 1, 2], "count": [2, 1, 1]}
    assert place.summary()["matches"] == 4


@pytest.mark.parametrize("extension", ["parquet", "json", "jsonl", "csv", "xml"])
def test_events_in_every_format(place, extension):
    place.events = place.folder / f"e.{extension}"
    write_events(place.events)
    place.run()
    assert place.matches() == PAIRS


@pytest.mark.parametrize("extension", ["parquet", "json", "jsonl", "csv", "xml"])
def test_subscriptions_in_every_format(place, extension):
    place.subscriptions = place.folder / f"s.{extension}"
    write_subscriptions(place.subscriptions)
    place.run()
    assert place.matches() == PAIRS


@pytest.mark.parametrize("extension", ["parquet", "json", "jsonl"])
def test_ids_may_be_integers(place, extension):
    place.subscriptions = place.folder / f"s.{extension}"
    write_subscriptions(place.subscriptions, [(7, "price < 10"), (3, "TRUE")])
    place.run()
    assert place.matches()["subscription"] == [7, 3, 3, 7, 3]


def test_more_events_than_are_matched_at_once(place, monkeypatch):
    monkeypatch.setattr(command, "EVENTS_AT_ONCE", 2)
    place.run()
    assert place.matches() == PAIRS


def test_folders_above_the_output_are_made(place):
    place.out = place.folder / "a" / "b" / "out"
    place.run()
    assert place.matches() == PAIRS


def test_nothing_but_the_output_is_left_behind(place):
    place.run()
    names = sorted(path.name for path in place.folder.iterdir())
    assert names == ["events.csv", "out", "subscriptions.csv"]


def test_of_equal_ids_the_last_wins(place):
    write_subscriptions(place.subscriptions, [("a", "TRUE"), ("a", "FALSE")])
    place.run()
    assert place.matches()["event"] == []
    assert place.summary()["subscriptions"] == 1


# --- rows that cannot be used


def test_bad_rows_become_dead_letters(place):
    place.subscriptions = place.write(
        "s.json",
        json.dumps(
            [
                {"id": "ann", "filter": "price < 10"},
                {"id": "bob", "filter": "prize < 10"},
                {"filter": "TRUE"},
                {"id": 5, "filter": "TRUE"},
                7,
            ]
        ),
    )
    place.events = place.write(
        "e.jsonl",
        '{"company": "IBM", "price": 5}\n{"company": \n{"company": "Dell", "price": 7}\n',
    )
    text = place.run()
    letters = place.letters()
    assert [(letter["source"], letter["row"], letter["id"]) for letter in letters] == [
        ("subscriptions", 1, "bob"),
        ("subscriptions", 2, None),
        ("subscriptions", 3, 5),
        ("subscriptions", 4, None),
        ("events", 1, None),
    ]
    reasons = [letter["reason"] for letter in letters]
    assert "did you mean 'price'?" in reasons[0]
    assert reasons[1] == "the subscription lacks id"
    assert "the ids of this matcher are strings" in reasons[2]
    assert "expected an object" in reasons[3]
    assert "the event is no JSON" in reasons[4]
    assert place.matches() == {"event": [0, 2], "subscription": ["ann", "ann"]}
    assert place.summary()["dead_letters"] == 5
    assert "5 rows cannot be used:" in text
    assert str(place.out / "dead_letters.jsonl") in text


def test_many_dead_letters_are_counted_not_shown(place):
    write_events(place.events, [("IBM", "cheap")] * 8)
    text = place.run("--schema", "company:string,price:double")
    assert len(place.letters()) == 8
    assert text.count("attribute price expects double") == 5
    assert "... and 3 more" in text


def test_the_listing_is_not_mixed_into_the_answer_for_machines(place):
    write_events(place.events, [("IBM", "cheap")])
    answer = json.loads(place.run("--schema", "company:string,price:double", "--json"))
    assert answer["dead_letters"] == 1


def test_a_line_of_invalid_utf8_is_one_dead_letter(place):
    place.events = place.write(
        "e.jsonl", b'{"company": "\xff", "price": 1}\n{"company": "IBM", "price": 1}\n'
    )
    place.run()
    assert "no valid UTF-8" in place.letters()[0]["reason"]
    assert place.matches()["event"] == [1, 1]


def test_bad_rows_fail_on_demand(place):
    write_subscriptions(place.subscriptions, [*SUBSCRIPTIONS, ("eve", "prize < 1")])
    message = place.fail("--on-bad", "fail")
    assert "subscriptions, row 2: unknown attribute 'prize'; did you mean 'price'?" in message


def test_good_rows_do_not_fail(place):
    place.run("--on-bad", "fail")
    assert place.matches() == PAIRS


def test_unknown_attributes_are_refused_on_demand(place):
    write_subscriptions(place.subscriptions, [("ann", "price < 10")])
    place.run("--schema", "price:double", "--unknown", "refuse")
    assert [letter["row"] for letter in place.letters()] == [0, 1, 2]
    assert "unknown attribute 'company'" in place.letters()[0]["reason"]


# --- schemas and semantics


@pytest.mark.parametrize("text", ["5", "5.0"])
def test_a_schema_decides_the_types(place, text):
    place.events = place.write("e.csv", f"company,price\nIBM,{text}\n")
    write_subscriptions(place.subscriptions, [("ann", f"price = '{text}'")])
    place.run("--schema", "company:string,price:string")
    assert place.matches()["subscription"] == ["ann"]


def test_domains_of_a_schema(place):
    place.subscriptions = place.write(
        "s.jsonl", '{"id": "a", "filter": "level = 5 AND side = \'a,b\'"}\n'
    )
    place.events = place.write("e.csv", 'level,side\n5,"a,b"\n6,c\n5,d\n')
    place.run("--schema", "level:int(1, 5),side:enum('a,b', 'c')")
    assert place.matches() == {"event": [0], "subscription": ["a"]}
    assert [letter["row"] for letter in place.letters()] == [1, 2]


def test_a_schema_in_a_file(place):
    path = place.write("schema.json", '{"company": "enum(\'IBM\', \'Dell\')", "price": "double"}')
    place.run("--schema", str(path))
    assert place.matches() == {"event": [0, 0, 1], "subscription": ["ann", "bob", "bob"]}
    assert "'Acer' (str) lies outside the domain" in place.letters()[0]["reason"]


@pytest.mark.parametrize(
    ("options", "subscribers"),
    [
        (["--semantics", "sql"], ["or"]),
        (["--semantics", "strict"], []),
        (["--semantics", "total"], []),
        (
            ["--semantics", "default", "--defaults", '{"company": null, "price": 0}'],
            ["not", "or"],
        ),
    ],
)
def test_each_semantics(place, options, subscribers):
    write_subscriptions(
        place.subscriptions,
        [("not", "NOT company = 'IBM'"), ("or", "company = 'IBM' OR price < 10")],
    )
    place.events = place.write("e.jsonl", '{"price": 5}\n')
    place.run("--schema", "company:string,price:double", *options)
    assert place.matches()["subscription"] == subscribers
    assert place.summary()["semantics"] == options[1]
    assert place.summary()["dead_letters"] == (options[1] == "total")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--schema", "company"], "expected NAME:TYPE, got 'company'"),
        (["--schema", "price:money"], "has the unknown type 'money'"),
        (["--schema", "nowhere.json"], "No such file"),
        (["--semantics", "default"], "defaults"),
        (["--semantics", "default", "--defaults", "{"], "--defaults is no JSON"),
        (["--semantics", "default", "--defaults", '{"price": 1}'], "defaults lack company"),
        (["--defaults", "{}"], "defaults"),
    ],
)
def test_options_that_do_not_fit(place, options, message):
    assert message in place.fail(*options)


# --- files that cannot be used


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("e.csv", "", "has no readable event to find a schema in; give --schema"),
        ("e.csv", "company,price\n", "has no readable event"),
        ("e.jsonl", "", "has no readable event"),
        ("e.jsonl", "{\n", "has no readable event"),
        ("e.xml", "", "has no readable event"),
        ("e.json", "[]", "has no readable event"),
        ("e.json", "", "is no JSON"),
        ("e.parquet", "", "is no readable Parquet file"),
        ("e.parquet", "PAR1 nothing of use PAR1", "is no readable Parquet file"),
        ("e.csv", b"company\n\xff\n", "is no valid UTF-8"),
        ("e.json", b'["\xff"]', "is no valid UTF-8"),
        ("e.xml", b"<a>\xff</a>", "is no valid UTF-8"),
        ("e.xml", "<!DOCTYPE a [<!ENTITY x 'y'>]><a><price>&x;</price></a>", "e.xml: "),
        ("e.csv", "a,a\n1,2\n", "the header names a column twice"),
        ("e.txt", "", "the extension '.txt' is unknown; files end in .parquet"),
        ("e.jsonl", '{"a": 1}\n{"a": "x"}\n', "attribute a has values of type int and of type s"),
    ],
)
def test_events_that_cannot_be_used(place, name, content, message):
    place.events = place.write(name, content)
    assert message in place.fail()


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("s.csv", "", "has no subscriptions"),
        ("s.csv", "id,filter\n", "has no subscriptions"),
        ("s.jsonl", "\n", "has no subscriptions"),
        ("s.json", "[]", "has no subscriptions"),
        ("s.csv", b"id,filter\n\xff,TRUE\n", "is no valid UTF-8"),
        ("s.parquet", "nothing", "is no readable Parquet file"),
        ("s.sql", "", "the extension '.sql' is unknown"),
    ],
)
def test_subscriptions_that_cannot_be_used(place, name, content, message):
    place.subscriptions = place.write(name, content)
    assert message in place.fail()


@pytest.mark.parametrize("which", ["events", "subscriptions"])
def test_a_file_that_is_not_there(place, which):
    setattr(place, which, place.folder / "nowhere.csv")
    assert "nowhere.csv does not exist" in place.fail()


def test_a_folder_instead_of_a_file(place):
    place.events = place.folder / "folder.csv"
    place.events.mkdir()
    assert "is a folder, expected a file" in place.fail()


@pytest.mark.parametrize(
    ("name", "content"),
    [("e.csv", ""), ("e.csv", "company,price\n"), ("e.jsonl", ""), ("e.json", "[]"), ("e.xml", "")],
)
def test_no_events_are_no_failure_if_the_schema_is_known(place, name, content):
    place.events = place.write(name, content)
    place.run("--schema", "company:string,price:double")
    assert place.matches() == {"event": [], "subscription": []}
    assert place.summary()["events"] == 0


# --- the output folder


def test_an_existing_folder_is_not_written_over(place):
    place.run()
    write_events(place.events, [("IBM", 5.0)])
    assert "exists and is not empty; pass --overwrite to replace it" in place.fail()
    assert place.matches() == PAIRS


def test_an_existing_folder_is_replaced_on_demand(place):
    write_events(place.events, [("IBM", "cheap")])
    place.run("--schema", "company:string,price:double")
    write_events(place.events)
    place.run("--overwrite")
    assert place.matches() == PAIRS
    # The dead letters of the first run are gone.
    assert sorted(path.name for path in place.out.iterdir()) == ["matches.parquet", "summary.json"]


def test_overwrite_needs_nothing_to_overwrite(place):
    place.run("--overwrite")
    assert place.matches() == PAIRS


def test_an_empty_folder_is_used(place):
    place.out.mkdir()
    place.run()
    assert place.matches() == PAIRS


def test_a_failed_run_keeps_the_output_of_the_last(place):
    place.run()
    place.events = place.write("e.csv", "")
    place.fail("--overwrite")
    assert place.matches() == PAIRS


@pytest.mark.parametrize("name", ["thesis.txt", ".hidden"])
def test_a_folder_with_foreign_files_is_never_replaced(place, name):
    place.run()
    (place.out / name).write_text("mine", encoding="utf-8")
    message = place.fail("--overwrite")
    assert f"holds files that tamis match did not write ({name}); name another folder" in message
    assert (place.out / name).read_text(encoding="utf-8") == "mine"


def test_the_folder_of_the_inputs_is_not_replaced(place):
    place.out = place.folder
    assert "holds files that tamis match did not write" in place.fail("--overwrite")
    assert place.events.exists()


@pytest.mark.parametrize("options", [[], ["--overwrite"]])
def test_a_file_is_no_folder_for_the_output(place, options):
    place.out = place.write("out.txt", "mine")
    assert "exists and is no folder" in place.fail(*options)


def test_a_folder_below_a_file_cannot_be_made(place):
    place.out = place.write("out.txt", "mine") / "out"
    assert "cannot be written" in place.fail()


def test_a_write_that_breaks_off_leaves_the_last_output(place, monkeypatch):
    place.run()

    def full(*_arguments, **_options):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(command.pq, "write_table", full)
    assert "cannot be written: No space left on device" in place.fail("--overwrite")
    monkeypatch.undo()
    assert place.matches() == PAIRS
