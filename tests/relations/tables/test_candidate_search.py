"""Candidates: what the index leaves to compare, and that it leaves out nothing that is related."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coverings import any_boxes, read, semantics_of, with_value_sets
from tamis import Schema, parse
from tamis.relations.tables import candidate_search
from tamis.relations.tables.candidate_search import CandidateSearch
from tamis.relations.tables.prepared_filters import FilterPreparation
from tamis.semantics import Semantics


def related(pool, strong, weak):
    """Whether one box is covered by another, constraint by constraint."""
    return all(
        constraint.position in strong.by_position
        and pool.implies(strong.by_position[constraint.position], constraint)
        for constraint in weak.constraints
    )


def boxes_of(texts, preparation):
    prepared = [preparation.prepare(read(text)) for text in texts]
    return {k: one for k, one in enumerate(prepared) if one is not None}


@pytest.mark.long
@pytest.mark.parametrize("semantics", ["sql", "total"])
@given(texts=st.lists(any_boxes, max_size=40), news=st.lists(any_boxes, min_size=1, max_size=5))
@settings(max_examples=30)
def test_no_box_is_left_out(semantics, texts, news):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(candidate_search, "FLAT", 2)  # groups have postings, and groups in these
        patch.setattr(candidate_search, "NESTED", 2)
        preparation = FilterPreparation(semantics_of(semantics))
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
            testing = {k for k, one in held.items() if not new.mask & ~one.mask}
            assert set(search.testing(new.mask)) == testing


NUMBERS = Schema({"i": "int", "x": "double", "n": "int(0, 50)"})


@pytest.mark.long
def test_few_of_many_are_compared(monkeypatch):
    preparation = FilterPreparation(Semantics("sql", NUMBERS))
    search = CandidateSearch(preparation.pool)
    for k in range(2_000):
        text = f"i = {k % 500} AND x >= {k}.0D AND x <= {k}.5D AND n > {k % 40}"
        search.add(k, preparation.prepare(parse(text, NUMBERS)))
    compared = []
    implies = preparation.pool.implies
    monkeypatch.setattr(
        preparation.pool, "implies", lambda a, b: compared.append(a) or implies(a, b)
    )
    (group,) = search._groups.values()
    new = preparation.prepare(parse("i = 77 AND x = 577.25D AND n = 50", NUMBERS))
    assert len(list(group.candidates(new, covering=True))) == 4  # those of i = 77
    assert list(search.covering(new)) == [577]
    assert len(compared) < 20
    wide = preparation.prepare(parse("x > 100.0D AND x < 103.0D", NUMBERS))
    assert search.find(wide).covered == [101, 102]
    assert len(list(group.candidates(wide, covering=False))) < 10


def test_many_attributes_and_many_sets_of_them():
    schema = Schema({f"a{k}": "int" for k in range(100)})
    preparation = FilterPreparation(Semantics("sql", schema))
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
    preparation = FilterPreparation(semantics_of("sql"))
    prepared = preparation.prepare(read(text))
    if prepared is None or prepared.constraints is None:
        return
    search = CandidateSearch(preparation.pool)
    search.add(7, prepared)
    assert search.find(prepared).covering == 7
    search.remove(7, prepared)
    assert search.find(prepared) == (None, [])
