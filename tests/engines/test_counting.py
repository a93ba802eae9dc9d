"""What is particular to counting: its vectors, its lists, its limits."""

import pytest

from cases import each
from tamis import CapacityError, Matcher, OptionError, Schema
from tamis.engines import associations

COUNTING = ["counting-list", "counting-bits", "counting-bytes"]
SCHEMA = Schema({"a": "int", "b": "int"})


def matcher(engine, subscriptions):
    made = Matcher(SCHEMA, engine=engine)
    made.subscribe_many(subscriptions)
    return made


@each("engine", COUNTING)
def test_many_conjunctions_of_few_predicates(engine):
    """Beyond every first capacity of vectors, lists and matrices."""
    m = matcher(engine, ((n, f"a = {n % 50} AND b >= {n // 50}") for n in range(5000)))
    assert m.engine == engine
    assert m.match({"a": 7, "b": 2}) == [7, 57, 107]
    for n in range(0, 5000, 2):
        m.unsubscribe(n)
    assert m.match({"a": 7, "b": 2}) == [7, 57, 107]
    assert m.match({"a": 8, "b": 99}) == []
    m.subscribe_many((n, f"a = {n % 50} AND b >= {n // 50}") for n in range(0, 5000, 2))
    assert m.match({"a": 8, "b": 2}) == [8, 58, 108]


@each("engine", COUNTING)
def test_a_subscription_matches_once_however_many_of_its_disjuncts_do(engine):
    m = matcher(engine, {"x": "a = 1 OR b = 2 OR a < 5"})
    assert m.match({"a": 1, "b": 2}) == ["x"]


@each("predicates", ["auto", "lists", "tables"])
@each("engine", COUNTING)
def test_predicates_are_found_in_lists_or_tables(engine, predicates):
    schema = Schema({"a": "int(1, 9)", "b": "int(1, 90000)"})
    m = Matcher(schema, engine=engine, options={"predicates": predicates})
    m.subscribe_many((n, f"a >= {n % 9 + 1} AND b < {n * 500 + 1}") for n in range(100))
    expected = [n for n in range(100) if n % 9 + 1 <= 4 and n * 500 + 1 > 40_000]
    assert m.match({"a": 4, "b": 40_000}) == expected


def test_predicates_are_in_one_of_three_forms():
    with pytest.raises(OptionError, match="predicates"):
        Matcher(SCHEMA, engine="counting-list", options={"predicates": "hash"})


@each("engine, entry", [("counting-list", 0), ("counting-bits", 8), ("counting-bytes", 64)])
def test_bytes_are_those_of_what_is_held(engine, entry):
    """Two vectors of 16 bits, and of a matrix a column of 64 conjunctions for each predicate."""
    m = matcher(engine, ((n, f"a = {n % 2} AND b = 0") for n in range(64)))
    held = m._held.engine
    assert held.deletion_bytes == 64 * 2 * 4
    if entry:
        assert held.association_bytes == 64 * 4 + 3 * entry
    else:
        links = 64 * 2 * 4  # lists have room to grow
        assert 64 * 4 + 3 * 24 + links <= held.association_bytes <= 64 * 4 + 3 * 24 + 2 * links


@each("engine", COUNTING)
def test_always_and_never(engine):
    m = matcher(engine, {"all": "TRUE", "none": "a < 1 AND FALSE", "some": "a < 1"})
    assert m.match({}) == ["all"]
    assert m.match({"a": 0}) == ["all", "some"]


@pytest.mark.parametrize("engine", ["counting-bits", "counting-bytes"])
def test_a_matrix_that_would_be_too_large_is_refused_and_nothing_changes(engine, monkeypatch):
    monkeypatch.setattr(associations, "MATRIX_BUDGET", 4096)
    m = matcher(engine, {0: "a = 0"})
    with pytest.raises(CapacityError, match="the engine counting-list"):
        m.subscribe_many((n, f"a = {n} AND b = {n}") for n in range(1000))
    assert list(m) == [0]
    assert m.match({"a": 0}) == [0]
    assert m._held.engine.statistics() == {"subscriptions": 1, "conjunctions": 1, "predicates": 1}


def test_a_replacement_that_does_not_fit_leaves_the_old_filter(monkeypatch):
    m = matcher("counting-bits", dict.fromkeys(range(3), "a = 0"))
    monkeypatch.setattr(associations, "MATRIX_BUDGET", 0)
    with pytest.raises(CapacityError):
        m.subscribe(1, " OR ".join(f"b = {n}" for n in range(100)))
    assert str(m.get(1)) == "a = 0"
    monkeypatch.undo()
    assert m.match({"a": 0}) == [0, 1, 2]
