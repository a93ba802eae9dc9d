"""Listed predicates of many events, against asking each event for itself."""

import math

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from strategies import SCHEMA, delicate_rows, filters, rows
from tamis import Schema, TypeMismatch, parse
from tamis.language import ast
from tamis.language.evaluate import compile_tree
from tamis.language.normalize import normalize
from tamis.predicates import classes
from tamis.predicates.batches import batch_of_rows, batch_of_table
from tamis.predicates.classes import Classes
from tamis.predicates.index import PredicateIndex
from tamis.predicates.keys import Keys
from tamis.semantics import Semantics

SMALL = Schema(
    {"x": "double", "s": "string", "side": "enum('sell', 'buy')", "i": "int", "b": "bool"}
)


def predicates_of(text, schema=SCHEMA):
    stack, found = [normalize(parse(text, schema).tree)], []
    while stack:
        node = stack.pop()
        if isinstance(node, ast.And | ast.Or):
            stack.extend(node.items)
        elif not isinstance(node, ast.Literal):
            found.append(node)
    return found


def index_of(texts, schema=SMALL):
    index = PredicateIndex(schema, tables=False)
    held = {}
    for text in texts:
        for node in predicates_of(text, schema):
            held[index.intern(node)] = node
    return index, held


def is_listed(node, schema):
    """Whether a predicate is not kept with the keyed comparisons."""
    match node:
        case ast.Compare(_, ast.Attribute(path, kind), ast.Literal(_, constant)):
            return kind != constant or not Keys(schema).has(schema.positions[path])
        case _:
            return True


def found_of(listed, size):
    """The predicates of each event; no predicate is named twice."""
    events = [[] for _ in range(size)]
    for codes, starts, ids in listed:
        assert len(codes) == size
        for event, code in enumerate(codes.tolist()):
            events[event] += ids[starts[code] : starts[code + 1]].tolist()
    assert all(len(set(one)) == len(one) for one in events)
    return [set(one) for one in events]


def check(index, held, some, schema=SMALL, known=None):
    known = known or Classes(index, schema)
    tests = {n: compile_tree(node, schema) for n, node in held.items() if is_listed(node, schema)}
    expected = [{n for n, test in tests.items() if test(row) is True} for row in some]
    batch = batch_of_rows(some, schema)
    assert found_of(known.of(batch, some), len(some)) == expected
    assert found_of(known.of(batch, None), len(some)) == expected


@given(st.lists(filters(depth=2), min_size=1, max_size=6), st.lists(rows(), max_size=4))
@settings(max_examples=60)
def test_any_predicates(texts, some):
    index, held = PredicateIndex(SCHEMA, tables=False), {}
    for text in texts:
        try:
            held |= {index.intern(node): node for node in predicates_of(text)}
        except TypeMismatch:
            continue
    check(index, held, [*some, *delicate_rows()[:6], (None,) * len(SCHEMA)], SCHEMA)


TEXTS = [
    "x IN (1, 2)", "x NOT IN (0, 1)", "x IS NULL", "x IS NOT NULL", "x + 1 > 2", "x % 2 = 1",
    "s = 'a'", "s <> 'a'", "s < 'b'", "s LIKE 'a%'", "s RLIKE 'b$'", "length(s) = 1", "s IS NULL",
    "side IN ('buy')", "side LIKE '%u%'", "NOT side LIKE 's%'", "side IS NULL", "lower(side) = 's'",
    "x > i", "x IS NULL AND i IS NOT NULL", "i / 0 IS NULL", "b IS NULL", "i % 2 = 0", "i = 3",
    "x >= 1", "b", "side = 'buy'",
]  # fmt: skip
ROWS = [
    (x, s, side, i, b)
    for x in (None, -0.0, 0.0, 1.0, 2.0, math.nan, math.inf)
    for s, b in ((None, None), ("a", True), ("ab", False), ("", True), ("nan", None))
    for side, i in ((None, 0), ("buy", 3), ("sell", None))
]


def test_every_kind_of_predicate():
    check(*index_of(TEXTS), ROWS)


def test_no_event():
    index, held = index_of(TEXTS)
    check(index, held, [])
    empty = batch_of_table(
        pa.table({"x": pa.array([], pa.float64())}), Semantics("sql", SMALL), refuse_unknown=True
    )
    assert found_of(Classes(index, SMALL).of(empty, None), 0) == []


def test_nothing_is_listed():
    index, held = index_of(["x > 1", "i = 3", "b"])
    assert Classes(index, SMALL).of(batch_of_rows(ROWS, SMALL), None) == []
    check(index, held, ROWS)


def test_predicates_come_and_go():
    """Ids are given out again, and what was remembered of the old ones is forgotten."""
    index, held = index_of(TEXTS)
    known = Classes(index, SMALL)
    for text in TEXTS:
        check(index, held, ROWS, known=known)
        for node in predicates_of(text, SMALL):
            number = index.ids.get(node)
            if number is not None:
                while number in held and number in index._nodes:
                    index.release(number)
                del held[number]
        for node in predicates_of(f"s = '{text[:1]}!' AND x NOT IN (7, {len(text)})", SMALL):
            held[index.intern(node)] = node
    check(index, held, ROWS, known=known)


@pytest.fixture
def asked(monkeypatch):
    """What the index is asked for."""
    calls = []
    real = PredicateIndex.listed_ids

    def listed_ids(self, position, value):
        calls.append((position, value))
        return real(self, position, value)

    monkeypatch.setattr(PredicateIndex, "listed_ids", listed_ids)
    return calls


def test_every_value_is_asked_about_once(asked):
    index, held = index_of(["s LIKE 'a%'", "x IN (1, 2)"])
    known = Classes(index, SMALL)
    check(index, held, ROWS, known=known)
    check(index, held, ROWS[::-1], known=known)
    names = [(position, str(value)) for position, value in asked]
    assert len(set(names)) == len(names)  # nan as well
    assert (0, "nan") in names
    assert (1, "nan") in names


def test_comparisons_do_not_make_it_forget(asked):
    index, held = index_of(["s LIKE 'a%'"])
    known = Classes(index, SMALL)
    check(index, held, ROWS, known=known)
    before = len(asked)
    held |= {index.intern(node): node for node in predicates_of("x > 5 AND i = 7", SMALL)}
    check(index, held, ROWS, known=known)
    assert len(asked) == before


def test_it_does_not_remember_without_end(monkeypatch):
    monkeypatch.setattr(classes, "MOST_REMEMBERED", 10)
    index, held = index_of(["s LIKE '1%'"])
    known = Classes(index, SMALL)
    for start in range(0, 200, 4):
        some = [(None, str(n), None, None, None) for n in range(start, start + 4)]
        check(index, held, some, known=known)
        assert sum(map(len, known._known.values())) <= 10 + 5
