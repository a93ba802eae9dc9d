"""Contests: what is timed, what is not, and who is compared with whom."""

import gc
from types import SimpleNamespace

import pytest

from cases import each
from tamis.errors import OptionError
from tamis.papers import contest
from tamis.papers.contest import (
    Answers,
    build,
    draw,
    four_operators,
    quiet,
    time_batch,
    time_each,
    time_in_turns,
)
from tamis.workloads import workload

SMALL = draw(workload("w4"), 1500, 20, 1)


@pytest.fixture
def clock(monkeypatch):
    """A clock that only work moves."""
    now = SimpleNamespace(time=0.0)
    fake = SimpleNamespace(process_time=lambda: now.time, perf_counter=lambda: now.time)
    monkeypatch.setattr(contest, "time", fake)
    return now


def test_the_median_of_the_best_round_counts(clock):
    spent = iter([9.0] + [0.03, 0.02, 0.04] + [0.02, 0.01, 0.9] + [0.5] * 100)
    before = []

    def work(item):
        clock.time += next(spent)
        return 2 * item

    def prepare(item):
        before.append(item)
        clock.time += 0.01

    seconds, found = time_each(work, [1, 2, 3], before=prepare)
    assert seconds == pytest.approx(0.02)  # of 0.02, 0.01, 0.9
    assert found == [2, 4, 6]
    assert before == [1, *[1, 2, 3] * (len(before) // 3)]


def test_contestants_take_turns(clock):
    order = []

    def contestant(name, seconds):
        def work(item):
            order.append((name, item))
            clock.time += seconds

        return work

    before = {name: lambda _: setattr(clock, "time", clock.time + 5) for name in "ab"}
    works = {"a": contestant("a", 1.0), "b": contestant("b", 2.0)}
    found = time_in_turns(works, [1, 2], before)
    assert found == pytest.approx({"a": 1.0, "b": 2.0})
    assert order == [("a", 1), ("a", 2), ("b", 1), ("b", 2)] * contest.ROUNDS


def test_slow_work_is_done_once_and_not_to_its_end(clock):
    calls = []

    def work(item):
        calls.append(item)
        clock.time += 3.0
        return item

    seconds, found = time_each(work, list(range(100)))
    assert seconds == pytest.approx(3.0)
    assert found == list(range(contest.FEWEST))
    assert len(calls) == contest.FEWEST + 1


def test_the_garbage_collector_waits():
    assert gc.isenabled()
    with quiet():
        assert not gc.isenabled()
        with quiet():
            pass
        assert not gc.isenabled()
    assert gc.isenabled()


@each("name", ["counting-list", "tree", "auto"])
def test_engines_are_filled_and_agree(name):
    engine, seconds = build(name, SMALL)
    assert seconds > 0
    answers = Answers()
    answers.compare("naive", [build("naive", SMALL)[0].match(row) for row in SMALL.rows])
    answers.compare(name, [engine.match(row) for row in SMALL.rows])
    if name == "auto":
        _, found = time_batch(engine, SMALL)
        answers.compare("batches", found)


def test_the_same_seed_draws_the_same_and_events_differ_from_filters():
    again, other = draw(workload("w4"), 1500, 20, 1), draw(workload("w4"), 1500, 20, 2)
    assert (again.rows, list(map(str, again.expressions))) == (
        SMALL.rows, list(map(str, SMALL.expressions)),
    )  # fmt: skip
    assert other.rows != SMALL.rows
    assert list(map(str, other.expressions)) != list(map(str, SMALL.expressions))


def test_only_workloads_of_count_have_operators():
    with pytest.raises(OptionError, match="no comparisons with operators"):
        four_operators(workload("tree"))
