"""Postings find every related term of an attribute, whichever terms come and go."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from coverings import SCHEMA, any_boxes, boxes, read, semantics_of
from tamis import Schema, parse
from tamis.relations.tables.postings import Postings
from tamis.relations.tables.prepared_filters import Preparation
from tamis.semantics import Semantics


def terms_of(texts, preparation):
    found = {}
    for prepared in filter(None, (preparation.prepare(read(text)) for text in texts)):
        found.update(dict.fromkeys(term for term in prepared.terms if term.position == 3))
    return list(found)


_strings = boxes(any_boxes).filter(lambda text: " s" in f" {text}")


@pytest.mark.long
@given(texts=st.lists(_strings, max_size=30), extra=st.booleans())
@settings(max_examples=30)
def test_postings_find_all_related_terms_of_strings(texts, extra):
    preparation = Preparation(semantics_of("sql"))
    if extra:  # enough tests that they are looked up
        texts = [*texts, *(f"startswith(s, '{'ab' * (k % 9)}{k}')" for k in range(50))]
    terms = terms_of(texts, preparation)
    postings = Postings(SCHEMA["s"])
    for term in terms:
        postings.add(term, term.node)
    check(postings, terms, preparation.pool)
    for term in terms[::2]:
        postings.remove(term)
    check(postings, terms[1::2], preparation.pool, wanted=terms)
    for term in terms[1::2]:
        postings.remove(term)
    assert all(not list(postings.weaker(term)) for term in terms)


def check(postings, terms, pool, wanted=None):
    for one in wanted or terms:
        weaker = {term for term in terms if pool.implies(one, term)}
        stronger = {term for term in terms if pool.implies(term, one)}
        assert weaker <= set(postings.weaker(one)) <= set(terms)
        assert stronger <= set(postings.stronger(one)) <= set(terms)


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
    preparation = Preparation(Semantics("sql", NUMBERS))
    prepared = [preparation.prepare(parse(text, NUMBERS)) for text in texts]
    terms = list(dict.fromkeys(one.terms[0] for one in prepared if one is not None))
    postings = Postings(NUMBERS[name])
    for term in terms:
        postings.add(term, None)
    check(postings, terms, preparation.pool)
    for term in terms[::3]:
        postings.remove(term)
    left = [term for k, term in enumerate(terms) if k % 3]
    check(postings, left, preparation.pool, wanted=terms[::7])
