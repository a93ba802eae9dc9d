"""Output nodes in groups of equal children: the set of MBDs."""

import numpy as np
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
from tamis import Schema, parse
from tamis.diagrams.diagram import DO_AND, DO_NOT, DO_OR, FALSE, TRUE, Diagram
from tamis.diagrams.mbds import MbdSet
from tamis.engines import make_engine
from tamis.semantics import Semantics

TRAVEL = Schema({"price": "int", "time": "timestamp", "destination": "string"})
SHARED = "time = '2004-07-20' AND destination = 'Ottawa'"
VARIABLES = 5


def diagram_of(variables=VARIABLES):
    made = Diagram(100_000)
    for level in range(variables):
        made.new_variable(level)
    return made


def build(diagram, *program):
    return diagram.build(np.array(program, np.int64))


def true_slots(mbds, diagram, true):
    truth = np.array([v in true for v in range(diagram.variables)], np.uint8)
    return sorted(mbds.true_slots(truth, diagram).tolist())


# --- the paper's example


def travel(*texts):
    engine = make_engine("mbd", Semantics("sql", TRAVEL))
    for handle, text in enumerate(texts):
        engine.add(handle, engine.prepare(parse(text, TRAVEL)))
    return engine


def test_two_subscriptions_in_one_mbd():
    """Fig. 5: price = 150 and price < 150 hang over the same time and destination."""
    engine = travel(f"price = 150 AND {SHARED}", f"price < 150 AND {SHARED}")
    assert len(engine.mbds) == 1
    (outputs,) = engine.mbds.outputs()
    assert sorted(outputs) == [0, 1]
    assert engine.statistics() == {"subscriptions": 2, "predicates": 4, "nodes": 2, "groups": 1}
    row = (150, 1_090_281_600_000_000, "Ottawa")
    assert engine.match(row).tolist() == [0]
    assert engine.match((149, *row[1:])).tolist() == [1]
    assert engine.match((149, row[1], "Toronto")).tolist() == []
    assert engine.match((None, *row[1:])).tolist() == []


def test_other_subscriptions_start_mbds_of_their_own():
    engine = travel(
        f"price = 150 AND {SHARED}", "price = 150 AND destination = 'Ottawa'", "price > 10"
    )
    assert len(engine.mbds) == 3
    assert sorted(map(len, engine.mbds.outputs())) == [1, 1, 1]


def test_the_same_subscription_twice():
    engine = travel(f"price = 150 AND {SHARED}", f"price = 150 AND {SHARED}")
    assert len(engine.mbds) == 1
    assert engine.match((150, 1_090_281_600_000_000, "Ottawa")).tolist() == [0, 1]
    engine.remove(0)
    assert engine.match((150, 1_090_281_600_000_000, "Ottawa")).tolist() == [1]


# --- groups by themselves


def test_insert_and_remove():
    diagram, mbds = diagram_of(), MbdSet()
    low = build(diagram, 2, 3, DO_AND)
    for slot, top in enumerate((0, 1, 1)):
        mbds.insert(slot, build(diagram, top, 2, 3, DO_AND, DO_AND), diagram)
    assert diagram.children(build(diagram, 0, 2, 3, DO_AND, DO_AND)) == (FALSE, low)
    assert [sorted(slots) for slots in mbds.outputs()] == [[0, 1, 2]]
    assert true_slots(mbds, diagram, {0, 2, 3}) == [0]
    assert true_slots(mbds, diagram, {1, 2, 3}) == [1, 2]
    mbds.remove(1)  # from the middle of the list, its head, its end
    assert true_slots(mbds, diagram, {0, 1, 2, 3}) == [0, 2]
    mbds.remove(2)
    assert true_slots(mbds, diagram, {0, 1, 2, 3}) == [0]
    assert len(mbds) == 1
    mbds.remove(0)
    assert len(mbds) == 0
    assert mbds.outputs() == []
    assert true_slots(mbds, diagram, {0, 1, 2, 3}) == []


def test_constants_are_in_no_mbd():
    diagram, mbds = diagram_of(), MbdSet()
    mbds.insert(500, TRUE, diagram)
    mbds.insert(7, FALSE, diagram)
    assert len(mbds) == 0
    assert true_slots(mbds, diagram, set()) == [500]
    mbds.insert(3, build(diagram, 0), diagram)
    assert true_slots(mbds, diagram, {0}) == [3, 500]
    mbds.remove(500)
    mbds.remove(7)
    assert true_slots(mbds, diagram, {0}) == [3]


