"""The benchmark of routing tables: what is measured is there, and who is wrong is noticed."""

import itertools
import json
from xml.etree import ElementTree as ET

import numpy as np
import pytest

import charts
import routing
import routing_plot
from routing_sections import insertion, matching, networks, reductions, sizes, tables, thresholds
from routing_sections.subscription_set import SubscriptionSet
from tamis.relations.merging.measures import Uniform
from tamis.relations.merging.mergers import MergeOptions
from tamis.relations.tables.candidate_search import CandidateSearch
from tamis.relations.tables.search import SearchResult

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


@pytest.fixture
def path(tmp_path):
    path = tmp_path / "dense.toml"
    path.write_text(DENSE, encoding="utf-8")
    return str(path)


@pytest.fixture
def some(path):
    return SubscriptionSet(path, SIZE)


# --- the command


def options(*words):
    return routing.arguments().parse_args([*words])


@pytest.fixture
def results(path, capsys):
    """The lines and the text of a section, run with a user's options."""

    def run(*words):
        lines = []
        asked = options(words[0], "--quick", "--sets", path, "--size", str(SIZE), *words[1:])
        extent = routing.extent_of(asked)._replace(window=60)
        routing.run(asked.sections[0], extent, asked, lambda line: lines.append(json.dumps(line)))
        return [json.loads(line) for line in lines], capsys.readouterr().out

    return run


