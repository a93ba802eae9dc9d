"""The sliced engine when something fails: what was held is held, and what was not is not."""

import numpy as np
import pytest

from oracles import Both
from stocks import SMALL, stock_filters, stock_rows
from tamis import CapacityError
from tamis.engines.sliced import engine, segment_predicates
from tamis.engines.sliced.segment import Segment
from tamis.predicates.event_batches import batch_of_rows

POOL = stock_rows(11, 60)


class Failures:
    """Memory that runs out at some compilations."""

    def __init__(self, monkeypatch):
        self.left = []  # whether the next ones fail; later ones do not
        compiled = Segment.compile

        def compile_or_not(filters, profile=None):
            if self.left and self.left.pop(0):
                raise MemoryError("no room for a segment")
            return compiled(filters, profile)

        monkeypatch.setattr(Segment, "compile", compile_or_not)


@pytest.fixture
def failures(monkeypatch):
    return Failures(monkeypatch)


@pytest.mark.parametrize(
    "ask",
    [
        lambda tested: tested.match(POOL[0]),
        lambda tested: list(tested.match_many(POOL)),
        lambda tested: list(tested.match_batch(batch_of_rows(POOL, SMALL))),
        lambda tested: tested.count_batch(batch_of_rows(POOL, SMALL)),
        lambda tested: tested.snapshot(),
        lambda tested: tested.merge_all(),
    ],
)
@pytest.mark.parametrize("background", [False, True])
def test_what_waits_still_waits_when_compiling_fails(failures, ask, background):
    both = Both("sliced", threads=1, background=background)
    for handle, text in enumerate(stock_filters(2, 30)):
        both.put_one(handle, text)
        if handle == 20:
            both.check(POOL)
    failures.left = [True] * 2
    before = both.tested.statistics()
    for _ in range(2):
        with pytest.raises(MemoryError):
            ask(both.tested)
        assert both.tested.statistics() == before
    both.check(POOL)
    both.drop_one(25)
    both.drop_one(3)
    both.check(POOL)


def test_an_add_that_fails_changes_nothing(failures, monkeypatch):
    monkeypatch.setattr(engine, "MOST_YOUNG", 3)
    both = Both("sliced", threads=1)
    both.put_one(0, "i > 0")
    both.put_one(1, "i > 1")
    failures.left = [True]
    with pytest.raises(MemoryError):
        both.tested.add(2, both.tested.prepare(both.expression("i > 2")))
    both.check(POOL)
    both.put_one(2, "i > 3")
    both.check(POOL)


@pytest.mark.parametrize("name", ["compiled", "evaluator"])
def test_a_bulk_that_fails_changes_nothing(monkeypatch, name):
    both = Both("sliced", threads=1)
    for handle, text in enumerate(stock_filters(4, 20)):
        both.put_one(handle, text)
    both.check(POOL)

    def fail(*_):
        raise MemoryError

    texts = dict.fromkeys(range(10, 30), "i > 1") | {15: "TRUE", 16: "FALSE"}
    with monkeypatch.context() as patch:
        patch.setattr(*((engine, name) if name == "compiled" else (both.tested, name)), fail)
        with pytest.raises(MemoryError):
            both.put_many(texts)
    both.check(POOL)
    both.put_many(texts)
    both.check(POOL)


@pytest.mark.parametrize("seed", range(4))
def test_whatever_fails_nothing_is_half_done(failures, monkeypatch, seed):
    """Who raises has changed nothing, who does not has done all."""
    monkeypatch.setattr(engine, "MOST_YOUNG", 4)
    monkeypatch.setattr(engine, "MOST_AT_ONCE", [0, 6, 1 << 12][seed % 3])
    chance = np.random.default_rng(seed)
    texts = stock_filters(seed, 100)
    both = Both("sliced", threads=1)
    failed = 0
    for step in range(150):
        failures.left = (chance.random(4) < 0.4).tolist()
        handle, text = int(chance.integers(30)), texts[step % 100]
        try:
            if chance.random() < 0.2:
                both.tested.match(POOL[step % 60])
            elif chance.random() < 0.1:
                both.tested.merge_all()
            elif chance.random() < 0.1:
                mine = {int(h): text for h in chance.integers(0, 30, 6)}
                both.put_many(mine)
            elif handle in both.held:
                both.drop_one(handle)
            else:
                both.put_one(handle, text)
        except MemoryError:
            failed += 1
        failures.left = []
        both.check(POOL[:8])
    assert failed


def test_what_is_not_held_cannot_go():
    both = Both("sliced", threads=1)
    both.put_one(0, "i > 0")
    both.put_one(1, "TRUE")
    both.drop_one(1)
    for handle in (7, -1, 2**40, 1):
        with pytest.raises(KeyError):
            both.tested.remove(handle)
        both.check(POOL)


def test_more_constants_than_a_piece_holds(monkeypatch):
    """The engine may be full; what was there is there, and what goes makes room."""
    monkeypatch.setattr(segment_predicates, "MOST_CUTS", 120)
    both = Both("sliced", threads=1)
    for handle in range(60):
        both.put_one(handle, f"i > {handle}")
    both.check(POOL)
    many = {handle: f"x > {handle} AND x < {handle + 1000}" for handle in range(100, 200)}
    with pytest.raises(CapacityError):
        both.put_many(many)
    both.check(POOL)
    for handle in range(30):
        both.drop_one(handle)
    both.put_many({handle: many[handle] for handle in range(100, 130)})
    both.check(POOL)
