"""Cuts that one side has not noticed yet."""

from random import Random

import pytest

from tamis.broker.network.departures import Departures
from tamis.broker.peer_rows import PeerRow
from tamis.broker.records import NewEvent
from tamis.broker.simulation.simulated_broker import Nature, SimulatedBroker, account_of
from tamis.broker.simulation.virtual_time import VirtualTime
from tamis.broker.simulation.wires import Wires


class Two:
    """Two brokers, of which the first calls the second."""

    def __init__(self):
        self.time, wires = VirtualTime(), Wires(Random(3))  # noqa: S311 - to be repeated
        ports = {"b1": 1, "b2": 2}
        self.first = SimulatedBroker(self.time, wires, "b1", ports, ["b2"], Nature())
        self.last = SimulatedBroker(self.time, wires, "b2", ports, [], Nature())
        self.client = self.time.process("client")
        self.first.start()
        self.last.start()

    def run(self, seconds):
        self.time.run(lambda: False, self.time.now + seconds)

    def ask(self, one, make):
        asking = self.client.create_task(one.ask(lambda b: make(b, account_of(b))))
        assert self.time.run(asking.done, self.time.now + 10.0)
        return asking.result()

    def stored_behind_an_unnoticed_cut(self):
        """What the second stores of an event that came after a subscription behind the cut."""
        self.run(1.0)
        self.ask(self.first, lambda broker, me: broker.create_topic(me, "t", "n int"))
        self.run(1.0)
        self.ask(self.last, lambda broker, me: broker.put_subscription(me, "t", "one", "n = 1"))
        self.run(0.5)
        self.last.crash(power_failed=True, silently=True)
        self.last.start()
        self.run(0.3)
        self.ask(self.last, lambda broker, me: broker.put_subscription(me, "t", "seven", "n = 7"))
        new = [NewEvent(b'{"n": 7}')]
        self.ask(self.first, lambda broker, me: broker.publish(me, "t", new))
        assert self.first.broker.network.linked("b2") is not None  # it has not noticed
        self.run(20.0)
        return [one.body for one in self.ask(self.last, lambda broker, me: broker.read(me, "t"))]

    def end(self):
        for one in (self.first, self.last):
            one.crash()
            assert not one.problems
        self.client.end()


@pytest.fixture
def two():
    made = Two()
    yield made
    made.end()


def test_events_beside_a_cut_that_nobody_has_noticed_count(two):
    assert two.stored_behind_an_unnoticed_cut() == [b'{"n": 7}']


def test_they_would_be_lost_if_what_was_passed_did_not_have_to_be_proved(two, monkeypatch):
    def row(self):
        return PeerRow(self._topic.number, self._peer, self.place, self.lost)

    monkeypatch.setattr(Departures, "row", row)
    assert two.stored_behind_an_unnoticed_cut() == []


def test_what_was_passed_is_proved_after_a_while(two):
    two.run(1.0)
    two.ask(two.first, lambda broker, me: broker.create_topic(me, "t", "n int"))
    two.run(1.0)
    new = [NewEvent(b'{"n": 7}')]
    two.ask(two.first, lambda broker, me: broker.publish(me, "t", new))
    (departures,) = [one.departures for one in two.first.broker.network._shared["t"]._open.values()]
    assert departures.row().position == 0
    two.run(3.0)
    assert departures.row().position == 1
    assert two.ask(two.last, lambda broker, me: broker.read(me, "t")) == []
