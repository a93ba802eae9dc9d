"""Segments are merged in the background: nobody waits, and a failure changes nothing."""

import logging

import pytest

from oracles import listed
from sliced_threads import (
    BATCH,
    EVENT,
    PATIENCE,
    Gate,
    aside,
    check,
    engine_of,
    merging,
    oracle_of,
    put,
    wait_for_merges,
)
from stocks import SMALL, stock_filters
from tamis import parse
from tamis.engines.sliced import engine as engine_module
from tamis.engines.sliced.segment import Segment
from tamis.predicates.event_batches import batch_of_rows


@pytest.fixture
def gate(monkeypatch):
    gate = Gate(monkeypatch)
    yield gate
    gate.open()


def begun(tested, gate):
    """An engine whose segments are being merged; what it holds."""
    texts = dict(enumerate(stock_filters(9, 20)))
    put(tested, texts)
    tested.match(EVENT)
    more = {100 + n: text for n, text in enumerate(stock_filters(10, 15))}
    put(tested, more)
    tested.match(EVENT)
    gate.wait()
    return texts | more


@pytest.fixture
def busy(gate, monkeypatch):
    """An engine whose segments a thread begins to merge, and what it holds."""
    monkeypatch.setattr(engine_module, "MOST_AT_ONCE", 0)
    tested = engine_of(background=True, threads=1)
    return tested, begun(tested, gate)


def test_nobody_waits_for_a_merge(busy, gate):
    tested, texts = busy
    check(tested, texts)
    more = {200 + n: text for n, text in enumerate(stock_filters(12, 5))}
    put(tested, more)
    texts |= more
    for handle in (0, 5, 101, 202):
        tested.remove(handle)
        del texts[handle]
    check(tested, texts)
    assert len(merging()) == 1
    gate.open()
    wait_for_merges(tested)
    check(tested, texts)


def test_deaths_during_a_merge(busy, gate):
    tested, texts = busy
    pieces = tested.match_batch(batch_of_rows(BATCH, SMALL))
    before = oracle_of(texts)
    begun_with = listed([next(pieces)])
    for handle in (0, 1, 2, 100, 114):
        tested.remove(handle)
        del texts[handle]
    later = tested.snapshot(len(BATCH))
    after_deaths = oracle_of(texts)
    tested.remove(3)
    put(tested, {0: "i IS NOT NULL", 3: "TRUE", 100: "x > 0"})  # handles may be used again
    texts |= {0: "i IS NOT NULL", 3: "TRUE", 100: "x > 0"}
    check(tested, texts)
    gate.open()
    wait_for_merges(tested)
    check(tested, texts)
    assert len(tested.segments) <= 2
    assert begun_with + listed(pieces) == [before.match(row).tolist() for row in BATCH]
    again = tested.match_batch(batch_of_rows(BATCH, SMALL), None, later)
    assert listed(again) == [after_deaths.match(row).tolist() for row in BATCH]
    tested.merge_all()
    check(tested, texts)
    assert not any(one.dead for one in tested.segments)


def test_all_die_during_a_merge(busy, gate):
    tested, texts = busy
    for handle in list(texts):
        tested.remove(handle)
    assert set(tested.statistics().values()) == {0}
    check(tested, {})
    gate.open()
    wait_for_merges(tested)
    assert set(tested.statistics().values()) == {0}
    check(tested, {})
    put(tested, texts)
    check(tested, texts)


def test_a_bulk_during_a_merge(busy, gate):
    tested, texts = busy
    bulk = tested.bulk(25)
    more = dict.fromkeys(range(15, 40), "i > 3")
    for handle, text in more.items():
        bulk.put(handle, tested.prepare(parse(text, SMALL)))
    bulk.commit(sorted(set(more) & set(texts)))
    texts |= more
    check(tested, texts)
    gate.open()
    wait_for_merges(tested)
    check(tested, texts)


@pytest.mark.parametrize("background", [False, True])
def test_new_ones_are_compiled_with_a_segment_that_is_being_merged(gate, background):
    """Each subscription is held once, whoever is first."""
    tested = engine_of(background=background, threads=1)
    texts = dict.fromkeys(range(60), "i > 0")
    put(tested, texts)
    tested.match(EVENT)
    small = dict.fromkeys(range(60, 63), "i > 1")
    put(tested, small)
    tested.match(EVENT)
    assert len(tested.segments) == 2
    texts |= small
    with aside(tested.merge_all):
        gate.wait()
        put(tested, {99: "i > 2"})
        texts[99] = "i > 2"
        check(tested, texts)  # the small segment has become part of another one
        gate.open()
    wait_for_merges(tested)
    check(tested, texts)
    tested.remove(61)
    del texts[61]
    check(tested, texts)


