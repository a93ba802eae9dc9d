import json
import re
from xml.etree import ElementTree as ET  # our own text, or a failing test

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
    assert ("--json" in arguments) == bool(output.out)  # errors are JSON as well
    assert output.err.startswith("tamis explain: ")
    return output.err


SCHEMA = "price:double,company:string,level:int(1, 5),side:enum('a,b', 'c')"


def test_a_filter_with_an_inferred_schema(capsys):
    assert run(capsys, "price<10 and not company='IBM'").splitlines() == [
        "filter       price < 10 AND NOT company = 'IBM'",
        "attributes   price double, company string   (inferred; --schema can say better)",
        "semantics    sql",
        "normal form  price < 10.0 AND company <> 'IBM'",
        "predicates   2",
        "  price < 10.0",
        "  company <> 'IBM'",
    ]


def test_a_filter_with_a_schema(capsys):
    text = run(capsys, "level > 1 AND side = 'a,b'", "--schema", SCHEMA)
    assert "attributes   level int(1, 5), side enum('a,b', 'c')\n" in text
    assert "inferred" not in text


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
    assert "the event lacks company" in fail(capsys, *arguments)


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
        (["price < 1", "--event", "{"], "the event is not valid JSON"),
        (["price < 1", "--event", ""], "the event is not valid JSON"),
        (["price < 1", "--event", "<price>"], "the event is not valid XML"),
        (["price < 1", "--event", '{"price": "x"}'], "attribute price expects double"),
        (["price < 1", "--semantics", "default"], "defaults"),
        (["price < 1", "--semantics", "default", "--defaults", "{}"], "defaults lack price"),
        (
            ["price < 1", "--semantics", "default", "--defaults", "{"],
            "--defaults is not valid JSON",
        ),
        (["price < 1", "--defaults", '{"price": 1}'], "defaults"),
        (["s = '\udcff'"], "not valid Unicode"),
    ],
)
def test_failures(capsys, arguments, message):
    assert message in fail(capsys, *arguments)


# --- the graph


def texts(svg):
    """What is written in a picture, the legend left out."""
    root = ET.fromstring(svg)  # noqa: S314 - our own text
    return [element.text for element in root.iter("{http://www.w3.org/2000/svg}text")][:-2]


def test_a_graph(capsys, tmp_path):
    path = tmp_path / "diagram.svg"
    text = run(capsys, "price < 10 AND company = 'IBM'", "--graph", str(path))
    assert text.splitlines()[-1] == f"graph        {path}   (2 nodes)"
    assert texts(path.read_text(encoding="utf-8")) == [
        "price < 10 AND company = 'IBM'", "price < 10.0", "company = 'IBM'", "0", "1",
    ]  # fmt: skip
    assert [p.name for p in tmp_path.iterdir()] == ["diagram.svg"]


def test_a_graph_on_the_standard_output(capsys):
    svg = run(capsys, "price < 10 AND s = 'é'", "--graph", "-")
    assert svg.startswith("<svg ")
    assert svg.endswith("</svg>\n")
    assert "s = 'é'" in texts(svg)


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (["--semantics", "sql"], ["price < 5.0", "price >= 5.0", "0", "1"]),
        (["--semantics", "strict"], ["1"]),
        (["--semantics", "total"], ["1"]),
        (["--semantics", "default", "--defaults", '{"price": 0}'], ["1"]),
        (
            ["--semantics", "default", "--defaults", '{"price": null}'],
            ["price < 5.0", "price >= 5.0", "0", "1"],
        ),
    ],
)
def test_a_graph_is_restricted_by_what_is_known_of_its_predicates(capsys, options, shown):
    """As far as the semantics allows: where a price may be missing, neither may be true."""
    svg = run(capsys, "price < 5 OR price >= 5", "--graph", "-", *options)
    assert sorted(texts(svg)[1:]) == sorted(shown)
    strict = "if the event has price: " if options[1] == "strict" else ""
    assert f"<title>{strict}price &lt; 5 OR price &gt;= 5</title>" in svg


def test_a_graph_uses_the_domains_of_the_schema(capsys):
    arguments = ["level < 2 AND level = 1", "--schema", SCHEMA, "--graph", "-"]
    assert len(re.findall('class="node"', run(capsys, *arguments))) == 1


def test_a_graph_with_an_event_and_for_machines(capsys, tmp_path):
    path = tmp_path / "DIAGRAM.SVG"
    arguments = ["price < 10", "--event", '{"price": 5}', "--graph", str(path)]
    text = run(capsys, *arguments)
    assert f"graph        {path}   (1 node)\n\n'the filter' matches" in text
    before = path.read_bytes()
    answer = json.loads(run(capsys, *arguments, "--json"))
    assert answer["graph"] == {"file": str(path), "nodes": 1}
    assert answer["why"]["matched"] is True
    assert path.read_bytes() == before  # written again, the same


def test_a_graph_goes_where_a_link_points_to(capsys, tmp_path):
    (tmp_path / "there").mkdir()
    link, target = tmp_path / "link.svg", tmp_path / "there" / "real.svg"
    link.symlink_to(target)
    run(capsys, "price < 10", "--graph", str(link))
    assert link.is_symlink()
    assert target.read_text(encoding="utf-8").startswith("<svg ")


def test_graphs_that_cannot_be_written(capsys, tmp_path):
    (tmp_path / "folder.svg").mkdir()
    nowhere = tmp_path / "nowhere" / "x.svg"
    for path, message in [
        (str(nowhere), f"{nowhere} cannot be written: No such file or directory"),
        (str(tmp_path / "folder.svg"), "folder.svg cannot be written: Is a directory"),
        (f"{tmp_path}/{'x' * 300}.svg", "cannot be written: File name too long"),
        (f"{tmp_path}/a\0b.svg", "cannot be written: "),
        (str(tmp_path / "x.png"), "the graph is SVG; the file name must end in .svg"),
        ("", "the graph is SVG; the file name must end in .svg"),
    ]:
        assert message in fail(capsys, "price < 10", "--graph", path)
    assert [p.name for p in tmp_path.iterdir()] == ["folder.svg"]
    assert list((tmp_path / "folder.svg").iterdir()) == []


def test_a_graph_and_an_answer_for_machines_do_not_share_the_output(capsys):
    message = fail(capsys, "price < 10", "--graph", "-", "--json")
    assert "--graph - and --json both print" in message


def test_a_filter_that_is_wrong_leaves_the_old_graph(capsys, tmp_path):
    path = tmp_path / "diagram.svg"
    path.write_text("old", encoding="utf-8")
    fail(capsys, "price <", "--graph", str(path))
    fail(capsys, "price < 10", "--event", "{", "--graph", str(path))
    assert path.read_text(encoding="utf-8") == "old"


@pytest.mark.long
def test_a_graph_that_is_too_large_to_read(capsys, tmp_path):
    path = tmp_path / "diagram.svg"
    many = " AND ".join(f"a{n} = {n}" for n in range(200))
    message = fail(capsys, many, "--graph", str(path))
    assert "at most 200 nodes and labels, and this diagram has 201" in message
    exponential = " OR ".join(f"(a{n} = 1 AND b{n} = 1)" for n in range(30))
    schema = ",".join(f"{letter}{n}:int" for letter in "ab" for n in range(30))
    message = fail(capsys, exponential, "--schema", schema, "--graph", str(path))
    assert "more than 200,000 nodes" in message
    assert not path.exists()