def test_sizes(results):
    lines, said = results("sizes")
    assert [line["size"] for line in lines] == [SIZE // 2, SIZE]
    for line in lines:
        for rules in ("paper", "full"):
            assert line["imperfect"][rules] <= line["perfect"][rules] < line["roots"]
    given = lines[-1]["orders"]["schema"]
    assert lines[-1]["perfect"]["paper"] <= given["entries"][0] <= lines[-1]["roots"]
    assert given["mbds"][0] <= lines[-1]["roots"]
    assert "entries of the routing table" in said
    assert "Orders of attributes" in said


def test_insertion(results):
    lines, said = results("insertion")
    assert [line["size"] for line in lines] == [90, SIZE]
    for line in lines:
        assert set(line["ways"]) == set(insertion.WAYS)
        assert all(min(way["whole"]) > 0 for way in line["ways"].values())
        assert len(line["ways"][insertion.ONE]["assign"]) == len(
            line["ways"]["candidates"]["whole"]
        )
    assert "Truth assignment alone" in said
    assert "as they were told to" not in said


def test_the_slow_may_stop(results):
    lines, said = results("insertion", "--most", "100")
    assert [bool(line["ways"]) for line in lines] == [True, False]
    assert lines[-1]["table"] > 0
    assert "stop at 100 subscriptions" in said


def test_routing(results):
    lines, said = results("routing")
    assert [line["table"] for line in lines] == ["none", "covering", "perfect", "imperfect"]
    entries = [line["entries"] for line in lines]
    assert entries == sorted(entries, reverse=True)
    assert all(set(line["engines"]) == {"mbd", "naive", "auto"} for line in lines)
    assert "ms per publication" in said


def test_thresholds(results):
    lines, said = results("imt")
    assert {line["series"] for line in lines} == set(routing.SERIES)
    for none, some in itertools.pairwise(lines):
        if none["series"] == some["series"]:
            assert some["entries"] <= none["entries"]
    first = lines[0]
    assert (first["threshold"], first["false"], first["false_entries"]) == (0, 0, 0)
    assert sum(line["false_entries"] for line in lines) > 0
    assert "false positives by IMT" in said


def test_network(results):
    lines, said = results("network")
    flooding = lines[0]
    assert sum(flooding["carried"].values()) > flooding["needed"]
    for line in lines[1:6]:
        assert sum(line["carried"].values()) == line["needed"]
    assert [line["threshold"] for line in lines[-2:]] == [0, 0.3]
    assert "advertisements+imperfect" in said


def test_sizes_can_be_asked_for():
    asked = options("--size", "1000", "--window", "20", "--thresholds", "0.2", "0")
    extent = routing.extent_of(asked)
    assert (extent.size, extent.merged, extent.window) == (1000, 500, 20)
    assert extent.thresholds == extent.network_thresholds == (0, 0.2)
    assert routing.extent_of(options()).size == 200_000


# --- who is wrong


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
    with pytest.raises(AssertionError, match=rf"wrong: subscription \d+ {said}"):
        list(insertion.measured(some, [SIZE], SIZE, SIZE, ways))


def test_ways_that_were_told_hold_the_same(some):
    every = list(insertion.measured(some, [SIZE], SIZE, SIZE))
    told = list(insertion.measured(some, [SIZE // 2, SIZE], 10, SIZE))
    assert every[-1]["roots"] == told[-1]["roots"] == len(some.covered().roots)


def test_an_engine_that_finds_other_matches():
    right, wrong = np.array([1, 2]), np.array([1, 3])
    matching.compare({"mbd": [right, right], "naive": [right]})
    with pytest.raises(AssertionError, match="publication 1: mbd finds 2 matches, naive 2"):
        matching.compare({"mbd": [right, right], "naive": [right, wrong]})


def test_a_table_that_loses_or_adds():
    none, one = np.array([]), np.array([7])
    matching.compare_tables("imperfect", [one], [none])
    with pytest.raises(AssertionError, match="publication 0 is lost"):
        matching.compare_tables("imperfect", [none], [one])
    with pytest.raises(AssertionError, match="publication 0 matches no subscription"):
        matching.compare_tables("perfect", [one], [none])


def test_a_strategy_that_delivers_less():
    found = {"strategy": "simple", "deliveries": 3, "carried": {"A>B": 5}, "needed": 5}
    networks.compare(found, 3)
    with pytest.raises(AssertionError, match="simple delivers 3, another one 4"):
        networks.compare(found, 4)
    with pytest.raises(AssertionError, match="carries less"):
        networks.compare(found | {"needed": 6}, 3)


# --- what is counted


def merged(some, threshold):
    measure = Uniform(some.source.schema, presence=0.5)
    plan = MergeOptions("full", imperfect=threshold, measure=measure)
    return reductions.merged(some.covered(), some.semantics, plan)


def test_merging_leaves_the_table_alone(some):
    before = some.covered().roots
    found = merged(some, 0.3)
    assert found.size < len(before)
    assert some.covered().roots == before
    assert all(len(roots) >= 2 for roots in found.hidden)


def test_false_entries_are_counted_one_by_one(some):
    table, found = some.covered(), merged(some, 0.1)
    rows = some.rows(some.events(50, 0.5))
    roots = [some.semantics.condition(table.expression(key)) for key in table.roots]
    wanted = [np.array([n for n, holds in enumerate(roots) if holds(row)]) for row in rows]
    hidden = iter(found.hidden)
    expected = 0
    for key, expression in found.entries:
        parts = [key] if isinstance(key, int) else next(hidden)
        holds = some.semantics.condition(expression)
        of_parts = [some.semantics.condition(table.expression(part)) for part in parts]
        expected += sum(holds(row) and not any(part(row) for part in of_parts) for row in rows)
    counts = thresholds.false_positives(some, table, found, rows, [w.astype(int) for w in wanted])
    assert counts["false_entries"] == expected > 0
    assert counts["wanted"] == sum(len(w) > 0 for w in wanted)


def test_a_merged_table_that_loses_is_noticed(some):
    table, rows = some.covered(), some.rows(some.events(20))
    empty = reductions.Reduced([], [], 0.0)
    wanted = [np.array([0])] * len(rows)
    with pytest.raises(AssertionError, match="publication 0 matches a subscription"):
        thresholds.false_positives(some, table, empty, rows, wanted)


def test_advertised_publications_are_as_advertised(some):
    series = thresholds.all_series(some, 0.5, 40)["advertised"]()
    holds = some.semantics.condition(series.advertisements[0])
    rows = some.rows(series.publications)
    assert len(rows) == 40
    assert all(map(holds, rows))


def test_links_that_are_needed():
    extent = networks.Extent(brokers=6, subscriptions=0, publications=20)
    assert networks.needed(networks.scenario(1, extent, "simple")) == 0
    play = networks.scenario(1, extent._replace(subscriptions=40), "simple")
    assert 0 < networks.needed(play) < 20 * 5


def test_random_orders_have_their_own_numbers(some):
    found = sizes.orders(some, some.covered(), 3)
    assert [len(found[kind]["entries"]) for kind in ("schema", "statistics", "random")] == [1, 1, 3]


# --- what is shown


def test_columns_stand_below_each_other():
    assert tables.aligned(("a", "number"), [("word", "1"), ("b", "1,000,000")]).splitlines() == [
        "| a    |    number |", "|------|----------:|", "| word |         1 |",
        "| b    | 1,000,000 |",
    ]  # fmt: skip


def test_the_spread_is_of_the_middle_half():
    assert tables.with_spread([]) == tables.DASH
    assert tables.with_spread([2.0]) == "2.00"
    assert tables.with_spread([1.0, 2.0, 3.0]) == "2.00 ±50%"


def test_steps_are_round():
    for most, step in ((0.3, 0.1), (33_000, 10_000), (5, 1), (99, 20), (0, 2e-10)):
        scale = charts.steps_of([0, most], 0, 100)
        assert scale.step == pytest.approx(step)
        assert scale.step * scale.count >= most


def test_the_picture_is_well_formed_and_shows_the_last_result(results):
    lines = [{"kind": "machine", "cpu": "Abacus <1>"}]
    for section in ("imt", "insertion", "network"):
        lines += results(section)[0]
    drawn = routing_plot.drawing(lines)
    ET.fromstring(drawn)  # noqa: S314 - our own
    for said in ("Abacus &lt;1&gt;", "dense, 150 subscriptions: entries", "false on links",
                 "dense: microseconds of a subscription"):  # fmt: skip
        assert said in drawn
    again = next(line for line in lines if line["kind"] == "imt") | {"entries": 123_456}
    assert "123,456" not in drawn
    assert "rules of the paper: 1.235e+05 at 0" in routing_plot.drawing([*lines, again])


def test_nothing_to_draw():
    with pytest.raises(SystemExit):
        routing_plot.drawing([{"kind": "machine", "cpu": "x"}])
