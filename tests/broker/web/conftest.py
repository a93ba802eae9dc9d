"""One broker for all tests of a module; each test has topics of its own."""

import pytest

from served_broker import ServedBroker


@pytest.fixture(scope="module")
def served(tmp_path_factory):
    with ServedBroker(tmp_path_factory.mktemp("data")) as broker:
        yield broker
