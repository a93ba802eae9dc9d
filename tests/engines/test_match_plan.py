"""What `Matcher.explain` says adds up."""

import json

import pyarrow as pa
import pytest

from cases import each
from stocks import SMALL, stock_filters, stock_rows
from tamis import Matcher, Schema
from tamis.engines import ENGINES, auto
from tamis.engines.match_plan import MatchPlan
from tamis.engines.sliced import layout

TABLE = pa.Table.from_pylist([dict(zip(SMALL, row, strict=True)) for row in stock_rows(1, 600)])


def check(matcher):
    """The plan, of which all numbers have been compared with each other."""
    plan = matcher.explain()
    assert plan.engine == matcher.engine
    assert plan.subscriptions == len(matcher)
    for part in plan.parts:
        assert sum(group.subscriptions for group in part.groups) == part.subscriptions + part.gone
        assert part.predicates > 0
        assert part.shapes > 0
        assert part.bytes > 0
        assert part.estimated > 0
        assert part.measured is None or part.measured > 0
        for group in part.groups:
            assert group.subscriptions > 0
            assert (group.clusters > 0) == (group.largest > 0)
            assert group.largest <= group.subscriptions <= max(
                group.largest * group.clusters, group.subscriptions * (not group.clusters)
            )  # fmt: skip
    said = plan.to_dict()
    assert json.loads(json.dumps(said)) == said
    assert said["subscriptions"] == len(matcher)
    assert [part["subscriptions"] for part in said["parts"]] == [
        part.subscriptions for part in plan.parts
    ]
    text = str(plan)
    assert text.startswith(f"engine {plan.engine}: {len(matcher):,} subscription")
    assert len(text.splitlines()) >= 1 + sum(2 + len(part.groups) for part in plan.parts)
    return plan


def compiled(texts, **options):
    matcher = Matcher(SMALL, "sliced", **options)
    matcher.subscribe_many(dict(enumerate(texts)))
    return matcher


@each("engine", ENGINES)
def test_every_engine(engine):
    matcher = Matcher(SMALL, engine)
    assert check(matcher) == MatchPlan(matcher.engine, 0, 0, ())
    texts = ["i > 0", "s = 'T1' AND x < 5", "i = 3 OR b", "NOT (i = 3 AND x > 1)", "i IN (1, 2)"]
    for number, text in enumerate(texts):
        matcher.subscribe(number, text)
    matcher.match_batch(TABLE.slice(0, 5))
    matcher.unsubscribe(2)
    plan = check(matcher)
    if engine not in {"auto", "sliced"}:
        assert plan.parts == ()
    assert plan.asked == (4 if matcher.engine == "naive" else 0)


def test_filters_that_are_asked_are_counted(monkeypatch):
    monkeypatch.setattr(auto, "MOST_UNCOMPILED", 10)
    matcher = Matcher(SMALL)
    for number, text in enumerate(stock_filters(1, 10)):
        matcher.subscribe(number, text)
    plan = check(matcher)
    assert (plan.asked, plan.parts) == (10, ())
    assert "10 evaluated one by one" in str(plan)
    for number, text in enumerate(stock_filters(2, 20), 10):
        matcher.subscribe(number, text)
    matcher.match({"i": 1})
    plan = check(matcher)
    assert plan.asked == 19
    assert plan.asked + sum(part.subscriptions for part in plan.parts) == 30
    assert "19 evaluated one by one" in str(plan)


@each("size", [1, 100, 3000])
def test_numbers_add_up(size):
    matcher = compiled(stock_filters(3, size))
    plan = check(matcher)
    assert sum(part.subscriptions for part in plan.parts) == size
    assert plan.asked == 0
    assert all(part.measured is None for part in plan.parts)
    matcher.match_batch(TABLE)
    assert all(part.measured is not None for part in check(matcher).parts)


def test_what_is_gone_is_told():
    matcher = compiled(stock_filters(3, 300))
    matcher.match({"i": 1})
    for number in range(50):
        matcher.unsubscribe(number)
    plan = check(matcher)
    assert sum(part.subscriptions for part in plan.parts) == 250
    assert sum(part.gone for part in plan.parts) == 50
    assert ", 50 gone" in str(plan)


