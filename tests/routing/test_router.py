import pytest

from cases import each
from direct_network import SCHEMA, DirectNetwork
from tamis.errors import OptionError, RoutingError
from tamis.routing.limits import RouterLimits
from tamis.routing.links import Timing
from tamis.routing.messages import (
    Ack,
    Advertise,
    Connect,
    Disconnect,
    Hello,
    LinkDown,
    LinkUp,
    Packet,
    Publish,
    Receipt,
    Subscribe,
    Tick,
    Unadvertise,
    Unsubscribe,
)
from tamis.routing.router import Router
from tamis.routing.strategies import STRATEGIES, Merging

LINE = [("a", "b"), ("b", "c")]
WITH_ADVERTISEMENTS = [name for name in STRATEGIES if name.startswith("advertisements")]


@each("strategy", STRATEGIES)
def test_an_event_finds_its_subscribers_and_no_one_else(strategy):
    net = DirectNetwork(LINE, strategy)
    net.connect("a.bob", "b.eve", "c.pub")
    net.say("a.bob", Subscribe, "s1", "price > 5")
    net.say("a.bob", Subscribe, "s2", "price > 7")
    net.say("b.eve", Subscribe, "s1", "symbol = 'IBM'")
    net.say("c.pub", Advertise, "a1", "price > 0")
    for number, event in enumerate(
        [{"price": 6}, {"price": 9}, {"price": 1, "symbol": "IBM"}, {"price": 2}]
    ):
        net.say("c.pub", Publish, str(number), event)
    assert net.acks("a.bob") == [("Subscribe", "s1"), ("Subscribe", "s2")]
    assert net.events("a.bob") == [("c.pub/0", ("s1",)), ("c.pub/1", ("s1", "s2"))]
    assert net.events("b.eve") == [("c.pub/2", ("s1",))]
    assert net.acks("c.pub") == [("Advertise", "a1"), *[("Publish", str(n)) for n in range(4)]]


@each("strategy", STRATEGIES)
def test_nothing_is_left_when_all_clients_have_gone(strategy):
    net = DirectNetwork(LINE, strategy)
    net.connect("a.bob", "c.pub")
    net.say("a.bob", Subscribe, "s1", "price > 5")
    net.say("a.bob", Subscribe, "s2", "price > 7")
    net.say("c.pub", Advertise, "a1", "price > 0")
    net.say("a.bob", Unsubscribe, "s1")
    net.say("a.bob", Disconnect)
    net.say("c.pub", Unadvertise, "a1")
    assert net.is_empty()
    assert all(router.settled for router in net.routers.values())


def test_subscriptions_go_only_where_they_are_advertised():
    net = DirectNetwork([("a", "b"), ("b", "c"), ("b", "d")])
    net.connect("a.bob", "c.pub")
    net.say("a.bob", Subscribe, "s1", "price > 5")
    assert net.held("b", "a") == []
    net.say("c.pub", Advertise, "a1", "price BETWEEN 0 AND 9")
    assert net.held("c", "b") == ["price > 5"]
    assert net.held("d", "b") == []
    net.say("a.bob", Subscribe, "s2", "price > 20")  # not advertised
    assert net.held("b", "a") == ["price > 5"]


def test_what_is_covered_is_not_forwarded_and_comes_back_when_its_cover_goes():
    net = DirectNetwork(LINE, "simple+covering")
    net.connect("a.bob", "a.eve")
    net.say("a.bob", Subscribe, "wide", "price > 5")
    net.say("a.eve", Subscribe, "narrow", "price > 7")
    assert net.held("b", "a") == ["price > 5"]
    assert net.acks("a.eve") == [("Subscribe", "narrow")]
    net.carried.clear()
    net.say("a.bob", Unsubscribe, "wide")
    assert net.held("c", "b") == net.held("b", "a") == ["price > 7"]
    inside = [
        p.message for s, r, p in net.carried if isinstance(p, Packet) and (s, r) == ("a", "b")
    ]
    assert [type(m).__name__ for m in inside] == ["Subscribe", "Unsubscribe"]
    assert net.acks("a.bob")[-1] == ("Unsubscribe", "wide")


