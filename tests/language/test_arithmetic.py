import ctypes
import itertools
import math
from decimal import Decimal
from fractions import Fraction

from hypothesis import given
from hypothesis import strategies as st

from cases import each
from strategies import DOUBLES, INTS
from tamis.language.arithmetic import (
    as_decimal,
    decimal_result,
    fit,
    operation,
    order_key,
    wider,
    wrap,
)
from tamis.types import DOUBLE, INT, INT32, decimal_type

INT64S = st.sampled_from(INTS) | st.integers(-(2**63), 2**63 - 1)
FLOATS = st.sampled_from(DOUBLES) | st.floats()


# --- types


@each(
    ("left", "right", "common"),
    [
        (INT32, INT32, INT32),
        (INT32, INT, INT),
        (INT, DOUBLE, DOUBLE),
        (INT32, DOUBLE, DOUBLE),
        (decimal_type(5, 2), DOUBLE, DOUBLE),
        (decimal_type(1, 1), INT32, decimal_type(11, 1)),
        (decimal_type(1, 1), INT, decimal_type(21, 1)),
        (decimal_type(5, 2), decimal_type(4, 3), decimal_type(6, 3)),
        (decimal_type(38, 0), decimal_type(38, 0), decimal_type(38, 0)),
        (decimal_type(38, 0), decimal_type(1, 1), decimal_type(38, 0)),
        (decimal_type(19, 19), INT, decimal_type(38, 18)),
        (decimal_type(38, 38), decimal_type(38, 0), decimal_type(38, 0)),
        (decimal_type(18, 18), INT, decimal_type(38, 18)),
    ],
)
def test_the_type_in_which_numbers_are_compared(left, right, common):
    assert wider(left, right) == common
    assert wider(right, left) == common


def test_the_decimals_that_hold_whole_numbers():
    assert as_decimal(INT32) == decimal_type(10, 0)
    assert as_decimal(INT) == decimal_type(20, 0)
    assert as_decimal(decimal_type(3, 1)) == decimal_type(3, 1)


# The results are those of DecimalPrecision in Spark's documentation of arithmetic.
@each(
    ("op", "left", "right", "result"),
    [
        ("+", (2, 1), (1, 0), (3, 1)),
        ("+", (5, 2), (6, 4), (8, 4)),
        ("-", (10, 0), (1, 1), (12, 1)),
        ("*", (1, 1), (1, 1), (3, 2)),
        ("*", (10, 2), (20, 5), (31, 7)),
        ("/", (1, 1), (1, 0), (6, 6)),
        ("/", (20, 0), (1, 1), (27, 6)),
        ("/", (10, 2), (10, 8), (29, 13)),
        ("%", (5, 2), (6, 4), (6, 4)),
        ("%", (20, 0), (2, 1), (2, 1)),
        ("+", (38, 0), (38, 0), (38, 0)),
        ("+", (38, 10), (38, 10), (38, 9)),
        ("*", (38, 10), (38, 10), (38, 6)),
        ("*", (20, 15), (20, 15), (38, 27)),
        ("/", (38, 18), (38, 18), (38, 6)),
        ("+", (38, 2), (38, 2), (38, 2)),
    ],
)
def test_the_type_of_an_operation_on_decimals(op, left, right, result):
    assert decimal_result(op, decimal_type(*left), decimal_type(*right)) == decimal_type(*result)


# --- whole numbers


@given(st.integers())
def test_whole_numbers_wrap_as_in_hardware(value):
    assert wrap(value, INT32) == ctypes.c_int32(value).value
    assert wrap(value, INT) == ctypes.c_int64(value).value


@given(INT64S, INT64S)
def test_operations_on_whole_numbers_are_those_of_hardware(x, y):
    assert operation("+", INT)(x, y) == ctypes.c_int64(x + y).value
    assert operation("-", INT)(x, y) == ctypes.c_int64(x - y).value
    assert operation("*", INT)(x, y) == ctypes.c_int64(x * y).value
    assert operation("*", INT32)(x, y) == ctypes.c_int32(x * y).value
    if y != 0:
        quotient = math.trunc(Fraction(x, y))
        assert operation("DIV", INT)(x, y) == ctypes.c_int64(quotient).value
        assert operation("%", INT)(x, y) == x - quotient * y


@each(
    ("x", "op", "y", "result"),
    [
        (7, "DIV", 2, 3),
        (-7, "DIV", 2, -3),
        (7, "DIV", -2, -3),
        (-7, "DIV", -2, 3),
        (0, "DIV", -2, 0),
        (7, "%", 3, 1),
        (-7, "%", 3, -1),
        (7, "%", -3, 1),
        (-7, "%", -3, -1),
        (-(2**63), "DIV", -1, -(2**63)),
        (-(2**63), "%", -1, 0),
        (2**63 - 1, "+", 1, -(2**63)),
        (1, "DIV", 0, None),
        (0, "DIV", 0, None),
        (1, "%", 0, None),
    ],
)
def test_whole_division_cuts_towards_zero(x, op, y, result):
    assert operation(op, INT)(x, y) == result


# --- doubles


