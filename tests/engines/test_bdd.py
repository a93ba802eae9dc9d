"""What is particular to one shared diagram: options, orders, restriction, limits."""

import itertools
import random
from functools import partial

import pyarrow as pa
import pytest

from cases import each
from diagram_engines import (
    EXPONENTIAL,
    PAIRS,
    SMALL,
    add,
    bytes_as_filters_come_and_go,
    check_workload,
    diagram_engine,
)
from tamis import CapacityError, Matcher, OptionError, Schema, parse
from tamis.diagrams.diagram import Diagram, FunctionTooLarge
from tamis.engines import bdd, make_engine
from tamis.engines.bdd import ORDERS, RESTRICTIONS
from tamis.language.normal_form import normalize
from tamis.semantics import Semantics
from tamis.workloads import workload

# Its diagram would be as large as that of EXPONENTIAL, if an event could have two values of i.
ONLY_AT_FIRST_SIGHT = " AND ".join(f"(i <> {n} OR j <> {n})" for n in range(40))
CHOICES = [
    {"order": order, "restriction": restriction}
    for order, restriction in itertools.product(ORDERS, RESTRICTIONS)
]
engine_of = partial(diagram_engine, "bdd")


def nodes(engine):
    """The nodes that the filters need."""
    engine.collect()
    return engine.diagram.nodes


# --- options


@each(
    ("options", "message"),
    [
        ({"order": "atribute"}, "unknown order 'atribute'; did you mean 'attribute'?"),
        ({"order": 3}, "choices: attribute, frequency, random"),
        ({"restriction": "all"}, "unknown restriction 'all'; choices: query, iterative, none"),
        ({"max_nodes": 999}, "max_nodes is a number from 1,000 to 100,000,000"),
        ({"max_nodes": 100_000_001}, "max_nodes is a number from 1,000 to 100,000,000"),
        ({"max_nodes": 1e6}, "max_nodes is a number"),
        ({"max_nodes": True}, "max_nodes is a number"),
        ({"seed": "x"}, "seed is a whole number"),
        ({"profile": 3}, "profile is a tamis.Profile, the path of one, or a table of events"),
        ({"profile": "no/such"}, "profile: no/such does not exist"),
        ({"profile": pa.table({"i": [1]}), "order": "random"}, "order='attribute' only"),
        ({"nodes": 1000}, "unknown option of the engine bdd 'nodes'"),
    ],
)
def test_options_that_cannot_be(options, message):
    with pytest.raises(OptionError) as error:
        Matcher(SMALL, engine="bdd", options=options)
    assert message in str(error.value)


def test_options_that_can_be():
    engine = engine_of(max_nodes=1000, seed=7, order="random", restriction="iterative")
    assert engine.options.max_nodes == 1000
    assert engine.options.seed == 7
    assert (engine.order, engine.restriction) == ("random", "iterative")


# --- answers


@each("semantics", ["sql", "strict", "total"])
def test_the_queries_of_the_paper(semantics):
    """Restriction takes a good part of the nodes away and changes no answer."""
    generated = workload("bdd")
    meaning = Semantics(semantics, generated.schema)
    tested = [make_engine("bdd", meaning, options) for options in CHOICES]
    check_workload(tested, generated, meaning, 150, 1.0 if semantics == "total" else 0.6)
    sizes = {(e.order, e.restriction): nodes(e) for e in tested}
    for order in ORDERS:
        for restriction in ("query", "iterative"):
            assert sizes[order, restriction] < 0.7 * sizes[order, "none"]


def test_random_orders_come_from_the_seed():
    def levels(seed):
        engine = engine_of(order="random", seed=seed)
        for n in range(20):
            add(engine, n, f"i = {n}")
        return [engine.diagram.level(variable) for _, variable in engine.variables()]

    assert levels(1) == levels(1)
    assert levels(1) != levels(2)


def test_the_order_by_attribute_keeps_attributes_together():
    engine = engine_of(order="attribute")
    for n in range(30):
        add(engine, n, f"{'kji'[n % 3]} = {n} AND s = '{n}'")
    by_level = sorted(engine.variables(), key=lambda pair: engine.diagram.level(pair[1]))
    order = [node.left.path[0] for node, _ in by_level]
    assert order == ["i"] * 10 + ["j"] * 10 + ["k"] * 10 + ["s"] * 30


def test_a_profile_orders_the_attributes():
    seen = pa.table({"k": range(9), "s": ["a"] * 9, "i": [1, 2, 3] * 3})
    engine = engine_of(profile=seen)
    for n in range(30):
        add(engine, n, f"{'kji'[n % 3]} = {n} AND s = '{n}'")
    by_level = sorted(engine.variables(), key=lambda pair: engine.diagram.level(pair[1]))
    order = [node.left.path[0] for node, _ in by_level]
    assert order == ["j"] * 10 + ["k"] * 10 + ["i"] * 10 + ["s"] * 30


