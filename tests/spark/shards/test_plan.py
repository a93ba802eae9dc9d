"""Which shards filters and events have in common; no Spark is needed to know."""

import json
import zlib
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from tamis import Matcher, Schema
from tamis.engines.required_values import RequiredValues
from tamis.language.expression import parse_with
from tamis.predicates.event_batches import batch_of_table
from tamis.semantics import NAMES, Semantics
from tamis.spark.shards.copies import ShardCopies, copies_for
from tamis.spark.shards.hashes import ValueHashes, id_hash, mixed, mixed_one
from tamis.spark.shards.placement import EventRouting, FilterPlacement
from tamis.spark.shards.plan import MOST_VALUES, ShardGroup, ShardLoad, ShardPlan, plan_shards

SCHEMA = Schema(
    {
        "s": "string", "i": "int", "x": "double", "b": "bool", "side": "enum('sell', 'buy')",
        "at": "timestamp",
    }
)  # fmt: skip
VALUES = {
    "s": ["A", "B", "C", "D", "É", ""], "i": [-1, 0, 1, 2, 2**53 + 1, -(2**63)],
    "x": [0.0, -0.0, 1.5, float("nan")], "b": [True, False], "side": ["buy", "sell"],
    "at": [0, 1_704_067_200_000_001],
}  # fmt: skip
TEXTS = {
    "s": ["'A'", "'B'", "'C'", "'D'", "'É'", "''"],
    "i": ["-1", "0", "1", "2", str(2**53 + 1), str(-(2**63))],
    "x": ["0.0", "-0.0D", "1.5D"], "b": ["TRUE", "FALSE"], "side": ["'buy'", "'sell'"],
    "at": ["TIMESTAMP '1970-01-01 00:00:00'", "TIMESTAMP '2024-01-01 00:00:00.000001'"],
}  # fmt: skip
DEFAULTS = {"s": "A", "i": 0, "x": None, "b": True, "side": "buy", "at": None}


@st.composite
def keyed_filters(draw):
    """Filters of which most have a key."""
    parts = []
    for _ in range(draw(st.integers(1, 3))):
        name = draw(st.sampled_from([*TEXTS, "s", "s"]))
        texts = TEXTS[name]
        one = st.sampled_from(texts)
        test = draw(st.sampled_from(["=", "=", "IN", "IN", "<>", "null", "not", "range"]))
        if test == "IN":
            items = draw(st.lists(one, min_size=1, max_size=len(texts), unique=True))
            parts.append(f"{name} IN ({', '.join(items)})")
        elif test == "null":
            parts.append(f"{name} IS NULL")
        elif test == "not":
            parts.append(f"NOT ({name} = {draw(one)} OR {name} IS NULL)")
        elif test == "range":
            parts.append("i > 0 AND NOT x < 1")
        else:
            parts.append(f"{name} {test} {draw(one)}")
    return f" {draw(st.sampled_from(['AND', 'AND', 'AND', 'OR']))} ".join(parts)


def events():
    columns = [st.none() | st.sampled_from(VALUES[name]) for name in SCHEMA]
    return st.tuples(*columns)


def table_of(rows):
    types = [pa.string(), pa.int64(), pa.float64(), pa.bool_(), pa.string(), pa.timestamp("us")]
    columns = zip(*rows, strict=True) if rows else [()] * len(types)
    pairs = zip(columns, types, strict=True)
    return pa.table([pa.array(list(column), of) for column, of in pairs], names=list(SCHEMA))


def semantics_of(name):
    return Semantics(name, SCHEMA, DEFAULTS if name == "default" else None)


def read(filters, semantics):
    """The values that filters require."""
    required = RequiredValues(semantics)
    return [required.of(parse_with(text, SCHEMA), MOST_VALUES) for text in filters]


def placed(plan, filters, semantics):
    """The shards of filters, whose ids are numbers."""
    placement = FilterPlacement(plan, semantics)
    return [placement.shards(n, parse_with(text, SCHEMA)) for n, text in enumerate(filters)]


def naive(name):
    return Matcher(SCHEMA, "naive", name, defaults=DEFAULTS if name == "default" else None)


@st.composite
def plans(draw):
    """Any plan at all, for which no filter needs to ask."""
    hashes = ValueHashes(SCHEMA)
    general = draw(st.integers(1, 3))
    groups, total = [], general
    for name in draw(st.lists(st.sampled_from([*VALUES, "s", "s"]), max_size=3, unique=True)):
        place, shared = SCHEMA.positions[name,], draw(st.integers(1, 3))
        first, heavy = total, {}
        total += shared
        for value in draw(st.lists(st.sampled_from(VALUES[name]), max_size=2)):
            size = draw(st.integers(1, 3))
            if hashes.value(place, value) not in heavy:
                heavy[hashes.value(place, value)] = range(total, total + size)
                total += size
        groups.append(ShardGroup(place, first, shared, heavy))
    return ShardPlan(general, tuple(groups), (ShardLoad(1.0, 1.0),) * total, 1.0)


