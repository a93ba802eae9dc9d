"""Covering by MBDs: the passes, the bits that a box gives to variables, and housekeeping."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coverings import SCHEMA, boxes, read, semantics_of
from tamis import Schema, parse
from tamis.kernels.mbd_covering import LEFT, RIGHT
from tamis.relations.tables import mbd_search
from tamis.relations.tables.mbd_search import MbdSearch
from tamis.relations.tables.prepared_filters import FilterPreparation
from tamis.relations.tables.search import SearchResult
from tamis.semantics import Semantics

both_caches = pytest.mark.parametrize("cache", [True, False])
both_passes = pytest.mark.parametrize("passes", [1, 2])


class Stored:
    """A search and the boxes in it, by their texts."""

    def __init__(self, texts=(), schema=SCHEMA, **options):
        semantics = semantics_of("sql") if schema is SCHEMA else Semantics("sql", schema)
        self.schema = schema
        self.preparation = FilterPreparation(semantics)
        self.search = MbdSearch(self.preparation.pool, **options)
        self.held = {}
        for box, text in enumerate(texts):
            self.add(box, text)

    def prepared(self, text):
        return self.preparation.prepare(parse(text, self.schema))

    def add(self, box, text):
        self.held[box] = self.prepared(text)
        self.search.add(box, self.held[box])

    def remove(self, box):
        self.search.remove(box, self.held.pop(box))

    def find(self, text):
        return self.search.find(self.prepared(text))


@both_passes
@both_caches
def test_which_box_covers_the_new_one_and_which_it_covers(passes, cache):
    stored = Stored(["i > 1 AND n = 2", "i = 7", "x > 1"], passes=passes, cache=cache)
    assert stored.find("i > 3 AND n = 2 AND b") == SearchResult(0, [])
    assert stored.find("i > 2 AND n = 2") == SearchResult(0, [])
    assert stored.find("i > 0") == SearchResult(None, [0, 1])
    assert stored.find("i > 1") == SearchResult(None, [0, 1])
    assert stored.find("i < 5") == SearchResult(None, [])
    assert stored.find("x = 2") == SearchResult(2, [])


@both_passes
def test_one_that_lacks_an_attribute_of_the_new_one_is_not_covered(passes):
    # Every bit on the left is 1 here; only the attributes show that the new one tests more.
    stored = Stored(["i = 1"], passes=passes)
    assert stored.find("i > 0 AND n = 2") == SearchResult(None, [])
    stored.add(1, "i = 1 AND n = 2")
    assert stored.find("i > 0 AND n = 2").covered == [1]


@both_passes
def test_attributes_beyond_the_first_word_count(passes):
    schema = Schema({f"a{k}": "int" for k in range(130)})
    stored = Stored(["a0 > 1", "a0 > 1 AND a129 > 3"], schema, passes=passes)
    assert stored.find("a0 > 0 AND a129 > 2") == SearchResult(None, [1])
    assert stored.find("a129 > 2") == SearchResult(None, [1])
    assert stored.find("a0 > 2 AND a64 = 1") == SearchResult(0, [])
    assert list(stored.search.testing(1 << 129)) == [1]
    assert list(stored.search.testing(0)) == [0, 1]


@both_caches
def test_the_bits_of_variables(cache):
    stored = Stored(["i > 1", "i > 5", "i = 7", "n = 2"], cache=cache)
    new = stored.prepared("i > 5 AND x > 0")
    truth = stored.search.assign(new)
    variables = stored.search.assignments
    bits = {
        text: truth[variables[stored.prepared(text).constraints[0]]]
        for text in ["i > 1", "i > 5", "i = 7", "n = 2", "x > 0"]
    }
    assert bits == {
        "i > 1": RIGHT, "i > 5": LEFT | RIGHT, "i = 7": LEFT, "n = 2": LEFT, "x > 0": LEFT | RIGHT
    }  # fmt: skip


def test_the_cache_is_the_minimal_table():
    stored = Stored(["i > 1", "i > 5", "i > 3 AND i < 9", "i = 7"])
    # i > 5 -> i > 1, i > 3 AND i < 9 -> i > 1, i = 7 -> i > 5 and -> i > 3 AND i < 9
    assert stored.search.assignments.dependencies == 4
    assert Stored(["i > 1", "i > 5"], cache=False).search.assignments.dependencies == 0


@given(texts=st.lists(boxes(), min_size=1, max_size=15), new=boxes())
@settings(max_examples=30)
def test_the_cache_gives_the_bits_of_the_walk(texts, new):
    texts = [text for text in texts if FilterPreparation(semantics_of("sql")).prepare(read(text))]
    stored = Stored(texts)
    prepared = stored.prepared(new)
    if prepared is None:
        return
    cached = stored.search.assign(prepared).copy()
    assert cached.tolist() == stored.search.assignments.compare(prepared).tolist()


def test_boxes_that_differ_on_top_share_a_group():
    stored = Stored(["i > 1 AND n = 2", "i > 2 AND n = 2", "i > 3 AND n = 3"])
    assert sorted(map(sorted, stored.search.mbds.outputs())) == [[0, 1], [2]]


def test_a_box_without_constraints_covers_all():
    stored = Stored(["i = 1"])
    assert stored.find("TRUE") == SearchResult(None, [0])
    stored.add(1, "TRUE")
    assert stored.find("n = 3") == SearchResult(1, [])
    assert list(stored.search.testing(0)) == [0, 1]
    stored.remove(1)
    assert stored.find("n = 3") == SearchResult(None, [])


def test_all_that_cover_a_row():
    stored = Stored(["i > 1", "n = 2", "i > 5", "b IS NULL", "TRUE"])
    row = stored.preparation.pool
    points = tuple(row.point(k, v) for k, v in enumerate((4, 2, None, None, None, None)))
    from tamis.relations.tables.prepared_filters import PreparedFilter

    assert sorted(stored.search.covering(PreparedFilter(None, points))) == [0, 1, 3, 4]


@both_caches
def test_housekeeping_does_not_change_answers(monkeypatch, cache):
    monkeypatch.setattr(mbd_search, "FIRST_REORDER", 16)
    monkeypatch.setattr(mbd_search, "UNUSED", 8)
    stored = Stored(cache=cache)
    texts = {k: f"i > {k} AND n = {k % 5} AND x < {k % 3}.0D AND s = '{k}'" for k in range(150)}
    for k, text in texts.items():
        stored.add(k, text)
        if k % 3 == 0:
            stored.remove(k)
        assert stored.find(f"i > {k} AND n = 1 AND b") == SearchResult(None, [])
    for k in stored.held:
        assert stored.find(texts[k] + " AND b") == SearchResult(k, [])
    assert stored.find("s IS NOT NULL AND x < 1.0D").covered == [
        k for k in sorted(stored.held) if k % 3 < 2
    ]
    for k in list(stored.held):
        stored.remove(k)
    assert stored.find("i > 1") == SearchResult(None, [])
    assert len(stored.search.mbds) == 0


def test_constraints_that_no_box_has_are_forgotten(monkeypatch):
    monkeypatch.setattr(mbd_search, "UNUSED", 8)
    stored = Stored(["i > 1"])
    for k in range(200):
        stored.find(f"x > {k}.5D")
    assert len(stored.search.assignments) < 20


def test_the_constraints_of_a_new_box_stay_while_unused_ones_are_dropped(monkeypatch):
    monkeypatch.setattr(mbd_search, "UNUSED", 3)
    stored = Stored(["i > 0"])
    for k in range(20):
        assert stored.find(f"i > {k + 1} AND x > {k}.5D AND s = '{k}'") == SearchResult(0, [])
