"""The rivals of the contest find what tamis finds, or say why they do not take part."""

import numpy as np
import pyarrow as pa
import pytest

import tamis
from cases import each
from rivals import LeftOut, contestant
from rivals.columns import read_alerts, read_atoms
from tamis.workloads import NAMES, workload

RIVALS = ["numpy", "duckdb", "duckdb-tuned", "polars", "polars-tuned"]
JOINS = RIVALS[1:]
SUBSCRIPTIONS, EVENTS = 400, 70  # more than a word of events


def expected(source, subscriptions, events):
    matcher = tamis.Matcher(source.schema, engine="naive")
    matcher.subscribe_many(subscriptions)
    return matcher.match_batch(events)


def pairs_of(table):
    events, ids = (table[name].to_pylist() for name in ("event", "subscription"))
    return sorted(zip(events, ids, strict=True))


def built(name, source, subscriptions):
    made = contestant(name)(source)
    made.read(subscriptions)
    made.build()
    return made


# Filters that no join has a condition for.
FORMULAS = {"bdd", "shapes", "shapes-constants", "shapes-texts", "shapes-wide", "journeys"}


@each("name", [name for name in NAMES if name not in FORMULAS])
def test_rivals_find_what_tamis_finds(name):
    source = workload(name)
    subscriptions, events = source.subscriptions(SUBSCRIPTIONS), source.events(EVENTS)
    wanted = expected(source, subscriptions, events)
    counts = np.bincount(wanted["event"].to_numpy(), minlength=EVENTS)
    for rival in RIVALS:
        made = built(rival, source, subscriptions)
        assert pairs_of(made.pairs(events)) == pairs_of(wanted), rival
        assert made.count(events).tolist() == counts.tolist(), rival
        assert made.pairs(events.slice(0, 1)).num_rows == counts[0], rival
        assert made.bytes() > 0, rival
        made.close()


@pytest.mark.parametrize("density", [0.15, 1.0])
@each("name", ["bdd", "shapes"])
def test_numpy_knows_formulas_and_missing_values(name, density):
    source = workload(name)
    subscriptions = source.subscriptions(SUBSCRIPTIONS)
    events = source.events(EVENTS, density=density)
    wanted = expected(source, subscriptions, events)
    made = built("numpy", source, subscriptions)
    assert pairs_of(made.pairs(events)) == pairs_of(wanted)
    assert made.count(events).sum() == wanted.num_rows


def test_long_runs_of_alerts_are_looked_at_one_by_one():
    source = workload("stock")
    shown = "symbol = 'S1' AND price BETWEEN {}.00 AND {}.50 AND volume >= {}"
    texts = [shown.format(n % 40, n % 40 + 30, 1000 * (n % 7)) for n in range(2000)]
    subscriptions = pa.table({"id": range(len(texts)), "filter": texts})
    events = pa.table({
        "symbol": ["S1", "S2", "S1"], "price": [35.0, 35.0, 0.5], "volume": [3000, 9000, 0],
    })  # fmt: skip
    made = built("numpy", source, subscriptions)
    wanted = expected(source, subscriptions, events)
    assert pairs_of(made.pairs(events)) == pairs_of(wanted)
    assert made.count(events).tolist() == np.bincount(wanted["event"], minlength=3).tolist()


@each("name", JOINS)
def test_joins_leave_formulas_out(name):
    source = workload("bdd")
    made = contestant(name)(source)
    with pytest.raises(LeftOut, match="formulas"):
        made.read(source.subscriptions(10))


@each("name", RIVALS)
def test_bounds_leave_partial_events_out(name):
    source = workload("w4")
    made = built(name, source, source.subscriptions(10))
    with pytest.raises(LeftOut, match="all attributes"):
        made.pairs(source.events(10, density=0.5))


def test_other_filters_are_refused():
    odd = pa.chunked_array([["a0 = 1 OR a1 = 2"]])
    with pytest.raises(LeftOut):
        read_atoms(odd)
    with pytest.raises(LeftOut):
        read_alerts(odd)


def test_true_has_no_atoms():
    atoms = read_atoms(pa.chunked_array([["TRUE", "a3 <= 7 AND a0 = 2", "TRUE"]]))
    assert atoms.lengths.tolist() == [0, 2, 0]
    assert atoms.filter.tolist() == [1, 1]
    assert atoms.attribute.tolist() == [3, 0]
    assert atoms.constant.tolist() == [7, 2]


def test_a_contestant_of_tamis():
    source = workload("w4")
    subscriptions, events = source.subscriptions(50), source.events(20)
    made = built("counting-list", source, subscriptions)
    assert made.matcher.engine == "counting-list"
    assert made.count(events).sum() == made.pairs(events).num_rows
    assert made.bytes() is None
    assert len(made.match_row(made.rows(events)[0])) == made.count(events)[0]
