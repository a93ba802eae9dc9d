"""Values and their cuts are in the order of Spark."""

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from tamis.language.arithmetic import order_key
from tamis.predicates.value_orders import ValueOrder
from tamis.schema import IntRange
from tamis.types import (
    BOOL,
    DOUBLE,
    INT,
    INT32,
    INT64_MAX,
    INT64_MIN,
    STRING,
    TIMESTAMP,
    decimal_type,
)

doubles = st.floats(width=64) | st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 5e-324])


@given(doubles, doubles)
def test_doubles_are_in_order(x, y):
    order = ValueOrder(DOUBLE)
    (a, above), (b, _) = order.around(x), order.around(y)
    assert (a < b) == (order_key(x) < order_key(y))
    assert (a == b) == (order_key(x) == order_key(y))
    assert above == a + 1
    assert order.start <= a < order.end
    assert order_key(order.value(a)) == order_key(x)


@pytest.mark.parametrize("kind", [BOOL, INT, INT32, DOUBLE, TIMESTAMP, decimal_type(10, 2)])
@given(data=st.data())
def test_no_number_is_without_a_value(kind, data):
    order = ValueOrder(kind)
    near = st.integers(max(order.start, -3), min(order.end - 1, 3))
    number = data.draw(near | st.integers(order.start, order.end - 1) | st.just(order.end - 1))
    assert order.around(order.value(number)) == (number, number + 1)


def test_nan_follows_infinity():
    order = ValueOrder(DOUBLE)
    assert order.around(math.nan)[0] == order.around(math.inf)[0] + 1 == order.end - 1


@pytest.mark.parametrize("kind", [INT, TIMESTAMP])
@given(value=st.integers(INT64_MIN, INT64_MAX))
def test_whole_numbers_are_their_own(kind, value):
    order = ValueOrder(kind)
    assert order.around(value) == (value, value + 1)
    assert order.value(value) == value


def test_truth_values():
    assert [ValueOrder(BOOL).around(value) for value in (False, True)] == [(0, 1), (1, 2)]
    assert [ValueOrder(BOOL).value(number) for number in (0, 1)] == [False, True]


@given(st.decimals(places=2, min_value=-999, max_value=999))
def test_decimals_are_their_digits(value):
    order = ValueOrder(decimal_type(5, 2))
    number, above = order.around(value)
    assert (number, above) == (int(value * 100), int(value * 100) + 1)
    assert order.value(number) == value


@each(
    ("constant", "expected"),
    [
        (Decimal("3.5"), (4, 4)),
        (Decimal("-3.5"), (-3, -3)),
        (3.0, (3, 4)),
        (3.5, (4, 4)),
        (-math.inf, (-(2**31), -(2**31))),
        (math.inf, (2**31, 2**31)),
        (math.nan, (2**31, 2**31)),
    ],
)
def test_whole_numbers_beside_others(constant, expected):
    assert ValueOrder(INT32).around(constant) == expected


@pytest.mark.parametrize("kind", [INT, DOUBLE, TIMESTAMP, decimal_type(10, 2)])
@given(data=st.data())
def test_a_readable_number_lies_where_it_should(kind, data):
    order = ValueOrder(kind)
    low = data.draw(st.integers(order.start, order.end - 1))
    high = data.draw(st.integers(low + 1, order.end))
    assert low <= order.readable(low, high) < high


def test_readable_values():
    double, whole = ValueOrder(DOUBLE), ValueOrder(INT)
    above_ten = double.around(10.0)[1]
    assert double.value(double.readable(above_ten, double.end)) == 11.0
    assert double.value(double.readable(double.start, double.end)) == 0.0
    assert double.value(double.readable(double.start, double.around(-2.5)[1])) == -3.0
    assert whole.readable(7, 2**60) == 7
    assert whole.readable(-(2**60), -6) == -7


texts = st.text(st.sampled_from("\0ab\x7f\x80\u0800\ud800\uffff\U0010ffff"), max_size=4)


@given(texts, texts)
def test_strings_are_in_the_order_of_code_points(x, y):
    order = ValueOrder(STRING)
    (a, above), (b, _) = order.around(x), order.around(y)
    assert (a < b) == (x < y)
    assert (a < b) == (above <= b)
    assert order.start <= a < above < order.end
    assert order.value(a) == x
    assert order.following(a) == above


@given(doubles)
def test_a_bound_of_a_double_says_where_its_cut_lies(value):
    order = ValueOrder(DOUBLE)
    for cut in order.around(value):
        if order.start < cut < order.end:
            found, is_after = order.bound(cut)
            assert order.around(found)[is_after] == cut


@each("value", [0.0, 5.0, 0.3, -2.5, 1e22, 1234.56])
def test_a_bound_keeps_the_constants_that_people_write(value):
    before, after = ValueOrder(DOUBLE).around(value)
    assert ValueOrder(DOUBLE).bound(before) == (value, False)
    assert ValueOrder(DOUBLE).bound(after) == (value, True)


def test_bounds_of_strings_and_whole_numbers():
    strings, whole = ValueOrder(STRING), ValueOrder(INT)
    assert [strings.bound(cut) for cut in strings.around("a")] == [("a", False), ("a", True)]
    assert [whole.bound(cut) for cut in whole.around(4)] == [(4, False), (5, False)]


def test_the_values_between_cuts():
    strings, whole = ValueOrder(STRING), ValueOrder(INT)
    a = strings.around("a")[0]
    assert strings.values(a, a + b"\0\0", 2) == ["a", "a\0"]
    assert strings.values(a, a + b"\0\0", 1) is None
    assert strings.values(a, strings.around("ab")[0], 100) is None
    assert strings.values(a, strings.end, 100) is None
    assert whole.values(3, 6, 3) == [3, 4, 5]
    assert whole.values(3, 6, 2) is None
    assert ValueOrder(BOOL).values(0, 2, 2) == [False, True]


def test_a_domain_has_ends():
    order = ValueOrder(INT, IntRange(3, 7))
    assert (order.start, order.end) == (3, 8)
