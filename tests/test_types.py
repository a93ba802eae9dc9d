import pickle

import pytest

from cases import each
from tamis.types import ATTRIBUTE_TYPES, BOOL, DOUBLE, INT, INT32, NULL, STRING, decimal_type


@each(
    ("kind", "text"),
    [(INT, "int"), (INT32, "int"), (DOUBLE, "double"), (decimal_type(5, 2), "decimal(5, 2)")],
)
def test_types_are_named_as_users_know_them(kind, text):
    assert str(kind) == text


@each("kind", [INT, INT32, DOUBLE, decimal_type(3, 1)])
def test_numbers(kind):
    assert kind.is_number


@each("kind", [STRING, BOOL, NULL])
def test_what_is_not_a_number(kind):
    assert not kind.is_number
    assert not kind.is_integer


def test_types_of_attributes_that_a_name_is_enough_for():
    assert list(ATTRIBUTE_TYPES) == ["int", "double", "string", "bool", "timestamp"]


@pytest.mark.parametrize("kind", [INT, decimal_type(38, 18)])
def test_types_survive_pickling(kind):
    assert pickle.loads(pickle.dumps(kind)) == kind
