"""Conditions on elements in programs: true where they are true of the elements one by one."""

import math

import numpy as np
import pytest

from array_strategies import ARRAYS, DOUBLES, MOMENTS, WHOLE
from cases import each
from element_conditions import check_conditions
from tamis import Matcher
from tamis.events.values import MapValue
from tamis.kernels.term_steps import LANES
from tamis.language.parser import parse_tree
from tamis.predicates import element_terms as module
from tamis.predicates.element_terms import element_terms
from tamis.predicates.event_batches import batch_of_rows
from tamis.predicates.term_columns import TermColumns

CONDITIONS = {
    "ns": ["e > 1", "e + 1 > i", "e % 2 = 0", "e IS NULL", "e IN (1, 5, i)", "e > 1 AND e < i",
           "size(tags) > e", "e IN (2, NULL)", "e * 2 = i OR e < 0", "length(s) = e"],
    "xs": ["e < x", "e IN (0.0D, 1.5D)", "e * 2D >= 3D", "round(e) = i", "e = i",
           "e NOT IN (CAST('nan' AS DOUBLE), x)", "abs(e) > 1D"],
    "bs": ["NOT e", "e IS NOT NULL", "e = (i > 0)"],
    "ts": ["e + INTERVAL 1 HOUR > TIMESTAMP '1970-01-01 00:30:00'", "e < ts[0]"],
    "map_values(props)": ["e > 1 AND e < 5", "e = i"],
    "map_values(rates)": ["e > x", "e IN (1.5D, x)"],
}  # fmt: skip
TERMS = [
    parse_tree(f"{name}({array}, e -> {condition})", ARRAYS)
    for array, conditions in CONDITIONS.items()
    for condition in conditions
    for name in ("exists", "forall")
]


def row(**values):
    return tuple((dict.fromkeys(ARRAYS) | values).values())


def arrays_of(values):
    """No array, one without elements, and some with and without nulls."""
    parts = [tuple(values[k : k + 2]) for k in range(0, len(values), 2)]
    return [None, (), (None,), *parts, *((*part, None) for part in parts), tuple(values)]


def map_of(values):
    return None if values is None else MapValue(zip("abcdefghijk", values, strict=False))


def rows():
    ns, xs = arrays_of([*WHOLE, None]), arrays_of([*DOUBLES, None])
    bs, ts = arrays_of([True, False, None]), arrays_of([*MOMENTS, None])
    found = []
    for n in range(60):
        integers, doubles = ns[n % len(ns)], xs[n % len(xs)]
        found.append(
            row(
                ns=integers, xs=doubles, bs=bs[n % len(bs)], ts=ts[n % len(ts)],
                i=[None, 1, 2, -1, 2**63 - 1][n % 5], x=[None, 0.0, 1.5, math.nan][n % 4],
                s=[None, "", "ab"][n % 3], tags=[None, (), ("a", "b")][n % 3],
                props=map_of(integers), rates=map_of(doubles),
            )
        )  # fmt: skip
    return found


@each(
    ("text", "expected"),
    [
        ("exists(ns, e -> e > i)", True), ("forall(xs, e -> e < 1D)", True),
        ("exists(map_values(props), e -> e > 1)", True), ("exists(bs, e -> NOT e)", True),
        ("exists(ns, e -> e IN (1, 2))", True), ("forall(ns, e -> e + size(tags) > 3)", True),
        ("exists(ns, e -> props[s] > e)", True),
        ("exists(tags, e -> e = 'a')", False),  # once per distinct string
        ("exists(map_keys(props), e -> e < 'b')", False),
        ("exists(array(i, 1), e -> e > 1)", False),  # no column of arrays
        ("exists(ns, e -> e > 1.5)", False),  # compared as decimals
        ("exists(bs, e -> e)", False), ("forall(xs, e -> e <=> x)", False),
        ("exists(xs, e -> power(e, 2) > x)", False),  # once per distinct element
        ("exists(ns, e -> e > 1 AND instr(CAST(e AS STRING), '1') > 0)", False),
        ("array_contains(ns, 1)", False), ("size(ns) = 1", False),
        (f"exists(ns, e -> e IN ({', '.join(map(str, range(40)))}))", False),
    ],
)  # fmt: skip
def test_which_conditions_are_in_a_program(text, expected):
    assert bool(element_terms([parse_tree(text, ARRAYS)], ARRAYS, others=())) == expected


