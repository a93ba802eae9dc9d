from collections import deque

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tamis.routing.announcements import Announcer, Inherited
from tamis.routing.filter_cache import shared_cache
from tamis.routing.messages import Subscribe, Unsubscribe
from tamis.routing.reductions import CoveringReduction, NoReduction
from tamis.routing.requests import Request

CACHE = shared_cache({"price": "int"}, "sql", None)
RANGES = [f"price BETWEEN {low} AND {high}" for low in range(5) for high in range(low, 5)]


class Side:
    """An announcer and its neighbour, which takes updates in order and acknowledges in any."""

    def __init__(self, reduction=None, concerns=lambda _text: True):
        self.done = []
        ids = iter(range(10**6))
        self.announcer = Announcer(
            reduction or CoveringReduction(CACHE),
            concerns,
            lambda: str(next(ids)),
            self.done.append,
        )
        self.way = deque()  # updates that the neighbour has not taken
        self.held = {}  # what the neighbour holds, by id
        self.beyond = {}  # the part of it that is established beyond the neighbour, too
        self.answers = []  # acks that it has not sent

    def tell(self):
        self.way.extend(self.announcer.take_updates())

    def take(self):
        update = self.way.popleft()
        if update.filter is None:
            del self.held[update.id], self.beyond[update.id]
        else:
            self.held[update.id] = update.filter
        self.answers.append(update.id)

    def answer(self, place=0):
        answered = self.answers.pop(place)
        if answered in self.held:
            self.beyond[answered] = self.held[answered]
        self.announcer.acknowledge(answered)
        self.tell()

    def calm(self):
        self.tell()
        while self.way or self.answers:
            while self.way:
                self.take()
            self.answer()

    def add(self, text):
        self.announcer.add(text)
        request = Request("bob", Subscribe("bob", text, text))
        self.announcer.wait_until_live([text], request)
        if not request.pending:
            self.done.append(request)
        self.tell()
        return request

    def drop(self, text):
        self.announcer.drop(text)
        request = Request("bob", Unsubscribe("bob", text))
        self.announcer.wait_until_gone(request)
        if not request.pending:
            self.done.append(request)
        self.tell()
        return request


def values(text):
    low, high = (int(word) for word in text.split() if word.isdigit())
    return set(range(low, high + 1))


def test_all_is_announced_and_withdrawn():
    side = Side(NoReduction())
    side.add("price > 1")
    side.add("price > 2")
    side.calm()
    assert list(side.held.values()) == ["price > 1", "price > 2"]
    assert [request.id for request in side.done] == ["price > 1", "price > 2"]
    side.drop("price > 1")
    assert len(side.done) == 2
    side.calm()
    assert list(side.held.values()) == ["price > 2"]
    assert len(side.done) == 3
    assert side.announcer.is_settled


def test_a_filter_is_announced_once_however_many_have_it():
    side = Side(NoReduction())
    side.add("price > 1")
    side.add("price > 1")
    side.calm()
    side.drop("price > 1")
    side.calm()
    assert list(side.held.values()) == ["price > 1"]
    side.drop("price > 1")
    side.calm()
    assert side.held == {}


def test_what_comes_back_while_it_goes_is_announced_again():
    side = Side(NoReduction())
    side.add("price > 1")
    side.calm()
    side.drop("price > 1")
    again = side.add("price > 1")
    while side.way:
        side.take()
    assert list(side.held.values()) == ["price > 1"]
    first, second = side.answers
    assert not side.announcer.acknowledge(first)  # of the withdrawal, which nothing waits for
    assert again.pending
    assert side.announcer.acknowledge(second)
    assert not again.pending
    assert side.announcer.is_settled


def test_acks_that_nothing_waits_for_are_recognised():
    side = Side(NoReduction())
    side.add("price > 1")
    side.take()
    assert not side.announcer.acknowledge("77")
    assert side.announcer.acknowledge("0")
    assert not side.announcer.acknowledge("0")


def test_a_wait_ends_when_the_neighbour_forgets():
    side = Side(NoReduction())
    request = side.add("price > 1")
    assert request.pending
    side.announcer.forget()
    assert side.done == [request]
    side.way.clear()
    side.calm()
    assert list(side.held.values()) == ["price > 1"]


def test_requests_wait_until_it_is_known_what_concerns_the_neighbour():
    wanted = set()
    side = Side(NoReduction(), wanted.__contains__)
    side.announcer.expect_interests()
    some, other = side.add("price > 1"), side.add("price > 2")
    assert (some.pending, other.pending) == (1, 1)
    wanted.add("price > 1")
    side.announcer.reconsider(["price > 1", "price > 2"])
    side.announcer.know_interests()
    assert (some.pending, other.pending) == (1, 1)  # both are yet to be considered
    side.calm()
    assert side.done == [other, some]
    assert list(side.held.values()) == ["price > 1"]


