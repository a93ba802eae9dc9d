"""The whole page, as a parser of XML reads it."""

import math
import re
import stat
import xml.etree.ElementTree as ET

import pytest

from cases import each
from tamis.errors import FileError, OptionError
from tamis.report import Page, doubling

NASTY = "<script>alert(\"1\")</script> & 'x' ]]> --> \0\x1b\ud800 \u202e " + "long" * 2000


def read(page):
    return ET.fromstring(str(page))  # noqa: S314 - it is our own


def headings(tree):
    return [(part.tag, part.text) for part in tree.iter() if re.fullmatch("h[1-6]", part.tag)]


def example(word="word"):
    page = Page(word, word, footer=word)
    page.facts([(word, word), (word, 18_034_221)])
    page.part(word, word)
    page.table(word, [word, word], [(word, 1)], code=[word], note=word)
    page.bars(word, [word], [1], remarks=[word], headings=(word, word, word), note=word)
    page.histogram(word, *doubling({0: 1, 5: 10}), axes=(word, word), note=word)
    page.lines(word, [1, 2], {word: [1, 2], word + "2": [1, 2]}, axes=(word, word),
               marks={1: word}, note=word)  # fmt: skip
    page.text(word, word, note=word)
    return page


def test_a_page_has_its_sections_in_order():
    page = Page("Demo", "What was done.", footer="tamis")
    page.facts([("events", 400_000), ("time", "6.8 s")])
    page.part("Batch")
    page.text("Plan", "\n  engine\n    part\n")
    page.part("Stream", "Twenty micro-batches.")
    page.lines("Speed", [1, 2], {"events": [3, 4]}, axes=("micro-batch", "events per second"))
    tree = read(page)
    assert headings(tree) == [
        ("h1", "Demo"), ("h2", "Batch"), ("h3", "Plan"), ("h2", "Stream"), ("h3", "Speed"),
    ]  # fmt: skip
    assert [(g[0].text, g[1].text) for g in tree.findall(".//dl/div")] == [
        ("events", "400,000"), ("time", "6.8 s"),
    ]  # fmt: skip
    assert tree.find(".//pre").text == "  engine\n    part"
    assert tree.find(".//pre").get("tabindex") == "0"  # the keyboard reaches it, in its turn
    assert tree.find(".//footer").text == "tamis"
    assert tree.find("head/title").text == "Demo"


def test_sections_before_any_part_are_of_the_second_level():
    page = Page("Demo")
    page.text("Plan", "engine")
    assert headings(read(page)) == [("h1", "Demo"), ("h2", "Plan")]


def test_charts_have_their_numbers_as_tables():
    page = Page("Demo")
    page.lines("Speed", [1, 2], {"a": [3, None], "b": [5.5, 6]}, axes=("batch", "rate"))
    page.histogram("Matches", [0, 1, 2], [7, 8], axes=("matches", "events"))
    tables = [
        [["".join(cell.itertext()) for cell in row] for row in table.iter("tr")]
        for table in read(page).findall(".//details//table")
    ]
    assert tables == [
        [["batch", "a", "b"], ["1", "3", "5.5"], ["2", "–", "6"]],
        [["matches", "events"], ["0", "7"], ["1", "8"]],
    ]


def test_every_drawing_has_a_name_or_is_hidden():
    tree = read(example())
    ids = [part.get("id") for part in tree.iter() if part.get("id")]
    assert len(ids) == len(set(ids)) == 4
    for drawing in tree.iter("svg"):
        named = (drawing.get("aria-labelledby") or "").split()
        assert drawing.get("aria-hidden") == "true" or (named and set(named) <= set(ids))


def test_several_lines_have_a_legend():
    assert [item[0].tail for item in read(example()).findall(".//ul/li")] == ["word", "word2"]
    page = Page("Demo")
    page.lines("Speed", [1], {"a": [1]})
    assert read(page).find(".//ul") is None


def test_a_page_is_the_same_every_time():
    assert str(example()) == str(example())


def test_nothing_is_loaded_and_nothing_runs():
    text = str(example())
    assert (
        re.search(r"(?i)https?:|//|url\(|@import|<script|javascript|<link|\bon\w+=", text) is None
    )
    assert not {"src", "href"} & {name for part in read(example()).iter() for name in part.attrib}


