"""A network of processes loses nothing, whatever happens to them; TAMIS_CHAOS is for how long."""

import asyncio
import os

import pytest

from network_chaos import Trial

SECONDS = float(os.environ.get("TAMIS_CHAOS", "5"))


@pytest.mark.long
def test_nothing_acknowledged_is_lost_and_no_broker_has_anything_twice(tmp_path):
    trial = Trial(tmp_path, seed=16)
    asyncio.run(trial.run(SECONDS, brokers=3, changes=SECONDS > 30))
    assert trial.problems() == []
    assert trial.acknowledged
