"""What is particular to a set of MBDs: options, orders of attributes, groups, limits."""

import itertools
import random
from functools import partial

import pyarrow as pa
import pytest

from cases import each
from diagram_engines import (
    SMALL,
    add,
    bytes_as_filters_come_and_go,
    check_workload,
    diagram_engine,
)
from strategies import SCHEMA
from tamis import Matcher, OptionError, Profile, parse
from tamis.diagrams.diagram import Diagram
from tamis.engines import make_engine, mbd
from tamis.engines.mbd import ORDERS
from tamis.semantics import Semantics
from tamis.workloads import workload

EMPTY = {"subscriptions": 0, "predicates": 0, "nodes": 0, "groups": 0}
engine_of = partial(diagram_engine, "mbd")


# --- options


@each(
    ("options", "message"),
    [
        ({"order": "statistic"}, "unknown order 'statistic'; did you mean 'statistics'?"),
        ({"order": "attribute"}, "choices: statistics, schema, random"),
        ({"within": "value"}, "unknown within 'value'; choices: arrival, random"),
        ({"restriction": "query"}, "unknown option of the engine mbd 'restriction'"),
        ({"max_nodes": 0}, "max_nodes is a number from 1,000 to 100,000,000"),
        ({"max_nodes": "many"}, "max_nodes is a number"),
        ({"seed": 1.5}, "seed is a whole number"),
        ({"profile": 3}, "profile is a tamis.Profile, the path of one, or a table of events"),
        ({"profile": "no/such"}, "profile: no/such does not exist"),
        (
            {"profile": pa.table({"i": [1]}), "order": "random"},
            "order='statistics' only, not for 'random'",
        ),
    ],
)
def test_options_that_cannot_be(options, message):
    with pytest.raises(OptionError) as error:
        Matcher(SMALL, engine="mbd", options=options)
    assert message in str(error.value)


def test_predicates_on_one_attribute_can_have_a_random_order():
    """It changes diagrams only where a filter tests an attribute more than once."""
    found = {}
    for within in ("arrival", "random"):
        engine = engine_of(within=within)
        for handle, limit in enumerate(range(20)):
            add(engine, handle, f"i > {limit}")
        levels = [engine.diagram.level(variable) for _, variable in engine.variables()]
        found[within] = levels == sorted(levels)
    assert found == {"arrival": True, "random": False}


def test_random_orders_come_from_the_seed():
    assert engine_of(SCHEMA, order="random").rank == engine_of(SCHEMA, order="random").rank
    other = engine_of(SCHEMA, order="random", seed=2).rank
    assert other != engine_of(SCHEMA, order="random").rank
    assert sorted(other) == engine_of(SCHEMA, order="schema").rank == list(range(len(SCHEMA)))


SEEN = pa.table({"k": [1] * 9, "i": range(9), "s": ["a", "b", "c"] * 3})


def test_a_profile_orders_the_attributes_until_the_filters_do(tmp_path, monkeypatch):
    monkeypatch.setattr(mbd, "FIRST_REORDER", 4)
    Profile.of(SEEN).save(tmp_path / "seen.profile")
    for profile in (SEEN, Profile.of(SEEN), tmp_path / "seen.profile"):
        engine = engine_of(profile=profile)
        assert engine.rank == [1, 0, 3, 2]  # j, i, s, k from top to bottom
        for handle, text in enumerate(["i = 1 AND k = 2", "s = 'a'", "i = 1", "j < 3", "i = 1"]):
            add(engine, handle, text)
        assert engine.rank[0] == 3
        assert sorted(engine.match((1, None, 2, "a")).tolist()) == [0, 1, 2, 4]


# --- answers


@pytest.mark.parametrize("name", ["bdd", "mbd-a"])
def test_the_subscriptions_of_the_papers(monkeypatch, name):
    monkeypatch.setattr(mbd, "FIRST_REORDER", 50)
    generated = workload(name)
    meaning = Semantics("sql", generated.schema)
    tested = [make_engine("mbd", meaning, {"order": order}) for order in ORDERS]
    check_workload(tested, generated, meaning, 220)


