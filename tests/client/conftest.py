"""A broker that fails on demand, and a connection to it."""

import pytest

import fake_broker
import tamis


@pytest.fixture
def served():
    """A fake broker with the topic quotes, and its address."""
    with fake_broker.serving() as (broker, url):
        broker.topics["quotes"] = {"schema": {"symbol": "string", "price": "double"}}
        broker.events["quotes"] = []
        yield broker, url


@pytest.fixture
def connection(served):
    """A connection to the fake broker."""
    with tamis.connect(served[1]) as made:
        yield made
