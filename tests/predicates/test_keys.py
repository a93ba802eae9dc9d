"""Keys are in the order of the values, and give the values back."""

import math
import struct

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from strategies import DOUBLES, INTS, MOMENTS, SCHEMA, delicate_rows, rows
from tamis import Schema
from tamis.language.arithmetic import order_key
from tamis.predicates.keys import Keys, double_key, double_keys, key_values
from tamis.types import INT64_MAX

KINDS = Schema(
    {
        "i": "int", "x": "double", "b": "bool", "at": "timestamp", "level": "int(-5, 5)",
        "side": "enum('sell', 'é', 'buy', '', 'Zed')", "s": "string",
    }
)  # fmt: skip
POOLS = {
    "i": INTS,
    "x": DOUBLES,
    "b": [True, False],
    "at": MOMENTS,
    "level": list(range(-5, 6)),
    "side": ["sell", "é", "buy", "", "Zed"],
}


def same(a, b):
    """Equal and of one type; nan is nan, and both zeros are one value to every filter."""
    return type(a) is type(b) and (a == b or (a != a and b != b))  # noqa: PLR0124 - nan


def keys_of(name, values):
    keys, position = Keys(KINDS), KINDS.positions[name,]
    return np.array([keys.key(position, value) for value in values], np.int64)


@each("name", POOLS)
def test_keys_give_their_values_back(name):
    found = key_values(KINDS[name], keys_of(name, POOLS[name]))
    assert all(map(same, found, POOLS[name]))
    assert key_values(KINDS[name], np.empty(0, np.int64)) == []


@each("name", POOLS)
def test_keys_are_in_the_order_of_the_values(name):
    pairs = list(zip(keys_of(name, POOLS[name]).tolist(), POOLS[name], strict=True))
    for key, value in pairs:
        for other_key, other in pairs:
            a, b = (order_key(value), order_key(other)) if name == "x" else (value, other)
            assert (key < other_key, key == other_key) == (a < b, a == b)


@given(st.lists(st.floats(), max_size=20))
def test_doubles_there_and_back(values):
    keys = double_keys(np.array(values, np.float64))
    assert keys.dtype == np.int64
    assert all(map(same, key_values(KINDS["x"], keys), values))
    assert keys.tolist() == keys_of("x", values).tolist()


def test_reading_keys_leaves_the_values_alone():
    values = np.array([1.0, -0.0, math.nan, -1.0])
    before = values.tobytes()
    double_keys(values)
    assert values.tobytes() == before
    values.flags.writeable = False
    assert len(double_keys(values)) == 4


@each(
    "bits",
    [0x7FF0000000000001, 0x7FF8000000000000, 0xFFF8000000000000, 0xFFFFFFFFFFFFFFFF,
     0xFFF0000000000001, 0x7FFFFFFFFFFFFFFF],
)  # fmt: skip
def test_every_nan_is_one_value(bits):
    """Also a signalling one, and without a warning."""
    values = np.array([bits, 0x3FF0000000000000], np.uint64).view(np.float64)
    keys = double_keys(values)
    assert keys[0] == INT64_MAX
    assert key_values(KINDS["x"], keys)[1] == 1.0


def test_the_infinities_are_inside():
    low, high, nan = double_keys(np.array([-math.inf, math.inf, math.nan])).tolist()
    assert low < int(double_keys(np.array([-1.7976931348623157e308]))[0])
    assert int(double_keys(np.array([1.7976931348623157e308]))[0]) < high < nan


def test_a_value_outside_an_enumeration_has_no_key():
    keys = Keys(KINDS)
    assert keys.key(KINDS.positions["side",], "Sell") is None


def test_which_attributes_have_keys():
    assert [name for n, name in enumerate(KINDS) if Keys(KINDS).has(n)] == list(POOLS)


@given(st.lists(rows(), max_size=5))
@settings(max_examples=30)
def test_the_keys_of_a_row_are_those_of_its_values(some):
    keys = Keys(SCHEMA)
    for row in [*some, (None,) * len(SCHEMA), *delicate_rows()[:3]]:
        found, present = keys.row(row)
        assert (found.dtype, present.dtype) == (np.int64, np.uint8)
        for n, value in enumerate(row):
            assert present[n] == (keys.has(n) and value is not None)
            if present[n]:
                assert found[n] == keys.of_one(n)(value)
                assert keys.key(n, value) in {found[n], None}  # of a decimal with many digits


@each(
    ("kinds", "row"),
    [
        ({}, ()),
        ({"s": "string"}, ("a",)),
        ({"i": "int"}, (None,)),
        ({"i": "int"}, (-1,)),
        ({"x": "double"}, (None,)),
        ({"x": "double"}, (2.5,)),
        ({"side": "enum('b', 'a')"}, ("b",)),
        ({"side": "enum('b', 'a')"}, (None,)),
        ({"b": "bool", "i": "int"}, (False, None)),
    ],
)
def test_schemas_with_few_attributes(kinds, row):
    schema = Schema(kinds)
    keys = Keys(schema)
    found, present = keys.row(row)
    for n, value in enumerate(row):
        assert present[n] == (value is not None and keys.has(n))
        if present[n]:
            assert all(map(same, key_values(schema.attributes[n], found[n : n + 1]), [value]))


def test_the_key_of_a_double_is_made_of_its_bits():
    for value in (1.0, 2.5, 5e-324, 1e300):
        (bits,) = struct.unpack("<q", struct.pack("<d", value))
        assert double_keys(np.array([value, -value])).tolist() == [bits, -bits - 1]


# --- in other numbers


@each("name", POOLS)
def test_the_keys_of_many_values_are_those_of_each(name):
    keys, position = Keys(KINDS), KINDS.positions[name,]
    for values in (POOLS[name], POOLS[name][::-1], tuple(POOLS[name]) * 3, []):
        found = keys.many(position, values)
        assert found.dtype == np.int64
        assert found.tolist() == [keys.key(position, value) for value in values]


@each("name", POOLS)
def test_a_function_for_the_keys_of_an_attribute(name):
    keys, position = Keys(KINDS), KINDS.positions[name,]
    key_of = keys.of_one(position)
    for value in POOLS[name]:
        assert key_of(value) == keys.key(position, value)
        assert type(key_of(value)) is int


def test_values_outside_an_enumeration_are_for_nobody():
    """Events are checked before, and so are constants."""
    keys, position = Keys(KINDS), KINDS.positions["side",]
    with pytest.raises(KeyError):
        keys.of_one(position)("Sell")
    with pytest.raises(KeyError):
        keys.many(position, ["sell", "Sell"])


@given(st.floats() | st.sampled_from(DOUBLES))
def test_the_key_of_one_double(value):
    key = double_key(value)
    assert type(key) is int
    assert key == int(double_keys(np.array([value]))[0])


@each("bits", [0x7FF0000000000001, 0xFFF8000000000000, 0xFFFFFFFFFFFFFFFF, 0x7FFFFFFFFFFFFFFF])
def test_the_key_of_any_nan(bits):
    (value,) = struct.unpack("<d", struct.pack("<Q", bits))
    assert double_key(value) == INT64_MAX


def test_both_zeros_have_one_key():
    assert double_key(-0.0) == double_key(0.0) == double_key(0) == 0
    assert double_key(-5e-324) < 0 < double_key(5e-324)
