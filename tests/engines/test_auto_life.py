"""The engine that chooses over a long life, with limits so low that all of its parts are used."""

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)

from cases import each
from oracles import DEFAULTS, listed, whole
from strategies import SCHEMA, filters, rows
from tamis import ExpressionError, parse
from tamis.engines import auto, make_engine
from tamis.predicates.event_batches import batch_of_rows
from tamis.semantics import NAMES, Semantics


def ready_for(engine, text):
    """A filter that tamis takes and the engine can hold, or nothing."""
    try:
        expression = parse(text, SCHEMA)
        return [(expression, engine.prepare(expression))]
    except ExpressionError:
        return []


def all_answers(engine, asked):
    """The handles of each event, in every way to ask for many."""
    batch = batch_of_rows(asked, SCHEMA)
    yield [found.tolist() for found in engine.match_many(asked)]
    for rows_too in (None, asked):
        found = listed(engine.match_batch(batch, rows_too))
        yield found
        assert engine.count_batch(batch, rows_too).tolist() == [len(one) for one in found]


def bulk_into(engine, oracle, held, texts):
    """Texts by handle into both engines; the handles of those that the first one takes."""
    bulk, taken = engine.bulk(len(texts)), {}
    for handle, text in texts.items():
        for expression, ready in ready_for(engine, text):
            bulk.put(handle, ready)
            taken[handle] = expression
    bulk.finish()
    bulk.commit(held & taken.keys())
    for handle, expression in taken.items():
        if handle in held:
            oracle.remove(handle)
        oracle.add(handle, expression)
    return taken.keys()


def life_of(semantics_name, uncompiled, most_live):
    """As in `test_conformance`, and with bulks."""

    def prepared(meaning, row):
        return meaning.prepare(whole(row) if semantics_name == "total" else row)

    class Life(RuleBasedStateMachine):
        @initialize()
        def start(self):
            self.patch = pytest.MonkeyPatch()
            self.patch.setattr(auto, "MOST_UNCOMPILED", uncompiled)
            self.patch.setattr(auto, "MOST_LIVE", most_live)
            defaults = DEFAULTS if semantics_name == "default" else None
            self.meaning = Semantics(semantics_name, SCHEMA, defaults)
            self.tested = make_engine("auto", self.meaning)
            self.oracle = make_engine("naive", self.meaning)
            self.held = set()

        def teardown(self):
            if hasattr(self, "patch"):
                self.patch.undo()

        @rule(handle=st.integers(0, 12), text=filters())
        def put(self, handle, text):
            for expression, ready in ready_for(self.tested, text):
                self.drop(handle)
                self.tested.add(handle, ready)
                self.oracle.add(handle, expression)
                self.held.add(handle)

        @rule(handle=st.integers(0, 12))
        def drop(self, handle):
            if handle in self.held:
                self.tested.remove(handle)
                self.oracle.remove(handle)
                self.held.remove(handle)

        @rule(texts=st.dictionaries(st.integers(0, 15), filters(), max_size=4))
        def bulk(self, texts):
            self.held |= bulk_into(self.tested, self.oracle, self.held, texts)

        @rule(row=rows())
        def match(self, row):
            asked = prepared(self.meaning, row)
            assert self.tested.match(asked).tolist() == self.oracle.match(asked).tolist()

        @rule(some=st.lists(rows(), max_size=4))
        def match_many(self, some):
            asked = [prepared(self.meaning, row) for row in some]
            expected = [found.tolist() for found in self.oracle.match_many(asked)]
            assert all(found == expected for found in all_answers(self.tested, asked))

        @invariant()
        def counts_what_it_holds(self):
            if hasattr(self, "held"):
                statistics = self.tested.statistics()
                assert statistics["subscriptions"] == len(self.held)
                assert self.held or not any(statistics.values())

    return Life


@pytest.mark.long
@each("name", NAMES)
@each("bounds", [(0, 0), (0, 1), (1, 2)])
def test_a_long_life(name, bounds):
    run_state_machine_as_test(
        life_of(name, *bounds), settings=settings(max_examples=5, stateful_step_count=25)
    )
