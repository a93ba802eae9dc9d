import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.routing.links import RESENT, Link, Timing
from tamis.routing.messages import Ack, Hello, Packet, Publish, Receipt


def link(name="a", neighbour="b", first=0, **limits):
    sessions = iter(range(first, 10**6))
    room = {"most_waiting": 1000, "most_early": 1000} | limits
    return Link(name, neighbour, Timing(1.0, 10.0), new_session=lambda: next(sessions), **room)


def carry(message, to, now=0.0):
    """Give a message to a link; return its answers and the messages that it hands on."""
    if isinstance(message, Hello):
        return to.take_hello(message, now)[0], []
    if not to.is_current(message):
        return [], []
    if isinstance(message, Receipt):
        to.take_receipt(message, now)
        return [], []
    ready = list(to.take_packet(message))
    return [to.receipt()], ready


def both_up():
    a, b = link("a", "b"), link("b", "a", first=100)
    messages = [(b, m) for m in a.reopen(0)] + [(a, m) for m in b.reopen(0)]
    while messages:
        to, message = messages.pop(0)
        answers, _ = carry(message, to)
        messages += [(a if to is b else b, answer) for answer in answers]
    return a, b


def test_two_sides_meet():
    a, b = both_up()
    assert a.is_up
    assert b.is_up
    assert a.sessions == b.sessions[::-1] == (0, 100)


def test_one_side_is_enough_to_begin():
    a, b = link("a", "b"), link("b", "a", first=100)
    (hello,) = a.reopen(0)
    ((answer,), _) = carry(hello, b)
    assert isinstance(answer, Hello)
    ((receipt,), _) = carry(answer, a)
    assert a.is_up
    assert not b.is_up
    carry(receipt, b)
    assert b.is_up


def test_greetings_are_repeated_until_the_link_is_up():
    a = link()
    a.reopen(0)
    assert a.next_time() == 1.0
    assert a.resend(0.9) == []
    assert a.resend(1.0) == [Hello("a", 0, None)]
    assert a.next_time() == 2.0
    b = link("b", "a", first=100)
    (answer,) = carry(Hello("a", 0, None), b)[0]
    carry(answer, a)
    assert a.next_time() is None


def test_packets_are_handed_on_in_order_and_once():
    a, b = both_up()
    packets = [a.send(Ack("a", str(number)), 0.0) for number in range(4)]
    handed = []
    for number in (2, 0, 0, 3, 2, 1, 1):
        receipts, ready = carry(packets[number], b)
        handed += [message.id for message in ready]
        for receipt in receipts:
            carry(receipt, a)
    assert handed == ["0", "1", "2", "3"]
    assert a.waiting == 0


def test_a_packet_that_fills_the_gap_is_taken_though_the_room_is_used_up():
    a, b = both_up()
    b.most_early = 2
    packets = [a.send(Ack("a", str(number)), 0.0) for number in range(5)]
    for number in (4, 3, 2, 1):
        assert carry(packets[number], b)[1] == []
    assert [m.id for m in carry(packets[0], b)[1]] == ["0"]
    assert [m.id for m in carry(packets[1], b)[1]] == ["1"]
    assert [m.id for m in carry(packets[2], b)[1]] == ["2", "3", "4"]


def test_packets_without_receipt_are_sent_again():
    a, _ = both_up()
    packet = a.send(Ack("a", "1"), 3.0)
    assert a.next_time() == 4.0
    assert a.resend(3.5) == []
    assert a.resend(4.0) == [packet]
    assert a.next_time() == 5.0
    assert len([a.send(Ack("a", str(n)), 4.0) for n in range(2 * RESENT)]) == 2 * RESENT
    assert len(a.resend(9.0)) == RESENT


def test_the_neighbour_has_a_deadline_when_nothing_new_is_received():
    a, _ = both_up()
    assert a.deadline is None
    a.send(Ack("a", "1"), 3.0)
    a.send(Ack("a", "2"), 6.0)
    assert a.deadline == 13.0
    a.take_receipt(Receipt("b", 100, 0, 1), 7.0)
    assert a.deadline == 17.0
    a.take_receipt(Receipt("b", 100, 0, 2), 8.0)
    assert a.deadline is None


def test_a_new_session_starts_both_streams_again():
    a, b = both_up()
    old = a.send(Publish("a", "x/1", {}), 0.0)
    (hello,) = b.reopen(1.0)
    answers, is_new = a.take_hello(hello, 1.0)
    assert is_new
    assert a.take_lost() == 1
    assert a.take_lost() == 0
    carry(answers[0], b)
    assert carry(old, b) == ([], [])  # of the past
    new = a.send(Ack("a", "2"), 1.0)
    assert new.number == 0
    assert [m.id for m in carry(new, b)[1]] == ["2"]


def test_a_greeting_of_an_older_session_changes_nothing():
    a, _ = both_up()
    assert a.take_hello(Hello("b", 99, 0), 1.0) == ([], False)
    assert a.is_up


def test_a_greeting_opens_a_closed_link():
    a, b = both_up()
    a.close()
    assert a.next_time() is None
    assert a.resend(50.0) == []
    (hello,) = b.reopen(1.0)
    answers, is_new = a.take_hello(hello, 1.0)
    assert is_new
    assert answers == [Hello("a", 1, 101)]


def test_what_waits_for_a_receipt():
    a, _ = both_up()
    a.send(Publish("a", "x/1", {}), 0.0)
    assert not a.waits_for_control
    a.send(Ack("a", "1"), 0.0)
    assert a.waits_for_control
    a.most_waiting = 2
    assert not a.is_full
    a.send(Ack("a", "2"), 0.0)
    assert a.is_full


@pytest.mark.parametrize("restarts", [0, 2])
@given(seed=st.integers(0, 10**6))
def test_a_stream_survives_what_networks_do(restarts, seed):
    """Despite loss, duplicates, delays and new sessions, messages arrive in order and once."""
    chance = random.Random(seed)  # noqa: S311 - faults, not secrets
    a, b = link("a", "b"), link("b", "a", first=10**5)
    air = [(b, m) for m in a.reopen(0)] + [(a, m) for m in b.reopen(0)]
    sent, handed = 0, []
    for step in range(400):
        now = step / 4
        if restarts and step in {100, 200} and chance.random() < 0.7:
            air += [(b if end is a else a, m) for end in (a, b) for m in end.reopen(now)]
        if a.is_up and step < 300 and chance.random() < 0.3:
            air.append((b, a.send(Ack("a", str(sent)), now)))
            sent += 1
        for end, other in ((a, b), (b, a)):
            air += [(other, message) for message in end.resend(now)]
        for _ in range(chance.randrange(4)):
            if not air:
                break
            to, message = air.pop(chance.randrange(len(air)))
            if chance.random() < 0.2:
                continue
            if chance.random() < 0.2:
                air.append((to, message))
            answers, ready = carry(message, to, now)
            air += [(a if to is b else b, answer) for answer in answers]
            handed += [int(m.id) for m in ready]
    air = [(to, m) for to, m in air if not isinstance(m, Packet)]
    for step in range(400, 600):
        now = step / 4
        for end, other in ((a, b), (b, a)):
            air += [(other, message) for message in end.resend(now)]
        while air:
            to, message = air.pop(0)
            answers, ready = carry(message, to, now)
            air += [(a if to is b else b, answer) for answer in answers]
            handed += [int(m.id) for m in ready]
    assert handed == sorted(set(handed))
    if not restarts:
        assert handed == list(range(sent))
    assert a.waiting == 0
