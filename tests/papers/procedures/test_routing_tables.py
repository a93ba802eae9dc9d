"""Routing tables are measured by what they do, and who finds something else is named."""

import numpy as np
import pytest

import tamis
from cases import each
from tamis.papers import routing_tables
from tamis.papers.contest import Disagreement
from tamis.papers.linear_scans import LinearScan, VectorScan
from tamis.papers.procedures import merging_thresholds, table_insertion, table_reductions
from tamis.papers.routing_tables import SubscriptionSet
from tamis.relations.merging.measures import Uniform
from tamis.relations.merging.mergers import MergeOptions
from tamis.relations.tables.candidate_search import CandidateSearch
from tamis.relations.tables.search import SearchResult
from tamis.semantics import Semantics
from tamis.workloads import read_workload

# So few different filters that many cover others and many can be merged.
DENSE = """
about = "few attributes with few values"
kind = "comparisons"
attributes = 6
domains = [[1, 8]]
operators = ["=", "<", "<=", ">", ">="]
predicates = [2, 3]
"""
SIZE = 300


@pytest.fixture(scope="module")
def source(tmp_path_factory):
    path = tmp_path_factory.mktemp("workloads") / "dense.toml"
    path.write_text(DENSE, encoding="utf-8")
    return read_workload(path)


@pytest.fixture
def some(source):
    found = SubscriptionSet(source, SIZE, 1)
    found.cover(SIZE)
    return found


@pytest.fixture
def dense(source, monkeypatch):
    """Procedures take this workload for whatever set they are asked about."""
    for module in (table_reductions, table_insertion, merging_thresholds):
        monkeypatch.setattr(module, "workload", lambda _name: source)


def points(found):
    return {(point.line, point.measure, point.x): point.value for point in found}


# --- tables


def merged(some, threshold):
    measure = Uniform(some.source.schema, presence=0.5)
    return some.merged(MergeOptions("full", imperfect=threshold, measure=measure))


def test_merging_leaves_the_table_alone(some):
    before = some.table.roots
    found = merged(some, 0.3)
    assert found.size < len(before)
    assert some.table.roots == before
    assert all(len(roots) >= 2 for roots in found.hidden)


def test_a_table_that_does_not_come_back_is_noticed(some, monkeypatch):
    monkeypatch.setattr(some.table, "remove", lambda _key: None)
    with pytest.raises(AssertionError, match="before it had"):
        merged(some, 0.3)


def test_a_set_knows_what_can_never_match(some):
    table = some.table
    covered = sum(table.cover_of(number) is not None for number in range(SIZE))
    assert covered + len(table.roots) + some.never() == SIZE
    assert 0 < some.never() < SIZE // 4


def test_attributes_are_named_by_their_ranks(some):
    names = routing_tables.attribute_names([3, 1, 2, 0, 5, 4], some.source)
    assert names == ("a3", "a1", "a2", "a0", "a5", "a4")


