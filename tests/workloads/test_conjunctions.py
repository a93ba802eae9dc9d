"""COUNT and MBD: conjunctions of comparisons."""

from collections import Counter

import numpy as np
import pytest

from cases import each
from tamis.schema import IntRange
from tamis.workloads import workload


def predicates(name, count, seed=1):
    """For each filter its (attribute, operator, constant)."""
    texts = workload(name).subscriptions(count, seed=seed)["filter"].to_pylist()
    return [
        [(int(a[1:]), op, int(v)) for a, op, v in (test.split() for test in text.split(" AND "))]
        for text in texts
    ]


@each(
    ("name", "attributes", "low", "high", "most"),
    [("w0", 120, 1, 250, 20), ("w1", 120, 250, 10_000, 20), ("w2", 120, 10_000, 100_000, 20),
     ("w4", 10, 1, 10, 5)],
)  # fmt: skip
def test_the_workloads_of_the_counting_paper(name, attributes, low, high, most):
    schema = workload(name).schema
    assert len(schema) == attributes
    assert {attribute.domain for attribute in schema.attributes} == {IntRange(low, high)}
    filters = predicates(name, 6000)
    lengths = Counter(map(len, filters))
    assert sorted(lengths) == list(range(1, most + 1))
    assert [lengths[n] / 6000 for n in sorted(lengths)] == pytest.approx(
        [1 / most] * most, abs=0.02
    )
    flat = [one for filter_ in filters for one in filter_]
    names, operators = (Counter(one[i] for one in flat) for i in (0, 1))
    assert len(names) == attributes
    assert max(names.values()) < 1.3 * min(names.values())
    assert sorted(operators) == ["<", "<=", "<>", "=", ">", ">="]
    assert max(operators.values()) < 1.1 * min(operators.values())
    constants = np.array([one[2] for one in flat])
    assert (constants.min() >= low, constants.max() <= high) == (True, True)
    assert constants.mean() == pytest.approx((low + high) / 2, rel=0.02)
    assert constants.std() == pytest.approx((((high - low + 1) ** 2 - 1) / 12) ** 0.5, rel=0.02)


def test_the_mix_divides_the_attributes():
    made = workload("w3")
    domains = [IntRange(1, 250), IntRange(250, 10_000), IntRange(10_000, 100_000)]
    assert [attribute.domain for attribute in made.schema.attributes] == domains * 40
    flat = [one for filter_ in predicates("w3", 3000) for one in filter_]
    for which, domain in enumerate(domains):
        constants = np.array([value for name, _, value in flat if name % 3 == which])
        assert constants.mean() == pytest.approx((domain.low + domain.high) / 2, rel=0.05)
        values = made.events(1000)[f"a{which}"].to_numpy()
        assert values.mean() == pytest.approx((domain.low + domain.high) / 2, rel=0.1)


@pytest.mark.parametrize(
    ("name", "distinct", "lengths"),
    [("mbd-a", 2000, range(3, 6)), ("mbd-b", 5000, range(4, 11))],
)
def test_the_sets_of_the_mbd_paper(name, distinct, lengths):
    made = workload(name)
    assert made.parameters(1)["distinct_predicates"] == distinct
    filters = predicates(name, 20_000)
    assert len({one for filter_ in filters for one in filter_}) == distinct
    assert {len(filter_) for filter_ in filters} == set(lengths)
    for filter_ in filters:
        names = [name for name, _, _ in filter_]
        assert names == sorted(names)
    assert len(made.schema) == 20


def test_a_million_constants():
    made = workload("constants")
    flat = [one for filter_ in predicates("constants", 10_000) for one in filter_]
    assert len({value for _, _, value in flat}) > 0.95 * len(flat)
    values = made.events(1000)["a3"].to_numpy()
    assert not np.any(values % 1_000_000)
    assert values.max() > 9 * 10**11
    assert made.parameters(1)["distinct_predicates"] == 3 * 10 * 1_000_000


def test_numbers_of_the_config_are_told():
    assert workload("w4").parameters(7) == {
        "subscriptions": 7, "attributes": 10, "domains": [[1, 10]],
        "operators": ["=", "<>", "<", "<=", ">", ">="], "predicates": [1, 5], "pairs": 10,
        "distinct_predicates": 600,
    }  # fmt: skip
