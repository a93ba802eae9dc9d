"""Postings find every related constraint of an attribute, whichever constraints come and go."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from coverings import SCHEMA, any_boxes, boxes, read, semantics_of
from tamis import Schema, parse
from tamis.relations.tables.postings import Postings
from tamis.relations.tables.prepared_filters import FilterPreparation
from tamis.semantics import Semantics


def constraints_of(texts, preparation):
    found = {}
    for prepared in filter(None, (preparation.prepare(read(text)) for text in texts)):
        found.update(
            dict.fromkeys(
                constraint for constraint in prepared.constraints if constraint.position == 3
            )
        )
    return list(found)


_strings = boxes(any_boxes).filter(lambda text: " s" in f" {text}")


@pytest.mark.long
@given(texts=st.lists(_strings, max_size=30), extra=st.booleans())
@settings(max_examples=30)
def test_postings_find_all_related_constraints_of_strings(texts, extra):
    preparation = FilterPreparation(semantics_of("sql"))
    if extra:  # enough tests that they are looked up
        texts = [*texts, *(f"startswith(s, '{'ab' * (k % 9)}{k}')" for k in range(50))]
    constraints = constraints_of(texts, preparation)
    postings = Postings(SCHEMA["s"])
    for constraint in constraints:
        postings.add(constraint, constraint.node)
    check(postings, constraints, preparation.pool)
    for constraint in constraints[::2]:
        postings.remove(constraint)
    check(postings, constraints[1::2], preparation.pool, wanted=constraints)
    for constraint in constraints[1::2]:
        postings.remove(constraint)
    assert all(not list(postings.weaker(constraint)) for constraint in constraints)


def check(postings, constraints, pool, wanted=None):
    for one in wanted or constraints:
        weaker = {constraint for constraint in constraints if pool.implies(one, constraint)}
        stronger = {constraint for constraint in constraints if pool.implies(constraint, one)}
        assert weaker <= set(postings.weaker(one)) <= set(constraints)
        assert stronger <= set(postings.stronger(one)) <= set(constraints)


NUMBERS = Schema({"i": "int", "x": "double", "n": "int(0, 50)"})
BOUNDS = {
    "i": [-(2**63), -(2**62), -5, 0, 1, 2, 3, 7, 8, 100, 2**53 + 1, 2**62, 2**63 - 2, 2**63 - 1],
    "x": [-1.7e308, -1e300, -1.0, -5e-324, 0.0, 5e-324, 0.1, 1.0, 1.5, 1e16, 1e300, 1.7e308],
    "n": list(range(0, 51, 3)),
}


@each("name", BOUNDS)
def test_postings_find_all_related_intervals_of_numbers(name):
    bounds = BOUNDS[name]
    write = "{!r}D".format if name == "x" else str
    texts = [f"{name} {op} {write(b)}" for op in ("<", "<=", ">", ">=", "=") for b in bounds]
    texts += [
        f"{name} >= {write(a)} AND {name} <= {write(b)}" for a in bounds for b in bounds if a <= b
    ]
    texts += [f"{name} > {write(a)} AND {name} < {write(b)}" for a in bounds for b in bounds]
    preparation = FilterPreparation(Semantics("sql", NUMBERS))
    prepared = [preparation.prepare(parse(text, NUMBERS)) for text in texts]
    constraints = list(dict.fromkeys(one.constraints[0] for one in prepared if one is not None))
    postings = Postings(NUMBERS[name])
    for constraint in constraints:
        postings.add(constraint, None)
    check(postings, constraints, preparation.pool)
    for constraint in constraints[::3]:
        postings.remove(constraint)
    left = [constraint for k, constraint in enumerate(constraints) if k % 3]
    check(postings, left, preparation.pool, wanted=constraints[::7])
