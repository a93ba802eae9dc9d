"""Text as markup, and numbers as people read them."""

import math
import xml.etree.ElementTree as ET
from decimal import Decimal

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from tamis.report.text import TOOLTIP, cut, element, is_number, markup, shown, tooltip


@each(
    ("value", "text"),
    [
        (0, "0"),
        (18034221, "18,034,221"),
        (-1234, "-1,234"),
        (10**15, "1.000e+15"),
        (10**400, "1.000e+400"),
        (61234.5, "61,234"),
        (0.123456, "0.1235"),
        (6.0, "6"),
        (1e-7, "1e-07"),
        (1.5e20, "1.500e+20"),
        (math.nan, "–"),
        (math.inf, "∞"),
        (-math.inf, "-∞"),
        (None, "–"),
        (True, "True"),
        ("a", "a"),
        (np.int64(12345), "12,345"),
        (np.float32(0.5), "0.5"),
        (Decimal("1.50"), "1.50"),
    ],
)
def test_values_are_shown(value, text):
    assert shown(value) == text


def test_a_truth_value_is_not_a_number():
    assert [is_number(value) for value in (1, 1.5, np.int8(1), True, "1", None)] == [
        True, True, True, False, False, False,
    ]  # fmt: skip


def test_markup_is_text():
    assert markup("<b a=\"x\" c='y'>&amp;") == "&lt;b a=&quot;x&quot; c=&#x27;y&#x27;&gt;&amp;amp;"


def test_control_characters_have_pictures():
    assert markup("a\0b\x1b\x7f\x85\ud800\uffff") == "a␀b␛␡���"


def test_ends_of_lines_are_the_same_everywhere():
    assert markup("a\r\nb\rc\n\td") == "a\nb\nc\n\td"


@given(st.text(st.characters(exclude_categories=[])))
def test_any_text_can_be_content_and_attribute(text):
    tree = ET.fromstring(element("a", markup(text), title=text))  # noqa: S314 - it is our own
    expected = markup(text)
    assert markup(tree.text or "") == expected
    assert markup(tree.get("title")) == expected


def test_attributes_that_are_none_are_absent():
    assert element("a", "b", class_=None, aria_label="c") == '<a aria-label="c">b</a>'


def test_elements_without_content_are_closed_as_html_wants_it():
    assert element("line", x1=1.25, y1=2) == '<line x1="1.2" y1="2" />'
    assert element("td") == "<td></td>"


def test_long_texts_are_cut():
    assert cut("abcdef", 6) == "abcdef"
    assert cut("abcdefg", 6) == "abcde…"
    assert cut("abcd  efg", 6) == "abcd…"


def test_a_tooltip_has_what_was_cut():
    assert tooltip("abcdef", 6) is None
    assert tooltip("abcdefg", 6) == "abcdefg"
    assert len(tooltip("a" * 10**6, 6)) == TOOLTIP
