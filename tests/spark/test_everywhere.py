"""The whole pipeline where nothing can rely on one process: a cluster, and Spark Connect."""

import subprocess
import sys
import time
from pathlib import Path

import pytest

from tamis import Matcher
from tamis.workloads import workload

pytestmark = pytest.mark.spark

PROCESS = "pyspark.sql.connect.streaming.worker.foreach_batch_worker"
SLOW = 2.5  # seconds; where PySpark is loaded sooner, a process must not be late
PROGRAM = Path(__file__).with_name("everything.py").read_text(encoding="utf-8")


def data():
    stock = workload("stock")
    table = stock.events(400, seed=5, density=0.95).to_pylist()
    events = [[n, row["symbol"], row["price"], row["volume"]] for n, row in enumerate(table)]
    filters = stock.subscriptions(300, seed=5)["filter"].to_pylist()
    # Symbols that are rare come with few events; some that all events know make up for it.
    filters += [f"price > {n * 10} OR volume < {n}" for n in range(20)] + ["symbol IS NULL"]
    filters += filters[-5:]
    subscriptions = [[f"s{n}", text] for n, text in enumerate(filters)] + [["typo", "prise < 3"]]
    changes = [
        ["s300", None],
        ["s301", "price < 10"],
        ["new", "symbol = 'S1'"],
        ["typo", "price <"],
    ]
    return events, subscriptions, changes


def pairs(events, held):
    matcher = Matcher(workload("stock").schema, engine="naive")
    matcher.subscribe_many(held)
    names = ("symbol", "price", "volume")
    return [
        [number, one]
        for number, *values in events
        for one in matcher.match(dict(zip(names, values, strict=True)))
    ]


def seconds_to_load():
    """How long a process that Connect starts for a stream takes to load PySpark."""
    began = time.perf_counter()
    subprocess.run([sys.executable, "-c", f"import {PROCESS}"], check=True)
    return time.perf_counter() - began


@pytest.mark.parametrize(("place", "stream_mode"), [("cluster", "sharded"), ("connect", "whole")])
def test_every_way_finds_the_same_everywhere(place, stream_mode, request):
    events, subscriptions, changes = data()
    session = request.getfixturevalue(place)
    said, _ = session.run(PROGRAM, [events, subscriptions, changes, stream_mode])

    before = dict(subscriptions[:-1])
    wanted = sorted(pairs(events, before))
    assert ("connect" in said["kind"]) == (place == "connect")
    assert said["whole"] == wanted
    assert said["sharded"] == wanted
    assert said["whole written"] == said["sharded written"] == wanted
    assert said["whole counted"] == said["sharded counted"] == [len(wanted), 1]
    assert said.get("tried again", wanted) == wanted
    assert said["restored"] == wanted
    assert said["duplicates"] == 5
    assert len(wanted) > 1000
    counts = [[number, sum(pair[0] == number for pair in wanted)] for number in range(len(events))]
    assert said["counts"] == counts
    assert said["profile"] == len(events)

    after = before | dict(changes[:-1])
    after = {one: text for one, text in after.items() if text is not None}
    half = len(events) // 2
    if said["stream"] is None:
        seconds = seconds_to_load()
        assert seconds > SLOW
        pytest.skip(
            f"PySpark takes {seconds:.0f} s to load, and Connect gives a stream's process 10"
        )
    assert said["stream"] == sorted(pairs(events[:half], before) + pairs(events[half:], after))
