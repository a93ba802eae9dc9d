"""Candidates: what the index leaves to compare, and that it leaves out nothing that is related."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from coverings import SCHEMA, any_boxes, boxes, read, semantics_of, with_value_sets
from tamis import Schema, parse
from tamis.relations.tables import candidate_search
from tamis.relations.tables.candidate_search import CandidateSearch
from tamis.relations.tables.postings import Postings
from tamis.relations.tables.prepared_filters import Preparation
from tamis.semantics import Semantics


def related(pool, strong, weak):
    """Whether one box is covered by another, term by term."""
    return all(
        term.position in strong.by_position
        and pool.implies(strong.by_position[term.position], term)
        for term in weak.terms
    )


def boxes_of(texts, preparation):
    prepared = [preparation.prepare(read(text)) for text in texts]
    return {k: one for k, one in enumerate(prepared) if one is not None}


@pytest.mark.parametrize("semantics", ["sql", "total"])
@given(texts=st.lists(any_boxes, max_size=40), news=st.lists(any_boxes, min_size=1, max_size=5))
@settings(max_examples=60)
def test_nobody_is_left_out(semantics, texts, news):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(candidate_search, "FLAT", 2)  # groups have postings, and groups in these
        patch.setattr(candidate_search, "NESTED", 2)
        preparation = Preparation(semantics_of(semantics))
        search = CandidateSearch(preparation.pool)
        held = boxes_of(texts, preparation)
        for box, prepared in held.items():
            search.add(box, prepared)
        for box in [box for box in held if box % 3 == 0]:
            search.remove(box, held.pop(box))
        for new in boxes_of(news, preparation).values():
            wide = {k for k, one in held.items() if related(preparation.pool, new, one)}
            narrow = {k for k, one in held.items() if related(preparation.pool, one, new)}
            assert set(search.covering(new)) == wide
            found = search.find(new)
            assert found.covering in wide if wide else set(found.covered) == narrow
            asking = {k for k, one in held.items() if not new.mask & ~one.mask}
            assert set(search.testing(new.mask)) == asking


def terms_of(texts, preparation):
    found = {}
    for prepared in boxes_of(texts, preparation).values():
        found.update(dict.fromkeys(term for term in prepared.terms if term.position == 3))
    return list(found)


_strings = boxes(any_boxes).filter(lambda text: " s" in f" {text}")


@given(texts=st.lists(_strings, max_size=30), extra=st.booleans())
@settings(max_examples=60)
def test_postings_find_all_related_terms_of_strings(texts, extra):
    preparation = Preparation(semantics_of("sql"))
    if extra:  # so many tests that they are looked up
        texts = [*texts, *(f"startswith(s, '{'ab' * (k % 9)}{k}')" for k in range(50))]
    terms = terms_of(texts, preparation)
    postings = Postings(SCHEMA["s"])
    for term in terms:
        postings.add(term, term.node)
    check(postings, terms, preparation.pool)
    for term in terms[::2]:
        postings.remove(term)
    check(postings, terms[1::2], preparation.pool, asked=terms)
    for term in terms[1::2]:
        postings.remove(term)
    assert all(not list(postings.weaker(term)) for term in terms)


def check(postings, terms, pool, asked=None):
    for one in asked or terms:
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
def test_postings_find_all_related_stretches_of_numbers(name):
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
    check(postings, left, preparation.pool, asked=terms[::7])


def test_few_of_many_are_looked_at(monkeypatch):
    preparation = Preparation(Semantics("sql", NUMBERS))
    search = CandidateSearch(preparation.pool)
    for k in range(2_000):
        text = f"i = {k % 500} AND x >= {k}.0D AND x <= {k}.5D AND n > {k % 40}"
        search.add(k, preparation.prepare(parse(text, NUMBERS)))
    asked = []
    implies = preparation.pool.implies
    monkeypatch.setattr(preparation.pool, "implies", lambda a, b: asked.append(a) or implies(a, b))
    (group,) = search._groups.values()
    new = preparation.prepare(parse("i = 77 AND x = 577.25D AND n = 50", NUMBERS))
    assert len(list(group.candidates(new, covering=True))) == 4  # those of i = 77
    assert list(search.covering(new)) == [577]
    assert len(asked) < 20
    wide = preparation.prepare(parse("x > 100.0D AND x < 103.0D", NUMBERS))
    assert search.find(wide).covered == [101, 102]
    assert len(list(group.candidates(wide, covering=False))) < 10


def test_many_attributes_and_many_sets_of_them():
    schema = Schema({f"a{k}": "int" for k in range(100)})
    preparation = Preparation(Semantics("sql", schema))
    search = CandidateSearch(preparation.pool)
    texts = [f"a{k} > 1 AND a{(k + 1) % 100} > 1" for k in range(100)]
    held = [preparation.prepare(parse(text, schema)) for text in texts]
    for box, prepared in enumerate(held):
        search.add(box, prepared)
    everything = " AND ".join(f"a{k} = 2" for k in range(100))
    new = preparation.prepare(parse(everything, schema))
    assert sorted(search.covering(new)) == list(range(100))
    assert sorted(search.find(preparation.prepare(parse("a70 > 0", schema))).covered) == [69, 70]
    for box, prepared in enumerate(held):
        search.remove(box, prepared)
    assert list(search.covering(new)) == []
    assert search._groups == {}


@given(text=with_value_sets)
@settings(max_examples=30)
def test_a_box_is_found_by_itself(text):
    preparation = Preparation(semantics_of("sql"))
    prepared = preparation.prepare(read(text))
    if prepared is None or prepared.terms is None:
        return
    search = CandidateSearch(preparation.pool)
    search.add(7, prepared)
    assert search.find(prepared).covering == 7
    search.remove(7, prepared)
    assert search.find(prepared) == (None, [])
