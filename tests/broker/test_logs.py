"""Structured logs."""

import io
import json
import logging

import pytest

from tamis.broker import logs


@pytest.fixture
def root():
    """The state of the root logger, which `configure` replaces."""
    one, ours = logging.getLogger(), logging.getLogger("tamis")
    before = one.handlers[:], one.level, ours.level
    yield one
    one.handlers[:], ours.level = before[0], before[2]
    one.setLevel(before[1])


def logged(log_format, level="info"):
    stream = io.StringIO()
    logs.configure(level, log_format, stream)
    logger = logging.getLogger("tamis.broker")
    logger.debug("unheard")
    logger.info("a topic\nwas made", extra={"topic": "quotes", "size": 3})
    try:
        raise ValueError("no")
    except ValueError:
        logger.exception("failed")
    logging.getLogger("aiohttp").info("unheard")
    logging.getLogger("aiohttp").warning("heard")
    return stream.getvalue()


@pytest.mark.usefixtures("root")
def test_each_record_is_one_line_of_json():
    made, failed, other = (json.loads(line) for line in logged("json").splitlines())
    assert made.pop("time").endswith("Z")
    assert made == {
        "level": "info", "logger": "tamis.broker", "message": "a topic\nwas made",
        "topic": "quotes", "size": 3,
    }  # fmt: skip
    assert failed["level"] == "error"
    assert failed["error"].endswith("ValueError: no\n")
    assert other["logger"] == "aiohttp"


@pytest.mark.usefixtures("root")
def test_text_is_for_people():
    lines = logged("text").splitlines()
    assert lines[0].endswith("INFO    a topic")
    assert lines[1] == "was made topic='quotes' size=3"
    assert "ValueError: no" in lines


@pytest.mark.usefixtures("root")
def test_the_level_counts_for_tamis():
    assert "a topic" not in logged("text", "error")
