"""The minimal table of dependencies, against all pairs by brute force."""

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from tamis import Schema, parse
from tamis.language.normal_form import normalize
from tamis.predicates.dependencies import Dependencies
from tamis.predicates.implication import facts

SCHEMA = Schema({"i": "int", "x": "double", "s": "string", "side": "enum('buy', 'sell')"})
TEXTS = [
    *(f"i {op} {c}" for op in ("=", "<>", "<", "<=", ">", ">=") for c in (3, 5, 8)),
    *(f"x {op} {c}" for op in ("=", "<", "<=", ">", ">=") for c in (1, 2)),
    "i IN (3, 5)", "i IN (3, 4, 5)", "NOT i IN (3, 5)", "i IS NULL", "i IS NOT NULL",
    "s = 'abc'", "s LIKE 'a%'", "s LIKE 'ab%'", "contains(s, 'b')", "s <> 'x'", "s IS NOT NULL",
    "side = 'buy'", "side LIKE 'b%'", "side <> 'sell'", "side <= 'buy'", "side = 'sell'",
    "i + 1 > 3", "i = 7 - i",
]  # fmt: skip
PREDICATES = [normalize(parse(text, SCHEMA).tree) for text in TEXTS]


def domain_of(predicate):
    return SCHEMA["side"].domain if "side" in str(predicate) else None


def implied(u, v):
    return u != v and facts(u, v, domain_of(u)).implies


def check(table, held):
    for u in held:
        assert table.implied_by(u) == {v for v in held if implied(u, v)}
        assert table.that_imply(u) == {v for v in held if implied(v, u)}
    edges = set(table)
    assert len(table) == len(edges)
    assert all(implied(u, v) for u, v in edges)
    for u, v in edges:  # none follows from the others
        reached, waiting = set(), [u]
        while waiting:
            one = waiting.pop()
            for a, b in edges:
                if a == one and (a, b) != (u, v) and b not in reached:
                    reached.add(b)
                    waiting.append(b)
        assert v not in reached


@given(st.lists(st.integers(0, len(PREDICATES) - 1), max_size=40))
@settings(max_examples=40)
def test_complete_and_minimal_as_predicates_come_and_go(steps):
    table, held = Dependencies(SCHEMA), set()
    for step in steps:
        predicate = PREDICATES[step]
        if predicate in held:
            table.remove(predicate)
            held.remove(predicate)
        else:
            table.add(predicate)
            held.add(predicate)
        assert (predicate in table) == (predicate in held)
    check(table, held)
    for predicate in list(held):
        table.remove(predicate)
    assert len(table) == 0


def test_the_example_of_the_paper():
    """Price >= 10 -> price >= 8 -> price >= 5; the third dependency follows."""
    ten, eight, five = (normalize(parse(f"x >= {n}", SCHEMA).tree) for n in (10, 8, 5))
    for order in itertools.permutations([ten, eight, five]):
        table = Dependencies(SCHEMA)
        for predicate in order:
            table.add(predicate)
        assert set(table) == {(ten, eight), (eight, five)}
        table.remove(eight)
        assert set(table) == {(ten, five)}