def check(filters, rows, name, plan):
    """All matches are found, each of them once, and no shard is met in vain."""
    if name == "total":
        rows = [row for row in rows if None not in row]
    plan = ShardPlan.from_json(json.loads(json.dumps(plan.to_json())))
    semantics = semantics_of(name)
    places = placed(plan, filters, semantics)
    matchers = [naive(name) for _ in range(plan.total)]
    for n, (text, found) in enumerate(zip(filters, places, strict=True)):
        assert len(set(found)) == len(found) > 0
        for shard in found:
            matchers[shard].subscribe(n, text)
    whole = naive(name)
    whole.subscribe_many(list(enumerate(filters)))
    table = table_of(rows)
    expected = [
        (row, one)
        for row, found in enumerate(whole.match_batch(table, "lists")["subscriptions"].to_pylist())
        for one in found
    ]
    answers = [one.match_batch(table, "lists")["subscriptions"].to_pylist() for one in matchers]
    routing = EventRouting(plan, semantics, [len(matcher) > 0 for matcher in matchers])
    met = list(zip(*(found.tolist() for found in routing.pairs(table)), strict=True))
    assert len(set(met)) == len(met)
    assert all(len(matchers[shard]) for _, shard in met)
    assert sorted((row, one) for row, shard in met for one in answers[shard][row]) == expected


FILTERS = st.lists(keyed_filters(), min_size=1, max_size=30)
ROWS = st.lists(events(), max_size=12)


@given(FILTERS, ROWS, st.sampled_from(NAMES), plans())
def test_shards_find_what_all_filters_find(filters, rows, name, plan):
    check(filters, rows, name, plan)


@given(FILTERS, ROWS, st.sampled_from(NAMES), st.integers(2, 12), st.integers(0, 30))
def test_a_plan_may_be_made_from_some_of_the_filters(filters, rows, name, shards, sampled):
    sample = read(filters[:sampled], semantics_of(name))
    check(filters, rows, name, plan_shards(sample, SCHEMA, shards))


def market(size, heavy=0.0):
    """Filters on the symbols S0 to S99, and some that are without one."""
    chance = np.random.default_rng(7)
    filters = []
    for n in range(size):
        symbol = "S0" if chance.random() < heavy else f"S{chance.integers(100)}"
        filters.append(f"s = '{symbol}' AND i > {n}" if n % 10 else f"i > {n}")
    return filters


def test_the_attribute_that_spares_most_is_chosen():
    plan = plan_shards(read(market(1000), semantics_of("sql")), SCHEMA, 10)
    assert [group.attribute for group in plan.groups] == [SCHEMA.positions["s",]]
    assert plan.general == 1
    assert plan.groups[0].shared == 9
    assert 0.1 < plan.met < 0.3
    assert plan.described(SCHEMA, [True] * 10) == "9 by s, 1 that all events meet"
    assert plan.described(SCHEMA, [False] + [True] * 9) == "9 by s, 0 that all events meet"


def test_filters_without_a_key_of_the_first_attribute_may_have_one_of_another():
    filters = [f"s = 'S{n}'" if n % 2 else f"i = {n}" for n in range(1000)]
    plan = plan_shards(read(filters, semantics_of("sql")), SCHEMA, 10)
    assert sorted(group.attribute for group in plan.groups) == [0, 1]
    assert plan.total == 11  # the general one is there in case that others come
    assert plan.met < 0.25


def test_without_pruning_shards_are_made_by_size():
    for filters in (
        [f"i > {n}" for n in range(100)],
        [f"b = TRUE AND i > {n}" for n in range(100)],
        [f"s = 'A' OR i > {n}" for n in range(100)],
        [f"i IN ({', '.join(map(str, range(n, n + MOST_VALUES + 1)))})" for n in range(100)],
    ):
        plan = plan_shards(read(filters, semantics_of("sql")), SCHEMA, 4)
        assert plan == ShardPlan(4, (), (ShardLoad(1.0, 0.25),) * 4, 1.0)
        assert plan.described(SCHEMA, [True] * 4).startswith("4 by size")


def test_a_plan_can_be_made_of_nothing():
    assert plan_shards([], SCHEMA, 4).total == 1


def test_filters_without_a_key_are_spread_by_their_ids():
    plan = ShardPlan(4, (), (ShardLoad(1.0, 0.25),) * 4, 1.0)
    placement = FilterPlacement(plan, semantics_of("sql"))
    expression = parse_with("i > 0", SCHEMA)
    for ids in (range(1000), [f"id-{n}" for n in range(1000)]):
        counts = Counter(placement.shards(one, expression) for one in ids)
        assert len(counts) == 4
        assert max(counts.values()) < 320


