"""The order of attributes that the history of subscriptions suggests."""

import random

from hypothesis import given
from hypothesis import strategies as st

from tamis import Schema, parse
from tamis.diagrams.orders import attribute_order
from tamis.language import ast
from tamis.language.normalize import normalize

SCHEMA = Schema({"price": "int", "time": "int", "destination": "string", "seat": "int"})
NAMES = [path[0] for path in SCHEMA.positions]


def predicates(text):
    """The predicates of a conjunction."""
    tree = normalize(parse(text, SCHEMA).tree)
    return tree.items if isinstance(tree, ast.And) else (tree,)


def order(texts):
    """The names of the attributes, top first."""
    history = [predicates(text) for text in texts]
    return [NAMES[position] for position in attribute_order(history, SCHEMA.positions)]


def test_frequent_attributes_are_at_the_bottom():
    texts = (
        ["destination = 'Ottawa'"] * 10
        + ["time = 20 AND destination = 'Ottawa'"] * 5
        + ["price = 150 AND time = 20 AND destination = 'Ottawa'"] * 3
    )
    assert order(texts) == ["seat", "price", "time", "destination"]


def test_attributes_whose_values_are_often_the_same_are_lower():
    """Both are asked equally often; all ask for one destination, everybody has a price."""
    texts = [f"price < {n} AND destination = 'Ottawa'" for n in range(20)]
    assert order(texts)[-2:] == ["price", "destination"]
    texts = [f"price < 150 AND destination = 'Ottawa {n}'" for n in range(20)]
    assert order(texts)[-2:] == ["destination", "price"]


def test_attributes_that_are_asked_together_are_neighbours():
    """Time is asked more often than price, but price comes with the destination."""
    with_price = ["price = 150 AND destination = 'Ottawa'"] * 18
    without = ["destination = 'Ottawa'"] * 12
    apart = ["time = 20"] * 20
    assert order(with_price + without + apart) == ["seat", "time", "price", "destination"]
    elsewhere = ["price = 150"] * 18
    alone = ["destination = 'Ottawa'"] * 30
    assert order(elsewhere + alone + apart) == ["seat", "price", "time", "destination"]


def test_attributes_that_nobody_asks_are_on_top_as_in_the_schema():
    assert order([]) == NAMES
    assert order(["time = 1"]) == ["price", "destination", "seat", "time"]


def test_without_a_difference_the_schema_decides():
    texts = [f"{name} = {value}" for name, value in zip(NAMES, ("1", "1", "'1'", "1"), strict=True)]
    assert order(texts) == NAMES[::-1]


def test_a_predicate_of_two_attributes_counts_for_both():
    assert order(["price < seat"] * 3 + ["time = 1"]) == ["destination", "time", "seat", "price"]


ATOMS = ["price = 1", "price < 5", "time = 1", "time > 3", "destination = 'x'", "seat = 7",
         "price < seat", "destination LIKE 'O%'"]  # fmt: skip


@given(
    st.lists(st.lists(st.sampled_from(ATOMS), min_size=1, max_size=4).map(" AND ".join)),
    st.integers(0, 2**32),
)
def test_an_order_has_every_attribute_once_and_does_not_depend_on_chance(texts, seed):
    found = order(texts)
    assert sorted(found) == sorted(NAMES)
    random.Random(seed).shuffle(texts)  # noqa: S311 - a shuffle, not a secret
    assert order(texts) == found
    mirrored = [" AND ".join(reversed(text.split(" AND "))) for text in texts]
    assert order(mirrored) == found