def test_who_merges_all_waits_for_the_merge_under_way(busy, gate):
    tested, texts = busy
    with aside(tested.merge_all) as future:
        assert not future.done()
        check(tested, texts)
        tested.remove(4)
        del texts[4]
        gate.open()
        future.result(PATIENCE)
    wait_for_merges(tested)
    tested.merge_all()
    check(tested, texts)
    assert [len(one) for one in tested.segments] == [len(texts)]


def test_who_removes_half_of_a_segment_while_another_merges(gate):
    """The one who comes second leaves the merge to the first."""
    tested = engine_of(threads=1)
    texts = dict(enumerate(stock_filters(13, 40)))
    put(tested, texts)
    tested.match(EVENT)
    tested.remove(39)
    with aside(tested.merge_all):
        gate.wait()
        for handle in range(30):
            tested.remove(handle)
        left = {handle: texts[handle] for handle in range(30, 39)}
        check(tested, left)
        gate.open()
    check(tested, left)
    tested.merge_all()
    check(tested, left)
    assert [len(one.handles) for one in tested.segments] == [9]


def test_merges_end_and_begin_again(monkeypatch):
    monkeypatch.setattr(engine_module, "MOST_AT_ONCE", 0)
    tested = engine_of(background=True, threads=1)
    texts = dict(enumerate(stock_filters(14, 200)))
    for handle, text in texts.items():
        put(tested, {handle: text})
        if handle % 10 == 9:
            tested.match(EVENT)
    tested.match(EVENT)
    wait_for_merges(tested)
    tested.match(EVENT)
    wait_for_merges(tested)
    assert merging() == []
    check(tested, texts)
    assert len(tested.segments) < 20


def test_without_background_there_is_no_thread(monkeypatch):
    monkeypatch.setattr(engine_module, "MOST_AT_ONCE", 0)
    tested = engine_of(threads=1)
    texts = dict(enumerate(stock_filters(15, 60)))
    for handle, text in texts.items():
        put(tested, {handle: text})
        tested.match(EVENT)
        assert merging() == []
    check(tested, texts)
    assert len(tested.segments) <= 8


# --- failures in the background


@pytest.mark.parametrize("error", [MemoryError("no room"), ValueError("a bug")])
def test_a_merge_that_fails_changes_nothing(busy, gate, caplog, error):
    tested, texts = busy
    tested.remove(7)
    del texts[7]
    gate.error = error
    with caplog.at_level(logging.ERROR, "tamis"):
        gate.open()
        wait_for_merges(tested)
    (record,) = [one for one in caplog.records if one.name == "tamis"]
    assert "merged" in record.getMessage()
    assert record.exc_info[1] is error
    assert len(tested.segments) == 2
    check(tested, texts)
    gate.error = None
    more = {300 + n: "i > 0" for n in range(10)}
    put(tested, more)
    texts |= more
    check(tested, texts)  # and merges again
    wait_for_merges(tested)
    check(tested, texts)
    assert len(tested.segments) == 1


def test_an_exchange_that_fails_changes_nothing(busy, gate, caplog, monkeypatch):
    """After the segment is made, its evaluation may still lack memory."""
    tested, texts = busy

    def fail(_segment):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(tested, "evaluator", fail)
        gate.open()
        wait_for_merges(tested)
    assert "merged" in caplog.text
    assert len(tested.segments) == 2
    check(tested, texts)
    tested.merge_all()
    check(tested, texts)
    assert len(tested.segments) == 1


def test_who_merges_all_hears_of_the_failure(monkeypatch):
    tested = engine_of(background=True, threads=1)
    texts = dict(enumerate(stock_filters(16, 60)))
    put(tested, texts)
    tested.match(EVENT)
    tested.remove(3)
    del texts[3]

    def fail(*_):
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(Segment, "compile", fail)
        with pytest.raises(MemoryError):
            tested.merge_all()
    check(tested, texts)
    tested.merge_all()
    check(tested, texts)
    assert [one.dead for one in tested.segments] == [0]