# --- orders


def shared_below(order, count=60):
    """Filters that have i, the top of the schema, in common and differ in s."""
    engine = engine_of(order=order)
    for n in range(count):
        add(engine, n, f"i = 1 AND j = {n % 2} AND s = '{n}'")
    return engine


def test_statistics_put_what_is_shared_at_the_bottom(monkeypatch):
    monkeypatch.setattr(mbd, "FIRST_REORDER", 16)
    by_schema, by_statistics = shared_below("schema"), shared_below("statistics")
    positions = {path[0]: position for path, position in SMALL.positions.items()}
    rank = by_statistics.rank
    assert rank[positions["s"]] < rank[positions["j"]] < rank[positions["i"]] == 3
    assert by_schema.statistics()["groups"] == 60
    assert by_statistics.statistics()["groups"] == 2
    for row in itertools.product((None, 1, 2), (0, 1), (None,), ("4", "7", "60")):
        assert by_schema.match(row).tolist() == by_statistics.match(row).tolist()


def test_the_order_follows_the_filters_at_every_doubling(monkeypatch):
    monkeypatch.setattr(mbd, "FIRST_REORDER", 8)
    engine = engine_of()
    oracle = make_engine("naive", Semantics("sql", SMALL))
    seen = []
    reorder = engine.reorder
    monkeypatch.setattr(
        engine, "reorder", lambda forms: (reorder(forms), seen.append((len(forms), engine.rank[:])))
    )
    chance = random.Random(2)  # noqa: S311 - a test, not a secret
    for handle in range(70):
        shared = "i = 1" if handle < 20 else "s = 'x'"
        text = f"{shared} AND j = {handle} AND (k < {chance.randrange(9)} OR k = {handle})"
        add(engine, handle, text)
        oracle.add(handle, parse(text, SMALL))
        if handle % 10 == 9:
            engine.remove(handle - 3)
            oracle.remove(handle - 3)
        row = (1, chance.randrange(70), chance.choice([None, 3]), chance.choice([None, "x"]))
        assert engine.match(row).tolist() == oracle.match(row).tolist()
    assert [count for count, _ in seen] == [9, 17, 33]
    first, last = seen[0][1], engine.rank
    assert first[0] == 3  # i at the bottom
    assert last[3] > first[3]  # s has gone down since


def test_an_order_in_which_the_filters_do_not_fit_is_not_taken(monkeypatch):
    engine = shared_below("statistics")
    before = engine.diagram, engine.mbds, engine.rank, engine.variable_of
    monkeypatch.setattr(engine, "new_diagram", lambda: Diagram(12))
    engine.reorder(engine.filters)
    assert (engine.diagram, engine.mbds, engine.rank, engine.variable_of) == before
    assert engine.match((1, 1, None, "7")).tolist() == [7]
    monkeypatch.undo()
    engine.reorder(engine.filters)
    assert engine.rank != before[2]
    assert engine.match((1, 1, None, "7")).tolist() == [7]


# --- keeping house


@each("semantics", ["sql", "strict"])
@each("order", ORDERS)
def test_nothing_is_left_when_all_are_removed(order, semantics):
    engine = engine_of(order=order, semantics=semantics)
    for n in range(50):
        add(engine, n, f"(i > {n} OR j = {n % 7}) AND (k < {n} OR s LIKE '{n}%')")
    add(engine, 50, "TRUE")
    add(engine, 51, "i = 1 AND FALSE")
    assert engine.statistics()["nodes"] > 0
    for n in range(52):
        engine.remove(n)
    assert engine.statistics() == EMPTY
    assert engine.match((1, 1, 1, "1")).tolist() == []


@pytest.mark.long
def test_memory_stays_bounded_as_filters_come_and_go():
    engine = engine_of()
    # few questions: keeping house must not wait for them
    sizes = bytes_as_filters_come_and_go(engine, 1500, asked_every=50)
    assert max(sizes) == max(sizes[:500])
    assert engine.diagram.variables < 1000
    assert engine.slots.size == 31
    assert engine.mbds._pool.size <= 31
    assert engine.statistics()["nodes"] < 200
