"""Nothing acknowledged is lost, whenever the broker is killed; TAMIS_KILLS kills more often."""

import asyncio
import os

import pytest

from broker_killing import Trial

KILLS = int(os.environ.get("TAMIS_KILLS", "3"))


@pytest.mark.long
def test_nothing_acknowledged_is_lost_and_nothing_comes_twice_unmarked(tmp_path):
    trial = Trial(tmp_path, seed=15)
    asyncio.run(trial.run(KILLS))
    assert trial.problems() == []
    assert trial.acknowledged
