"""What arguments of commands may say, at the ends of their ranges."""

from argparse import ArgumentTypeError

import pytest

from cases import each
from tamis.cli import argument_types


@each(
    ("kind", "text", "value"),
    [
        ("positive", "1", 1),
        ("positive", "999999999", 999_999_999),
        ("seed", "0", 0),
        ("seed", str(2**62 - 1), 2**62 - 1),
        ("duration", "1s", 1.0),
        ("duration", "2d", 172_800.0),
        ("size", "2k", 2048),
    ],
)
def test_the_smallest_and_the_largest(kind, text, value):
    assert getattr(argument_types, kind)(text) == value


@each(
    ("kind", "texts", "message"),
    [
        ("positive", ["0", "1000000000", "-1", "1.5", "", "٣"], "expected a whole number above 0"),
        ("seed", ["-1", str(2**62), "1" * 40, "x", "٣"], "expected 0 or a positive whole number"),
        ("duration", ["0s", "5", "s", "1.5h", "-1s", "1w", ""], "expected a time, such as 90s"),
        ("size", ["x", "-1", "1q"], "expected a number of bytes"),
    ],
)
def test_what_is_out_of_range_is_refused(kind, texts, message):
    for text in texts:
        with pytest.raises(ArgumentTypeError, match=f"{message}.*, got {text!r}"):
            getattr(argument_types, kind)(text)
