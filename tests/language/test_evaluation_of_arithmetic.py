"""What expressions compute; see test_evaluate for what they say."""

from decimal import Decimal

from answers import INF, MAX, MIN, NAN, F, N, T, answer, value
from cases import each
from tamis.language.evaluation import conversion
from tamis.types import DOUBLE, INT, INT32, STRING, decimal_type

# --- arithmetic


@each(
    "text",
    [
        "1 + 2 * 3 = 7",
        "(1 + 2) * 3 = 9",
        "10 - 2 - 3 = 5",
        "7 / 2 = 3.5",
        "2 / 4 * 2 = 1",
        "7 DIV 2 = 3",
        "-7 DIV 2 = -3",
        "7 % 3 = 1",
        "-7 % 3 = -1",
        "7 % -3 = 1",
        "- - 5 = 5",
        "+5 = 5",
        "0.1 + 0.2 = 0.3",
        "0.1D + 0.2D <> 0.3D",
        "0.1 + 0.2D <> 0.3D",
        "1 / 3 = 1e0 / 3e0",
        "1.0 / 3 = 0.333333",
        "2 / 3.0 = 0.666667",
        "0.5 * 0.5 = 0.25",
        "2.5 % 1 = 0.5",
        "-2.5 % 1 = -0.5",
        "5.5e0 % 2 = 1.5",
        "1.5 - 1.50 = 0",
        "2147483647 + 1 = -2147483648",
        "2147483647 + 1L = 2147483648",
        "2147483648 + 1 = 2147483649",
        "-2147483648 - 1 = 2147483647",
        "65536 * 65536 = 0",
        "65536L * 65536 = 4294967296",
        "9223372036854775807 + 1 = -9223372036854775808",
        "9223372036854775807 + 1.0 = 9223372036854775808",
        "-9223372036854775808 DIV -1 = -9223372036854775808",
        "abs(-5) = 5",
        "abs(-0.5) = 0.5",
        "abs(-2147483648) = -2147483648",
        "abs(-2147483648L) = 2147483648",
        "abs(-9223372036854775808) = -9223372036854775808",
        "-(-2147483648) = -2147483648",
        "-(-9223372036854775808) = -9223372036854775808",
        "length('abc') + 2147483647 = -2147483646",
        "1e308 * 10 > 1e308",
        "1e308 * 10 - 1e308 * 10 > 1e308",
        "1 / 0 IS NULL",
        "0 / 0 IS NULL",
        "1 DIV 0 IS NULL",
        "1 % 0 IS NULL",
        "1.5 / 0 IS NULL",
        "1.5 % 0.0 IS NULL",
        "1e0 / 0 IS NULL",
        "1e0 / -0e0 IS NULL",
        "1e0 % 0 IS NULL",
        "99999999999999.0 * 99999999999999.0 = 9999999999999800000000000001",
    ],
)
def test_arithmetic_of_constants(text):
    assert answer(text) is True


@each(
    ("text", "values", "expected"),
    [
        ("i + 1 < i", {"i": MAX}, T),
        ("i - 1 > i", {"i": MIN}, T),
        ("-i = i", {"i": MIN}, T),
        ("abs(i) < 0", {"i": MIN}, T),
        ("i * 2 = 0", {"i": MIN}, T),
        ("i + j = 5", {"i": 2, "j": 3}, T),
        ("i + j = 5", {"i": 2}, N),
        ("i / j = 0.5", {"i": 1, "j": 2}, T),
        ("i / j = 0.5", {"i": 1, "j": 0}, N),
        ("i / j IS NULL", {"i": 1, "j": 0}, T),
        ("NOT i / j = 0.5", {"i": 1, "j": 0}, N),
        ("i DIV j = -3", {"i": -7, "j": 2}, T),
        ("i % j = -1", {"i": -7, "j": 2}, T),
        ("x + i = 2.5", {"x": 0.5, "i": 2}, T),
        ("x / 0 IS NULL", {"x": NAN}, T),
        ("x - x = x", {"x": NAN}, T),
        ("x - x > x", {"x": INF}, T),
        ("x % 2 = 1.5", {"x": 5.5}, T),
        ("-x = 0", {"x": 0.0}, T),
        ("abs(x) = x", {"x": -INF}, F),
        ("i * 0.1 = 0.3", {"i": 3}, T),
        ("i * 0.1D = 0.3D", {"i": 3}, F),
        ("i + 0.5 = 9223372036854775807.5", {"i": MAX}, T),
        ("length(s) + i = 3", {"s": "a", "i": 2}, T),
    ],
)
def test_arithmetic_of_attributes(text, values, expected):
    assert answer(text, values) is expected


@each(
    ("text", "values", "result"),
    [
        ("i + 1", {"i": 2}, 3),
        ("i / 2", {"i": 3}, 1.5),
        ("i * 0.5", {"i": 3}, Decimal("1.5")),
        ("1.0 / 3", {}, Decimal("0.333333")),
        ("-x", {"x": 0.0}, -0.0),
        ("-(0.0)", {}, Decimal("0.0")),
        ("-(0.5)", {}, Decimal("-0.5")),
        ("abs(x)", {"x": -0.0}, 0.0),
        ("abs(i)", {"i": -3}, 3),
        ("upper(s)", {"s": "a"}, "A"),
        ("length(s)", {"s": "abc"}, 3),
        ("i = 1", {"i": 1}, True),
        ("i", {}, None),
        ("lower(s)", {}, None),
        ("i + j", {"j": 1}, None),
    ],
)
def test_values(text, values, result):
    assert repr(value(text, values)) == repr(result)


@each(
    ("source", "wanted", "before", "after"),
    [
        (INT, DOUBLE, 2**53 + 1, 2.0**53),
        (INT32, INT, 5, 5),
        (INT, INT32, 2**31 + 5, 5 - 2**31),
        (INT, decimal_type(20, 0), MAX, Decimal(MAX)),
        (decimal_type(2, 1), DOUBLE, Decimal("0.1"), 0.1),
        (decimal_type(1, 1), decimal_type(3, 2), Decimal("0.1"), Decimal("0.1")),
        (STRING, STRING, "a", "a"),
    ],
)
def test_conversions(source, wanted, before, after):
    assert repr(conversion(source, wanted)(before)) == repr(after)
