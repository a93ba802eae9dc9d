"""A broker for the commands that talk to one."""

import pytest

import fake_broker


@pytest.fixture
def broker(monkeypatch):
    """A fake broker with the topic quotes, at the address of TAMIS_URL."""
    with fake_broker.serving() as (made, url):
        made.topics["quotes"] = {
            "schema": {"symbol": "string", "price": "double"}, "semantics": "sql",
        }  # fmt: skip
        made.events["quotes"] = []
        monkeypatch.setenv("TAMIS_URL", url)
        yield made