def test_a_wider_subscription_takes_the_place_of_narrower_ones():
    net = DirectNetwork(LINE, "simple+covering")
    net.connect("a.bob")
    for number in (7, 8, 9):
        net.say("a.bob", Subscribe, f"s{number}", f"price = {number}")
    assert len(net.held("c", "b")) == 3
    net.say("a.bob", Subscribe, "all", "price >= 5")
    assert net.held("c", "b") == ["price >= 5"]


def test_a_replacement_is_established_before_the_old_one_goes():
    net = DirectNetwork(LINE, "simple+covering")
    net.connect("a.bob", "a.eve")
    net.say("a.bob", Subscribe, "wide", "price > 5")
    net.say("a.eve", Subscribe, "narrow", "price > 7")
    net.cut.add(frozenset("bc"))  # c does not answer
    net.say("a.bob", Unsubscribe, "wide")
    assert net.held("b", "a") == ["price > 7"]
    assert net.routers["b"].tables().sent_subscriptions["c"] == ("price > 5", "price > 7")
    assert net.held("c", "b") == ["price > 5"]
    assert net.acks("a.bob") == [("Subscribe", "wide")]
    net.cut.clear()
    net.later(2)
    assert net.held("c", "b") == ["price > 7"]
    assert net.acks("a.bob")[-1] == ("Unsubscribe", "wide")


def test_a_subscription_is_established_when_the_last_broker_has_it():
    net = DirectNetwork(LINE, "simple")
    net.connect("a.bob")
    net.cut.add(frozenset("bc"))
    net.say("a.bob", Subscribe, "s1", "price > 5")
    assert net.acks("a.bob") == []
    assert not net.routers["a"].settled
    net.cut.clear()
    net.later(2)
    assert net.acks("a.bob") == [("Subscribe", "s1")]
    assert net.routers["a"].settled


def test_an_advertisement_is_established_when_subscriptions_have_come_back():
    net = DirectNetwork(LINE)
    net.connect("a.bob", "c.pub")
    net.say("a.bob", Subscribe, "s1", "price > 5")
    net.cut.add(frozenset("ab"))
    net.say("c.pub", Advertise, "a1", "price > 0")
    assert net.acks("c.pub") == []
    net.cut.clear()
    net.later(2)
    assert net.acks("c.pub") == [("Advertise", "a1")]
    assert net.held("c", "b") == ["price > 5"]


def test_a_filter_is_replaced_under_its_id():
    net = DirectNetwork(LINE, "simple")
    net.connect("a.bob", "c.pub")
    net.say("a.bob", Subscribe, "s1", "price > 5")
    net.say("a.bob", Subscribe, "s1", "price > 8")
    net.say("c.pub", Publish, "1", {"price": 6})
    net.say("c.pub", Publish, "2", {"price": 9})
    assert net.events("a.bob") == [("c.pub/2", ("s1",))]
    assert net.held("c", "b") == ["price > 8"]


def test_two_clients_with_one_filter_need_one_entry():
    net = DirectNetwork(LINE, "simple")
    net.connect("a.bob", "a.eve")
    net.say("a.bob", Subscribe, "s1", "price>5")
    net.say("a.eve", Subscribe, "s1", "(price > 5)")
    assert net.held("b", "a") == ["price > 5"]
    net.say("a.bob", Unsubscribe, "s1")
    assert net.held("b", "a") == ["price > 5"]


# --- failures


def test_a_neighbour_that_does_not_answer_has_failed_and_comes_back():
    net = DirectNetwork(LINE, "simple", timing=Timing(t1=1, t2=5))
    net.connect("a.bob", "c.pub")
    net.say("a.bob", Subscribe, "s1", "price > 5")
    net.cut.add(frozenset("bc"))
    net.say("c.pub", Publish, "1", {"price": 9})
    net.later(6)
    assert net.routers["c"].counters.failures == 1
    assert net.routers["c"].counters.lost == 1
    assert net.held("c", "b") == []
    net.cut.clear()
    net.later(3)
    assert net.held("c", "b") == ["price > 5"]
    net.say("c.pub", Publish, "2", {"price": 9})
    assert net.events("a.bob") == [("c.pub/2", ("s1",))]


