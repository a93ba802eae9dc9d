"""Profiles of events, made here."""

import math
from datetime import UTC, datetime
from itertools import pairwise

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import each
from tamis import EventError, OptionError, Profile, Schema
from tamis.profiles import profile as module
from tamis.profiles.hashes import shortened_text
from tamis.workloads import workload

NAN = float("nan")
EVERYTHING = pa.table(
    {
        "i": pa.array([-(2**63), 2**63 - 1, 0, None, 0], pa.int64()),
        "x": [NAN, -0.0, 0.0, float("-inf"), float("inf")],
        "s": ["", "é", "𝄞" * 400, None, ""],
        "b": [True, False, None, True, True],
        "t": pa.array([datetime(1, 1, 1), None, None, datetime(9999, 12, 31), None]),  # noqa: DTZ001 - Arrow has such times, too
        "none": pa.nulls(5, pa.string()),
        "untyped": [[[1]]] * 5,
        "r": [{"a": 1, "b.c": "x"}, {"a": None, "b.c": "y"}, None, {"a": 2, "b.c": None}, None],
    }
)


@pytest.fixture(scope="module")
def stock():
    return workload("stock").events(30_000, density=0.8)


def test_what_every_type_has():
    found = Profile.of(EVERYTHING)
    assert list(found.schema) == ["i", "x", "s", "b", "t", "none", "r.a", "r.`b.c`"]
    assert (found.events, found.refused) == (5, 0)
    assert [found.present(name) for name in found.schema] == [4, 5, 4, 4, 2, 0, 2, 2]
    assert [found.distinct(name) for name in found.schema] == [3, 4, 3, 2, 2, 0, 2, 2]
    assert found.range("i") == (-(2**63), 2**63 - 1)
    assert found.range("x") == (float("-inf"), float("inf"))
    assert found.range("s") == ("", shortened_text("𝄞" * 400))
    assert found.range("b") == (False, True)
    assert found.range("none") == (None, None)
    assert found.missing("r.a") == 0.6
    assert found.frequent("s")[0] == ("", 2, 2)
    assert found.frequent("x")[0] == (0.0, 2, 2)


def test_frequencies_are_those_of_values_as_filters_compare_them():
    found = Profile.of(EVERYTHING)
    shares = [
        found.frequency(name, value).likely
        for name, value in (
            ("x", NAN), ("x", 0), ("x", -0.0), ("i", 2**63 - 1), ("s", ""), ("s", "𝄞" * 400),
            ("s", "𝄞" * 401), ("b", False), ("t", "9999-12-31"),
            ("t", datetime(1, 1, 1, tzinfo=UTC)), ("none", "x"), ("none", None), ("r.`b.c`", "y"),
        )
    ]  # fmt: skip
    assert shares == [0.2, 0.4, 0.4, 0.2, 0.4, 0.2, 0, 0.2, 0.2, 0.2, 0, 1, 0.2]


def test_between_includes_its_ends_and_nan_is_above_everything():
    found = Profile.of(EVERYTHING)
    assert found.between("x") == (1, 1, 1)
    assert found.between("x", 0).likely == 0.8
    assert found.between("x", 0, float("inf")).likely == pytest.approx(0.6)
    assert found.between("x", None, -0.0).likely == pytest.approx(0.6)
    assert found.between("i", 1).likely == 0.2
    assert found.between("s", "", "z").likely == 0.4
    assert found.between("t", None, "2000-01-01").likely == 0.2
    assert found.between("none", "a", "b").likely == 0


@pytest.mark.long
@given(
    st.lists(
        st.tuples(
            st.none() | st.integers(-3, 3),
            st.none() | st.sampled_from([0.0, -0.0, 1.5, NAN, math.inf]),
            st.none() | st.text("ab", max_size=2),
        ),
        max_size=60,
    ),
    st.lists(st.integers(0, 60), max_size=3),
    st.integers(1, 3),
)
def test_profiles_of_parts_make_one_with_the_guarantees_of_the_whole(rows, cuts, top):
    schema = Schema({"i": "int", "x": "double", "s": "string"})
    columns = zip(*rows, strict=True) if rows else ([], [], [])
    types = (pa.int64(), pa.float64(), pa.string())
    whole = pa.table([pa.array(c, t) for c, t in zip(columns, types, strict=True)], names=[*schema])
    bounds = [0, *sorted(min(cut, len(rows)) for cut in cuts), len(rows)]
    parts = [whole.slice(a, b - a) for a, b in pairwise(bounds)]
    merged = Profile.of([], schema, top=top, sample=8)
    for part in parts:
        merged = merged.merge(Profile.of(part, schema, top=top, sample=8))
    for found in (Profile.of(whole, schema, top=top, sample=8), merged):
        assert found.events == len(rows)
        assert found.sample.num_rows == min(8, len(rows))
        for n, name in enumerate(schema):
            values = ["nan" if r[n] != r[n] else r[n] for r in rows if r[n] is not None]
            assert found.present(name) == len(values)
            assert found.distinct(name) == len(set(values))
            listed = {"nan" if f.value != f.value else f.value for f in found.frequent(name)}
            for value in set(values):
                low, likely, high = found.frequency(name, NAN if value == "nan" else value)
                assert low <= likely <= high
                assert low - 1e-9 <= values.count(value) / len(rows) <= high + 1e-9
                assert value in listed or values.count(value) * top <= len(rows)
            for other_n, other in enumerate(schema):
                both = sum(r[n] is not None and r[other_n] is not None for r in rows)
                assert found.together(name, other) * len(rows) == pytest.approx(both)