def test_several_parts():
    matcher = compiled(stock_filters(3, 500))
    for number, text in enumerate(stock_filters(4, 20), 500):
        matcher.subscribe(number, text)
    plan = check(matcher)
    assert [part.subscriptions for part in plan.parts] == [500, 20]
    assert "part 2: 20 compiled" in str(plan)


def test_filters_without_predicates():
    """They are in no part, and are counted all the same."""
    plan = check(compiled(["TRUE", "FALSE", "i > 0"]))
    assert plan.subscriptions == 3
    assert [part.subscriptions for part in plan.parts] == [1]
    assert plan.asked == 0
    assert check(compiled(["TRUE"])).parts == ()


def groups(matcher):
    (part,) = check(matcher).parts
    return {group.how: group for group in part.groups}


def test_the_ways_to_find_a_filter():
    texts = [f"s = 'T{n}' AND i > 0" for n in range(200)] * 3
    texts += [f"i < {n} AND x > 0" for n in range(3)]
    texts += ["side = 'buy' AND b"] * 40
    texts += [f"s LIKE 'T{n}%' AND i > 5" for n in range(100)]
    matcher = compiled(texts)
    found = groups(matcher)
    by_value = found["found by the value of s"]
    assert by_value.subscriptions == 600
    assert by_value.clusters == 200
    assert by_value.largest == 3
    assert found["found by sets and tests"].subscriptions == 100
    assert found["with a common first predicate"].subscriptions == 40
    assert found["without one"].subscriptions == 3
    text = str(matcher.explain())
    assert "600 found by the value of s in 200 clusters, the largest of 3: " in text
    assert "at once" in text


def test_skew_shows_in_the_largest_cluster():
    found = groups(compiled([f"i = {max(0, n - 500)} AND x > {n}" for n in range(1000)]))
    (only,) = found.values()
    assert only.how == "found by the value of i"
    assert (only.subscriptions, only.clusters, only.largest) == (1000, 500, 501)


def test_names_of_nested_attributes():
    matcher = Matcher({"r.`odd name`": "int", "größe": "double"}, "sliced")
    matcher.subscribe_many(
        [(f"a{n}", f"r.`odd name` = {n} AND größe > 1") for n in range(100)]
        + [(f"b{n}", f"größe = {n}") for n in range(100)]
    )
    text = str(check(matcher))
    assert "found by the value of r.`odd name` in 100 clusters" in text
    assert "found by the value of `größe` in 100 clusters" in text


@pytest.mark.parametrize("named", [0, 4096])
def test_predicates_are_counted_once(monkeypatch, named):
    monkeypatch.setattr(layout, "NAMED", named)
    texts = ["i > 1", "i > 1 AND x < 2", "x < 2 AND i > 1", "s LIKE 'a%'", "s LIKE 'a%' OR b",
             "i IN (1, 2) AND i > 1"]  # fmt: skip
    (part,) = check(compiled(texts)).parts
    assert part.predicates == 5
    assert part.shapes == 3


def test_the_plan_of_a_loaded_matcher(tmp_path):
    matcher = compiled(stock_filters(5, 300))
    matcher.save(tmp_path / "rules.tamis")
    before = check(matcher)
    after = check(Matcher.load(tmp_path / "rules.tamis"))
    assert after.parts == before.parts


def test_asking_for_the_plan_changes_nothing():
    matcher = Matcher(SMALL)
    matcher.subscribe_many(dict(enumerate(stock_filters(6, 100))))
    assert check(matcher) == check(matcher)
    assert matcher.engine == "naive"


# --- which attributes filters test


@each(
    ("texts", "asked"),
    [
        (["TRUE", "FALSE"], set()),
        (["i > 0"], {"i"}),
        (["i > 0 OR NOT b", "x IS NULL"], {"i", "b", "x"}),
        (["s LIKE 'T1%'"], {"s"}),
        (["x > i"], {"x", "i"}),
        (["abs(i) + length(s) > 2"], {"i", "s"}),
        (["side IN ('buy', 'sell')"], {"side"}),
        (["i = 1 AND (s = 'a' OR upper(s) RLIKE 'B' AND b)"], {"i", "s", "b"}),
    ],
)
@each("semantics", ["sql", "strict"])
def test_attributes_that_filters_test(texts, asked, semantics):
    matcher = Matcher(SMALL, semantics=semantics)
    matcher.subscribe_many(dict(enumerate(texts)))
    assert matcher.attributes() == asked