def test_a_group_that_is_true_when_its_variable_is_not():
    diagram, mbds = diagram_of(), MbdSet()
    mbds.insert(0, build(diagram, 0, DO_NOT), diagram)
    mbds.insert(1, build(diagram, 0, DO_NOT, 1, DO_OR), diagram)
    assert true_slots(mbds, diagram, set()) == [0, 1]
    assert true_slots(mbds, diagram, {0}) == []
    assert true_slots(mbds, diagram, {0, 1}) == [1]


def test_ids_of_mbds_are_used_again():
    diagram, mbds = diagram_of(200), MbdSet()
    for variable in range(1, 199):
        mbds.insert(variable, build(diagram, 0, variable, DO_AND), diagram)
    assert len(mbds) == 198
    assert mbds._pool.size == 198
    room = len(mbds._outputs.first)
    for _ in range(3):
        for variable in range(1, 199):
            mbds.remove(variable)
        assert len(mbds) == 0
        assert true_slots(mbds, diagram, set(range(200))) == []
        for variable in range(1, 199):
            mbds.insert(variable, build(diagram, variable, 199, DO_AND), diagram)
        assert len(mbds) == 1  # all over variable 199
        mbds.remove(5)
        mbds.insert(5, build(diagram, 0, 5, DO_AND), diagram)
        assert len(mbds) == 2
        assert true_slots(mbds, diagram, {0, 5, 7, 199}) == [5, 7]
    assert mbds._pool.size == 198
    assert len(mbds._outputs.first) == room


def test_a_slot_far_away():
    diagram, mbds = diagram_of(), MbdSet()
    mbds.insert(10_000, build(diagram, 0, 1, DO_AND), diagram)
    mbds.insert(0, build(diagram, 0, 1, DO_AND), diagram)
    assert true_slots(mbds, diagram, {0, 1}) == [0, 10_000]
    mbds.remove(10_000)
    assert true_slots(mbds, diagram, {0, 1}) == [0]


@each("keep", [set(), {1}, {0, 2}])
def test_collect_drops_what_no_group_needs(keep):
    diagram, mbds = diagram_of(), MbdSet()
    for slot in range(3):
        mbds.insert(slot, build(diagram, slot, 3, 4, DO_OR, DO_AND), diagram)
    for slot in set(range(3)) - keep:
        mbds.remove(slot)
    mbds.collect(diagram)
    assert diagram.nodes == (2 if keep else 0)  # the children; output nodes are kept by groups
    assert true_slots(mbds, diagram, {0, 1, 2, 4}) == sorted(keep)
    mbds.insert(9, build(diagram, 0, 3, 4, DO_OR, DO_AND), diagram)
    assert len(mbds) == 1
    assert true_slots(mbds, diagram, {0, 3}) == sorted((keep & {0}) | {9})


# --- a long life


class Life(RuleBasedStateMachine):
    """Slots come and go and are used again; functions are remembered as what they are true of."""

    @initialize()
    def start(self):
        self.diagram, self.mbds, self.held = diagram_of(), MbdSet(), {}

    @rule(
        slot=st.integers(0, 70),
        parts=st.lists(st.sets(st.integers(0, VARIABLES - 1), max_size=3), max_size=3),
    )
    def hang(self, slot, parts):
        """A disjunction of conjunctions."""
        if slot in self.held:
            self.mbds.remove(slot)
        root = FALSE
        for part in parts:
            product = TRUE
            for variable in part:
                product = self.diagram.apply(0, product, self.diagram.variable(variable))
            root = self.diagram.apply(1, root, product)
        self.mbds.insert(slot, root, self.diagram)
        self.held[slot] = parts

    @rule(data=st.data())
    def unhang(self, data):
        if self.held:
            slot = data.draw(st.sampled_from(sorted(self.held)))
            self.mbds.remove(slot)
            del self.held[slot]

    @rule()
    def collect(self):
        self.mbds.collect(self.diagram)
        if not self.held:
            assert self.diagram.nodes == 0

    @rule(true=st.sets(st.integers(0, VARIABLES - 1)))
    def ask(self, true):
        wanted = [slot for slot, parts in self.held.items() if any(p <= true for p in parts)]
        assert true_slots(self.mbds, self.diagram, true) == sorted(wanted)

    @invariant()
    def mbds_hold_each_slot_once(self):
        if not hasattr(self, "mbds"):
            return
        hung = [slot for slots in self.mbds.outputs() for slot in slots]
        assert len(hung) == len(set(hung))
        constant = {s for s, parts in self.held.items() if not parts or set() in parts}
        assert set(hung) == set(self.held) - constant
        assert len(self.mbds) == len(self.mbds.outputs())
        assert all(self.mbds.outputs())


@pytest.mark.long
def test_a_long_life():
    run_state_machine_as_test(Life, settings=settings(max_examples=30, stateful_step_count=30))
