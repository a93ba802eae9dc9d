"""Subscriptions with structure: templates of attributes, and constants that belong together."""

import re
from collections import Counter

import numpy as np
import pytest

import tamis
from cases import each
from tamis.workloads import read_workload, workload
from tamis.workloads.random_draws import seeded
from tamis.workloads.templates import Limit
from tamis.workloads.value_generators import Whole

TEST = re.compile(r"(\w+) (=|<=|<|>=|>) (\d+)")
CONFIG = """
about = "two templates"
kind = "templates"
[[attributes]]
names = ["price"]
range = [1, 100]
operators = ["<", ">"]
step = 10
spread = 2
[[attributes]]
names = ["place", "other"]
range = [1, 20]
exponent = 1.0
[[templates]]
tests = ["place", "price"]
weight = 3
[[templates]]
tests = ["other", "place"]
weight = 1
"""


@pytest.fixture
def read(tmp_path):
    """The workload of a config."""

    def read(text):
        path = tmp_path / "some.toml"
        path.write_text(text, encoding="utf-8")
        return read_workload(path)

    return read


def parsed(filters):
    """Attribute, operator and constant of each test."""
    return [TEST.findall(text) for text in filters]


@pytest.fixture
def filters(read):
    return parsed(read(CONFIG).subscriptions(8_000)["filter"].to_pylist())


def test_filters_follow_templates_by_their_weights(filters):
    followed = Counter(tuple(name for name, _, _ in one) for one in filters)
    assert set(followed) == {("price", "place"), ("place", "other")}
    assert followed["price", "place"] / len(filters) == pytest.approx(0.75, abs=0.02)


def test_values_of_keys_are_zipf(filters):
    places = Counter(int(value) for one in filters for name, _, value in one if name == "place")
    harmonic = sum(1 / rank for rank in range(1, 21))
    for rank in (1, 2, 5):
        assert places[rank] / len(filters) == pytest.approx(1 / rank / harmonic, rel=0.1)
    assert {op for one in filters for name, op, _ in one if name == "place"} == {"="}


def test_limits_are_near_what_is_typical_of_the_first_key(filters):
    near = {}
    for (name, op, value), (_, _, place) in filters:
        if name == "price":
            assert op in {"<", ">"}
            near.setdefault(place, set()).add(int(value))
    assert all(value % 10 == 1 for values in near.values() for value in values)
    assert all(max(values) - min(values) <= 40 for values in near.values())
    assert len({min(values) for values in near.values()}) > 3


def test_the_typical_value_is_the_most_frequent_one():
    limit = Limit("x", Whole(0, 99), ("=",), 3)
    found = Counter(limit.constants(seeded(1, 0), np.full(5_000, 3)).tolist())
    [(most, _)] = found.most_common(1)
    assert most == 3 * 7919 % 100
    assert set(found) == set(range(most - 3, most + 4))


def test_a_template_without_keys_has_one_typical_value(read):
    text = CONFIG.replace('["other", "place"]', '["price"]')
    alone = [one for one in parsed(read(text).subscriptions(500)["filter"].to_pylist())
             if len(one) == 1]  # fmt: skip
    assert {int(value) for ((_, _, value),) in alone} == {1, 11, 21}


def test_journeys_have_what_their_config_says():
    made = workload("journeys")
    parameters = made.parameters(10)
    assert (parameters["templates"], parameters["attributes"], parameters["keys"]) == (9, 10, 4)
    assert parameters["distinct_predicates"] == 5 * (100 + 2 * 60 + 3 * 10) + 2 * 20 + 2 * 100
    assert made.events(5).num_columns == 10


@each(
    ("old", "new", "said"),
    [
        ('tests = ["place", "price"]', 'tests = ["plaice"]', "must be a list of attributes among"),
        ("weight = 3", "weight = 0", "must be a whole number from 1"),
        ("spread = 2", "spread = -1", "must be a whole number from 0"),
        ('operators = ["<", ">"]', 'operators = ["like"]', "operators among = <>"),
        ("range = [1, 20]", "range = [1, 1000001]", "an interval of at most 1,000,000 numbers"),
        ("exponent = 1.0", "exponent = 11", "a number from 0 to 10"),
        ("step = 10", "step = 10\nstride = 3", "unknown key attributes"),
    ],
)
def test_a_bad_config_is_refused(old, new, said, tmp_path):
    path = tmp_path / "bad.toml"
    path.write_text(CONFIG.replace(old, new), encoding="utf-8")
    with pytest.raises(tamis.OptionError, match=re.escape(said)):
        read_workload(path)