@pytest.mark.parametrize("semantics", ["sql", "strict"])
@pytest.mark.parametrize("restriction", RESTRICTIONS)
def test_frequent_predicates_come_to_the_top(monkeypatch, semantics, restriction):
    monkeypatch.setattr(bdd, "FIRST_REORDER", 8)
    engine = engine_of(semantics=semantics, order="frequency", restriction=restriction)
    meaning = Semantics(semantics, SMALL)
    oracle = make_engine("naive", meaning)
    orders = []
    reordered = engine.reorder
    monkeypatch.setattr(
        engine, "reorder", lambda forms: (orders.append(len(forms)), reordered(forms))
    )
    chance = random.Random(5)  # noqa: S311 - a test, not a secret
    for handle in range(70):
        text = f"(i = {handle} OR j > {chance.randrange(30)}) AND k < 5 AND s <> '{handle % 3}'"
        oracle.add(handle, parse(text, SMALL))
        add(engine, handle, text)
        if handle % 10 == 9:
            oracle.remove(handle - 4)
            engine.remove(handle - 4)
        row = (*(chance.choice([None, chance.randrange(70)]) for _ in "ijk"), "1")
        assert engine.match(row).tolist() == oracle.match(row).tolist()
    assert orders == [9, 17, 33]
    top = min(engine.variables(), key=lambda pair: engine.diagram.level(pair[1]))[0]
    assert top == normalize(parse("k < 5", SMALL).tree)
    for i, j, k in itertools.product((None, 3, 50), (None, 0, 20), (None, 4, 5)):
        assert engine.match((i, j, k, "2")).tolist() == oracle.match((i, j, k, "2")).tolist()


def test_an_order_in_which_the_filters_do_not_fit_is_not_taken(monkeypatch):
    engine = engine_of(order="frequency")
    for n in range(20):
        add(engine, n, f"i = {n} OR j = {n}")
    before = engine.diagram, engine.variable_of, nodes(engine)
    monkeypatch.setattr(engine, "new_diagram", lambda: Diagram(12))
    engine.reorder(engine.filters)
    assert (engine.diagram, engine.variable_of, nodes(engine)) == before
    assert engine.match((3, 5, None, None)).tolist() == [3, 5]


# --- limits


def test_a_filter_whose_diagram_is_exponential_only_in_another_order():
    interleaved = Schema({f"{letter}{n}": "int" for n in range(1, 41) for letter in "ab"})
    engine = engine_of(interleaved)
    add(engine, 0, EXPONENTIAL, interleaved)
    assert nodes(engine) == 80
    assert engine.match((1, 2) * 39 + (1, 1)).tolist() == [0]
    assert engine.match((1, 2) * 40).tolist() == []


@pytest.mark.parametrize("restriction", ["query", "iterative"])
def test_a_filter_that_is_exponential_only_at_first_sight(restriction):
    engine = engine_of(restriction=restriction)
    add(engine, 0, ONLY_AT_FIRST_SIGHT)
    assert nodes(engine) <= 120
    for i, j, wanted in [(5, 5, []), (5, 6, [0]), (50, 50, [0]), (None, 6, []), (None, 60, [0])]:
        assert engine.match((i, j, None, None)).tolist() == wanted
    unrestricted = engine_of(restriction="none")
    with pytest.raises(FunctionTooLarge):
        add(unrestricted, 0, ONLY_AT_FIRST_SIGHT)
    assert unrestricted.statistics() == {"subscriptions": 0, "predicates": 0, "nodes": 0}


def test_a_matcher_that_is_full_keeps_what_it_had():
    m = Matcher(PAIRS, engine="bdd", options={"max_nodes": 1000})
    m.subscribe("one", "a1 = 1")
    with pytest.raises(CapacityError, match="more than max_nodes, 1,000, nodes; raise this option"):
        m.subscribe("two", EXPONENTIAL)
    with pytest.raises(CapacityError):
        m.subscribe("one", EXPONENTIAL)
    assert list(m) == ["one"]
    assert m.match({"a1": 1, "b1": 1}) == ["one"]
    m.subscribe("two", "b1 = 1")
    assert m.match({"a1": 1, "b1": 1}) == ["one", "two"]


