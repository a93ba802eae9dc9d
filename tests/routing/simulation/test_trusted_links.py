"""When the oracle relies on an edge."""

from types import SimpleNamespace

from tamis.routing.simulation.topology import line
from tamis.routing.simulation.trusted_links import Trust


def router(**sessions):
    """A router whose links are up in the given sessions, or down where there are none."""
    links = {
        name: SimpleNamespace(up=pair is not None, sessions=pair or (0, None), waiting=len(name))
        for name, pair in sessions.items()
    }
    return SimpleNamespace(link=links.__getitem__)


def joined():
    """B1 - B2 - B3, all up and settled at step 10."""
    trust = Trust(line(3))
    trust.look("B1", router(B2=(5, 6)), 1)
    trust.look("B2", router(B1=(6, 5), B3=(7, 8)), 2)
    trust.look("B3", router(B2=(8, 7)), 3)
    assert not trust.complete
    trust.settled(10)
    return trust


def test_an_edge_is_trusted_once_it_is_up_and_all_is_settled():
    trust = joined()
    assert trust.complete
    assert trust.missing == []
    assert trust.changes == 0
    assert trust.longest == 2
    assert trust.doubtful("B1", "B2", 0, 9)
    assert not trust.doubtful("B2", "B1", 11)


def test_ends_must_be_up_in_the_same_sessions():
    for other in (router(B1=None), router(B1=(6, 4)), router(B1=(5, 6))):
        trust = Trust(line(2))
        trust.look("B1", router(B2=(5, 6)), 1)
        trust.look("B2", other, 2)
        trust.settled(3)
        assert trust.missing == [("B1", "B2")]


def test_a_new_session_ends_trust_until_all_is_settled():
    trust = joined()
    trust.look("B3", router(B2=(9, None)), 20)
    assert trust.missing == [("B2", "B3")]
    assert trust.changes == 1
    trust.settled(25)
    assert trust.missing == [("B2", "B3")]
    trust.look("B3", router(B2=(9, 7)), 30)
    trust.look("B2", router(B1=(6, 5), B3=(7, 9)), 31)
    assert trust.missing == [("B2", "B3")]
    trust.settled(40)
    assert trust.complete
    path = ("B1", "B2", "B3")
    assert trust.doubtful_path(path, 11, 19) is None
    assert trust.doubtful_path(path, 11, 20) == ("B2", "B3")
    assert trust.doubtful_path(path, 39, 50) == ("B2", "B3")
    assert trust.doubtful_path(path, 41, 50) is None


def test_a_crash_ends_trust_in_all_edges_of_a_broker():
    trust = joined()
    trust.died("B2", 20)
    assert len(trust.missing) == 2
    trust.settled(21)
    assert len(trust.missing) == 2