def test_what_was_sent_in_a_short_silence_arrives():
    net = DirectNetwork(LINE, "simple", timing=Timing(t1=1, t2=5))
    net.connect("a.bob", "c.pub")
    net.say("a.bob", Subscribe, "s1", "price > 5")
    net.cut.add(frozenset("bc"))
    for number in range(200):  # more than are sent again at once
        net.say("c.pub", Publish, str(number), {"price": 9})
    net.later(3)
    net.cut.clear()
    net.later(8)
    assert net.events("a.bob") == [(f"c.pub/{number}", ("s1",)) for number in range(200)]


def test_a_broker_that_lost_its_memory_learns_again():
    net = DirectNetwork(LINE)
    net.connect("a.bob", "c.pub")
    net.say("a.bob", Subscribe, "s1", "price > 5")
    net.say("c.pub", Advertise, "a1", "price > 0")
    net.routers["b"] = Router("b", SCHEMA, neighbours=["a", "c"], incarnation=1)
    net._send("b", net.routers["b"].start(net.now))
    net.carry()
    assert net.held("c", "b") == net.held("b", "a") == ["price > 5"]
    net.say("c.pub", Publish, "1", {"price": 9})
    assert net.events("a.bob") == [("c.pub/1", ("s1",))]


def test_the_host_may_say_that_a_link_is_down_and_up_again():
    net = DirectNetwork(LINE, "simple")
    net.connect("a.bob")
    net.say("a.bob", Subscribe, "s1", "price > 5")
    for name, other in (("a", "b"), ("b", "a")):
        net._send(name, net.routers[name].handle(LinkDown(other), net.now))
    net.carry()
    assert net.held("c", "b") == []
    assert net.routers["a"].next_time() is None  # it does not even try
    net._send("a", net.routers["a"].handle(LinkUp("b"), net.now))
    net.carry()
    assert net.held("c", "b") == ["price > 5"]


def test_a_neighbour_can_be_met_later():
    net = DirectNetwork(LINE, "simple")
    net.connect("a.bob")
    net.say("a.bob", Subscribe, "s1", "price > 5")
    net.routers["d"] = Router("d", SCHEMA, strategy="simple")
    for name, other in (("c", "d"), ("d", "c")):
        net._send(name, net.routers[name].handle(LinkUp(other), net.now))
    net.carry()
    assert net.held("d", "c") == ["price > 5"]


def test_a_queue_that_is_too_long_counts_as_failure():
    net = DirectNetwork(LINE, "simple", limits=RouterLimits(waiting=10))
    net.connect("a.bob", "c.pub")
    net.say("a.bob", Subscribe, "s1", "price > 5")
    net.cut.add(frozenset("bc"))
    for number in range(11):
        net.say("c.pub", Publish, str(number), {"price": 9})
    assert net.routers["c"].link("b").waiting == 0
    assert net.routers["c"].counters.lost == 11
    assert net.held("c", "b") == []


def test_old_packets_and_acks_for_nothing_change_nothing():
    net = DirectNetwork(LINE, "simple")
    net.connect("a.bob")
    net.say("a.bob", Subscribe, "s1", "price > 5")
    router = net.routers["b"]
    tables = router.tables()
    mine, theirs = router.link("a").sessions
    ignored = router.counters.ignored
    assert (
        router.handle(Packet("a", theirs + 1, mine, 0, Subscribe("a", "9", "price > 1")), 0) == []
    )
    assert router.handle(Receipt("a", theirs, mine + 1, 5), 0) == []
    sends = router.handle(Packet("a", theirs, mine, 2, Ack("a", "999")), 0)
    assert [type(message) for _, message in sends] == [Receipt]
    sends = router.handle(Packet("a", theirs, mine, 0, Subscribe("a", "9", "price > 1")), 0)
    assert [type(message) for _, message in sends] == [Receipt]  # known, only confirmed again
    assert router.tables() == tables
    assert router.counters.ignored > ignored


