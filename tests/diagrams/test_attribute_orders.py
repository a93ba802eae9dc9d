"""The order of attributes that the history of subscriptions, or of events, suggests."""

import random

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tamis import Profile, Schema, parse
from tamis.diagrams.attribute_orders import attribute_order, profiled_order
from tamis.language import ast
from tamis.language.normal_form import normalize

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
    """Both are tested equally often: all test for the same destination, each for another price."""
    texts = [f"price < {n} AND destination = 'Ottawa'" for n in range(20)]
    assert order(texts)[-2:] == ["price", "destination"]
    texts = [f"price < 150 AND destination = 'Ottawa {n}'" for n in range(20)]
    assert order(texts)[-2:] == ["destination", "price"]


def test_attributes_that_are_asked_together_are_neighbours():
    """Time is tested more often than price, but price is tested with the destination."""
    with_price = ["price = 150 AND destination = 'Ottawa'"] * 18
    without = ["destination = 'Ottawa'"] * 12
    apart = ["time = 20"] * 20
    assert order(with_price + without + apart) == ["seat", "time", "price", "destination"]
    elsewhere = ["price = 150"] * 18
    alone = ["destination = 'Ottawa'"] * 30
    assert order(elsewhere + alone + apart) == ["seat", "price", "time", "destination"]


def test_untested_attributes_are_on_top_as_in_the_schema():
    assert order([]) == NAMES
    assert order(["time = 1"]) == ["price", "destination", "seat", "time"]


def test_without_a_difference_the_schema_decides():
    texts = [f"{name} = {value}" for name, value in zip(NAMES, ("1", "1", "'1'", "1"), strict=True)]
    assert order(texts) == NAMES[::-1]


def test_a_predicate_of_two_attributes_counts_for_both():
    assert order(["price < seat"] * 3 + ["time = 1"]) == ["destination", "time", "seat", "price"]


# --- from events


def profiled(**columns):
    profile = Profile.of(pa.table(columns))
    return [NAMES[position] for position in profiled_order(profile, SCHEMA.positions)]


def test_attributes_that_events_have_seldom_are_above_those_they_have_often():
    found = profiled(price=[1] * 8, time=[1, None] * 4, seat=[1] * 6 + [None] * 2)
    assert found == ["destination", "time", "seat", "price"]


def test_attributes_of_many_values_are_above_those_of_few():
    found = profiled(
        price=range(1000), time=[n % 50 for n in range(1000)], destination=["x"] * 1000
    )
    assert found == ["seat", "price", "time", "destination"]
    # With many values each, it is how often there is any.
    rare = [n if n % 4 == 0 else None for n in range(8000)]
    assert profiled(price=range(8000), time=rare)[-2:] == ["time", "price"]
    assert profiled(price=rare, time=range(8000))[-2:] == ["price", "time"]


def test_attributes_that_events_have_together_are_neighbours():
    seats = [1] * 60 + [None] * 40
    together = [1] * 48 + [None] * 52
    apart = [None] * 50 + [1] * 50
    found = profiled(seat=seats, price=together, time=apart)
    assert found == ["destination", "time", "price", "seat"]


def test_a_profile_may_know_other_attributes_or_nothing():
    assert profiled(other=[1, 2], time=[1, 1]) == ["price", "destination", "seat", "time"]
    assert profiled(time=pa.nulls(3, pa.int64())) == NAMES
    assert profiled() == NAMES


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
