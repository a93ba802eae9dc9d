"""When the oracle relies on an edge."""

from types import SimpleNamespace

from tamis.routing.simulation.topology import line
from tamis.routing.simulation.trusted_links import TrustedLinks


def router(**sessions):
    """A router whose links are up in the given sessions, or down where there are none."""
    links = {
        name: SimpleNamespace(is_up=pair is not None, sessions=pair or (0, None), waiting=len(name))
        for name, pair in sessions.items()
    }
    return SimpleNamespace(link=links.__getitem__)


def joined():
    """B1 - B2 - B3, all up and settled at step 10."""
    links = TrustedLinks(line(3))
    links.observe("B1", router(B2=(5, 6)), 1)
    links.observe("B2", router(B1=(6, 5), B3=(7, 8)), 2)
    links.observe("B3", router(B2=(8, 7)), 3)
    assert not links.complete
    links.settled(10)
    return links


def test_an_edge_is_trusted_once_it_is_up_and_all_is_settled():
    links = joined()
    assert links.complete
    assert links.missing == []
    assert links.changes == 0
    assert links.longest_queue == 2
    assert links.doubtful("B1", "B2", 0, 9)
    assert not links.doubtful("B2", "B1", 11)


def test_ends_must_be_up_in_the_same_sessions():
    for other in (router(B1=None), router(B1=(6, 4)), router(B1=(5, 6))):
        links = TrustedLinks(line(2))
        links.observe("B1", router(B2=(5, 6)), 1)
        links.observe("B2", other, 2)
        links.settled(3)
        assert links.missing == [("B1", "B2")]


def test_a_new_session_ends_trust_until_all_is_settled():
    links = joined()
    links.observe("B3", router(B2=(9, None)), 20)
    assert links.missing == [("B2", "B3")]
    assert links.changes == 1
    links.settled(25)
    assert links.missing == [("B2", "B3")]
    links.observe("B3", router(B2=(9, 7)), 30)
    links.observe("B2", router(B1=(6, 5), B3=(7, 9)), 31)
    assert links.missing == [("B2", "B3")]
    links.settled(40)
    assert links.complete
    path = ("B1", "B2", "B3")
    assert links.doubtful_path(path, 11, 19) is None
    assert links.doubtful_path(path, 11, 20) == ("B2", "B3")
    assert links.doubtful_path(path, 39, 50) == ("B2", "B3")
    assert links.doubtful_path(path, 41, 50) is None


def test_a_crash_ends_trust_in_all_edges_of_a_broker():
    links = joined()
    links.crashed("B2", 20)
    assert len(links.missing) == 2
    links.settled(21)
    assert len(links.missing) == 2