def test_a_late_greeting_of_the_past_is_ignored():
    net = DirectNetwork(LINE, "simple")
    router = net.routers["b"]
    before = router.link("a").sessions
    assert router.handle(Hello("a", before[1] - 1, None), 0) == []
    assert router.link("a").sessions == before
    assert router.link("a").is_up


# --- bad input


def test_unknown_senders_are_refused():
    router = Router("b", SCHEMA, neighbours=["a"])
    with pytest.raises(RoutingError, match="'x' is not a neighbour of 'b'; a LinkUp makes it one"):
        router.handle(Hello("x", 1, None), 0)
    with pytest.raises(RoutingError, match="'x' is not a client of 'b'; a Connect makes it one"):
        router.handle(Subscribe("x", "s1", "price > 5"), 0)
    with pytest.raises(RoutingError, match="'a' is a neighbour of 'b': its messages come in"):
        router.handle(Subscribe("a", "s1", "price > 5"), 0)
    with pytest.raises(RoutingError, match="takes Ack only from a neighbour"):
        router.handle(Ack("a", "1"), 0)


def test_names_are_not_shared():
    router = Router("b", SCHEMA, neighbours=["a"])
    router.handle(Connect("bob"), 0)
    with pytest.raises(RoutingError, match="'bob' is already a client of 'b'"):
        router.handle(Connect("bob"), 0)
    with pytest.raises(RoutingError, match="'a' is the name of a broker"):
        router.handle(Connect("a"), 0)
    with pytest.raises(RoutingError, match="'bob' cannot be a neighbour"):
        router.handle(LinkUp("bob"), 0)
    with pytest.raises(RoutingError, match="the name is taken"):
        Router("b", SCHEMA, neighbours=["a", "a"])


@pytest.mark.parametrize("kind", [Unsubscribe, Unadvertise])
def test_taking_back_twice_is_refused(kind):
    net = DirectNetwork(LINE)
    net.connect("a.bob")
    net.say("a.bob", Subscribe, "s1", "price > 5")
    net.say("a.bob", Advertise, "s1", "price > 5")
    net.say("a.bob", kind, "s1")
    net.say("a.bob", kind, "s1")
    noun = "subscription" if kind is Unsubscribe else "advertisement"
    assert net.refusals("a.bob") == [f"'a.bob' has no {noun} 's1'"]


def test_a_bad_filter_is_refused_with_its_place():
    net = DirectNetwork(LINE)
    net.connect("a.bob")
    net.say("a.bob", Subscribe, "s1", "prise > 5")
    (reason,) = net.refusals("a.bob")
    assert "did you mean 'price'?" in reason
    assert net.is_empty()


def test_a_subscription_that_can_never_match_is_refused():
    net = DirectNetwork(LINE)
    net.connect("a.bob")
    net.say("a.bob", Subscribe, "s1", "price > 5 AND price < 3")
    assert net.refusals("a.bob") == [
        "no event can ever match 'price > 5 AND price < 3'; nothing was changed"
    ]
    assert net.is_empty()


@each("strategy", WITH_ADVERTISEMENTS)
def test_a_publication_that_was_not_advertised_is_refused(strategy):
    net = DirectNetwork(LINE, strategy)
    net.connect("a.bob", "c.pub")
    net.say("a.bob", Subscribe, "s1", "price > 0")
    net.say("c.pub", Publish, "0", {"price": 1})
    net.say("c.pub", Advertise, "a1", "price > 5")
    net.say("c.pub", Publish, "1", {"price": 1})
    assert net.refusals("c.pub") == [
        "'c.pub' has advertised nothing; advertise before publishing",
        "the event matches no advertisement of 'c.pub', which has advertised: price > 5",
    ]
    assert net.events("a.bob") == []