def test_others_are_left_alone():
    (found,) = element_terms(TERMS[:4], ARRAYS, others={0, 2}).values()
    assert found.numbers.tolist() == [1, 3]


@pytest.mark.parametrize("at_once", [3, LANES])
def test_conditions_have_their_meaning(monkeypatch, at_once):
    monkeypatch.setattr(module, "LANES", at_once)
    monkeypatch.setattr(module, "MOST_HELD", 0)
    check_conditions(element_terms(TERMS, ARRAYS, others=()).values(), TERMS, rows())


def test_what_is_decided_is_not_tested_further(monkeypatch):
    terms = [parse_tree(f"exists(ns, e -> e > i + {n})", ARRAYS) for n in range(3)]
    terms += [parse_tree(f"forall(ns, e -> e < {n + 10})", ARRAYS) for n in range(3)]
    (part,) = element_terms(terms, ARRAYS, others=()).values()
    tested = []

    def noting(inputs, elements, *others):
        tested.append(elements[0].tolist())
        test_elements(inputs, elements, *others)

    test_elements = part._program.test_elements
    monkeypatch.setattr(part._program, "test_elements", noting)
    keys, present = part.of_row(row(ns=(100, *range(3 * LANES)), i=5))
    assert (keys.tolist(), present.tolist()) == ([1, 1, 1, 0, 0, 0], [1] * 6)
    assert tested == [[100, *range(LANES - 1)]]
    keys, present = part.of_row(row(ns=(None, *[7] * 3 * LANES), i=5))
    assert (keys.tolist(), present.tolist()) == ([1, 1, 0, 0, 0, 0], [1, 1, 0, 0, 0, 0])
    assert len(tested) == 1 + 4


def test_a_batch_without_elements():
    (part,) = element_terms(TERMS[:2], ARRAYS, others=()).values()
    keys, present = part.of_batch(TermColumns(batch_of_rows([row(), row(ns=())], ARRAYS)))
    assert keys.tolist() == [[0, 0], [0, 1]]  # nothing exists, and all there is passes
    assert present.tolist() == [[0, 1], [0, 1]]
    keys, present = part.of_batch(TermColumns(batch_of_rows([], ARRAYS)))
    assert keys.shape == present.shape == (2, 0)


@pytest.mark.parametrize("engine", ["sliced", "auto", "tree"])
def test_matches_are_those_of_naive(engine):
    """More elements than the program takes at once, which belong to events on both sides."""
    rules = {n: f"exists(ns, e -> e > {50 * n} AND e < i + {60 * n})" for n in range(40)}
    rules |= {100 + n: f"forall(ns, e -> e <> {n} OR e = i)" for n in range(40)}
    events = [
        {"ns": [None if k % 97 == 0 else (7 * k + n) % 3000 for k in range(n * 9 % 700)], "i": n}
        for n in range(30)
    ]
    naive, other = Matcher(ARRAYS, "naive"), Matcher(ARRAYS, engine)
    for matcher in (naive, other):
        matcher.subscribe_many(rules)
    expected = [naive.match(event) for event in events]
    assert len(set(map(tuple, expected))) > 10
    assert other.match_batch(events, "lists")["subscriptions"].to_pylist() == expected
    assert [other.match(event) for event in events] == expected
    assert np.array_equal(
        other.match_batch(events, "counts")["count"].to_numpy(), [len(found) for found in expected]
    )