def test_both_modes_and_paper_are_thought_of():
    style = read(Page("Demo")).find("head/style").text
    assert "prefers-color-scheme: dark" in style
    assert "@media print" in style
    defined = set(re.findall(r"(--\w+):", style))
    assert set(re.findall(r"var\((--\w+)\)", style)) == defined


def test_all_text_is_escaped_and_cut():
    plain, nasty = read(example()), read(example(NASTY))
    assert [part.tag for part in nasty.iter()] == [part.tag for part in plain.iter()]
    assert len(str(example(NASTY))) < 40 * len(NASTY)
    (cell,) = nasty.findall(".//tbody/tr/th")
    assert cell.text.startswith("<script>")
    assert cell.get("title").startswith("<script>")


@each("log", [False, True])
@each(
    "values",
    [
        [],
        [0],
        [5],
        [7, 7, 7],
        [math.nan, None],
        [1, math.nan, 3],
        [math.inf, -math.inf, 2],
        [-5, -1],
        [-1e308, 1e308],
        [10**400, -(10**400)],
        [5e-324, 1e-310],
        [1e15, 1e15 + 0.25],
    ],
)
def test_degenerate_values(values, log):
    places = list(range(len(values)))
    page = Page("Demo")
    page.facts([("value", value) for value in values])
    page.table("table", ["value"], [[value] for value in values])
    page.bars("bars", places, values)
    page.histogram("histogram", [*places, len(values)], values, log=log)
    page.lines("up", places, {"a": values}, from_zero=log)
    page.lines("across", values, {"a": places}, from_zero=log)
    page.text("text", "")
    tree = read(page)
    drawn = "".join(f" {v}" for part in tree.find("body").iter("svg") for p in part.iter()
                    for k, v in p.attrib.items() if k not in {"class", "role"})  # fmt: skip
    assert re.search(r"nan|inf|e\+", drawn) is None
    nothing = [p.text for p in tree.iter("p")].count("Nothing to show.")
    assert nothing == (0 if values else 5)


def test_lines_without_series():
    page = Page("Demo")
    page.lines("Speed", [1, 2], {})
    assert read(page).find(".//section/p").text == "Nothing to show."


@each(
    ("call", "message"),
    [
        (lambda p: p.bars("t", [1, 2], [1]), "bars 't': 2 labels and 1 values"),
        (lambda p: p.bars("t", [1], [1], remarks=[1, 2]), "bars 't': 1 labels and 2 remarks"),
        (lambda p: p.table("t", ["a"], [(1,), ()]), "table 't', row 1: 1 columns and 0 values"),
        (lambda p: p.lines("t", [1], {"s": []}), "lines 't', series 's': 1 x and 0 values"),
        (lambda p: p.histogram("t", [1, 2, 3], [1]), "histogram 't': 1 counts and 3 edges"),
    ],
)
def test_lengths_that_differ_are_an_error_and_change_nothing(call, message):
    page = Page("Demo")
    with pytest.raises(OptionError, match=re.escape(message)):
        call(page)
    assert str(page) == str(Page("Demo"))


def test_a_page_is_written_whole_and_alone(tmp_path):
    path = tmp_path / "report.html"
    path.write_text("old")
    (tmp_path / "other.html").write_text("other")
    page = example()
    page.write(path)
    assert path.read_text(encoding="utf-8") == str(page)
    assert sorted(file.name for file in tmp_path.iterdir()) == ["other.html", "report.html"]
    assert (tmp_path / "other.html").read_text() == "other"


def test_others_may_read_what_is_written(tmp_path):
    (tmp_path / "plain").write_text("")
    Page("Demo").write(str(tmp_path / "report.html"))
    rights = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("plain", "report.html")]
    assert rights[0] == rights[1]


def test_a_link_stays_a_link(tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "link.html").symlink_to(tmp_path / "folder" / "report.html")
    Page("Demo").write(tmp_path / "link.html")
    assert (tmp_path / "link.html").is_symlink()
    assert (tmp_path / "folder" / "report.html").read_text(encoding="utf-8") == str(Page("Demo"))


def test_a_failed_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("pathlib.Path.replace", full)
    with pytest.raises(FileError, match=r"report\.html cannot be written: No space left"):
        Page("Demo").write(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["", "missing/report.html", "nul\0.html"])
def test_paths_that_cannot_be_written(tmp_path, name):
    with pytest.raises(FileError, match="cannot be written"):
        Page("Demo").write(f"{tmp_path}/{name}")
    assert list(tmp_path.iterdir()) == []
