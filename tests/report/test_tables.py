"""Tables, and bars in them."""

import math
import xml.etree.ElementTree as ET

from tamis.report.tables import ROWS, bars, table

NONE = ("", "", "")


def read(markup):
    return ET.fromstring(f"<div>{markup}</div>")  # noqa: S314 - it is our own


def rows(tree):
    return [["".join(cell.itertext()) for cell in row] for row in tree.findall(".//tbody/tr")]


def boxes(tree):
    return [(float(box.get("x")), float(box.get("width"))) for box in tree.iter("rect")]


def test_a_table():
    tree = read(table(["id", "filter", "matches"], [("a", "x < 5", 1234), ("b", "y", None)]))
    assert [head.text for head in tree.findall(".//thead/tr/th")] == ["id", "filter", "matches"]
    assert rows(tree) == [["a", "x < 5", "1,234"], ["b", "y", "–"]]


def test_only_columns_of_numbers_are_aligned_to_the_right():
    tree = read(table(["a", "b", "c", "d"], [(1, 1, None, True), (2.5, "x", None, False)]))
    for row in (tree.find(".//thead/tr"), *tree.findall(".//tbody/tr")):
        assert [cell.get("class") for cell in row] == ["number", None, None, None]


def test_columns_of_code():
    tree = read(table(["a", "b"], [("x", "y")], code=["b"]))
    assert [code.text for code in tree.iter("code")] == ["y"]


def test_long_cells_are_cut_and_say_the_rest():
    text = "x = '" + "<&>" * 500 + "'"
    (cell,) = read(table(["a"], [(text,)])).findall(".//td")
    assert cell.text.endswith("…")
    assert cell.get("title") == text


def test_a_table_ends_somewhere():
    tree = read(table(["n"], [(n,) for n in range(ROWS + 5)]))
    assert len(rows(tree)) == ROWS
    assert tree.find("p").text == "The first 1,000 of 1,005 rows."


def test_bars_with_their_numbers():
    tree = read(bars(["a", "b"], [200, 50], ["x < 5", "y"], ("id", "matches", "filter")))
    assert rows(tree) == [["a", "x < 5", "", "200"], ["b", "y", "", "50"]]
    assert boxes(tree) == [(0, 100), (0, 25)]
    assert ["".join(h.itertext()) for h in tree.find(".//thead/tr")] == [
        "id", "filter", "", "matches",
    ]  # fmt: skip


def test_bars_without_headings_and_remarks():
    tree = read(bars(["a"], [1], (), NONE))
    assert tree.find(".//thead") is None
    assert rows(tree) == [["a", "", "1"]]


def test_bars_of_negative_values_go_the_other_way():
    assert boxes(read(bars(["a", "b"], [-10, 30], (), NONE))) == [(0, 25), (25, 75)]


def test_bars_of_values_that_cannot_be_drawn():
    tree = read(bars("abcde", [math.nan, None, math.inf, 0, 10**400], (), NONE))
    assert [row[-1] for row in rows(tree)] == ["–", "–", "∞", "0", "1.000e+400"]
    assert boxes(tree) == [(0, 0), (0, 100)]


def test_bars_of_zeros():
    assert boxes(read(bars("ab", [0, 0], (), NONE))) == [(0, 0), (0, 0)]