def test_a_wait_for_what_concerns_the_neighbour_ends_when_it_is_gone():
    side = Side(NoReduction(), lambda _: False)
    side.announcer.expect_interests()
    request = side.add("price > 1")
    side.announcer.forget()
    assert side.done == [request]
    assert not side.add("price > 2").pending  # nobody is expected to say anything


def test_what_concerns_the_neighbour_may_change():
    wanted = set()
    side = Side(NoReduction(), wanted.__contains__)
    side.add("price > 1")
    assert side.way == deque()
    wanted.add("price > 1")
    side.announcer.reconsider(["price > 1", "price > 2"])
    side.calm()
    assert list(side.held.values()) == ["price > 1"]
    wanted.clear()
    side.announcer.reconsider(["price > 1"])
    side.calm()
    assert side.held == {}


def test_a_root_that_never_was_announced_does_not_let_others_go_too_soon():
    side = Side()
    side.add(RANGES[-1])  # 4 to 4
    side.add("price BETWEEN 0 AND 1")
    side.calm()
    announcer = side.announcer
    announcer.add("price BETWEEN 0 AND 2")  # stands for 0 to 1, but is not announced yet
    announcer.add("price BETWEEN 0 AND 3")  # stands for both
    side.tell()
    assert [update.filter for update in side.way] == ["price BETWEEN 0 AND 3"]
    side.take()
    assert "price BETWEEN 0 AND 1" in side.held.values()
    side.answer()
    assert [update.filter for update in side.way] == [None]


@pytest.mark.long
@pytest.mark.parametrize("covering", [True, False])
@given(data=st.data())
def test_what_is_established_stays_covered(covering, data):
    """In whatever order filters come and go, are received and acknowledged."""
    side = Side(CoveringReduction(CACHE) if covering else NoReduction())
    held_by_us = {}  # text -> its request
    for _ in range(data.draw(st.integers(1, 40))):
        text = data.draw(st.sampled_from(RANGES))
        what = data.draw(st.sampled_from(["change", "take", "answer", "answer"]))
        if what == "change" and text in held_by_us:
            del held_by_us[text]
            side.drop(text)
        elif what == "change":
            held_by_us[text] = side.add(text)
        elif what == "take" and side.way:
            side.take()
        elif what == "answer" and side.answers:
            side.answer(data.draw(st.integers(0, len(side.answers) - 1)))
        established = [t for t, request in held_by_us.items() if request in side.done]
        there = list(map(values, side.beyond.values()))
        for text in established:
            assert any(values(text) <= other for other in there), text
    side.calm()
    assert side.announcer.is_settled
    assert all(request in side.done for request in held_by_us.values())
    assert sorted(side.held.values()) == sorted(side.announcer.roots)
    for text in list(held_by_us):
        side.drop(text)
    side.calm()
    assert side.held == {}
    assert side.announcer.announced() == ()


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 9)), max_size=40))
def test_what_is_coming_inherits_the_earliest_moment(steps):
    inherited, coming, effective = Inherited(), [], []
    for moment, (what, place) in enumerate(steps, 1):
        if what < 2:
            coming.append(moment)
            effective.append(moment)
        elif coming and what == 2:  # it goes, and all that is coming takes its place
            gone = effective[place % len(coming)]
            assert inherited.since(coming[place % len(coming)]) == gone
            del coming[place % len(coming)], effective[place % len(effective)]
            inherited.add(gone, moment)
            effective = [min(since, gone) for since in effective]
        elif coming:  # the oldest is live
            del coming[0], effective[0]
        if coming:
            inherited.forget_before(coming[0])
        assert [inherited.since(since) for since in coming] == effective


def test_filters_are_told_and_considered_some_at_a_time():
    wanted = set()
    side = Side(NoReduction(), wanted.__contains__)
    texts = [f"price > {n}" for n in range(5)]
    for text in texts:
        side.announcer.add(text)
    wanted.update(texts)
    side.announcer.reconsider(texts)
    request = Request("x", Subscribe("x", "x", texts[4]))
    side.announcer.wait_until_live([texts[4]], request)
    assert request.pending == 1
    told = []
    while side.announcer.has_news:
        told.append([update.filter for update in side.announcer.take_updates(2)])
    assert told == [texts[:2], texts[2:4], texts[4:]]
    assert request.pending == 1
    for id_ in range(5):
        side.announcer.acknowledge(str(id_))
    assert side.done == [request]
    assert side.announcer.is_settled


def test_a_filter_that_goes_before_it_is_considered_is_not_waited_for():
    side = Side(NoReduction(), lambda _: False)
    side.announcer.add("price > 1")
    side.announcer.reconsider(["price > 1", "price > 2"])
    request = Request("x", Subscribe("x", "x", "price > 1"))
    side.announcer.wait_until_live(["price > 1"], request)
    side.announcer.drop("price > 1")
    assert side.done == [request]
    assert side.announcer.is_settled
