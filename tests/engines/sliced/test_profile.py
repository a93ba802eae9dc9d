"""Events of the past say which predicates are rare."""

import numpy as np
import pyarrow as pa
import pytest

from cases import each
from kernel_calls import from_python
from stocks import SMALL, stock_filters
from tamis import Matcher, OptionError, Profile
from tamis.engines import make_engine
from tamis.engines.resources import MOST_PROFILED, Resources, profile_of
from tamis.engines.sliced.expected_shares import ProfiledShares
from tamis.engines.sliced.filter_reader import FilterReader
from tamis.engines.sliced.interning import intern_filters
from tamis.engines.sliced.value_classes import classes_of
from tamis.kernels.value_classes import REF_KINDS, holds_class
from tamis.language.expression import parse
from tamis.predicates.keys import Keys
from tamis.semantics import Semantics

holds_class = from_python(holds_class)

KINDS_OF_EVENTS = {"kind": "string", "level": "int", "x": "double"}
SQL = Semantics("sql", Matcher(KINDS_OF_EVENTS).schema)


def table(size, seed=1):
    chance = np.random.default_rng(seed)
    return pa.table(
        {
            "kind": chance.choice(["a", "b", "c"], size, p=[0.98, 0.01, 0.01]),
            "level": pa.array(chance.integers(0, 5, size), mask=chance.random(size) < 0.2),
            "x": pa.array(chance.choice([1.0, 2.0, float("nan")], size)),
        }
    )


def interned(texts):
    reader = FilterReader(SQL)
    leaves = [(n, reader.leaves(parse(text, SQL.schema))) for n, text in enumerate(texts)]
    return intern_filters(leaves, Keys(SQL.schema))


TEXTS = [
    f"{name} {op} {constant}"
    for name, constants in (("kind", ["'a'", "'b'", "'zz'"]), ("level", [0, 3, 9]), ("x", [1.5, 2]))
    for constant in constants
    for op in ("=", "<>", "<", "<=", ">", ">=")
] + ["kind IS NULL", "level IS NULL", "level IS NOT NULL"]


def test_shares_are_those_of_the_events():
    made = interned(TEXTS)
    events = profile_of(Resources(profile=table(500)), SQL)
    shares = ProfiledShares(made, events)
    predicates = made.predicates
    classes = classes_of(events, predicates, np.arange(len(SQL.schema)))
    for filters in made.tables.values():
        for ref in filters.refs.reshape(-1).tolist():
            attribute = int(predicates.attributes_of(np.array([ref]))[0])
            true = sum(
                bool(holds_class(ref % REF_KINDS, int(c), ref // REF_KINDS))
                for c in classes[attribute]
            )
            found = shares.of(np.array([ref]))[0]
            assert found == pytest.approx(min((true + 0.5) / 500, 1.0))


def test_sets_add_their_members_up():
    made = interned(["kind IN ('b', 'c')", "kind IN ('a', 'b')", "kind = 'a'"])
    events = profile_of(Resources(profile=table(1000)), SQL)
    shares = ProfiledShares(made, events)
    base = made.predicates.base * REF_KINDS
    both = [shares.of(np.array([base + REF_KINDS * n]))[0] for n in range(2)]
    assert min(both) < 0.05
    assert max(both) > 0.9


def test_the_rare_predicate_leads():
    texts = {n: f"kind = 'b' AND level = {n % 5}" for n in range(100)}
    plain, told = (
        Matcher(KINDS_OF_EVENTS, "sliced", options=options)
        for options in ({}, {"profile": table(5000)})
    )
    for matcher in (plain, told):
        matcher.subscribe_many(texts)
    assert "kind" in str(told.explain())
    assert "kind" not in str(plain.explain())


@pytest.mark.parametrize("engine", ["sliced", "auto"])
def test_a_profile_or_its_file_does_what_its_events_do(tmp_path, engine):
    events = table(5000)
    made = Profile.of(events)
    made.save(tmp_path / "events.profile")
    texts = {n: f"kind = 'b' AND level = {n % 5}" for n in range(2000)}
    plans = []
    for profile in (events, made, str(tmp_path / "events.profile"), tmp_path / "events.profile"):
        matcher = Matcher(KINDS_OF_EVENTS, engine, options={"profile": profile})
        matcher.subscribe_many(texts)
        plans.append([(g.how, g.clusters) for g in matcher.explain().parts[0].groups])
    assert plans == [[("found by the value of kind", 1)]] * 4


def test_a_file_is_read_when_the_matcher_is_made(tmp_path):
    path = tmp_path / "events.profile"
    Profile.of(table(5000)).save(path)
    matcher = Matcher(KINDS_OF_EVENTS, options={"profile": path})
    path.unlink()
    matcher.subscribe_many({n: f"kind = 'b' AND level = {n % 5}" for n in range(2000)})
    assert matcher.engine == "sliced"
    assert "kind" in str(matcher.explain())


def test_a_profile_may_know_other_attributes_and_records():
    events = pa.table({"r": [{"kind": "a", "x": 1.0}] * 99 + [{"kind": "b", "x": None}],
                       "other": [1] * 100})  # fmt: skip
    semantics = Semantics("sql", Matcher({"r.kind": "string", "level": "int"}).schema)
    found = profile_of(Resources(profile=Profile.of(events)), semantics)
    assert found.size == 100
    assert [int(column.present.sum()) for column in found.columns] == [100, 0]


@each("engine", ["sliced", "auto"])
@each("size", [0, 1, 700])
def test_answers_do_not_depend_on_it(engine, size):
    texts = dict(enumerate(stock_filters(3, 30)))
    naive = Matcher(SMALL, "naive")
    sample = pa.table(
        {"i": pa.array([1, 2, None] * size, pa.int64()), "s": ["T1", "q", None] * size}
    )
    told = Matcher(SMALL, engine, options={"profile": sample})
    for matcher in (naive, told):
        matcher.subscribe_many(texts)
    rows = [{"i": n % 7, "s": f"T{n % 3}", "x": n / 3} for n in range(50)]
    assert [told.match(row) for row in rows] == [naive.match(row) for row in rows]
    assert told.match_batch(rows).to_pydict() == naive.match_batch(rows).to_pydict()


def test_a_large_profile_is_looked_at_here_and_there():
    events = pa.table({"level": pa.array(range(3 * MOST_PROFILED), pa.int64())})
    found = profile_of(Resources(profile=events), SQL)
    assert found.size == MOST_PROFILED
    assert found.columns[1].keys.max() > 2.9 * MOST_PROFILED


@each("engine", ["sliced", "auto"])
@each(
    ("profile", "problem"),
    [
        (3, "profile is a tamis.Profile, the path of one, or a table of events, not int"),
        (pa.table({"level": ["a"]}), "profile: .*level"),
        (Profile.of(pa.table({"level": ["a"]})), "profile: .*level"),
        ("no/such.profile", "profile: no/such.profile does not exist"),
    ],
)
def test_what_is_not_a_profile(engine, profile, problem):
    with pytest.raises(OptionError, match=problem):
        make_engine(engine, SQL, {"profile": profile})
