"""BDD: the queries and the messages of the paper."""

import re
from collections import Counter

import numpy as np
import pyarrow.compute as pc
import pytest

from tamis.workloads import workload

ATOM = re.compile(
    r"[id]\d (?:=|<>|<=?|>=?) [\d.]+|s\d (?:=|<>|SUBSTRING OF) '\w+'|contains\(s\d, '\w+'\)"
)


@pytest.fixture(scope="module")
def filters():
    return workload("bdd").subscriptions(100_000)["filter"]


@pytest.fixture(scope="module")
def atoms(filters):
    return Counter(atom for text in filters.to_pylist() for atom in ATOM.findall(text))


def test_the_average_number_of_atoms(atoms):
    assert sum(atoms.values()) / 100_000 == pytest.approx(7.6, abs=0.1)
    expected = workload("bdd").parameters(1)["expectations"]["atom"]
    assert sum(atoms.values()) / 100_000 == pytest.approx(expected, abs=0.05)


def test_all_208_atoms_occur(atoms):
    numbers = {
        f"{kind}{i} {operator} {constant}{'.0' if kind == 'd' else ''}"
        for kind in "id"
        for i in range(3)
        for operator in ("=", "<>", "<", "<=", ">", ">=")
        for constant in (10, 30, 50, 70)
    }
    strings = {
        form.format(i, constant)
        for form in ("s{} = '{}'", "s{} <> '{}'", "s{} SUBSTRING OF '{}'", "contains(s{}, '{}')")
        for i in range(4)
        for constant in ("aa", "bb", "a", "b")
    }
    assert set(atoms) == numbers | strings
    assert len(atoms) == 208


def test_attributes_are_equally_probable(atoms):
    names = Counter()
    for atom, count in atoms.items():
        names[re.search(r"[ids]\d", atom)[0]] += count
    total = sum(names.values())
    assert [names[name] / total for name in workload("bdd").schema] == pytest.approx(
        [0.1] * 10, abs=0.005
    )


def test_the_average_number_of_connectives(filters):
    joined = " ".join(filters.to_pylist())
    words = Counter(re.findall(r"\b(?:AND|OR|NOT)\b", joined))
    assert sum(words.values()) / 100_000 == pytest.approx(7.7, abs=0.1)
    assert words["AND"] / words["OR"] == pytest.approx(1, abs=0.05)
    assert words["NOT"] / 100_000 == pytest.approx(1.1, abs=0.05)


def test_queries_are_shallow(filters):
    for text in filters.to_pylist()[:5000]:
        inside = text.replace("contains(", "")
        assert "((" not in inside.replace("NOT ", "")
    assert not pc.any(pc.match_substring(filters, "NOT NOT")).as_py()


def test_messages():
    events = workload("bdd").events(5000)
    whole, real = events["i1"].to_numpy(), events["d1"].to_numpy()
    assert set(whole) == set(range(81))
    assert (real.min() >= 0, real.max() <= 80) == (True, True)
    assert (whole.mean(), real.mean()) == pytest.approx((40, 40), abs=1)
    assert len(np.unique(real)) > 4900
    texts = Counter(events["s2"].to_pylist())
    assert len(texts) == 20
    assert {"a", "b", "aa", "bb"} <= set(texts)
    assert len({len(text) for text in texts}) > 4
    assert max(texts.values()) < 1.5 * min(texts.values())
