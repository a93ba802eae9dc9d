"""Random trees of AND, OR and NOT."""

import re
from collections import Counter

import pytest

from tamis import OptionError, parse
from tamis.language.shape_cache import ATOM
from tamis.workloads import read_workload, workload

CONFIG = """about = "few"
kind = "trees"
atoms = [1, 4]
all = 0.5
negated = 0.1
needless = 0.5

[[attributes]]
names = ["n"]
type = "int"
range = [0, 80]
tests = ["@ < #", "@ = #"]
constants = 4
exponent = 0
"""


@pytest.fixture(scope="module")
def filters():
    return workload("shapes").subscriptions(4000)["filter"].to_pylist()


def test_hardly_two_filters_have_the_same_structure(filters):
    cut = [ATOM.split(text) for text in filters]
    structures = Counter("a".join(parts[::2]) for parts in cut)
    long = [parts for parts in cut if len(parts) > 13]
    assert len(long) > 2000
    assert sum(structures["a".join(parts[::2])] == 1 for parts in long) > 0.99 * len(long)
    atoms = Counter(len(parts) // 2 for parts in cut)
    assert sorted(atoms) == list(range(1, 17))
    assert min(atoms.values()) > 180
    assert len({atom for parts in cut for atom in parts[1::2]}) == 208


def test_connectives_and_negations(filters):
    words = Counter(re.findall(r"AND|OR|NOT", " ".join(filters)))
    assert words["AND"] / (words["AND"] + words["OR"]) == pytest.approx(0.5, abs=0.02)
    # Every tree, of one atom or more, is negated with the same probability.
    trees = 2 * (words["AND"] + words["OR"]) + len(filters)
    assert words["NOT"] / trees == pytest.approx(0.12, abs=0.01)


@pytest.mark.parametrize("name", ["shapes", "shapes-constants", "shapes-texts", "shapes-wide"])
def test_all_filters_are_filters(name):
    source = workload(name)
    for text in source.subscriptions(150, seed=3)["filter"].to_pylist():
        parse(text, source.schema)
    assert source.subscriptions(50, seed=3).equals(source.subscriptions(50, seed=3))
    assert source.events(10).num_columns == len(source.schema)


def test_parentheses_that_are_needed_are_there(tmp_path):
    """Without any that are not, a filter prints back as it is written."""
    path = tmp_path / "few.toml"
    path.write_text(CONFIG.replace("needless = 0.5", "needless = 0"))
    source = read_workload(path)
    for text in source.subscriptions(200)["filter"].to_pylist():
        assert str(parse(text, source.schema)) == text
    assert source.parameters(7)["distinct atoms"] == 8


@pytest.mark.parametrize(
    ("old", "new", "reason"),
    [
        ("[1, 4]", "[0, 4]", "atoms must be two whole numbers in ascending order"),
        ("negated = 0.1", "negated = 2", "negated must be a number from 0 to 1"),
        ('["@ < #", "@ = #"]', '["n < #"]', "tests must be texts that have @"),
        ("constants = 4", "constants = 0", "constants must be a whole number"),
        ("exponent = 0", "exponent = -1", "exponent must be a number from 0 to 10"),
        ("exponent = 0", "exponent = 0\nmore = 1", "unknown key attributes"),
    ],
)
def test_configs_that_are_wrong(tmp_path, old, new, reason):
    path = tmp_path / "few.toml"
    path.write_text(CONFIG.replace(old, new))
    with pytest.raises(OptionError, match=reason):
        read_workload(path)


def test_made_up_words_for_constants_and_values(tmp_path):
    path = tmp_path / "words.toml"
    path.write_text(
        CONFIG
        + """
[[attributes]]
names = ["s"]
type = "string"
values = 3
tests = ["@ = '#'"]
constants = 5
exponent = 0
"""
    )
    source = read_workload(path)
    filters = source.subscriptions(300)["filter"].to_pylist()
    words = {word for text in filters for word in re.findall(r"'(\w+)'", text)}
    assert len(words) == 5
    assert set(source.events(200)["s"].to_pylist()) < words
    path.write_text(path.read_text().replace("values = 3", "values = 0"))
    with pytest.raises(OptionError, match="values must be a whole number from 1 to 100,000"):
        read_workload(path)