def test_a_sample_is_uniform_and_does_not_depend_on_the_pieces(stock):
    found = Profile.of(stock, sample=1000)
    batches = stock.to_batches(max_chunksize=777)
    assert Profile.of(iter(batches), sample=1000).sample.equals(found.sample)
    assert Profile.of(stock, sample=1000, seed=2).sample != found.sample
    rows = Profile.of(pa.table({"n": range(30_000)}), sample=1000).sample["n"].to_numpy()
    assert len(np.unique(rows)) == 1000
    counts = np.bincount(rows // 3000, minlength=10)  # a hundred are expected, deviation 9.3
    assert 65 < counts.min() <= counts.max() < 135


def test_shares_of_many_events_are_within_their_bounds(stock):
    found = Profile.of(stock, sample=4000)
    prices = stock["price"].to_numpy()
    for low, high in ((10, 50), (None, 100), (400, None)):
        true = (~(prices < (low or 0)) & ~(prices > (high or 1e9)) & ~np.isnan(prices)).mean()
        share = found.between("price", low, high)
        assert share.low <= true <= share.high
        assert share.high - share.low <= 2 * found.deviation
    depths = np.searchsorted(np.sort(prices[~np.isnan(prices)]), found.edges("price", 4)) / 24_000
    assert abs(depths - np.array([0, 0.25, 0.5, 0.75, 1])).max() < 2 * found.deviation


def test_the_most_frequent_values_have_their_frequencies(stock):
    found = Profile.of(stock, top=20)
    symbols = stock["symbol"].to_pylist()
    for value, low, high in found.frequent("symbol", 5):
        assert low <= symbols.count(value) <= high
    assert [f.value for f in found.frequent("symbol", 2)] == ["S1", "S2"]
    assert len(found.frequent("symbol")) == 20


def test_weights_count_for_shares_and_samples(stock):
    table = stock.slice(0, 4000)
    half = pa.table({"x": [1.0] * 1000}), pa.table({"x": [2.0] * 1000})
    some, others = (Profile.of(one, top=10, sample=200, seed=n) for n, one in enumerate(half))
    both = some.weighted(0.5).merge(others.weighted(1.5))
    assert both.events == 2000
    assert both.present("x") == 2000
    assert both.frequency("x", 1.0).low == pytest.approx(0.25)
    drawn = both.drawn_values("x")
    assert len(drawn) == 200
    assert drawn.count(1.0) / 200 == pytest.approx(0.25, abs=0.1)
    profile = Profile.of(table, top=10, sample=500)
    name = next(one for one in profile.schema if profile.present(one))
    kept = profile.weighted(
        0.25
    ).drawn.num_rows  # what was drawn of 4,000 stays if it can be of 1,000
    assert kept == 500
    assert profile.weighted(8.0).weighted(0.125).present(name) == profile.present(name)
    whole = Profile.of(table.slice(0, 400), top=10, sample=500)
    assert 60 < whole.weighted(0.25).drawn.num_rows < 140


def test_domains_refuse_events_and_types_refuse_tables():
    schema = Schema({"level": "int(1, 5)", "side": "enum('sell', 'buy')"})
    levels = [1, 5, 6, None, 2, 3]
    sides = ["buy", "sell", "buy", "hold", None, "sell"]
    found = Profile.of(pa.table({"level": levels, "side": sides}), schema)
    assert (found.events, found.refused) == (4, 2)
    assert found.frequent("side") == [("sell", 2, 2), ("buy", 1, 1)]
    assert found.between("side", "a", "c").likely == 0.25
    assert found.frequency("side", "hold") == (0, 0, 0)
    with pytest.raises(EventError, match="level has the type string"):
        Profile.of(pa.table({"level": ["a"]}), schema)


def test_events_that_are_all_refused():
    found = Profile.of(pa.table({"level": [9, 8, 7]}), {"level": "int(1, 5)"})
    assert (found.events, found.refused, found.sample.num_rows) == (0, 3, 0)
    assert found.frequency("level", 1) == found.between("level", 1, 2) == (0, 0, 0)
    assert found.edges("level") == []


def test_events_of_every_kind():
    frame = pd.DataFrame({"a": [1, 2], "b": ["x", None]})
    of_frame = Profile.of(frame)
    listed = Profile.of([{"a": 1, "b": "x"}, '{"a": 2}', {"a": "no"}], of_frame.schema)
    assert listed.refused == 1
    mixed = [pa.record_batch({"a": [1]}), pa.table({"b": ["x"], "a": [2.0]})]
    of_mixed = Profile.of(mixed, {"a": "double", "b": "string"})
    assert of_frame.to_dict()["attributes"] == listed.to_dict()["attributes"]
    assert (of_mixed.present("a"), of_mixed.present("b")) == (2, 1)
    reader = pa.table({"a": [1]}).slice(0, 0).to_reader()
    assert list(Profile.of(reader).schema) == ["a"]


def test_nothing_at_all():
    for found in (Profile.of([]), Profile.of(pa.table({}))):
        assert (found.events, len(found.schema), found.sample.num_rows) == (0, 0, 0)
    assert Profile.of(pa.table({"a": [[1]] * 3})).events == 3
    nobody = Profile.of(pa.table({"a": pa.array([], pa.int64())}))
    assert (nobody.missing("a"), nobody.distinct("a"), nobody.deviation) == (0, 0, 0)


def test_a_sample_of_records_has_records():
    sample = Profile.of(EVERYTHING).sample
    assert sample.schema.field("r").type == pa.struct({"a": pa.int64(), "b.c": pa.large_string()})
    assert sorted(map(str, sample["b"].to_pylist())) == ["False", "None", "True", "True", "True"]
    again = Profile.of(sample)
    assert again.schema == Profile.of(EVERYTHING).schema
    assert again.to_dict()["attributes"] == Profile.of(EVERYTHING).to_dict()["attributes"]


def test_many_attributes_are_paired_in_the_sample(monkeypatch):
    monkeypatch.setattr(module, "PAIRED", 1)
    monkeypatch.setattr(module, "CELLS", 200)
    found = Profile.of(pa.table({"a": [1, None] * 500, "b": [1, 1] * 500}))
    assert found.pairs.shape == (0, 0)
    assert found.sample.num_rows == 100
    assert found.together("a", "b") == pytest.approx(0.5, abs=found.deviation)
    assert "pairs" in found.to_dict()


@each(
    ("events", "settings", "problem"),
    [
        (3, {}, "takes a table, or an iterable of tables or events, not int"),
        ({"a": 1}, {}, "not dict"),
        ("a.csv", {}, "not str"),
        ([{"a": 1}], {}, "needs a schema"),
        ([], {"top": 0}, "top is a number from 1 to 10,000, not 0"),
        ([], {"sample": True}, "sample is a number"),
        ([], {"seed": "x"}, "seed is a whole number"),
    ],
)
def test_misuse(events, settings, problem):
    with pytest.raises(OptionError, match=problem):
        Profile.of(events, **settings)


def test_questions_that_have_no_answer():
    found = Profile.of(pa.table({"price": [1.0]}))
    with pytest.raises(OptionError, match="unknown attribute 'prise'; did you mean 'price'"):
        found.frequency("prise", 1)
    with pytest.raises(EventError, match="price expects double"):
        found.between("price", "cheap")
    with pytest.raises(OptionError, match="the same schema, top and sample"):
        found.merge(Profile.of(pa.table({"price": [1]})))
    with pytest.raises(OptionError, match="the same schema, top and sample"):
        found.merge(Profile.of(pa.table({"price": [1.0]}), top=3))


def test_arrays_and_maps_are_known_by_their_sizes():
    table = pa.table(
        {
            "tags": pa.array([["a"], [], None, ["a", "b"]]),
            "at": pa.array([[datetime(2024, 1, 1)]] * 4),  # noqa: DTZ001 - as above
            "props": pa.array([[("k", 1)]] * 4, pa.map_(pa.string(), pa.int64())),
        }
    )
    found = Profile.of(table)
    assert {name: str(a) for name, a in found.schema.items()} == {
        "tags": "array<string>", "at": "array<timestamp>", "props": "map<string, int>",
    }  # fmt: skip
    assert [found.present(name) for name in found.schema] == [3, 4, 4]
    assert found.range("tags") == (0, 2)
    assert found.frequency("tags", ["x", "y"]).likely == 0.25
    assert "array<string>" in found.report()
    assert Schema.from_arrow(found.sample.schema) == found.schema
    assert Profile.empty(found.schema, found.limits).with_bytes(found.to_bytes()).events == 4