def test_a_heavy_value_has_shards_of_its_own():
    filters = market(2000, heavy=0.5)
    plan = plan_shards(read(filters, semantics_of("sql")), SCHEMA, 10)
    (group,) = plan.groups
    (own,) = group.heavy.values()
    assert len(own) == 5
    assert [plan.loads[shard].share for shard in own] == pytest.approx([0.55] * 5, abs=0.05)
    assert [plan.loads[shard].depth for shard in own] == pytest.approx([0.1] * 5, abs=0.02)
    places = placed(plan, filters, semantics_of("sql"))
    loads = Counter(shard for found in places for shard in found)
    assert max(loads.values()) < 2 * len(filters) / 10
    rows = [("S0", *(None,) * 5), ("S1", *(None,) * 5), (None,) * 6]
    routing = EventRouting(plan, semantics_of("sql"), [True] * plan.total)
    found, shards = routing.pairs(table_of(rows))
    met = [set(shards[found == row].tolist()) for row in range(3)]
    general = set(range(plan.general))
    assert met[0] == {*general, *own}
    assert len(met[1]) == plan.general + 1
    assert not met[1] & set(own)
    assert met[2] == general
    assert plan.described(SCHEMA, [True] * plan.total) == (
        "5 by s and 5 for 1 heavy value of it, 1 that all events meet"
    )


def test_a_filter_with_several_values_lies_once_in_each_of_their_shards():
    hashes = ValueHashes(SCHEMA)
    plan = ShardPlan(
        1,
        (ShardGroup(0, 1, 2, {hashes.value(0, "H"): range(3, 6)}),),
        (ShardLoad(1.0, 1.0),) * 6,
        1.0,
    )
    placement = FilterPlacement(plan, semantics_of("sql"))
    expression = parse_with("s IN ('A', 'B', 'C', 'D', 'E', 'H')", SCHEMA)
    assert placement.shards(5, expression) == (1, 2, 3 + id_hash(5) % 3)


def test_an_event_without_the_attribute_goes_where_its_default_goes():
    plan = ShardPlan(
        1, (ShardGroup(0, 1, 50, {}), ShardGroup(2, 51, 50, {})), (ShardLoad(1.0, 1.0),) * 101, 1.0
    )
    semantics = semantics_of("default")  # 'A' for s, and none for x
    ((place,),) = placed(plan, ["s = 'A'"], semantics)
    routing = EventRouting(plan, semantics, [True] * plan.total)
    assert routing.pairs(table_of([(None,) * 6]))[1].tolist() == [0, place]
    check(["s = 'A'"] * 3, [(None,) * 6, ("A", *(None,) * 5)], "default", plan)


@each(
    ("text", "keys"),
    [
        ("s = 'A' AND i > 3", {0: ("A",)}),
        ("s IN ('A', 'B') AND s IN ('B')", {0: ("B",)}),
        ("s = 'A' AND (i = 1 OR x > 2)", {0: ("A",)}),
        ("s = 'A' OR i = 1", {}),
        ("NOT s = 'A'", {}),
        ("NOT (s <> 'A' OR b)", {0: ("A",), 3: (0,)}),
        ("TRUE", {}),
        ("s = 'A' AND s = 'B' AND FALSE", {}),
        ("s IS NULL", {}),
        ("s <=> 'A'", {0: ("A",)}),
    ],
)
def test_values_that_filters_require(text, keys):
    assert read([text], semantics_of("sql")) == [keys]


def test_filters_and_events_have_the_same_hashes():
    """Also in other processes: hashes may not depend on a seed of Python's."""
    hashes = ValueHashes(SCHEMA)
    rows = [
        tuple(VALUES[name][n % len(VALUES[name])] for name in SCHEMA)
        for n in range(max(map(len, VALUES.values())))
    ]
    batch = batch_of_table(table_of(rows), semantics_of("sql"), refuse_unknown=False)
    for place, column in enumerate(batch.columns):
        values = [row[place] for row in rows]
        expected = [hashes.value(place, value) for value in values]
        assert hashes.column(place, column).tolist() == expected
    assert hashes.value(0, "É") == mixed_one(zlib.crc32("É".encode()))
    assert hashes.value(2, -0.0) == hashes.value(2, 0.0)
    numbers = [0, 1, -1, 2**63 - 1, -(2**63)]
    assert mixed(np.array(numbers, np.int64).view(np.uint64)).tolist() == [
        mixed_one(number) for number in numbers
    ]
    assert id_hash("a") == 3187963305867457774


def test_copies_follow_the_work():
    assert copies_for([1.0, 0.5, 0.25, 0.25], [True] * 4, 8) == [4, 2, 1, 1]
    assert copies_for([0.0, 0.5, 0.0], [False, True, True], 4) == [0, 4, 1]
    assert copies_for([0.0], [True], 4) == [1]


def test_copies_share_the_events_of_a_shard():
    copies = ShardCopies([0, 3, 1])
    assert copies.total == 4
    assert copies.starts.tolist() == [0, 0, 3]
    numbers = (np.int64(5) << 33) + np.arange(3000, dtype=np.int64)
    counts = np.bincount(copies.of_events(np.full(3000, 1), numbers), minlength=4)
    assert counts.sum() == 3000
    assert counts[3] == 0
    assert counts[:3].min() > 900
    assert set(copies.of_events(np.full(9, 2), numbers[:9]).tolist()) == {3}
    assert np.bincount(copies.anywhere(numbers)).min() > 650
