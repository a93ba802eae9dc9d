"""What is drawn, read back from the drawing."""

import math
import re
import xml.etree.ElementTree as ET

from hypothesis import given
from hypothesis import strategies as st

from tamis.report.charts import DOTS, HEIGHT, WIDTH, Caption, histogram, line_chart, whole
from tamis.report.scales import measured

CAPTION = Caption("chart-1", "Speed", "micro-batch", "events per second")
coordinate = (st.floats() | st.integers()).map(measured)


def drawn(markup):
    return ET.fromstring(markup)  # noqa: S314 - it is our own


def lines(series, marks=(), **options):
    return drawn(line_chart(CAPTION, series, marks=dict(marks), **options))


def bins(names, counts, *, log=False):
    return drawn(histogram(CAPTION, names, counts, log=log))


def texts(tree):
    return [text.text for text in tree.iter("text")]


def numbers(tree):
    """All coordinates of a drawing."""
    for part in tree.iter():
        for name, value in part.attrib.items():
            if name in {"x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "width", "height"}:
                yield float(value)
            if name == "d":
                yield from map(float, re.findall(r"[^ML ]+", value))


def test_a_drawing_can_be_heard():
    tree = lines({"events": [(1, 5000), (2, 7000)]})
    named = {part.get("id"): part.text for part in tree if part.tag in {"title", "desc"}}
    assert [named[name] for name in tree.get("aria-labelledby").split()] == [
        "Speed", "events: 2 values, lowest 5,000, highest 7,000, last 7,000.",
    ]  # fmt: skip
    assert tree.get("role") == "img"


def test_a_line_and_its_dots():
    tree = lines({"events": [(1, 0), (2, 50), (3, 100)]})
    (path,) = tree.iter("path")
    dots = [(dot.get("cx"), dot.get("cy")) for dot in tree.iter("circle")]
    assert path.get("d") == "M" + "L".join(f"{x} {y}" for x, y in dots)
    assert [float(y) for _, y in dots] == [234, 134, 34]
    assert [tip.text for tip in tree.findall(".//circle/title")] == [
        "events, micro-batch 1: 0", "events, micro-batch 2: 50", "events, micro-batch 3: 100",
    ]  # fmt: skip
    assert texts(tree) == [
        "events per second", "0", "20", "40", "60", "80", "100", "1", "2", "3", "micro-batch",
    ]  # fmt: skip


def test_a_missing_value_is_a_gap():
    tree = lines({"a": [(1, 1), (2, 2), (3, math.nan), (4, 2), (math.nan, 3), (6, 2), (7, 3)]})
    assert [path.get("d").count("L") for path in tree.iter("path")] == [1, 1]
    assert len(list(tree.iter("circle"))) == 5


def test_many_points_have_no_dots_but_lone_ones_do():
    points = [(n, n) for n in range(DOTS + 1)]
    assert not list(lines({"a": points}).iter("circle"))
    lone = [*points, (DOTS + 1, math.nan), (DOTS + 2, 5)]
    assert len(list(lines({"a": lone}).iter("circle"))) == 1


def test_several_lines_differ_in_colour_and_then_in_dashes():
    tree = lines({f"s{n}": [(1, n), (2, n)] for n in range(6)})
    styles = [group.get("class") for group in tree.iter("g")]
    assert styles == [
        "line c0", "line c1", "line c2", "line c3", "line c0 dashed", "line c1 dashed",
    ]  # fmt: skip


def test_axes_begin_at_zero_unless_told():
    points = [(1, 1000), (2, 1004)]
    assert "0" in texts(lines({"a": points}))
    assert "0" not in texts(lines({"a": points}, from_zero=False))


def test_the_base_is_at_zero_among_negative_values():
    tree = lines({"a": [(1, -10), (2, 10)]})
    (base,) = [line for line in tree.iter("line") if line.get("class") == "base"]
    assert float(base.get("y1")) == (34 + HEIGHT - 46) / 2


def test_marks_are_named_where_there_is_room():
    points = [(n, 1) for n in range(1, 21)]
    marks = {7: "version 2", 13: "version 3", 13.2: "version <4>", 99: "outside", 20: "at the end"}
    tree = lines({"a": points}, marks)
    named = [text for text in texts(tree) if text.startswith(("version", "out", "at"))]
    tips = [line[0].text for line in tree.iter("line") if line.get("class") == "mark"]
    assert named == ["version 2", "version 3"]
    assert tips == ["version 2", "version 3", "version <4>", "at the end"]


def test_a_histogram():
    tree = bins(["0", "1", "2–3"], [5, 0, 10])
    heights = [float(bar.get("height")) for bar in tree.iter("rect")]
    assert heights == [100, 0, 200]
    assert [tip.text for tip in tree.findall(".//rect/title")] == ["0: 5", "1: 0", "2–3: 10"]
    assert tree.find("desc").text == "3 bins from 0 to 2–3. The highest, 10, at 2–3."


def test_a_logarithmic_histogram_shows_ones_and_leaves_out_zeros():
    tree = bins(["a", "b", "c", "d"], [1, 0, 1000, -5], log=True)
    heights = {bar[0].text: float(bar.get("height")) for bar in tree.iter("rect")}
    assert set(heights) == {"a: 1", "c: 1,000"}
    assert 0 < heights["a: 1"] < heights["c: 1,000"] == 200
    assert {"1", "10", "100", "1,000"} <= set(texts(tree))


def test_few_are_not_none():
    tree = bins(["a", "b"], [10**9, 1])
    assert [float(bar.get("height")) for bar in tree.iter("rect")] == [200, 1]


def test_names_of_bins_do_not_run_into_each_other():
    names = [f"{n:,}–{n + 99:,}" for n in range(0, 10_000, 100)]
    shown = [text for text in texts(bins(names, [1] * 100)) if "–" in text]
    assert shown[0] == names[0]
    assert 5 < len(shown) < 15


@given(st.lists(st.tuples(coordinate, coordinate), min_size=1, max_size=8), st.booleans())
def test_any_line_stays_inside(points, from_zero):
    tree = lines({"a": points}, {1: "mark", math.nan: "never"}, from_zero=from_zero)
    assert all(-1 <= place <= WIDTH + 1 for place in numbers(tree))


@given(st.lists(coordinate, min_size=1, max_size=8), st.booleans())
def test_any_histogram_stays_inside(counts, log):
    tree = bins([f"bin {n}" for n in range(len(counts))], counts, log=log)
    assert all(-1 <= place <= WIDTH + 1 for place in numbers(tree))


def test_numbers_without_a_fraction_are_shown_as_whole_ones():
    assert [repr(whole(value)) for value in (2.0, -0.0, 2.5, 1e300, 7)] == [
        "2", "0", "2.5", repr(int(1e300)), "7",
    ]  # fmt: skip
    assert whole(math.inf) == math.inf
