"""Simulated brokers meet many faults, and log all of them."""

import logging

import pytest


@pytest.fixture(autouse=True)
def level_of_the_log():
    """What a test sets is set back."""
    logger = logging.getLogger("tamis.broker")
    level = logger.level
    yield
    logger.setLevel(level)
