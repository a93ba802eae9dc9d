"""A link: who is let in, and when it is given up."""

from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from tamis.broker.network.frames import frame_of
from tamis.broker.network.link import NONCE, Link, LinkState, Manners, cycle
from tamis.broker.network.messages import (
    HIGHEST,
    Beat,
    Events,
    Filters,
    Goodbye,
    Hello,
    Part,
    Proof,
    Reach,
    Stored,
)

REACH = Reach({"b1": ["b1"]})


def link(name="b1", wanted="", *, secret=b"", secrets=None, is_caller=False, nonce=b"1"):
    manners = Manners(name, secrets or {}, secret)
    return Link(manners, wanted, nonce * NONCE, 0.0, is_caller=is_caller)


def talk(one, other, now=0.0):
    """Carry bytes until nobody says anything more; what each has for its broker."""
    found = {one: [], other: []}
    while True:
        said = one.take_bytes(), other.take_bytes()
        if not any(said):
            return found[one], found[other]
        found[other] += other.receive(said[0], now)
        found[one] += one.receive(said[1], now)


def pair(**more):
    one = link("b1", "b2", is_caller=True, **more)
    return one, link("b2", nonce=b"2", **more)


def test_two_brokers_greet_and_the_first_message_is_what_they_reach():
    one, other = pair(secret=b"s")
    assert talk(one, other) == ([], [])
    assert (one.state, other.state) == (LinkState.PROVED, LinkState.PROVED)
    assert (one.peer, other.peer) == ("b2", "b1")
    one.send(0.0, REACH, Stored("quotes", 3))
    assert talk(one, other) == ([], [REACH, Stored("quotes", 3)])
    assert other.state is LinkState.UP


def test_who_does_not_have_the_secret_is_not_let_in():
    cases = {
        "another secret": (link("b1", "b2", is_caller=True, secret=b"x"), link("b2", secret=b"s")),
        "none": (link("b1", "b2", is_caller=True), link("b2", secret=b"s")),
        "not that of this peer": (
            link("b1", "b2", is_caller=True, secret=b"s"),
            link("b2", secret=b"s", secrets={"b1": b"t"}),
        ),
    }
    for case, (one, other) in cases.items():
        talk(one, other)
        assert "does not have the secret" in other.closed_because, case
        assert one.is_closed
        assert one.is_final or other.is_final


def test_a_proof_cannot_be_sent_back_or_used_again():
    one = link("b1", "b2", is_caller=True, secret=b"s")
    one.receive(frame_of([Hello(1, 1, "b2", "", b"1" * NONCE)]), 0.0)
    proof = one._proof(mine=True)
    one.receive(frame_of([Proof(proof)]), 0.0)
    assert "does not have the secret" in one.closed_because


def test_names_and_versions_that_do_not_fit_end_the_link():
    cases = {
        "this is broker 'b1', not 'b7'": Hello(1, 1, "b2", "b7", b"2" * NONCE),
        "broker 'b2' was wanted, not 'b3'": Hello(1, 1, "b3", "b1", b"2" * NONCE),
        "speaks versions 1 to 1, b2 2 to 3": Hello(2, 3, "b2", "b1", b"2" * NONCE),
        "bytes that are used once": Hello(1, 1, "b2", "b1", b"2"),
    }
    for reason, hello in cases.items():
        one = link("b1", "b2", is_caller=True)
        one.receive(frame_of([hello]), 0.0)
        assert reason in one.closed_because


def test_a_later_version_speaks_ours():
    one = link("b1", "b2", is_caller=True)
    one.receive(frame_of([Hello(1, 5, "b2", "b1", b"2" * NONCE)]), 0.0)
    assert (one.state, one.version) == (LinkState.PROVING, HIGHEST)


def test_nothing_is_taken_before_the_link_is_up():
    one = link("b1", "b2", is_caller=True)
    assert one.receive(frame_of([Events("quotes", 1, [])]), 0.0) == []
    assert one.closed_because == "Events came while the link was greeting"


def test_signs_of_life():
    one, other = pair()
    talk(one, other)
    one.tick(1.9)
    assert one.take_bytes() == b""
    one.tick(2.0)
    assert one.take_bytes() == frame_of([Beat()])
    other.receive(frame_of([Beat()]), 9.0)
    other.tick(18.9)
    assert not other.is_closed
    other.tick(19.0)
    assert other.closed_because == "nothing was heard for 10 seconds"


def test_a_goodbye_says_why():
    one, other = pair()
    talk(one, other)
    one.close(0.0, "the broker stops")
    talk(one, other)
    assert other.closed_because == "b1 says: the broker stops"
    assert other.receive(frame_of([Goodbye("more")]), 0.0) == []


@settings(max_examples=50)
@given(st.lists(st.binary(max_size=60), max_size=5))
def test_any_bytes_end_a_link_at_most(pieces):
    one = link()
    for piece in pieces:
        assert one.receive(piece, 0.0) == []


def test_a_cycle_is_found_with_its_path():
    ours = {"b1": ["b1"], "b2": ["b1", "b2"], "b3": ["b1", "b2", "b3"]}
    assert cycle(ours, {"b4": ["b4"], "b5": ["b4", "b5"]}) is None
    theirs = {"b4": ["b4"], "b3": ["b4", "b3"]}
    assert cycle(ours, theirs) == ["b1", "b2", "b3", "b4", "b1"]
    assert cycle({"b1": ["b1"]}, {"b2": ["b2"], "b1": ["b2", "b1"]}) == ["b1", "b2", "b1"]


def test_manners_have_a_secret_for_each_peer():
    manners = Manners("b1", {"b2": b"two"}, b"all")
    assert (manners.secret_of("b2"), manners.secret_of("b3")) == (b"two", b"all")
    assert replace(manners, secret=b"").secret_of("b3") == b""


def sent_filters(filters):
    """The messages of filters that arrive."""
    one, other = pair()
    talk(one, other)
    one.send(0.0, REACH, filters)
    return talk(one, other)[1][1:]


def test_long_filters_are_cut_into_several_messages(monkeypatch):
    monkeypatch.setattr("tamis.broker.network.link.MOST_CHARACTERS", 20)
    added = {str(n): f"price < {n}" for n in range(5)}
    for is_full in (True, False):
        parts = sent_filters(Filters("quotes", "subscription", is_full, added, ["9"]))
        assert [len(part.added) for part in parts] == [2, 2, 1]
        assert [type(part) for part in parts] == [Part if is_full else Filters] * 2 + [Filters]
        assert {id_: text for part in parts for id_, text in part.added.items()} == added
        assert parts[-1].removed == ["9"]
    parts = sent_filters(Part("quotes", "subscription", added))
    assert [type(part) for part in parts] == [Part] * 3


def test_who_was_busy_does_not_give_the_other_side_up():
    one, other = pair()
    talk(one, other)
    one.was_busy(9.0)
    one.tick(12.0)
    assert not one.is_closed
    one.tick(19.5)
    assert one.is_closed
