"""Columns of decimals: their numbers, and keys that compare as the values do."""

import random
from decimal import Decimal

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tamis import Schema
from tamis.predicates.decimal_columns import column_keys, column_numbers, number_keys
from tamis.predicates.keys import Keys, constant_key, decimal_key, key_values, scaled, unscaled_key
from tamis.types import decimal_type

LONG, SHORT = decimal_type(38, 10), decimal_type(18, 3)
DELICATE = [0, 1, 10**17 - 1, 10**17, 10**17 + 1, 10**18 - 1, 10**18, 10**18 + 1, 10**18 + 10,
            2**63 - 1, 2**63, 2**64 - 1, 2**64, 10**27, 10**27 + 1, 10**36 - 1, 10**36,
            123 * 10**35, 10**38 - 1]  # fmt: skip

numbers = st.sampled_from([*DELICATE, *(-n for n in DELICATE)]) | st.builds(
    lambda digits, zeros: max(-(10**38) + 1, min(digits * 10**zeros, 10**38 - 1)),
    st.integers(-(10**38) + 1, 10**38 - 1) | st.integers(-(10**6), 10**6), st.integers(0, 30),
)  # fmt: skip


def column(values, of):
    return pa.array(scaled(values, of.scale), pa.decimal128(of.digits, of.scale))


@given(st.lists(numbers, min_size=1, max_size=20))
def test_keys_of_columns_are_those_of_single_values(values):
    array = column(values, LONG)
    assert column_numbers(array).tolist() == values
    expected = [decimal_key(value, LONG) for value in array.to_pylist()]
    assert column_keys(array, LONG).tolist() == expected
    assert number_keys(column_numbers(array), LONG).tolist() == expected


@given(numbers, numbers)
def test_keys_are_in_the_order_of_values_and_tell_constants_apart(value, constant):
    ours, theirs = unscaled_key(value, LONG), unscaled_key(constant, LONG)
    assert (ours <= theirs) or value > constant
    if constant_key(scaled([constant], 10)[0], LONG) is not None:
        assert (ours < theirs, ours == theirs) == (value < constant, value == constant)
    assert abs(ours) < 2**63


@given(numbers)
def test_a_value_of_a_key_has_that_key(value):
    schema = Schema({"d": "decimal(38, 10)"})
    key = unscaled_key(value, LONG)
    (found,) = key_values(schema["d"], np.array([key]))
    assert decimal_key(found, LONG) == key
    if len(str(abs(value)).rstrip("0")) <= 17:
        assert constant_key(found, LONG) == key
        assert found == scaled([value], 10)[0]


def test_short_decimals_are_their_own_keys():
    values = [10**18 - 1, -(10**18) + 1, 0, -5]
    array = column(values, SHORT)
    assert column_keys(array, SHORT).tolist() == values
    assert number_keys(column_numbers(array), SHORT).tolist() == values
    assert constant_key(Decimal("0.123"), SHORT) == 123


def test_nulls_and_slices():
    array = pa.concat_arrays([column([5, 10**30], LONG), pa.nulls(2, pa.decimal128(38, 10))])
    assert column_numbers(array).tolist() == [5, 10**30, 0, 0]
    assert column_keys(array[1:3], LONG).tolist() == [unscaled_key(10**30, LONG), 0]
    assert column_keys(array[:0], LONG).tolist() == []
    assert column_numbers(array[2:]).tolist() == [0, 0]


def test_the_keys_of_a_row():
    keys = Keys(Schema({"d": "decimal(5, 2)", "e": "decimal(38, 10)", "n": "int"}))
    found, present = keys.row((Decimal("0.10"), None, 7))
    assert found.tolist() == [10, 0, 7]
    assert present.tolist() == [1, 0, 1]
    chance = random.Random(5)  # noqa: S311 - for tests
    value = scaled([chance.randint(10**37, 10**38)], 10)[0]
    assert keys.key(1, value) is None
    assert keys.of_one(1)(value) == keys.many(1, [value])[0] == decimal_key(value, LONG)
