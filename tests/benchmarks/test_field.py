"""The field: what is compared, how many events a round has, what is written and drawn."""

import json
from xml.etree import ElementTree as ET

import numpy as np
import pyarrow as pa
import pytest

import field
import field_plot
import field_process
from field_process import Outcome, TooSlow, compare, digest, fitting, size_of

MACHINE = {"kind": "machine", "cpu": "Abacus <1>", "read": 2e10, "written": 1e10}


def outcome(counts, **more):
    return Outcome(counts=np.array(counts), **more)


# --- answers side by side


def test_equal_answers_pass():
    compare("b", outcome([1, 2], digest=7), {"a": outcome([1, 2, 3], digest=7), "c": Outcome()})


def test_other_counts_name_both_and_the_event():
    with pytest.raises(AssertionError, match=r"event 1: b counts 3 matches, a 2"):
        compare("b", outcome([1, 3]), {"a": outcome([1, 2, 3])})


def test_other_pairs_name_both():
    with pytest.raises(AssertionError, match="b and a"):
        compare("b", outcome([1], digest=8), {"a": outcome([1], digest=7)})


def test_counts_and_pairs_of_one():
    wrong = outcome([1, 2], paired=[0.1], pair_events=2, pairs=4)
    with pytest.raises(AssertionError, match="b counts 3 matches and gives 4 pairs"):
        compare("b", wrong, {})


def test_a_digest_knows_no_order():
    one = pa.table({"event": [0, 0, 1], "subscription": [5, 2, 9]})
    same = pa.table({"event": pa.array([1, 0, 0], pa.int32()), "subscription": [9, 2, 5]})
    other = pa.table({"event": [0, 1, 1], "subscription": [5, 2, 9]})
    assert digest(one) == digest(same) != digest(other)


def test_codes_are_what_is_written():
    ids = pa.array([5, 2, 9]).dictionary_encode()
    pairs = pa.table({"event": pa.array([0, 0, 1]), "subscription": ids})
    assert digest(pairs) == digest(pa.table({"event": [0, 0, 1], "subscription": [5, 2, 9]}))
    assert size_of(pairs) == 3 * 8 + 3 * 4


# --- how many events


def asked(monkeypatch, seconds, most, patience):
    """The sizes that are tried for a contestant with these seconds, and the one that is chosen."""
    sizes = []

    def clock(ask, size):
        ask(size)
        return seconds(size)

    monkeypatch.setattr(field_process, "_seconds", clock)
    chosen = fitting(sizes.append, most, patience)
    return chosen, sorted(set(sizes))


def test_the_fast_take_all(monkeypatch):
    chosen, sizes = asked(monkeypatch, lambda n: n * 1e-6, 16_384, 30)
    assert chosen == 16_384
    assert sizes == [1, 8, 64, 512, 4096, 16_384]


def test_the_slow_take_few(monkeypatch):
    chosen, sizes = asked(monkeypatch, lambda n: n * 1.0, 16_384, 30)
    assert sizes == [1, 8]
    assert 8 <= chosen <= 10


def test_whole_blocks(monkeypatch):
    chosen, _ = asked(monkeypatch, lambda n: n * 2e-3, 16_384, 30)
    assert chosen == 1024  # 1500 fit a tenth of the patience


def test_what_any_question_costs_does_not_count(monkeypatch):
    chosen, _ = asked(monkeypatch, lambda n: 2 + n * 1e-5, 16_384, 30)
    assert chosen == 16_384


def test_who_is_too_slow(monkeypatch):
    with pytest.raises(TooSlow, match="8 events take 16"):
        asked(monkeypatch, lambda n: n * 2.0, 16_384, 30)


# --- the command


def options(*words):
    return field.arguments().parse_args(words)


def test_suites():
    assert ("w4", 10_000) in field.contests(options())
    assert ("stock", 5_000_000) in field.contests(options("--suite", "full"))
    chosen = field.contests(options("--workloads", "bdd:0.15", "w4", "--sizes", "5", "6"))
    assert chosen == [("bdd:0.15", 5), ("bdd:0.15", 6), ("w4", 5), ("w4", 6)]


@pytest.mark.parametrize("words", [["--workloads", "w9"], ["--workloads", "bdd:2"]])
def test_unknown_workloads_are_refused(words, capsys):
    with pytest.raises(SystemExit):
        options(*words)
    assert "w4" in capsys.readouterr().err


def test_too_few_subscriptions_are_refused():
    with pytest.raises(SystemExit, match="289"):
        field.contests(options("--workloads", "tree", "--sizes", "100"))


def test_a_row_has_a_cell_for_every_column():
    full = outcome(
        [2, 2], engine="sliced", build=1.5, bytes=640, resident=9000, events=2,
        counted=[0.1, 0.2, 0.3], touched=10**9, pair_events=2, paired=[1.0, 1.0, 1.0], pairs=4,
        pair_bytes=10**9, single=(1e-6, 2e-6), engine_single=(1e-6, 3e-6),
    )  # fmt: skip
    cells = field.cells("auto", full, 10, MACHINE)
    assert cells == ["auto (sliced)", "10", "2", "100%", "4", "250000000.00", "1.50", "64", "900",
                     "1.0", "2.0", "1.0", "3.0", "25%", "10%"]  # fmt: skip
    assert field.cells("numpy", Outcome(), 10, MACHINE)[1:] == ["–"] * (len(field.COLUMNS) - 1)


def test_notes_say_why():
    said = field.notes({"a": outcome([1, 2]), "b": Outcome(reason="no room")})
    assert said == "1.5 matches per event.\n- b: no room"


# --- the picture


def line(contestant, rate, **more):
    task = {"kind": "outcome", "workload": "w4", "density": 1.0, "size": 1000}
    found = outcome([1], events=100, counted=[100 / rate] * 3 if rate else [])
    return json.loads(json.dumps({**task, "contestant": contestant, **field.plain(found), **more}))


def test_the_picture_is_well_formed_and_shows_the_last_result():
    lines = [MACHINE, line("auto", 5000), line("auto", 7000), line("spark", 0),
             line("naive", 3, density=0.15)]  # fmt: skip
    drawn = field_plot.drawing(lines)
    ET.fromstring(drawn)  # noqa: S314 - our own
    assert "7,000 events/s" in drawn
    assert "5,000 events/s" not in drawn
    assert "w4:0.15, 1,000 subscriptions" in drawn
    assert "Abacus &lt;1&gt;" in drawn


def test_nothing_to_draw():
    with pytest.raises(SystemExit):
        field_plot.drawing([MACHINE])


def test_powers_of_ten():
    assert [field_plot.short(n) for n in (-1, 0, 2, 4, 6)] == ["0.1", "1", "100", "10k", "1M"]