def test_a_publication_that_does_not_fit_the_schema_is_refused():
    net = DirectNetwork(LINE, "simple")
    net.connect("c.pub")
    net.say("c.pub", Publish, "1", {"price": "much"})
    (reason,) = net.refusals("c.pub")
    assert "price" in reason


def test_clients_have_a_limit():
    net = DirectNetwork(LINE, "simple", limits=RouterLimits(filters=1))
    net.connect("a.bob")
    net.say("a.bob", Subscribe, "s1", "price > 5")
    net.say("a.bob", Subscribe, "s2", "price > 6")
    net.say("a.bob", Subscribe, "s1", "price > 7")
    assert len(net.refusals("a.bob")) == 1
    assert net.held("a", "a.bob") == ["price > 7"]


def test_settings_are_checked():
    with pytest.raises(OptionError, match="t1 must be above 0 and below t2"):
        Timing(t1=5, t2=5)
    with pytest.raises(OptionError, match="unknown strategy 'flood'; did you mean 'flooding'"):
        Router("a", SCHEMA, strategy="flood")
    with pytest.raises(OptionError, match="at least 1"):
        RouterLimits(waiting=0)


def test_a_failed_call_changes_nothing():
    net = DirectNetwork(LINE, "simple")
    before = net.routers["b"].tables(), net.routers["b"].next_time()
    with pytest.raises(RoutingError):
        net.routers["b"].handle(Disconnect("x"), 5)
    assert (net.routers["b"].tables(), net.routers["b"].next_time()) == before
    assert net.routers["b"].handle(Tick(), 5) == []


# --- merging


def test_a_merger_is_sent_in_place_of_its_parts_and_cancelled_with_one():
    """Fig. 9 of the MBD paper: S1 and S2 of brokers 1 and 2 are S3 for broker 4."""
    star = [("1", "3"), ("2", "3"), ("3", "4")]
    net = DirectNetwork(star, "advertisements+perfect", merging=Merging("size 2"))
    net.connect("1.one", "2.two", "4.pub")
    net.say("4.pub", Advertise, "a", "price >= 0")
    net.say("1.one", Subscribe, "s1", "price = 150")
    net.say("2.two", Subscribe, "s2", "price < 150")
    assert net.held("4", "3") == ["price <= 150"]
    assert net.held("3", "1") == ["price = 150"]
    net.say("4.pub", Publish, "p", {"price": 150})
    assert net.events("1.one") == [("4.pub/p", ("s1",))]
    assert net.events("2.two") == []
    net.say("1.one", Unsubscribe, "s1")
    assert net.held("4", "3") == ["price < 150"]


def test_what_an_imperfect_merger_lets_through_ends_before_clients():
    net = DirectNetwork(
        LINE, "advertisements+imperfect", merging=Merging("size 2", threshold=1.0, rules="paper")
    )
    net.connect("a.bob", "c.pub")
    net.say("c.pub", Advertise, "a", "price >= 0")
    net.say("a.bob", Subscribe, "s1", "price = 10")
    net.say("a.bob", Subscribe, "s2", "price > 20")
    (merger,) = net.held("c", "b")
    assert merger == "price >= 10"
    net.say("c.pub", Publish, "p", {"price": 15})
    assert net.events("a.bob") == []
    assert net.routers["a"].counters.false_positives == 1


def test_a_broker_that_merges_by_time_asks_for_a_tick():
    net = DirectNetwork([("a", "b")], "advertisements+perfect", merging=Merging("every 10s"))
    net.connect("a.bob", "b.pub")
    net.say("b.pub", Advertise, "a", "price >= 0")
    net.say("a.bob", Subscribe, "s1", "price = 10")
    net.say("a.bob", Subscribe, "s2", "price = 11")
    assert len(net.held("b", "a")) == 2
    assert net.routers["a"].next_time() == 10
    net.later(10)
    assert len(net.held("b", "a")) == 1
    assert net.routers["a"].next_time() is None
