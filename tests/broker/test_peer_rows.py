"""What the catalogue keeps for the network comes back, and what is damaged does not."""

import pytest

from tamis.broker.catalogue import Catalogue
from tamis.broker.catalogue_change import CatalogueChange
from tamis.broker.peer_rows import Note, identity, notes, put_identity


@pytest.fixture
def catalogue(tmp_path):
    made = Catalogue(tmp_path / "catalogue.sqlite")
    yield made
    made.close()


def test_who_a_broker_is_comes_back(catalogue):
    assert identity(catalogue) is None
    catalogue.commit([put_identity("abc", 1)])
    catalogue.commit([put_identity("abc", 2)])
    assert identity(catalogue) == ("abc", 2)


def test_notes_come_back_without_those_that_are_damaged(catalogue):
    kept = [
        Note(1, "b", "profile", lambda: b"of b"),
        Note(1, "c", "profile", lambda: b"of c"),
        Note(1, "b", "mergers", lambda: b"other"),
        Note(2, "b", "profile", lambda: b"other"),
    ]
    catalogue.commit([note.catalogue_change() for note in kept])
    assert notes(catalogue, 1, "profile") == {"b": b"of b", "c": b"of c"}
    catalogue.commit(
        [CatalogueChange("UPDATE peer_notes SET content = ? WHERE peer = 'c'", (b"of x",))]
    )
    assert notes(catalogue, 1, "profile") == {"b": b"of b"}
