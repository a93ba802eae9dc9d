"""`auto` where the kernels are not compiled yet: filters are evaluated one by one meanwhile."""

import pytest

from cases import each
from oracles import Both
from stocks import SMALL, stock_filters, stock_rows
from tamis import parse
from tamis.engines import auto, make_engine
from tamis.predicates.event_batches import batch_of_rows
from tamis.semantics import Semantics


def limit(monkeypatch, **limits):
    for name, value in limits.items():
        monkeypatch.setattr(auto, name, value)


class Kernels:
    """Stands in for the kernels, which are compiled or not."""

    def __init__(self):
        self.are_compiled = False
        self.are_wanted = False

    def start(self):
        self.are_wanted = True

    def is_done(self):
        return self.are_compiled


@pytest.fixture
def kernels(monkeypatch):
    limit(monkeypatch, MOST_UNCOMPILED=4, MOST_EVALUATIONS=1000)
    limit(monkeypatch, MOST_WAITING=12, MOST_WAITING_EVALUATIONS=3000)
    made = Kernels()
    monkeypatch.setattr("tamis.engines.preparation.preparation", made)
    return made


def test_filters_are_asked_while_kernels_are_compiled(kernels):
    both = Both("auto").put(stock_filters(1, 4)).check_all(stock_rows(1, 20))
    both.put(stock_filters(2, 8), 4)
    assert not kernels.are_wanted  # whoever only subscribes needs none
    both.check_all(stock_rows(1, 9))
    assert kernels.are_wanted
    assert both.tested.name == "naive"
    kernels.are_compiled = True
    both.check_all(stock_rows(1, 9))
    assert both.tested.name == "sliced"


def test_patience_ends(kernels):
    many = Both("auto").put(stock_filters(2, 13))
    assert many.tested.name == "sliced"
    often = Both("auto").put(stock_filters(2, 4))
    for size, name in ((700, "naive"), (51, "sliced")):
        often.tested.count_batch(batch_of_rows(stock_rows(1, size), SMALL))
        assert often.tested.name == name
    assert not kernels.are_compiled


@pytest.mark.usefixtures("kernels")
@each("size, name", [(12, "naive"), (13, "sliced")])
def test_many_at_once_while_kernels_are_compiled(size, name):
    engine = make_engine("auto", Semantics("sql", SMALL))
    bulk = engine.bulk(size)
    for handle, text in enumerate(stock_filters(2, size)):
        bulk.put(handle, engine.prepare(parse(text, SMALL)))
    bulk.finish()
    bulk.commit([])
    assert engine.name == name
    assert engine.statistics()["subscriptions"] == size
