"""Pictures: curves of what was measured and of what was published, as they are or divided."""

import pytest

from cases import each
from paper_records import record
from tamis.errors import OptionError
from tamis.papers.pictures import check_picture, curves, unit

SAID = {
    "time": {
        "where": "Table 1", "unit": "ms", "names": {"a": "A", "b": "B"},
        "lines": {"a": [[1, 10.0], [2, 20.0]], "b": [[1, 40.0], [2, 60.0], [4, 90.0]]},
    }
}  # fmt: skip
VALUES = {
    ("a", 1): [1.0, 2.0, 3.0], ("a", 2): [2.0, 4.0, 6.0],
    ("b", 1): [2.0, 8.0, 6.0], ("b", 2): [4.0, None, 6.0],
}  # fmt: skip
MADE = record(VALUES, [], published=SAID)


def drawn(kind, **more):
    picture = {"title": "Time", "measure": "time", "kind": kind} | more
    check_picture(picture)
    return {curve.name: curve.points for curve in curves(MADE, picture)}


def test_values_have_medians_and_spreads_and_the_published_points_follow():
    found = drawn("values")
    assert list(found) == ["a", "b", "A, published", "B, published"]
    assert found["a"] == [(1, 2.0, 1.0, 3.0), (2, 4.0, 2.0, 6.0)]
    assert found["b"] == [(1, 6.0, 2.0, 8.0), (2, 5.0, 4.0, 6.0)]
    assert found["A, published"] == [(1, 10.0, 10.0, 10.0), (2, 20.0, 20.0, 20.0)]


def test_published_points_can_be_left_out():
    assert list(drawn("values", published=False, lines=["b"])) == ["b"]


def test_ratios_are_taken_seed_by_seed_and_in_the_paper_value_by_value():
    found = drawn("ratios", to="a")
    assert found["b"] == [(1, 2.0, 2.0, 4.0), (2, 1.5, 1.0, 2.0)]
    assert found["B, published"] == [(1, 4.0, 4.0, 4.0), (2, 3.0, 3.0, 3.0)]


def test_growth_begins_at_one():
    found = drawn("growth")
    assert found["a"][0] == (1, 1.0, 0.5, 1.5)
    assert found["a"][1][1] == 2.0
    assert found["B, published"] == [(1, 1, 1, 1), (2, 1.5, 1.5, 1.5), (4, 2.25, 2.25, 2.25)]


def test_curves_of_the_same_line_have_one_colour():
    made = curves(MADE, {"title": "Time", "measure": "time", "kind": "values"})
    assert [(curve.line, curve.is_published) for curve in made] == [
        (0, False), (1, False), (0, True), (1, True),
    ]  # fmt: skip


@each(
    "picture, expected",
    [
        ({"kind": "values"}, "ms"),
        ({"kind": "ratios", "to": "a"}, "ms, divided by that of a"),
        ({"kind": "growth"}, "ms, divided by the first one"),
    ],
)
def test_the_axis_says_what_is_shown(picture, expected):
    assert unit(MADE, picture | {"measure": "time"}) == expected


@each(
    "picture, message",
    [
        ({"kind": "values", "to": "a"}, "the key to"),
        ({"kind": "bars"}, "the key x"),
        ({"kind": "values", "colour": "red"}, "'colour'"),
        ({}, "kind of a picture"),
    ],
)
def test_pictures_that_cannot_be_drawn_are_refused(picture, message):
    with pytest.raises(OptionError) as caught:
        check_picture(picture)
    assert message in str(caught.value)
