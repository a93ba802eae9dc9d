"""General filters: what refutes covering, what is required, and what a search is spared."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from coverings import SCHEMA, SEMANTICS, Oracle, generals, read, semantics_of
from tamis.predicates.event_space import EventSpace, form_of
from tamis.relations.tables import CoverTable, Insertion, witnesses
from tamis.relations.tables.witnesses import Witnesses


def form(text, semantics="sql"):
    return form_of(read(text), semantics_of(semantics))


def witnessed(text, semantics):
    space = EventSpace.of(semantics_of(semantics))
    return Witnesses(space).witnessed(form(text, semantics))


@each(
    ("text", "names"),
    [
        ("i > n", "i n"),
        ("i > n OR i = 1", "i"),
        ("i IS NULL OR i = 1", ""),
        ("i + n > 1 AND (s = 'a' OR s = 'b' AND x > 1)", "i n s"),
        ("(i > 1) = b", "i b"),
        ("i DIV n IS NOT NULL", "i n"),
        ("i DIV n IS NULL", ""),
        ("TRUE", ""),
    ],
)
def test_what_a_form_is_not_true_without(text, names):
    found = witnessed(text, "sql").required
    assert {a.name for p, a in enumerate(SCHEMA.attributes) if found >> p & 1} == set(names.split())
    assert witnessed(text, "total").required == 0


@pytest.mark.long
@pytest.mark.parametrize("semantics", SEMANTICS)
@given(texts=st.lists(generals, min_size=2, max_size=5))
@settings(max_examples=25)
def test_witnesses_refute_nothing_that_is_true(semantics, texts):
    chosen = semantics_of(semantics)
    oracle, common = Oracle(chosen), Witnesses(EventSpace.of(chosen))
    made = [common.witnessed(form_of(read(text), chosen)) for text in texts]
    for one, wide in zip(texts, made, strict=True):
        for other, narrow in zip(texts, made, strict=True):
            assert common.covers(wide, narrow) == oracle.covers(one, other)
            assert all(map(narrow.holds, narrow.rows))


def test_what_refuted_one_pair_refutes_others_without_a_search(monkeypatch):
    common = Witnesses(EventSpace.of(semantics_of("sql")))
    wide = [common.witnessed(form(f"i > {k} OR n > 4")) for k in range(20)]
    narrow = common.witnessed(form("i > -5 OR n = 6"))
    decided = []
    entails = witnesses.entails
    monkeypatch.setattr(witnesses, "entails", lambda *a: decided.append(a) or entails(*a))
    assert not any(common.covers(one, narrow) for one in reversed(wide))
    assert len(decided) <= 2


def test_room_for_witnesses_is_bounded(monkeypatch):
    monkeypatch.setattr(witnesses, "MOST_ROWS", 3)
    monkeypatch.setattr(witnesses, "MOST_OWN", 2)
    common = Witnesses(EventSpace.of(semantics_of("sql")))
    made = [common.witnessed(form(f"i = {k} OR x = {k}.0D")) for k in range(12)]
    both = common.witnessed(form(" OR ".join(f"i = {k}" for k in range(12)) + " OR x = 1.0D"))
    assert not any(common.covers(one, both) for one in made)
    assert not any(common.covers(one, other) for one in made for other in made if one is not other)
    assert len(common._rows) == 3
    assert all(len(one.rows) <= 2 for one in (*made, both))


@pytest.mark.parametrize("semantics", ["sql", "total"])
def test_boxes_and_general_filters_in_numbers(semantics):
    table = CoverTable(semantics_of(semantics))
    for k in range(200):
        table.insert(("box", k), read(f"i = {k} AND x > {k % 7}.0D AND n = {k % 5}"))
    assert table.insert("none", read("i > 500 OR n > x")).covers == []
    found = table.insert("half", read("i < 100 AND (x > 0.0D OR n = 3)"))
    assert found == Insertion(None, [("box", k) for k in range(100)])
    assert table.insert("some", read("i = 150 AND x > 9 AND (n = 0 OR b)")).covered_by is None
    assert table.insert("less", read("i = 50 AND (x > 3 OR n > x AND x > 1)")).covered_by == "half"
    assert table.remove("half") == [*(("box", k) for k in range(100)), "less"]
