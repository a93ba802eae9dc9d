"""Sessions of other kinds, each started by the first test that needs it."""

import pytest

from other_sessions import CLUSTER, CONNECT, OtherSession


@pytest.fixture(scope="session")
def cluster(tmp_path_factory):
    session = OtherSession(CLUSTER, tmp_path_factory.mktemp("cluster"))
    yield session
    session.stop()


@pytest.fixture(scope="session")
def connect(tmp_path_factory):
    session = OtherSession(CONNECT, tmp_path_factory.mktemp("connect"))
    yield session
    session.stop()