@each(
    ("x", "op", "y", "result"),
    [
        (0.1, "+", 0.2, 0.30000000000000004),
        (1e308, "*", 10.0, math.inf),
        (1e308, "+", 1e308, math.inf),
        (math.inf, "-", math.inf, math.nan),
        (0.0, "*", math.inf, math.nan),
        (1.0, "/", 4.0, 0.25),
        (1e308, "/", 1e-308, math.inf),
        (1.0, "/", math.inf, 0.0),
        (1.0, "/", 0.0, None),
        (1.0, "/", -0.0, None),
        (0.0, "/", 0.0, None),
        (math.nan, "/", 0.0, None),
        (5.5, "%", 2.0, 1.5),
        (-5.5, "%", 2.0, -1.5),
        (5.5, "%", -2.0, 1.5),
        (5.5, "%", math.inf, 5.5),
        (math.inf, "%", 2.0, math.nan),
        (math.nan, "%", 2.0, math.nan),
        (2.0, "%", math.nan, math.nan),
        (2.0, "%", 0.0, None),
    ],
)
def test_operations_on_doubles(x, op, y, result):
    assert repr(operation(op, DOUBLE)(x, y)) == repr(result)


@given(st.sampled_from("+-*/%"), FLOATS, FLOATS)
def test_operations_on_doubles_never_fail(op, x, y):
    result = operation(op, DOUBLE)(x, y)
    assert isinstance(result, float) != (result is None)
    assert (result is None) == (op in "/%" and y == 0)


# --- decimals


@each(
    ("value", "digits", "scale", "result"),
    [
        ("1.25", 3, 1, "1.3"),
        ("-1.25", 3, 1, "-1.3"),
        ("1.24", 3, 1, "1.2"),
        ("9.96", 3, 1, "10.0"),
        ("99.96", 3, 1, None),
        ("100", 3, 1, None),
        ("-99.9", 3, 1, "-99.9"),
        ("0.04", 1, 1, "0.0"),
        ("-0.04", 1, 1, "0.0"),
        ("0", 1, 1, "0.0"),
        ("1", 1, 1, None),
        ("99999999999999999999999999999999999999", 38, 0, "99999999999999999999999999999999999999"),
        ("99999999999999999999999999999999999999.5", 38, 0, None),
    ],
)
def test_decimals_are_rounded_half_up_to_their_type(value, digits, scale, result):
    assert repr(fit(Decimal(value), decimal_type(digits, scale))) == repr(
        None if result is None else Decimal(result)
    )


@each(
    ("x", "op", "y", "digits", "scale", "result"),
    [
        ("0.1", "+", "0.2", 2, 1, "0.3"),
        ("0.1", "-", "0.2", 2, 1, "-0.1"),
        ("0.5", "*", "0.5", 3, 2, "0.25"),
        ("1", "/", "3", 7, 6, "0.333333"),
        ("2", "/", "3", 7, 6, "0.666667"),
        ("-2", "/", "3", 7, 6, "-0.666667"),
        ("5.5", "%", "2", 2, 1, "1.5"),
        ("-5.5", "%", "2", 2, 1, "-1.5"),
        ("5.5", "%", "-2", 2, 1, "1.5"),
        ("1", "/", "0", 7, 6, None),
        ("1", "%", "0.0", 7, 6, None),
        ("9" * 38, "+", "1", 38, 0, None),
        ("9" * 38, "*", "10", 38, 0, None),
    ],
)
def test_operations_on_decimals(x, op, y, digits, scale, result):
    answer = operation(op, decimal_type(digits, scale))(Decimal(x), Decimal(y))
    assert repr(answer) == repr(None if result is None else Decimal(result))


SMALL_DECIMALS = st.decimals(-9999, 9999, places=3)


@given(SMALL_DECIMALS, SMALL_DECIMALS)
def test_sums_and_products_of_decimals_are_exact(x, y):
    seven = decimal_type(7, 3)
    for op, exact in [("+", Fraction(x) + Fraction(y)), ("-", Fraction(x) - Fraction(y)),
                      ("*", Fraction(x) * Fraction(y))]:  # fmt: skip
        assert Fraction(operation(op, decimal_result(op, seven, seven))(x, y)) == exact


@given(SMALL_DECIMALS, SMALL_DECIMALS.filter(bool))
def test_quotients_of_decimals_are_the_nearest(x, y):
    seven = decimal_type(7, 3)
    result = decimal_result("/", seven, seven)
    error = Fraction(operation("/", result)(x, y)) - Fraction(x) / Fraction(y)
    assert abs(error) <= Fraction(1, 2 * 10**result.scale)


# --- order

ASCENDING = [-math.inf, -1e300, -1.0, -5e-324, 0.0, 5e-324, 1.0, 1e300, math.inf, math.nan]


@each(("low", "high"), list(itertools.pairwise(ASCENDING)))
def test_doubles_are_ordered_totally(low, high):
    assert order_key(low) < order_key(high)
    assert not order_key(high) <= order_key(low)


@each(("x", "y"), [(0.0, -0.0), (math.nan, -math.nan), (math.nan, math.nan)])
def test_doubles_that_are_equal(x, y):
    assert order_key(x) == order_key(y)
    assert hash(order_key(x)) == hash(order_key(y))
