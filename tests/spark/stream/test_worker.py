"""Matchers of workers that follow the changes of a stream."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis import Matcher
from tamis.spark.stream import worker
from tamis.spark.stream.worker import Held, Live, make


@pytest.fixture
def published(tmp_path, monkeypatch):
    """A file that workers find under its name."""
    matcher = Matcher({"x": "int"})
    matcher.subscribe_many([(f"s{n}", f"x > {n}") for n in range(100)])
    matcher.save(tmp_path / "rules.tamis")
    from pyspark import SparkFiles

    monkeypatch.setattr(SparkFiles, "get", classmethod(lambda _, name: str(tmp_path / name)))
    monkeypatch.setattr(worker, "_held", type(worker._held)())
    return "rules.tamis"


def test_changes_are_made_in_the_worker(published):
    matcher = Live(published, {"s1": None, "s2": "x > 1000", "new": "x = 3", "none": None})()
    assert matcher.match({"x": 3}) == ["s0", "new"]


def test_what_was_made_is_not_made_again(published):
    first = Live(published, {"a": "x = 1"})()
    second = Live(published, {"a": "x = 1", "b": "x = 1"})()
    assert second is first
    assert second.match({"x": 1})[-2:] == ["a", "b"]
    third = Live(published, {"a": None, "b": "x = 2"})()
    assert third is first
    assert third.match({"x": 2}) == ["s0", "s1", "b"]


def test_an_older_version_is_begun_anew(published):
    newer = Live(published, {"a": "x = 1", "s0": None})()
    older = Live(published, {"a": "x = 1"})()
    assert older is not newer
    assert older.match({"x": 1}) == ["s0", "a"]


steps = st.lists(
    st.dictionaries(st.integers(0, 9), st.one_of(st.none(), st.integers(0, 5))), max_size=6
)


@given(steps)
def test_every_way_to_a_version_leads_to_the_same(versions):
    """Changes step by step, or all at once: as a dict that is updated says."""
    base = Matcher({"x": "int"})
    base.subscribe_many([(n, "x >= 0") for n in range(5)])
    oracle = dict.fromkeys(range(5), "x >= 0")
    held, since = Held(base, {}), {}
    for changes in versions:
        texts = {s: None if v is None else f"x >= {v}" for s, v in changes.items()}
        for subscription, text in texts.items():
            since.pop(subscription, None)
            since[subscription] = text
            if text is None:
                oracle.pop(subscription, None)
            else:
                oracle[subscription] = text
        make(held, dict(since))
        assert {s: str(held.matcher.get(s)) for s in held.matcher} == oracle
