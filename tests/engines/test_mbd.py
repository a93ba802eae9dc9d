"""What is particular to a set of MBDs: options, orders of attributes, groups, limits."""

import itertools
import random

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cases import each
from strategies import SCHEMA, delicate_rows, filters, rows
from tamis import (
    CapacityError,
    LimitError,
    Matcher,
    OptionError,
    Profile,
    Schema,
    TypeMismatch,
    parse,
)
from tamis.diagrams.diagram import Diagram
from tamis.engines import make_engine, mbd
from tamis.engines.mbd import ORDERS
from tamis.semantics import NAMES, Semantics
from tamis.workloads import workload

SMALL = Schema({"i": "int", "j": "int", "k": "int", "s": "string"})
PAIRS = Schema({f"{letter}{n}": "int" for letter in "ab" for n in range(1, 41)})
EXPONENTIAL = " OR ".join(f"(a{n} = 1 AND b{n} = 1)" for n in range(1, 41))
# Attributes of the schema that are there the less often the later they come.
BACKWARDS = Profile.of(pa.table({n: [None] * k + [1] * (40 - k) for k, n in enumerate(SCHEMA)}))
EMPTY = {"subscriptions": 0, "predicates": 0, "nodes": 0, "groups": 0}


def engine_of(schema=SMALL, semantics="sql", defaults=None, **options):
    return make_engine("mbd", Semantics(semantics, schema, defaults), options)


def add(engine, handle, text, schema=SMALL):
    engine.add(handle, engine.prepare(parse(text, schema)))


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

DEFAULTS = dict(zip(SCHEMA, delicate_rows()[7], strict=True)) | {
    "x": None, "s": "", "b": None, "at": "2024-01-01", "until": None,
}  # fmt: skip


@pytest.mark.parametrize("semantics", NAMES)
@given(texts=st.lists(filters(), min_size=1, max_size=6), some_rows=st.lists(rows(), max_size=5))
@settings(max_examples=20)
def test_every_order_gives_the_same_answers(semantics, texts, some_rows):
    meaning = Semantics(semantics, SCHEMA, DEFAULTS if semantics == "default" else None)
    tested = [make_engine("mbd", meaning, {"order": order}) for order in ORDERS]
    tested.append(make_engine("mbd", meaning, {"profile": BACKWARDS}))
    tested.append(make_engine("mbd", meaning, {"within": "random"}))
    oracle = make_engine("naive", meaning)
    for handle, text in enumerate(texts):
        try:
            expression = parse(text, SCHEMA)
        except (TypeMismatch, LimitError):
            continue
        oracle.add(handle, expression)
        for engine in tested:
            engine.add(handle, engine.prepare(expression))
    full = delicate_rows()[3]
    for row in [*some_rows, *delicate_rows()[:5]]:
        filled = tuple(f if v is None else v for v, f in zip(row, full, strict=True))
        asked = meaning.prepare(filled if semantics == "total" else row)
        wanted = oracle.match(asked).tolist()
        assert all(engine.match(asked).tolist() == wanted for engine in tested)


@pytest.mark.parametrize("name", ["bdd", "mbd-a"])
def test_the_subscriptions_of_the_papers(monkeypatch, name):
    monkeypatch.setattr(mbd, "FIRST_REORDER", 50)
    generated = workload(name)
    meaning = Semantics("sql", generated.schema)
    tested = [make_engine("mbd", meaning, {"order": order}) for order in ORDERS]
    oracle = make_engine("naive", meaning)
    for handle, text in enumerate(generated.subscriptions(220)["filter"].to_pylist()):
        expression = parse(text, generated.schema)
        oracle.add(handle, expression)
        for engine in tested:
            engine.add(handle, engine.prepare(expression))
    for event in generated.events(20).to_pylist():
        row = tuple(event[attribute] for attribute in generated.schema)
        wanted = oracle.match(row).tolist()
        assert all(engine.match(row).tolist() == wanted for engine in tested)


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


# --- limits


def test_a_filter_whose_diagram_is_exponential():
    engine = engine_of(PAIRS)
    add(engine, 0, "a1 = 1", PAIRS)
    before = engine.statistics()
    with pytest.raises(CapacityError, match="one filter would have more than 200,000 nodes"):
        add(engine, 1, EXPONENTIAL, PAIRS)
    assert engine.statistics() == before
    assert engine.match((1,) * 80).tolist() == [0]


def test_an_engine_that_could_not_hold_its_first_filter_is_empty():
    engine = engine_of(PAIRS, max_nodes=1000)
    with pytest.raises(CapacityError, match="more than max_nodes, 1,000, nodes"):
        add(engine, 0, EXPONENTIAL, PAIRS)
    assert engine.statistics() == EMPTY


def test_a_full_engine_changes_nothing_and_goes_on():
    engine = engine_of(max_nodes=1000)
    held, refused = {}, 0
    for n in range(600):
        text = f"(i > {n} AND j < {n * 7 % 50}) OR (k = {n} AND s = '{n % 9}')"
        try:
            add(engine, n, text)
            held[n] = text
        except CapacityError:
            refused += 1
            assert engine.statistics()["subscriptions"] == len(held)
            if n % 3 == 0:  # room for others
                gone = next(iter(held))
                engine.remove(gone)
                del held[gone]
    assert refused > 30
    assert engine.statistics()["nodes"] <= 1000
    oracle = make_engine("naive", Semantics("sql", SMALL))
    for handle, text in held.items():
        oracle.add(handle, parse(text, SMALL))
    for row in [(200, 3, 350, "8"), (0, 0, 10, "1"), (399, 49, 300, "3"), (None, 1, 20, None)]:
        assert engine.match(row).tolist() == oracle.match(row).tolist()
    for handle in held:
        engine.remove(handle)
    assert engine.statistics() == EMPTY


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
    oracle = make_engine("naive", Semantics("sql", SMALL))
    chance = random.Random(11)  # noqa: S311 - a test, not a secret
    held, sizes = [], []
    for handle in range(1500):
        text = (
            f"(i > {chance.randrange(10**6)} AND j = {chance.randrange(10**6)}) "
            f"OR (k < {chance.randrange(10**6)} AND s = '{chance.randrange(10**6)}')"
        )
        add(engine, handle, text)
        oracle.add(handle, parse(text, SMALL))
        held.append(handle)
        if len(held) > 30:
            gone = held.pop(chance.randrange(len(held)))
            engine.remove(gone)
            oracle.remove(gone)
        if handle % 50 == 0:  # few questions: keeping house must not wait for them
            row = (chance.randrange(10**6), 1, chance.randrange(10**6), None)
            assert engine.match(row).tolist() == oracle.match(row).tolist()
        sizes.append(engine.diagram.bytes)
    assert max(sizes) == max(sizes[:500])
    assert engine.diagram.variables < 1000
    assert engine.slots.size == 31
    assert engine.mbds._pool.size <= 31
    assert engine.statistics()["nodes"] < 200