def test_attributes_have_their_names_in_the_language():
    schema = Schema({"r.`odd name`": "int", "größe": "string", "`a.b`": "double", "rest": "int"})
    matcher = Matcher(schema)
    matcher.subscribe_many(
        {"a": "r.`odd name` = 1", "b": "größe LIKE '%x'", "c": "`a.b` > r.`odd name`"}
    )
    assert matcher.attributes() == {"r.`odd name`", "`größe`", "`a.b`"}


@pytest.mark.parametrize("semantics", ["sql", "strict"])
def test_columns_that_no_filter_tests_may_be_left_out(semantics):
    texts = stock_filters(11, 60)
    for start in range(0, 60, 3):
        matcher = Matcher(SMALL, semantics=semantics)
        matcher.subscribe_many(dict(enumerate(texts[start : start + 3])))
        asked = matcher.attributes()
        some = TABLE.select([name for name in TABLE.column_names if name in asked])
        assert matcher.match_batch(some).equals(matcher.match_batch(TABLE))


@pytest.mark.parametrize("engine", ["auto", "sliced", "naive", "mbd"])
def test_attributes_of_every_engine(engine):
    matcher = Matcher(SMALL, engine)
    assert matcher.attributes() == set()
    matcher.subscribe_many({1: "i > 0", 2: "s = 'a' AND x < 5"})
    assert matcher.attributes() == {"i", "s", "x"}
    matcher.subscribe(2, "i = 3")
    assert matcher.attributes() == {"i"}
    matcher.unsubscribe(1)
    matcher.unsubscribe(2)
    assert matcher.attributes() == set()


def test_rules_that_compute_values_are_named_with_their_cost():
    schema = Schema({"price": "double", "qty": "int", "name": "string", "tags": "array<string>"})
    rules = {
        "plain": "price < 10 AND qty IN (1, 2)",
        "one": "price * qty > 100",
        "other": "price * qty < 5 OR name = 'a'",
        "text": "reverse(name) LIKE '%ab%ba%'",
        "set": "length(name) NOT IN (3, 4)",
        "array": "array_contains(tags, 'x')",
    }
    matcher = Matcher(schema, "sliced")
    matcher.subscribe_many(rules)
    (part,) = matcher.explain().parts
    assert (part.terms, part.computing, part.slowest, part.measured) == (4, 5, (), None)
    events = [
        {"price": 2.5, "qty": n, "name": f"n{n}" * 3, "tags": ["x", str(n)]} for n in range(300)
    ]
    events.append({"price": "no number"})
    plan = matcher.explain(events)
    (part,) = plan.parts
    assert {term.value: (term.subscriptions, term.ids) for term in part.slowest} == {
        "price * qty": (2, ("one", "other")), "reverse(name)": (1, ("text",)),
        "length(name)": (1, ("set",)), "elements of tags": (1, ("array",)),
    }  # fmt: skip
    seconds = [term.seconds for term in part.slowest]
    assert seconds == sorted(seconds, reverse=True)
    assert seconds[-1] > 0
    assert part.measured > sum(seconds)  # it is what matching costs from columns to matches
    text = str(plan)
    assert "5 compute values, 4 values in all" in text
    assert "per event: price * qty, for 2 subscriptions: one, other" in text
    assert plan.to_dict()["parts"][0]["slowest"][0]["ids"]
    matcher.unsubscribe("text")
    matcher.unsubscribe("one")
    (part,) = matcher.explain().parts
    assert (part.terms, part.computing) == (3, 3)


def test_a_plan_names_only_the_slowest_values():
    matcher = Matcher(Schema({"x": "double", "y": "double"}), "sliced")
    matcher.subscribe_many({k: f"x * {k} + y > {k}" for k in range(20)})
    matcher.subscribe_many({100 + k: f"x - y > {k}" for k in range(9)})
    plan = matcher.explain([{"x": k, "y": 1.5} for k in range(200)])
    assert sum(part.computing for part in plan.parts) == 29
    for part in plan.parts:
        assert len(part.slowest) == min(part.terms, 5)
        assert all(len(term.ids) == min(term.subscriptions, 3) for term in part.slowest)
