import json

import pytest

from tamis.cli import main


def run(capsys, *arguments):
    """The text of a run that succeeds."""
    assert main(["explain", *arguments]) == 0
    output = capsys.readouterr()
    assert output.err == ""
    return output.out


def fail(capsys, *arguments):
    """The message of a run that fails."""
    assert main(["explain", *arguments]) == 1
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("tamis explain: ")
    return output.err


SCHEMA = "price:double,company:string,level:int(1, 5),side:enum('a,b', 'c')"


def test_a_filter_with_a_guessed_schema(capsys):
    assert run(capsys, "price<10 and not company='IBM'").splitlines() == [
        "filter       price < 10 AND NOT company = 'IBM'",
        "attributes   price double, company string   (guessed; say better with --schema)",
        "semantics    sql",
        "normal form  price < 10.0 AND company <> 'IBM'",
        "predicates   2",
        "  price < 10.0",
        "  company <> 'IBM'",
    ]


def test_a_filter_with_a_schema(capsys):
    text = run(capsys, "level > 1 AND side = 'a,b'", "--schema", SCHEMA)
    assert "attributes   level int(1, 5), side enum('a,b', 'c')\n" in text
    assert "guessed" not in text


def test_a_filter_with_the_schema_of_a_file(capsys, tmp_path):
    path = tmp_path / "schema.json"
    path.write_text('{"price": "int", "company": "string"}', encoding="utf-8")
    text = run(capsys, "price < 10.5", "--schema", str(path))
    assert "attributes   price int\n" in text
    assert "normal form  price <= 10\n" in text


def test_a_filter_without_attributes(capsys):
    text = run(capsys, "TRUE")
    assert "attributes   none" in text
    assert "predicates   0\n" in text


def test_a_predicate_that_occurs_twice_is_listed_once(capsys):
    text = run(capsys, "(price < 1 AND a = 'x') OR (price < 1 AND b = 'y')")
    assert text.count("\n  price < 1.0\n") == 1
    assert "predicates   3\n" in text


@pytest.mark.parametrize(
    "event", ['{"price": 5, "company": "IBM"}', "<company>IBM</company><price>5</price>"]
)
def test_an_event_is_judged_atom_by_atom(capsys, event):
    text = run(capsys, "price < 10 AND company = 'Dell'", "--event", event)
    assert text.splitlines()[-4:] == [
        "'the filter' does not match: price < 10 AND company = 'Dell'",
        "  false  AND",
        "  true     price < 10         price = 5.0",
        "  false    company = 'Dell'   company = 'IBM'",
    ]


@pytest.mark.parametrize(
    ("options", "matched", "note"),
    [
        (["--semantics", "sql"], False, None),
        (["--semantics", "strict"], False, "company is missing: no match"),
        (
            ["--semantics", "default", "--defaults", '{"price": 0, "company": null}'],
            True,
            "company is missing and takes its default, the special value ⊥",
        ),
        (
            ["--semantics", "default", "--defaults", '{"price": 0, "company": "IBM"}'],
            False,
            "company is missing and takes its default, 'IBM'",
        ),
    ],
)
def test_each_semantics_with_a_partial_event(capsys, options, matched, note):
    text = run(
        capsys, "price < 10 AND NOT company = 'IBM'", "--event", '{"price": 5}', *options
    )  # fmt: skip
    assert ("'the filter' matches" in text) is matched
    assert f"semantics    {options[1]}\n" in text
    assert note is None or note in text


def test_total_semantics_refuses_a_partial_event(capsys):
    arguments = ["price < 10 AND company = 'x'", "--event", '{"price": 5}', "--semantics", "total"]
    assert "the event misses company" in fail(capsys, *arguments)


def test_total_semantics_with_a_whole_event(capsys):
    text = run(capsys, "price < 10", "--event", '{"price": 5}', "--semantics", "total")
    assert "'the filter' matches" in text


def test_the_normal_form_depends_on_the_semantics(capsys):
    arguments = ["NOT price < 10", "--semantics", "default", "--defaults", '{"price": null}']
    assert "normal form  price >= 10.0 OR price IS NULL\n" in run(capsys, *arguments)
    assert "normal form  price >= 10.0\n" in run(capsys, "NOT price < 10")


def test_the_answer_for_machines(capsys):
    text = run(capsys, "price<10 AND s = 'é'", "--json")
    assert json.loads(text) == {
        "filter": "price < 10 AND s = 'é'",
        "attributes": {"price": "double", "s": "string"},
        "semantics": "sql",
        "normal_form": "price < 10.0 AND s = 'é'",
        "predicates": ["price < 10.0", "s = 'é'"],
    }
    assert text.count("\n") == 1


@pytest.mark.parametrize("semantics", ["sql", "strict", "total"])
def test_the_answer_for_machines_with_an_event(capsys, semantics):
    arguments = ["price < 10", "--event", '{"price": 5}', "--json", "--semantics", semantics]
    answer = json.loads(run(capsys, *arguments))
    assert answer["semantics"] == semantics
    assert answer["why"]["matched"] is True
    assert answer["why"]["root"] == {"text": "price < 10", "truth": True, "values": {"price": 5.0}}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["price <"], "the filter ends too early"),
        ([""], "the filter is empty"),
        (["price < 10", "--schema", "prize:double"], "did you mean 'prize'?"),
        (["price = 'x'", "--schema", "price:double"], "line 1, column 9"),
        (["level = 9", "--schema", SCHEMA], "lies outside the domain int(1, 5)"),
        (["side = 'a'", "--schema", SCHEMA], "lies outside the domain enum('a,b', 'c')"),
        (["price < 1", "--schema", "price"], "expected NAME:TYPE"),
        (["price < 1", "--schema", "nowhere.json"], "No such file"),
        (["price < 1", "--event", "{"], "the event is no JSON"),
        (["price < 1", "--event", ""], "the event is no JSON"),
        (["price < 1", "--event", "<price>"], "the event is no XML"),
        (["price < 1", "--event", '{"price": "x"}'], "attribute price expects double"),
        (["price < 1", "--semantics", "default"], "defaults"),
        (["price < 1", "--semantics", "default", "--defaults", "{}"], "defaults lack price"),
        (["price < 1", "--semantics", "default", "--defaults", "{"], "--defaults is no JSON"),
        (["price < 1", "--defaults", '{"price": 1}'], "defaults"),
        (["s = '\udcff'"], "no valid Unicode"),
    ],
)
def test_failures(capsys, arguments, message):
    assert message in fail(capsys, *arguments)
