"""Contestants that are slower, or wrong, are found out."""

import time

import numpy as np
import pytest

from tamis.engines.associations import Bits, Lists
from tamis.papers.contest import Answers, Disagreement, draw, four_operators
from tamis.papers.experiment import experiment
from tamis.papers.run import CELLS, CellFile, run_experiment
from tamis.workloads import workload

pytestmark = pytest.mark.long


def table_1(tmp_path):
    asked = experiment("count-table-1")
    return run_experiment(asked, "quick", CellFile(tmp_path / CELLS, resume=False), lambda _: None)


def verdict_of(record, claim):
    return next(one["verdict"] for one in record["claims"] if one["claim"].startswith(claim))


def test_lists_that_are_slow_no_longer_beat_bits(tmp_path, monkeypatch):
    complete = Lists.complete

    def slow(self, satisfied):
        end = time.process_time() + 0.001
        while time.process_time() < end:
            pass
        return complete(self, satisfied)

    monkeypatch.setattr(Lists, "complete", slow)
    record = table_1(tmp_path)
    assert verdict_of(record, "Lists beat bits") == "refuted"
    assert record["verdict"] == "refuted"


def test_bits_that_find_too_much_end_the_run(tmp_path, monkeypatch):
    complete = Bits.complete
    monkeypatch.setattr(
        Bits, "complete",
        lambda self, satisfied: np.unique(np.append(complete(self, satisfied), np.int32(0))),
    )  # fmt: skip
    with pytest.raises(Disagreement, match="counting-list and counting-bits disagree about event"):
        table_1(tmp_path)


def test_answers_are_compared_as_far_as_both_go():
    answers = Answers()
    answers.compare("short", [[1, 2]])
    answers.compare("long", [[1, 2], [3]])
    with pytest.raises(Disagreement, match="long and wrong disagree about event 1"):
        answers.compare("wrong", [[1, 2], [4]])


def test_the_workloads_of_count_have_four_operators():
    data = draw(four_operators(workload("w4")), 300, 2, 1)
    texts = " ".join(str(expression) for expression in data.expressions)
    assert "<=" not in texts
    assert ">=" not in texts
    assert all(op in texts for op in (" = ", " <> ", " < ", " > "))