@pytest.mark.usefixtures("dense")
def test_tables_are_reduced_and_routed():
    sizes = [SIZE // 2, SIZE]
    parameters = {"sizes": {"A": sizes}, "threshold": 0.1, "density": 0.5, "events": 20}
    found = points(table_reductions.reduce_tables("A", 1, parameters))
    kinds = ("no covering", "covering", "perfect merging", "imperfect merging")
    entries = [found[f"A, {kind}", "entries", SIZE] for kind in kinds]
    assert entries == sorted(entries, reverse=True)
    assert len(set(entries)) == 4
    assert found["A, covering", "entries", SIZE // 2] < found["A, covering", "entries", SIZE]
    for order in table_reductions.ORDERS:
        assert entries[2] <= found[f"A, {order}", "entries", SIZE] <= entries[1]
        assert 0 < found[f"A, {order}", "mbds", SIZE] <= entries[1]
    within = [found[f"A, predicates {name}", "nodes", SIZE] for name in table_reductions.WITHIN]
    assert within[0] == within[1]  # one predicate per attribute: the same diagrams
    for engine in (*table_reductions.CONTESTANTS, table_reductions.AUTO_BATCH):
        assert all(found[f"A, {engine}", "routing", kind] > 0 for kind in kinds)


@pytest.mark.usefixtures("dense")
def test_covering_grows_with_the_subscriptions():
    parameters = {"sizes": {"A": [100, SIZE]}, "merged": {"A": SIZE}}
    found = points(table_reductions.cover_subscriptions("A", 1, parameters))
    assert 0 < found["A", "entries", SIZE] < SIZE
    assert ("A", "entries", 100) not in found
    assert 0 < found["A", "covered", 100] < found["A", "covered", SIZE] < 1
    for size in (100, SIZE):
        assert found["A, of those that can match", "covered", size] > found["A", "covered", size]


def test_a_table_that_loses_or_adds():
    rows = [(1, 2)]
    compare = table_reductions.compare_tables
    compare("imperfect merging", [True], [False], rows)
    with pytest.raises(Disagreement, match="matches a subscription, and no entry after covering"):
        compare("covering", [False], [True], rows)
    with pytest.raises(Disagreement, match="matches no subscription, but an entry"):
        compare("perfect merging", [True], [False], rows)


# --- the naive approach


@each("scan", [LinearScan, VectorScan])
def test_scans_find_what_holds(scan, source):
    some = SubscriptionSet(source, 80, 2)
    engine = scan(some.semantics)
    for handle, expression in enumerate(some.expressions):
        engine.add(handle, engine.prepare(expression))
    engine.remove(3)
    conditions = [some.semantics.condition(expression) for expression in some.expressions]
    for row in some.rows(some.events(40, 0.7)):
        wanted = [n for n, holds in enumerate(conditions) if n != 3 and holds(row)]
        assert engine.match(row).tolist() == wanted
    assert engine.statistics() == {"subscriptions": 79}


@each("scan", [LinearScan, VectorScan])
def test_scans_know_what_mergers_may_be(scan):
    schema = tamis.Schema({"i": "int", "s": "string"})
    engine = scan(Semantics("sql", schema))
    for handle, text in enumerate(["i <> 5", "i IS NOT NULL", "i <> 5 AND i <= 9"]):
        engine.add(handle, engine.prepare(tamis.parse(text, schema)))
    found = [engine.match((i, None)).tolist() for i in (4, 5, 10, None)]
    assert found == [[0, 1, 2], [1], [0, 1], []]
    with pytest.raises(TypeError, match="is not a comparison of whole numbers"):
        engine.prepare(tamis.parse("s = 'a'", schema))


# --- insertion


class Proud(CandidateSearch):
    """Finds what a filter covers, but never what covers it."""

    def find(self, new):
        return SearchResult(None, super().find(new).covered)


class OneSided(CandidateSearch):
    """Finds what covers a filter, but never what it covers."""

    def find(self, new):
        return SearchResult(super().find(new).covering, [])


@pytest.mark.parametrize(("wrong", "said"), [(Proud, "is covered"), (OneSided, "covers")])
def test_a_search_that_finds_other_filters(some, wrong, said):
    ways = {"candidates": CandidateSearch, "wrong": wrong}
    with pytest.raises(Disagreement, match=rf"wrong: subscription \d+ {said}"):
        list(table_insertion.windows(some, [SIZE], SIZE, SIZE, ways))


def test_ways_that_were_told_hold_the_same(source):
    """A way that saw no subscription before its window finds what one finds that saw all."""
    some = SubscriptionSet(source, SIZE, 1)
    every = list(table_insertion.windows(some, [SIZE], SIZE, SIZE))
    told = list(table_insertion.windows(some, [SIZE // 2, SIZE], 10, SIZE))
    assert every[-1][2]["one pass"].mbds == told[-1][2]["one pass"].mbds > 0


@pytest.mark.usefixtures("dense")
def test_every_way_is_timed_until_it_stops():
    parameters = {"sizes": {"B": [100, SIZE]}, "most": {"B": 150}, "window": 60}
    found = points(table_insertion.insert_subscriptions("B", 1, parameters))
    for way in table_insertion.WAYS:
        assert found[f"B, {way}", "insertion", 100] > 0
        assert (f"B, {way}", "insertion", SIZE) not in found
    assert found["B, table", "insertion", SIZE] > 0
    assert found["B, one pass", "traversal", 100] > 0
    assert ("B, candidates", "traversal", 100) not in found


# --- thresholds


@pytest.mark.usefixtures("dense")
def test_larger_thresholds_save_more():
    parameters = {"set": "A", "size": SIZE, "events": 30, "thresholds": [0, 0.1, 1],
                  "advertised": [0]}  # fmt: skip
    found = points(merging_thresholds.merge_up_to(0.5, 1, parameters))
    entries = [found["density 0.5", "entries", threshold] for threshold in (0, 0.1, 1)]
    assert entries == sorted(entries, reverse=True)
    assert [found["density 0.5", "reached", threshold] for threshold in (0, 1)] == [0, 1]
    assert found["density 0.5", "false entries", 0] == 0
    assert found["density 0.5", "false entries", 1] > 0
    assert found["density 0.5, advertised", "entries", 0] < entries[0]
    assert found["density 0.5, advertised", "false publications", 0] == 0


def test_false_entries_are_counted_one_by_one(some):
    table, found = some.table, merged(some, 0.1)
    rows = some.rows(some.events(50, 0.5))
    roots = [some.semantics.condition(table.expression(key)) for key in table.roots]
    wanted = [np.array([n for n, holds in enumerate(roots) if holds(row)], int) for row in rows]
    hidden = iter(found.hidden)
    false = matched = 0
    for key, expression in found.entries:
        parts = [key] if isinstance(key, int) else next(hidden)
        holds = some.semantics.condition(expression)
        of_parts = [some.semantics.condition(table.expression(part)) for part in parts]
        matched += sum(holds(row) for row in rows)
        false += sum(holds(row) and not any(part(row) for part in of_parts) for row in rows)
    counts = merging_thresholds.false_positives(some, found, rows, wanted)
    assert counts["false entries"] == false / matched > 0


def test_a_merged_table_that_loses_is_noticed(some):
    rows = some.rows(some.events(20))
    empty = routing_tables.Reduced([], [], 0.0)
    wanted = [np.array([0])] * len(rows)
    with pytest.raises(Disagreement, match="publication 0 matches a subscription"):
        merging_thresholds.false_positives(some, empty, rows, wanted)


def test_advertised_publications_are_as_advertised(some):
    offer = merging_thresholds.lower_half(some.source.schema)
    holds = some.semantics.condition(offer)
    rows = some.rows(merging_thresholds.as_offered(some, offer, 40, 1.0))
    assert len(rows) == 40
    assert all(map(holds, rows))
