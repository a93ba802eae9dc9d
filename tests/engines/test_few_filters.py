"""Single events and a few filters: evaluated one by one, or compiled, whichever is faster."""

import numpy as np

from oracles import Both
from stocks import stock_rows
from tamis.engines import auto, few_filters
from tamis.engines.few_filters import FewFilters


def compile_at_once(monkeypatch, **limits):
    """Let the first event compile the filters, and have other limits of few filters."""
    monkeypatch.setattr(auto, "MOST_EVALUATIONS", 0)
    for name, value in limits.items():
        monkeypatch.setattr(few_filters, name, value)


def say_what_is_slow(monkeypatch, *, compiled):
    """Let one of the two ways of matching a single event take longer than the other."""
    real = FewFilters.note

    def note(few, seconds, *, compiled):
        assert seconds >= 0
        noted.append(compiled)
        real(few, float(compiled == slow), compiled=compiled)

    noted, slow = [], compiled
    monkeypatch.setattr(FewFilters, "note", note)
    return noted


def count_compiled(monkeypatch, tested):
    """A list that gets an entry for each single event that is matched by compiled code."""
    asked, compiled = [], tested.compiled
    real = compiled.match_at
    monkeypatch.setattr(compiled, "match_at", lambda *a: asked.append(1) or real(*a))
    return asked


def test_single_events_are_matched_in_the_faster_way_while_filters_are_few(monkeypatch):
    compile_at_once(monkeypatch, TIMED=3, FIRST_PAUSE=5)
    rows = stock_rows(1, 6)
    for slow in (True, False):
        with monkeypatch.context() as patch:
            noted = say_what_is_slow(patch, compiled=slow)
            both = Both("auto").put(["i > 1", "i < 5"])
            both.tested.match(rows[0])  # compiles them
            asked = count_compiled(patch, both.tested)
            both.check_all(rows)
            assert noted == [False] * 3 + [True] * 3
            del asked[:], noted[:]
            both.check_all(rows[:5])
            assert (len(asked), noted) == (0 if slow else 5, [])
            both.check_all(rows)  # and again after a pause
            assert noted == [False] * 3 + [True] * 3
            del asked[:], noted[:]
            both.check_all(rows + rows[:4])  # the pause is twice as long
            assert (len(asked), noted) == (0 if slow else 10, [])
            both.put(["x < 2"], 2).check_all(rows[:2]).drop([1]).check_all(rows[:1])
            assert noted == [False] * 3  # each change begins a trial


def test_what_is_tried_of_few_filters_with_changes_in_between(monkeypatch):
    compile_at_once(monkeypatch, TIMED=4, FIRST_PAUSE=3)
    for slow in (True, False):
        with monkeypatch.context() as patch:
            say_what_is_slow(patch, compiled=slow)
            both = Both("auto")
            for number in range(40):
                both.put([f"i > {number % 5} OR x < {number}"], number % 7)
                both.check_all(stock_rows(number, number % 13))


def test_single_events_need_no_kernel_while_filters_are_few(monkeypatch):
    compile_at_once(monkeypatch, FEW_FILTERS=2, TIMED=3)
    say_what_is_slow(monkeypatch, compiled=True)
    both = Both("auto").put(["i > 1", "i < 5"]).check_all(stock_rows(1, 40))
    assert both.tested.snapshot(1).compiled is None
    both.put(["x < 2"], 2).check_all(stock_rows(1, 20))
    assert both.tested.snapshot(1).compiled is not None


def test_single_events_need_no_kernel_while_predicates_are_few(monkeypatch):
    compile_at_once(monkeypatch, FEW_PREDICATES=6, TIMED=50)
    rows = stock_rows(1, 5)
    both = Both("auto").put(["i > 1 AND i < 5", "s = 'T7'", "x < 2"]).check_all(rows)
    asked = count_compiled(monkeypatch, both.tested)
    both.check_all(rows).put(["i = 3", "x > 7"], 3).drop([0]).check_all(rows)
    both.tested.remove_many(np.array([1, 3]))
    both.tested.add(1, both.tested.prepare(both.expression("b")))
    both.oracle.remove(3)
    both.oracle.remove(1)
    both.oracle.add(1, both.expression("b"))
    both.held.remove(3)
    both.check_all(rows)
    assert not asked
    both.put([f"i = {n}" for n in range(7)], 10).check_all(rows)
    assert asked
    both.drop(range(10, 17)).check_all(rows)
