"""Every value has its number, in the order of Spark."""

import math
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from tamis.language.arithmetic import order_key
from tamis.relations.entailment.ordered_values import Order
from tamis.schema import IntRange
from tamis.types import BOOL, DOUBLE, INT, INT32, INT64_MAX, INT64_MIN, TIMESTAMP, decimal_type

doubles = st.floats(width=64) | st.sampled_from([math.nan, math.inf, -math.inf, -0.0, 5e-324])


@given(doubles, doubles)
def test_doubles_are_in_order(x, y):
    order = Order(DOUBLE)
    (a, above), (b, _) = order.around(x), order.around(y)
    assert (a < b) == (order_key(x) < order_key(y))
    assert (a == b) == (order_key(x) == order_key(y))
    assert above == a + 1
    assert order.low <= a <= order.high
    assert order_key(order.value(a)) == order_key(x)


@pytest.mark.parametrize("kind", [BOOL, INT, INT32, DOUBLE, TIMESTAMP, decimal_type(10, 2)])
@given(data=st.data())
def test_no_number_is_without_a_value(kind, data):
    order = Order(kind)
    near = st.integers(max(order.low, -3), min(order.high, 3))
    number = data.draw(near | st.integers(order.low, order.high) | st.just(order.high))
    assert order.around(order.value(number)) == (number, number + 1)


def test_nan_follows_infinity():
    order = Order(DOUBLE)
    assert order.around(math.nan)[0] == order.around(math.inf)[0] + 1 == order.high


@pytest.mark.parametrize("kind", [INT, TIMESTAMP])
@given(value=st.integers(INT64_MIN, INT64_MAX))
def test_whole_numbers_are_their_own(kind, value):
    order = Order(kind)
    assert order.around(value) == (value, value + 1)
    assert order.value(value) == value


def test_truth_values():
    assert [Order(BOOL).around(value) for value in (False, True)] == [(0, 1), (1, 2)]
    assert [Order(BOOL).value(number) for number in (0, 1)] == [False, True]


@given(st.decimals(places=2, min_value=-999, max_value=999))
def test_decimals_are_their_digits(value):
    order = Order(decimal_type(5, 2))
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
    assert Order(INT32).around(constant) == expected


@pytest.mark.parametrize("kind", [INT, DOUBLE, TIMESTAMP, decimal_type(10, 2)])
@given(data=st.data())
def test_a_pleasant_number_lies_where_it_should(kind, data):
    order = Order(kind)
    low = data.draw(st.integers(order.low, order.high))
    high = data.draw(st.integers(low, order.high))
    assert low <= order.pleasant(low, high) <= high


def test_pleasant_values():
    double, whole = Order(DOUBLE), Order(INT)
    above_ten = double.around(10.0)[1]
    assert double.value(double.pleasant(above_ten, double.high)) == 11.0
    assert double.value(double.pleasant(double.low, double.high)) == 0.0
    assert double.value(double.pleasant(double.low, double.around(-2.5)[0])) == -3.0
    assert whole.pleasant(7, 2**60) == 7
    assert whole.pleasant(-(2**60), -7) == -7


def test_a_domain_has_ends():
    order = Order(INT, IntRange(3, 7))
    assert (order.low, order.high) == (3, 7)
