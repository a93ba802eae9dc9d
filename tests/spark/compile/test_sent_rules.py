"""Files that workers open, keep open, and change as a stream says."""

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyspark import cloudpickle

from tamis import Matcher
from tamis.spark.batch.worker import MatchTask
from tamis.spark.compile import sent_rules
from tamis.spark.compile.sent_rules import SentRules, make_changes
from tamis.spark.tables.event_chunks import EventLayout


@pytest.fixture
def sent(tmp_path, monkeypatch):
    """A file that workers find under its name."""
    matcher = Matcher({"x": "int"})
    matcher.subscribe_many([(f"s{n}", f"x > {n}") for n in range(100)])
    matcher.save(tmp_path / "rules.tamis")
    from pyspark import SparkFiles

    monkeypatch.setattr(SparkFiles, "get", classmethod(lambda _, name: str(tmp_path / name)))
    monkeypatch.setattr(sent_rules, "_opened", type(sent_rules._opened)())
    return "rules.tamis"


def test_changes_are_made_in_the_worker(sent):
    matcher = SentRules(sent, {"s1": None, "s2": "x > 1000", "new": "x = 3", "none": None})()
    assert matcher.match({"x": 3}) == ["s0", "new"]


def test_what_was_made_is_not_made_again(sent):
    first = SentRules(sent, {"a": "x = 1"})()
    second = SentRules(sent, {"a": "x = 1", "b": "x = 1"})()
    assert second is first
    assert second.match({"x": 1})[-2:] == ["a", "b"]
    third = SentRules(sent, {"a": None, "b": "x = 2"})()
    assert third is first
    assert third.match({"x": 2}) == ["s0", "s1", "b"]


def test_an_older_version_is_opened_again(sent):
    newer = SentRules(sent, {"a": "x = 1", "s0": None})()
    older = SentRules(sent, {"a": "x = 1"})()
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
    made, since = {}, {}
    for changes in versions:
        texts = {s: None if v is None else f"x >= {v}" for s, v in changes.items()}
        for subscription, text in texts.items():
            since.pop(subscription, None)
            since[subscription] = text
            if text is None:
                oracle.pop(subscription, None)
            else:
                oracle[subscription] = text
        make_changes(base, made, dict(since))
        assert {s: str(base.get(s)) for s in base} == oracle


# --- files


@pytest.fixture
def files(monkeypatch, tmp_path):
    monkeypatch.setattr(sent_rules, "_opened", type(sent_rules._opened)())
    monkeypatch.setattr(sent_rules, "OPENED", 2)
    from pyspark import SparkFiles

    monkeypatch.setattr(SparkFiles, "get", staticmethod(lambda name: str(tmp_path / name)))
    return tmp_path


def saved(path, text):
    matcher = Matcher({"i": "int"})
    matcher.subscribe("a", text)
    matcher.save(path)


def test_a_worker_keeps_the_last_files_open(files):
    for number in range(3):
        saved(files / f"{number}", f"i > {number}")
    first = SentRules("0")()
    assert SentRules("1")() is not first
    assert SentRules("0")() is first
    assert len(SentRules("2")()) == 1
    assert list(sent_rules._opened) == ["0", "2"]
    assert SentRules("0")() is first
    assert first._held.engine._options.threads == 1


def test_functions_are_sent_by_reference(files):
    """A worker imports tamis: no code of it is sent, and nothing of the driver's process."""
    saved(files / "rules", "i > 2")
    task = MatchTask(SentRules("rules"), EventLayout(("i",), ("k",), True), "pairs", "keep")
    sent = cloudpickle.dumps(task)
    assert pickle.loads(sent) == task
    assert len(sent) < 1000
    assert b"_make_function" not in sent
    assert SentRules("rules")().match({"i": 3}) == ["a"]
