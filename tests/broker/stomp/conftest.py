"""One broker for the tests of a file."""

from collections.abc import Iterator

import pytest

from stomp_brokers import StompBroker, stomp_broker


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StompBroker]:
    with stomp_broker(tmp_path_factory.mktemp("broker")) as broker:
        yield broker