@pytest.mark.parametrize("order", ["random", "frequency"])
def test_a_filter_that_fits_is_held_although_its_dependency_function_does_not(order):
    """Facts of ten attributes, whose predicates are mixed in the order."""
    wide = Schema({f"a{n}": "int" for n in range(10)})
    chance = random.Random(3)  # noqa: S311 - a test, not a secret
    text = " OR ".join(
        f"a{chance.randrange(10)} {chance.choice(['<', '>', '=', '<>'])} {chance.randrange(100)}"
        for _ in range(60)
    )
    engine = engine_of(wide, order=order)
    add(engine, 0, text, wide)
    assert nodes(engine) <= 60


# --- three values


STRICT = [
    # filter, event (i, j, k, s), matches
    ("i = 1 OR j = 2", (1, None, None, None), False),
    ("i = 1 OR j = 2", (1, 7, None, None), True),
    ("i = 1 AND j = 2", (1, 2, None, None), True),
    ("NOT (i = 1 AND j = 2)", (5, None, None, None), False),
    ("i / j > 1 OR k = 2", (3, 0, 2, None), True),  # unknown, but not for want of an attribute
    ("i / j > 1 OR k = 2", (3, 0, 3, None), False),
    ("i / j > 1 OR k = 2", (3, 2, 3, None), True),
    ("i / j > 1 OR k = 2", (3, None, 2, None), False),
    ("i / j > 1 OR k = 2", (None, 0, 2, None), False),
    ("NOT (i / j > 1) OR k = 2", (3, 0, 3, None), False),
    ("i < 5 OR i >= 5", (None, 1, 1, "x"), False),
    ("i < 5 OR i >= 5", (7, None, None, None), True),
    ("i IS NULL", (None, None, None, None), False),
    ("i IS NOT NULL", (1, None, None, None), True),
    ("TRUE OR i = 1", (None, 1, 1, "x"), False),
    ("(i = 1 AND k = 1) OR (j = 1 AND k = 1)", (1, 0, 1, None), True),
    ("TRUE", (None, None, None, None), True),
]


@each("restriction", RESTRICTIONS)
def test_strict_semantics_with_partial_events(restriction):
    """All filters in one diagram, so that the undefined nodes of some stand below others."""
    engine = engine_of(semantics="strict", restriction=restriction)
    for handle, (text, _, _) in enumerate(STRICT):
        add(engine, handle, text)
    for handle, (text, row, wanted) in enumerate(STRICT):
        assert (handle in engine.match(row).tolist()) is wanted, (text, row)
    for row in itertools.product((None, 1, 5), (None, 0, 2), (None, 2), (None, "x")):
        wanted = [
            handle
            for handle, (text, _, _) in enumerate(STRICT)
            if Semantics("strict", SMALL).condition(parse(text, SMALL))(row)
        ]
        assert engine.match(row).tolist() == wanted


def test_strict_semantics_as_predicates_come_and_go():
    """Which attributes a variable asks about must follow its new owner."""
    engine = engine_of(semantics="strict")
    for turn in range(9):
        name, other = "ijk"[turn % 3], "jki"[turn % 3]
        add(engine, turn, f"{name} = {turn}")
        row = {"i": None, "j": None, "k": None, "s": None} | {name: turn}
        assert engine.match(tuple(row.values())).tolist() == [turn]
        swapped = row | {name: None, other: turn}
        assert engine.match(tuple(swapped.values())).tolist() == []
        engine.remove(turn)


# --- keeping house


@each("options", CHOICES)
def test_nothing_is_left_when_all_are_removed(options):
    engine = engine_of(**options)
    for n in range(50):
        add(engine, n, f"(i > {n} OR j = {n % 7}) AND (k < {n} OR s LIKE '{n}%')")
    assert engine.statistics()["nodes"] > 0
    for n in range(50):
        engine.remove(n)
    assert engine.statistics() == {"subscriptions": 0, "predicates": 0, "nodes": 0}
    assert engine.match((1, 1, 1, "1")).tolist() == []


@pytest.mark.long
@each("order", ORDERS)
def test_memory_stays_bounded_as_filters_come_and_go(order):
    engine = engine_of(order=order)
    sizes = bytes_as_filters_come_and_go(engine, 800, asked_every=10)
    assert max(sizes) == max(sizes[:100])
    assert engine.diagram.variables < 500
    assert engine.slots.size == 31
    assert nodes(engine) < 400
    assert len(engine._value) < 10_000
    assert len(engine._truth) < 1000


def test_memory_stays_bounded_when_nothing_is_asked():
    engine = engine_of()
    for handle in range(1200):
        add(engine, handle, f"(i > {handle} AND j = {handle}) OR (k < {handle} AND s = '{handle}')")
        if handle >= 10:
            engine.remove(handle - 10)
    assert engine.diagram.nodes < 5_000
    assert engine.diagram.variables < 2_500
