"""Curves: each with its own x, a spread, and a style that says where it comes from."""

from xml.etree import ElementTree as ET

from cases import each
from tamis.report import Curve, CurvePoint, Page
from tamis.report.charts import Caption
from tamis.report.curves import curve_chart

OURS = Curve("ours", [CurvePoint(1_000, 2.0, 1.0, 3.0), CurvePoint(100_000, 30.0, 30.0, 30.0)])
THEIRS = Curve("theirs", [CurvePoint(10_000, 5.0, 5.0, 5.0)], 0, is_dashed=True)
NAMED = Curve("ours", [CurvePoint("plain", 1.0, 1.0, 1.0), CurvePoint("tuned", 0.4, 0.3, 0.5)])
SPACE = "{http://www.w3.org/2000/svg}"


def chart(*curves, log=True):
    svg = curve_chart(Caption("c", "Time", "size", "ms"), curves, log=log)
    return ET.fromstring(svg)  # noqa: S314 - our own


def dots(group):
    return [(float(dot.get("cx")), float(dot.get("cy"))) for dot in group.iter("circle")]


def lines(drawn):
    return [group for group in drawn.iter("g") if "line" in group.get("class", "").split()]


def test_curves_have_their_own_x_on_common_axes():
    ours, theirs = lines(chart(OURS, THEIRS))
    (first, last), (only,) = dots(ours), dots(theirs)
    assert first[0] < only[0] < last[0]
    assert abs(only[0] - (first[0] + last[0]) / 2) < 0.2  # 10,000 is halfway, on this scale
    assert first[1] > only[1] > last[1]


def test_a_spread_is_a_bar_and_what_was_published_looks_different():
    ours, theirs = lines(chart(OURS, THEIRS))
    assert len(list(ours.iter("line"))) == 1  # the second point has no spread
    assert not list(theirs.iter("line"))
    assert ours.get("class") == "line c0"
    assert theirs.get("class") == "line c0 other"


def test_even_axes_begin_at_zero():
    drawn = chart(OURS, THEIRS, log=False)
    texts = [text.text for text in drawn.iter("text")]
    assert "0" in texts
    (ours, _) = lines(drawn)
    assert len(dots(ours)) == 2


def test_names_are_written_under_the_axis_in_their_order():
    drawn = chart(NAMED)
    texts = [text.text for text in drawn.iter("text")]
    assert texts.index("plain") < texts.index("tuned")
    ((first, second),) = [dots(group) for group in lines(drawn)]
    assert first[0] < second[0]


def test_what_a_logarithm_cannot_show_is_left_out():
    zero = Curve("zero", [CurvePoint(10, 0.0, 0.0, 0.0), CurvePoint(100, 1.0, 1.0, 1.0)])
    (drawn,) = lines(chart(zero))
    assert len(dots(drawn)) == 1
    assert len(dots(lines(chart(zero, log=False))[0])) == 2


@each("curves", [[], [Curve("none", [])]])
def test_nothing_is_said_where_there_is_nothing(curves):
    page = Page("title")
    page.curves("Time", curves)
    assert "Nothing to show." in str(page)


def test_a_page_has_the_numbers_and_a_legend():
    page = Page("title")
    page.curves("Time", [OURS, THEIRS], axes=("size", "ms"), log=True, note="Published: there.")
    page.paragraph("A <b> paragraph.")
    text = str(page)
    ET.fromstring(text.partition("\n")[2])  # noqa: S314 - our own
    assert 'class="c0 other"' in text
    assert "Published: there." in text
    assert "A &lt;b&gt; paragraph." in text
    assert "30" in text
